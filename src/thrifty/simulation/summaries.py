"""Summaries of samples over runs: mean, quantiles, and an interval of the mean that covers where tails are heavy.

Regret has a heavy tail: a few runs in a hundred cost many times the usual. A sample of 50 runs may have none of them, and then
both its mean and its standard error are too small. So the interval of a mean is the wider, at each end, of two:

- Student's interval with Hall's correction for skewness [Hall1992];
- an interval that models the tails [Johansson2003]: the values below the first quartile and above the third have generalised
  Pareto laws [Pickands1975], cut off at the smallest and the largest value that is possible. Their parameters have the posterior
  under a flat prior; the middle half has the mean and the standard error that it shows.

References
----------
[Hall1992] Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54.
[Johansson2003] Johansson, "Estimating the mean of heavy-tailed distributions", Extremes 6.
[Pickands1975] Pickands, "Statistical inference using extreme order statistics", Annals of Statistics 3.

"""

import math
from functools import lru_cache

import numpy as np

from thrifty.arrays import Floats

LEVEL = 0.95
"""How often an interval is meant to cover."""

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
"""The quantiles of every summary, by name."""

_SHARE = 0.25  # of the runs in each tail
_MOST_IN_A_TAIL = 100
_DRAWS = 2000
_ENDS = ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0)
_SHAPES = np.linspace(-0.5, 1.0, 16)  # of a tail: 0 is exponential, and from 1 on there is no mean without a cut
_SCALES = np.geomspace(0.1, 10.0, 25)  # of a tail, relative to its mean excess


def summarise(samples: Floats) -> dict[str, Floats]:
    """Mean, standard deviation, standard error and quantiles over the first axis; both deviations are 0 for a single run.

    >>> {name: float(value) for name, value in summarise(np.array([1.0, 2.0, 3.0])).items()}["median"]
    2.0
    """
    runs = samples.shape[0]
    sd = samples.std(axis=0, ddof=1) if runs > 1 else np.zeros(samples.shape[1:])
    quantiles = np.quantile(samples, list(QUANTILES.values()), axis=0)
    return {"mean": samples.mean(axis=0), "sd": sd, "se": sd / np.sqrt(runs)} | dict(zip(QUANTILES, quantiles, strict=True))


def mean_interval(samples: Floats, *, lowest: float, highest: float) -> tuple[float, float]:
    """An interval that is meant to cover the true mean in 95% of samples, also if tails are heavy.

    Without any variation there is no width, and a single value says nothing but the range: what no run showed, no interval shows.

    Parameters
    ----------
    samples : (runs,) independent values
    lowest : no value can be smaller
    highest : no value can be larger

    >>> low, high = mean_interval(np.array([40.0, 55.0, 70.0, 90.0, 120.0, 150.0, 300.0, 900.0]), lowest=0.0, highest=10_000.0)
    >>> round(low, -1), round(high, -1)
    (50.0, 1110.0)
    >>> mean_interval(np.full(50, 63.0), lowest=0.0, highest=1000.0)
    (63.0, 63.0)

    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if ordered.size == 1:
        return lowest, highest
    if ordered[0] == ordered[-1]:
        return float(ordered[0]), float(ordered[0])
    ends = np.transpose([_skewed_interval(ordered), _tailed_interval(ordered, lowest, highest)])
    return max(float(ends[0].min()), lowest), min(float(ends[1].max()), highest)


def mean_intervals(samples: Floats, *, highest: Floats) -> dict[str, Floats]:
    """`mean_interval` of every column of regrets (runs, columns), each at most `highest` (columns,): low and high, (columns,)."""
    ends = [mean_interval(column, lowest=0.0, highest=most) for column, most in zip(samples.T, highest.tolist(), strict=True)]
    low, high = np.transpose(ends)
    return {"low": low, "high": high}


def _skewed_interval(samples: Floats) -> tuple[float, float]:
    """Student's interval with Hall's correction for skewness [Hall1992]."""
    n, mean = samples.size, samples.mean()
    error, skewness = samples.std(ddof=1) / math.sqrt(n), float((((samples - mean) / samples.std()) ** 3).mean())
    half = _student(n)
    return mean - error * _unskewed(half, skewness, n), mean - error * _unskewed(-half, skewness, n)


def _unskewed(point: float, skewness: float, n: int) -> float:
    """The inverse of Hall's transformation, which takes the skewness out of a studentised mean."""
    slope = skewness / math.sqrt(n)
    if abs(slope) < 1e-6:
        return point
    return 3.0 / slope * (float(np.cbrt(1.0 + slope * (point - slope / 6.0))) - 1.0)


