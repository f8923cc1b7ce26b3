"""What a router has saved against always taking the best arm, with an interval that says how well that is known.

*Measured*, with a holdout: a share of decisions takes the best arm whatever it costs, by the toss of a coin. The saving is the
number of routed outcomes times the difference of the mean costs of both groups, and its interval is that of the difference of two
means, at 95%.

*Modelled*, without one: what the same outcomes would have cost from the best arm, at what that arm cost in each segment, less what
was spent. Two things are not known. Which arm is the best: an arm stays a candidate if its interval reaches the largest lower end,
by intervals that hold for all arms and at all times at once (`thrifty.intervals.mixture`, 97.5%). And what each candidate costs on
average, where costs vary: by the normal interval of its mean cost in each segment (97.5%). The interval of the saving spans all
candidates that have outcomes; what one without any costs is not known. It takes outcomes of a segment as alike whatever arm was
chosen for them, which the measured one does not.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.compiled import interpreted
from thrifty.intervals import mixture_bound

LEAST_OUTCOMES = 30
"""Outcomes that both groups must have before the holdout measures anything."""

_TRUSTED = 5
"""Outcomes of an arm in a segment from which the variance of its costs there is estimated; below that, also from all segments."""

_Z_95, _Z_975 = 1.959964, 2.241403
_bound = interpreted(mixture_bound)


class Saving(NamedTuple):
    """An amount in the unit of the costs, its interval, and its share of what always-best would have cost; None if unknown."""

    amount: float | None
    low: float | None
    high: float | None
    share: float | None
    basis: str  # "holdout", "model" or "none"


NOTHING = Saving(None, None, None, None, "none")


def measured_saving(groups: dict[str, list[Any]]) -> Saving:
    """The saving that the holdout measures; of basis "none" while a group has too few outcomes.

    >>> saving = measured_saving({"routed": [1000, 900.0, 500.0, 900.0, 260.0], "holdout": [100, 91.0, 80.0, 91.0, 65.0]})
    >>> [round(each, 1) for each in (saving.amount, saving.low, saving.high, saving.share)]
    [300.0, 279.3, 320.7, 0.4]
    """
    routed, holdout = groups["routed"], groups["holdout"]
    if min(routed[0], holdout[0]) < LEAST_OUTCOMES:
        return NOTHING
    n, less = routed[0], holdout[2] / holdout[0] - routed[2] / routed[0]
    half = _Z_95 * math.sqrt(sum(_mean_variance(group[0], group[2], group[4]) for group in (routed, holdout)))
    always = n * holdout[2] / holdout[0]
    return Saving(n * less, n * (less - half), n * (less + half), n * less / always if always > 0.0 else None, "holdout")


def _mean_variance(n: float, total: float, squares: float) -> float:
    """The variance of the mean of n numbers, from their sum and the sum of their squares."""
    return max(squares - total * total / n, 0.0) / (n - 1) / n


class SavingModel:
    """What outcomes would have cost from another arm, in every segment.

    Prices may differ between segments, so each outcome is reckoned at what the arm cost in its segment, or else in the nearest one
    above. `sums` and `parents` have a row per segment, the root first, parents before children.
    """

    def __init__(self, sums: NDArray[Any], parents: NDArray[np.int64]) -> None:
        self._sums, self._parents = sums, parents
        outcomes = sums["seen"].sum(axis=1)
        self._own = outcomes.copy()  # without what the segments below count
        np.subtract.at(self._own, parents[1:], outcomes[1:])
        self._outcomes, self._spent = outcomes.tolist(), sums["cost_sum"].sum(axis=1).tolist()
        self._above = np.zeros(parents.size, np.bool_)  # segments that have others below them
        self._above[parents[1:]] = True
        self._columns: dict[int, _Column] = {}

    def saving(self, segment: int, *, candidates: list[int], best: int) -> Saving:
        """The saving against the arm `best` in a segment and all below it; `candidates` are all arms that may be the best one."""
        found = {arm: self._against(segment, arm) for arm in {*candidates, best}}
        known = [each for each in found.values() if each is not None]
        amount = found[best]
        if amount is None or self._sums["seen"][segment, best] <= 0.0:
            return NOTHING
        spent = self._spent[segment]
        low, high = min(total - error for total, error in known), max(total + error for total, error in known)
        always = amount[0] + spent
        return Saving(amount[0], low, high, amount[0] / always if always > 0.0 else None, "model")

    def _against(self, segment: int, arm: int) -> tuple[float, float] | None:
        """What would be saved against an arm, and the half width of its interval; None where the arm has no outcome at all."""
        column = self._columns.get(arm) or self._column(arm)
        source = int(column.source[segment])
        if column.seen[source] <= 0.0:
            return None
        if source == segment and self._above[segment]:
            used = np.flatnonzero(_within(self._parents, segment) & (column.reckoned != 0.0))
            counts = column.reckoned[used]
            saved = float((counts * column.units[used]).sum()) - self._spent[segment]
            return saved, _Z_975 * math.sqrt(float((counts**2 * column.variances[used]).sum()))
        count = self._outcomes[segment]  # all at one cost: the arm has no outcome below, or nothing is below
        unit, variance = float(column.units[source]), float(column.variances[source])
        return count * unit - self._spent[segment], _Z_975 * count * math.sqrt(variance)

    def _column(self, arm: int) -> "_Column":
        seen, costs, squares = (np.asarray(self._sums[name][:, arm]) for name in ("seen", "cost_sum", "cost_squares"))
        source, some = _nearest(self._parents, seen > 0.0), np.where(seen > 0.0, seen, 1.0)
        reckoned = np.bincount(source, weights=self._own, minlength=source.size).astype(np.float64)
        variances = _variances(some, costs, squares)
        variances = np.where(seen < _TRUSTED, np.maximum(variances, variances[0]), variances) / some
        self._columns[arm] = _Column(seen, costs / some, variances, source, reckoned)
        return self._columns[arm]


class _Column(NamedTuple):
    """One arm in all segments: outcomes, mean cost and its variance, where the cost is taken from, and outcomes reckoned at it."""

    seen: Floats
    units: Floats
    variances: Floats
    source: NDArray[np.int64]
    reckoned: Floats


def may_be_best(arms: tuple[int, ...], means: tuple[float, ...], outcomes: tuple[float, ...]) -> list[int]:
    """The arms of which one is the best with probability 0.975, at all times at once.

    >>> may_be_best((0, 1, 2), (0.9, 0.5, 0.89), (1000.0, 1000.0, 1000.0))
    [0, 2]
    """
    level = math.log(len(arms) / 0.025)
    sums = [(n, max(mean, 0.0) * n) for mean, n in zip(means, outcomes, strict=True)]
    ends = [(_bound(n, total, level, -1.0), _bound(n, total, level, 1.0)) if n > 0.0 else (0.0, 1.0) for n, total in sums]
    bar = max(low for low, _ in ends)
    return [arm for arm, (_, high) in zip(arms, ends, strict=True) if high >= bar]


def saved_against(sums: NDArray[Any], parents: NDArray[np.int64], segment: int, best: int) -> float:
    """What all outcomes of a segment and those below it cost less than as many from the arm `best` would have; 0 if unknown."""
    return SavingModel(sums, parents).saving(segment, candidates=[], best=best).amount or 0.0


def saved_everywhere(sums: NDArray[Any], parents: NDArray[np.int64]) -> Floats:
    """(segments, K) what `saved_against` says of every segment and arm, at once; NaN where the arm has no outcome there."""
    seen, outcomes = np.asarray(sums["seen"]), sums["seen"].sum(axis=1)
    own = outcomes.copy()
    np.subtract.at(own, parents[1:], outcomes[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = np.where(seen > 0.0, sums["cost_sum"] / seen, np.nan)
    always = np.empty_like(unit)
    for arm in range(seen.shape[1]):
        source = _nearest(parents, seen[:, arm] > 0.0)
        always[:, arm] = own * np.nan_to_num(unit[source, arm])
    for level in _levels(parents)[:0:-1]:  # from the deepest one up
        np.add.at(always, parents[level], always[level])
    return np.where(seen > 0.0, always - sums["cost_sum"].sum(axis=1)[:, None], np.nan)


def _levels(parents: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The segments by their depth, the root first."""
    depth, above = np.zeros(parents.size, np.int64), parents.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return [np.flatnonzero(depth == each) for each in range(int(depth.max()) + 1)]


def _variances(n: Floats, total: Floats, squares: Floats) -> Floats:
    return np.maximum(squares - total * total / n, 0.0) / np.maximum(n - 1.0, 1.0)


def _within(parents: NDArray[np.int64], segment: int) -> NDArray[np.bool_]:
    """Whether each segment is this one or below it. Parents come before their children."""
    if segment == 0:
        return np.ones(parents.size, np.bool_)
    found = np.zeros(parents.size, np.bool_)
    found[segment] = True
    while True:
        grown = found | found[parents]
        grown[0] = False
        if (grown == found).all():
            return found
        found = grown


def _nearest(parents: NDArray[np.int64], has: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each segment the nearest one that has something: itself, or one above it; the root if there is none."""
    source, numbers = np.where(has, np.arange(parents.size), -1), np.maximum(parents, 0)
    source[0] = 0
    while (source < 0).any():
        source = np.where(source < 0, source[numbers], source)
    return source
