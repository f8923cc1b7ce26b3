"""Contrasts: differences between arms of a segment with their standard errors, from the bootstrap's replicates."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.aggregates import RR, N, R
from thrifty.logs.bootstrap import block_groups, student
from thrifty.logs.estimators import SegmentEstimates

REWARD, COST = 0, 1
"""The metrics of a contrast."""


@dataclass(frozen=True, eq=False)
class Contrast:
    """An arm less `factor` times another: the estimate, its standard error and (B,) the errors of the replicates."""

    value: float
    error: float
    errors: Floats


def contrast(estimates: SegmentEstimates, arm: int, other: int, *, factor: float = 1.0, metric: int = REWARD) -> Contrast:
    """The mean reward (or cost) of `arm` less `factor` times that of `other`.

    Where all rewards of an arm are equal the bootstrap has nothing to vary. Then two successes and two failures are added to its
    rows for the standard error [Agresti1998]. The error is 0 for listed prices.

    References
    ----------
    [Agresti1998] Agresti, Coull, "Approximate is better than exact for interval estimation of binomial proportions", 1998.

    """
    values = estimates.replicates["dr"][metric]
    both = values[:, arm] - factor * values[:, other]
    errors = np.asarray(both[1:] - both[0], dtype=np.float64)
    variance = float(errors.var(ddof=1))
    if metric == REWARD:
        variance += _hidden_variance(estimates, arm) + factor**2 * _hidden_variance(estimates, other)
    error = float(np.sqrt(variance))
    rounding = 1e-9 * float(abs(values[0, arm]) + abs(values[0, other]))
    return Contrast(float(both[0]), error if error > rounding else 0.0, errors)


def _hidden_variance(estimates: SegmentEstimates, arm: int) -> float:
    """The variance of the mean reward of an arm whose rewards are all equal; 0 for others."""
    totals = estimates.sums.totals[arm]
    if totals[RR] * totals[N] - totals[R] ** 2 > 1e-12 * totals[N] ** 2:
        return 0.0
    rows = float(estimates.effective[arm]) + 4.0
    mean = (float(totals[R] / totals[N]) * (rows - 4.0) + 2.0) / rows
    return mean * (1.0 - mean) / rows


def reward_variance(estimates: SegmentEstimates, arm: int) -> float:
    """The variance of one reward of an arm, two successes and two failures added.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> reward_variance(examine(Log(frame)).estimates[0], 1)
    0.25
    """
    totals = estimates.sums.totals[arm]
    rows = totals[N] + 4.0
    mean = (totals[R] + 2.0) / rows
    return float((totals[RR] + 2.0) / rows - mean**2)


def quantile(level: float, n_blocks: int) -> float:
    """The quantile of a standardised estimate: of the normal law, widened as Student's t is for the blocks of this log.

    >>> round(quantile(0.975, 100), 2)
    1.99
    """
    return NormalDist().inv_cdf(level) * widening(n_blocks)


def widening(n_blocks: int) -> float:
    """How much wider an interval is than one of the normal law, because standard errors are estimated from blocks of time."""
    return student(n_blocks - len(block_groups(n_blocks))) / NormalDist().inv_cdf(0.975)