def _student(n: int) -> float:
    """The 97.5% point of Student's law for n values, by its expansion around the normal one: within 3% from 3 values on."""
    freedom = n - 1.0
    return 1.95996 + 2.3723 / freedom + 2.8225 / freedom**2 + 2.5556 / freedom**3


def _tailed_interval(ordered: Floats, lowest: float, highest: float) -> tuple[float, float]:
    """The middle of the posterior of the mean where each tail has a generalised Pareto law."""
    size = min(math.ceil(_SHARE * ordered.size), _MOST_IN_A_TAIL, (ordered.size - 1) // 2)
    left, right = ordered[size], ordered[-size - 1]
    lower, upper = ordered[ordered < left], ordered[ordered > right]
    middle = ordered[(ordered >= left) & (ordered <= right)]
    normal, one, other, shares = _standard_draws(lower.size, middle.size, upper.size)
    error = middle.std(ddof=1) / math.sqrt(middle.size) if middle.size > 1 else 0.0
    means = (
        left - _tail_means(left - lower, left - lowest, one),
        middle.mean() + error * normal,
        right + _tail_means(upper - right, highest - right, other),
    )
    low, high = np.quantile(sum(share * mean for share, mean in zip(shares.T, means, strict=True)), _ENDS)
    return float(low), float(high)


@lru_cache(maxsize=16)
def _standard_draws(lower: int, middle: int, upper: int) -> tuple[Floats, ...]:
    """Normal and two uniform draws, and the shares of three parts with so many runs. The same samples get the same draws."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([lower + 0.5, middle + 0.5, upper + 0.5], _DRAWS)
    return rng.standard_normal(_DRAWS), rng.random(_DRAWS), rng.random(_DRAWS), shares


def _tail_means(excesses: Floats, longest: float, uniforms: Floats) -> Floats:
    """Draws from the posterior of a tail's mean excess. Excesses are positive, and none can be larger than `longest`."""
    if excesses.size == 0:
        return np.zeros(uniforms.size)
    shapes, scales = _SHAPES[:, np.newaxis], _SCALES * excesses.mean()
    inside = 1.0 + shapes[..., np.newaxis] * excesses / scales[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(inside, 0.0)).sum(axis=-1)
        powers = np.where(shapes == 0.0, excesses.sum() / scales, (1.0 / shapes + 1.0) * logs)
    likelihoods = np.where((inside > 0.0).all(axis=-1), -excesses.size * np.log(scales) - powers, -np.inf)
    weights = np.cumsum(np.exp(likelihoods - likelihoods.max()))
    picked = np.searchsorted(weights, uniforms * weights[-1])
    return np.asarray(_mean_excess(shapes, scales, longest).ravel()[picked])


def _mean_excess(shape: Floats, scale: Floats, longest: float) -> Floats:
    """The mean of a generalised Pareto law whose values beyond `longest` are moved there: its survival integrated up to there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.maximum(1.0 + shape * longest / scale, 0.0)  # 0 where the law ends before
        usual = scale / (1.0 - shape) * (1.0 - left ** (1.0 - 1.0 / shape))
        found = np.where(shape == 0.0, scale * (1.0 - np.exp(-longest / scale)), usual)
        return np.where(shape == 1.0, scale * np.log(left), found)
