"""Dependence: does the choice of the arm follow a column of the log?

Within a stratum (a segment, or a segment and the values of other columns) the table of arms by values has N rows, r arms and c
values. If the choice does not depend on the value, Pearson's X^2 given the margins of the table has the mean
(r - 1)(c - 1) N / (N - 1) and the variance of [Dawson1954]. Both are exact in thin tables too, where the law of chi-square is not.
They are added up over the strata, and the sum is compared with the gamma law of the same mean and variance.

References
----------
[Dawson1954] Dawson, "A simplified expression for the variance of the chi-square function on a contingency table", Biometrika 41.

"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from thrifty.arrays import Floats

_FEWEST = 8  # rows of a stratum that counts


@dataclass(frozen=True)
class Dependence:
    """How surely and how strongly the choice of the arm follows a column.

    `p_value` is the probability of so much dependence by chance. `strength` is Cramer's V: 0 for none, 1 for a choice that is
    known when the value is.
    """

    column: str
    p_value: float
    strength: float


def dependence_of(column: str, tables: Iterable[Floats]) -> Dependence:
    """Test whether rows and columns of all tables of counts are independent.

    >>> even, uneven = np.array([[50.0, 50.0], [52.0, 48.0]]), np.array([[80.0, 20.0], [30.0, 70.0]])
    >>> dependence_of("card", [even]).p_value > 0.5, dependence_of("card", [uneven]).p_value < 1e-9
    (True, True)
    """
    total, mean, variance, largest = 0.0, 0.0, 0.0, 0.0
    for table in tables:
        counts = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(counts.shape) > 1 and counts.sum() >= _FEWEST:
            found = _chi_square(counts)
            total, mean, variance = total + found[0], mean + found[1], variance + found[2]
            largest += counts.sum() * (min(counts.shape) - 1)
    if mean <= 0.0 or variance <= 0.0:
        return Dependence(column, 1.0, 0.0)
    shape = mean * mean / variance
    deviation = ((max(total, 0.0) / mean) ** (1 / 3) - 1.0 + 1.0 / (9.0 * shape)) * 3.0 * math.sqrt(shape)
    strength = math.sqrt(max(total - mean, 0.0) / largest)
    return Dependence(column, NormalDist().cdf(-deviation), strength)


def _chi_square(counts: Floats) -> tuple[float, float, float]:
    """Pearson's X^2 of a table, and its mean and variance given the margins."""
    rows = float(counts.sum())
    arms, values = counts.sum(axis=1), counts.sum(axis=0)
    expected = np.outer(arms, values) / rows
    (v, w), (v2, w2) = _moments(arms, rows), _moments(values, rows)
    variance = 2.0 * rows / (rows - 3.0) * (v - w) * (v2 - w2) + rows * rows / (rows - 1.0) * w * w2
    mean = rows * (arms.size - 1) * (values.size - 1) / (rows - 1.0)
    return float(((counts - expected) ** 2 / expected).sum()), mean, max(variance, 0.0)


def _moments(margin: Floats, rows: float) -> tuple[float, float]:
    size = margin.size
    return (size - 1) * (rows - size) / (rows - 1.0), float((rows / margin).sum() - size * size) / (rows - 2.0)
