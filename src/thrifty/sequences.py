"""Confidence sequences: intervals of a mean that hold at all times at once, so that one may look after every outcome.

For values x_i in [0, 1] with means m_i given the past, f_i a guess that is made before x_i is known, and 0 <= l < 1,

    exp(l sum(x_i - m_i) - (-log(1 - l) - l) sum((x_i - f_i)^2))

is a supermartingale that starts at 1 [Fan2015] [Howard2021, Theorem 4]. So is a mixture of them over fixed l, and by Ville's
inequality it is ever 1/a or more with a probability of at most a. This bounds sum(x_i - m_i) at all times, for any law, and for
means that move: the mean that it is about is the average of the m_i so far.

References ---------- [Fan2015] Fan, Grama, Liu, "Exponential inequalities for martingales with applications", Electronic Journal
of Probability 20, 2015. [Howard2021] Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 49, 2021.

"""

from dataclasses import dataclass

import numpy as np

from thrifty.arrays import Floats

_STEPS = np.arange(50)
RATES = 0.9 * 2.0 ** (-_STEPS / 2.0)
WEIGHTS = 1.0 / ((_STEPS + 1.0) * (_STEPS + 2.0))
"""The mixture: rates l from 0.9 down to 4e-8, and their weights, which add up to less than 1."""

_PRICES = -np.log1p(-RATES) - RATES


def log_wealth(excess: Floats, squares: Floats) -> Floats:
    """(n,) the logarithm of the mixture for sums of (x - m) and sums of (x - f)^2.

    >>> bool(log_wealth(np.array([30.0]), np.array([20.0]))[0] > np.log(20))
    True
    """
    terms = np.log(WEIGHTS) + RATES * excess[:, np.newaxis] - _PRICES * squares[:, np.newaxis]
    top = terms.max(axis=1)
    return np.asarray(top + np.log(np.exp(terms - top[:, np.newaxis]).sum(axis=1)))


def boundary(squares: Floats, level: float) -> Floats:
    """(n,) how far the sum of (x - m) may be above 0 if the sum of (x - f)^2 is `squares`, at all times, but for a `level`.

    >>> boundary(np.array([0.0, 100.0]), 0.05).round(1).tolist()
    [3.9, 36.9]
    """
    low, high = np.zeros(squares.size), np.full(squares.size, 10.0)
    target = -np.log(level)
    while (short := log_wealth(high, squares) < target).any():
        high = np.where(short, 2.0 * high, high)
    for _ in range(50):
        middle = (low + high) / 2.0
        below = log_wealth(middle, squares) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


@dataclass(frozen=True, eq=False)
class RunningMean:
    """The mean of the values so far with an interval, after each of some numbers of values: (n,) counts, means, lows and highs."""

    counts: Floats
    means: Floats
    low: Floats
    high: Floats


def running_mean(values: Floats, counts: Floats, *, level: float, largest: float = 1.0) -> RunningMean:
    """The mean of `values` in [0, largest], in their order, with an interval that holds at all times at once.

    Parameters
    ----------
    values : (N,) outcomes in the order in which they were decided
    counts : (n,) whole numbers up to N; a mean is given after so many values each
    level : the probability that the interval is ever wrong, on either side
    largest : no value can be larger

    >>> found = running_mean(np.tile([0.0, 1.0], 500), np.array([10.0, 1000.0]), level=0.05)
    >>> found.means.tolist(), found.low.round(2).tolist(), found.high.round(2).tolist()
    ([0.5, 0.5], [0.0, 0.44], [1.0, 0.56])

    """
    scaled = np.asarray(values, dtype=np.float64) / largest
    sums, squares = np.r_[0.0, np.cumsum(scaled)], np.r_[0.0, np.cumsum((scaled - guesses(scaled)) ** 2)]
    places = counts.astype(np.int64)
    half = boundary(squares[places], level / 2.0) / np.maximum(counts, 1.0)
    means = sums[places] / np.maximum(counts, 1.0)
    low, high = np.maximum(means - half, 0.0), np.minimum(means + half, 1.0)
    return RunningMean(counts, largest * means, largest * low, largest * high)


def guesses(values: Floats) -> Floats:
    """(N,) before each value: the mean of those before it and of one more of 1/2."""
    before = np.r_[0.0, np.cumsum(values)[:-1]] if values.size else values
    return np.asarray((before + 0.5) / (np.arange(values.size) + 1.0))
