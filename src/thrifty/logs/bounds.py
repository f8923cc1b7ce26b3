"""Distribution-free bounds: they hold for any law of rewards in [0, 1] (of costs up to the largest seen), at any number of rows.

With logged propensities: x = w (r - q) on rows of the arm and 0 on others has mean (value - q) for any q that does not depend on r.
So q is the arm's mean in the even blocks for the odd ones and vice versa, and [Maurer2009] bounds the mean of x in each half.
Without propensities: given the arm of each row, the value is a weighted sum of independent rewards, which Hoeffding's inequality
bounds.

References
----------
[Maurer2009] Maurer, Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009, Theorem 11.

"""

import math
from collections.abc import Sequence

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.aggregates import WC, WR, WW, WWC, WWCC, WWR, WWRR, C, LogSums, N, R, W

DELTA = 0.05
REWARD, COST = (R, W, WR, WW, WWR, WWRR), (C, W, WC, WW, WWC, WWCC)
"""The sums that a bound on rewards, or on costs, reads."""


def bernstein(rows: float, total: float, squares: float, width: float, delta: float) -> float:
    """How far the mean of `rows` independent terms, each in an interval of `width`, may be from its expectation.

    >>> round(bernstein(1000, 500.0, 500.0, 1.0, 0.05), 3)
    0.057
    """
    mean = total / rows
    variance = max(squares / rows - mean * mean, 0.0) * rows / max(rows - 1.0, 1.0)
    level = math.log(4.0 / delta)
    return math.sqrt(2.0 * variance * level / rows) + 7.0 * width * level / (3.0 * max(rows - 1.0, 1.0))


def bound_logged(pairs: Sequence[tuple[LogSums, int]], columns: tuple[int, ...] = REWARD, delta: float = DELTA) -> Floats:
    """(2,) low and high of the mean reward (or cost) when in each of these segments one arm takes every request."""
    value, half = 0.0, 0.0
    everything = float(sum(sums.rows for sums, _ in pairs))
    for parity in (0, 1):
        rows, total, squares, offset, width = 0.0, 0.0, 0.0, 0.0, 0.0
        for sums, arm in pairs:
            here, there = (sums.sums[:, start::2] for start in (parity, 1 - parity))
            weight, heavy, square, mixed, double = here[arm].sum(axis=0)[list(columns[1:])]
            other = there[arm].sum(axis=0)
            q = float(other[columns[0]] / other[N]) if other[N] > 0 else 0.0
            rows += float(here[:, :, N].sum())
            offset += q * float(here[:, :, N].sum())
            total += float(heavy - q * weight)
            squares += float(double - 2.0 * q * mixed + q * q * square)
            scale = 1.0 if columns is REWARD else float(sums.cost_max[arm])
            width = max(width, scale / float(sums.p_min[arm]))
        if rows > 0:
            value += (offset + total) / everything
            half += rows / everything * bernstein(rows, total, squares, width, delta / 2.0)
    return _clipped(np.array([value - half, value + half]), columns)


def bound_assumed(
    value: float, spread: float, unseen: float, scale: float, columns: tuple[int, ...] = REWARD, delta: float = DELTA
) -> Floats:
    """(2,) Hoeffding's bound around `value`, a sum of independent terms whose squared weights add up to `spread`.

    `unseen` is the share of the traffic that is bridged, where anything may be true.

    >>> bound_assumed(0.5, 0.001, 0.0, 1.0).round(3).tolist()
    [0.457, 0.543]
    """
    half = scale * (math.sqrt(math.log(2.0 / delta) / 2.0 * spread) + unseen)
    return _clipped(np.array([value - half, value + half]), columns)


def _clipped(bound: Floats, columns: tuple[int, ...]) -> Floats:
    return np.clip(bound, 0.0, 1.0 if columns is REWARD else math.inf)
