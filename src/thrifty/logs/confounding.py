"""Confounding: was the arm chosen by what also decides the outcome?

Without logged propensities, arms are compared as if they had been chosen at random within a segment and stretch of time. An
operator who sends the hard cases to the good arm breaks this. So the choice is tested against every other column of the log. The
estimates are adjusted for the columns that it follows, the one that it follows most first, until it follows no other within their
joint values. Values are told apart as finely as the rows of the arms allow. Where the choice still follows values that had to be
merged, the estimates are not to be trusted.

What is not in the log cannot be tested: `sensitivity.py` says how strong a hidden cause would have to be.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.logs.adjustment import adjust_segment
from thrifty.logs.aggregates import Aggregates, N
from thrifty.logs.binning import holds_times, names_rows
from thrifty.logs.context import HOUR, TIME, ContextSums, Stretches, context_columns, context_sums
from thrifty.logs.dependence import Dependence, dependence_of
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.levels import group_of, merged, strata_of_values, summed_by
from thrifty.logs.reading import Log

LEVEL, WEAKEST = 0.01, 0.02
"""The probability with which a choice that follows no column is said to follow one, and the least strength that counts."""

_MOST_COLUMNS, _MOST_ADJUSTED = 40, 3
_MANY_VALUES = 0.8  # the share of different values from which a column names rows, and is no cause
_COARSE, _MIDDLE, _FINE = 8, 32, 1024  # values of a column that are told apart
_INTERVALS = 128  # of numbers with more values
_POOLS = 64  # in which rarer values are tested
_CELLS = 200_000  # sums by segment, arm and value that are kept for one test
_THIN = 4  # rows of a value on average, below which values are not tested one by one
_LEFT_OVER = 0.3  # the share of the strength of a dependence on numbers that may be left within bins
_MOST_TOGETHER, _MOST_ROWS_TOGETHER = 8, 1_000_000  # columns that are also tested two by two, and the rows up to which they are
_KEPT = 0.9  # the share of arms with an estimate that a finer level must keep
_PROPENSITIES = ("propensity", "pscore", "probability", "prob")
_DAYS = 3.0  # a log must be longer for the hour of the day to be told from the time

LOGGED, FREE, UNTESTED, ADJUSTED, SUSPECT = "logged", "free", "untested", "adjusted", "suspect"


@dataclass(frozen=True)
class Confounding:
    """What is known about how arms were chosen.

    `kind` is "logged" (propensities are logged), "free" (the choice follows none of the columns `tested`), "untested" (there is
    nothing to test it with), "adjusted" (it follows the columns `adjusted`, and the estimates are adjusted for them) or "suspect"
    (it follows the columns in `followed`, and the estimates cannot be adjusted). `left_out` are columns that were not tested,
    with the reason; `unknown` names those of them that may well be a cause.
    """

    kind: str
    tested: tuple[str, ...] = ()
    followed: tuple[Dependence, ...] = ()
    adjusted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """False if the estimates are not to be trusted."""
        return self.kind != SUSPECT

    def verdict(self, hidden_odds: float | None = None) -> str:
        """The verdict that stands beside a headline. `hidden_odds` is how strong a hidden cause would have to be to refute it.

        >>> Confounding("adjusted", adjusted=("difficulty",)).verdict(1.9)
        'adjusted: the choice follows difficulty; holds unless a hidden cause changes the odds of a choice more than 1.90 times'
        """
        limit = f"changes the odds of a choice more than {hidden_odds:.2f} times" if hidden_odds is not None else ""
        unless = f"; holds unless a hidden cause {limit}" if limit else ""
        unless = (f" (not tested: {_listed(self.unknown)})" if self.unknown else "") + unless
        names = _listed(list(dict.fromkeys(each.column for each in self.followed)))
        return {
            LOGGED: "randomised: propensities are logged",
            FREE: f"randomised as far as the log shows: the choice follows none of {_listed(self.tested)}{unless}",
            UNTESTED: f"not tested: no propensities and no other columns{unless}",
            ADJUSTED: f"adjusted: the choice follows {_listed(self.adjusted)}{unless}",
            SUSPECT: f"not to be trusted: the choice follows {names} (if known only after the choice, name it with --after)",
        }[self.kind]


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def examine_choice(
    log: Log, aggregates: Aggregates, estimates: tuple[SegmentEstimates, ...], progress: Callable[[int], None] | None = None
) -> tuple[Confounding, tuple[SegmentEstimates, ...]]:
    """Test the choice against the other columns of a log without propensities, and adjust the estimates for those it follows.

    The log is read once more, and again for every column that it is adjusted for. If the choice follows the time within the values
    of these columns, the estimates are adjusted for stretches of time too: what the time explains must not be counted twice.
    """
    days = (aggregates.last - aggregates.first) / 86_400.0 if aggregates.timed else 0.0
    names = [name for name in context_columns(log) if name not in log.columns.after and (name != HOUR or days >= _DAYS)]
    notes = [f"{name} looks like a propensity: name it with --propensity" for name in names if name.lower() in _PROPENSITIES]
    names = [name for name in names if name.lower() not in _PROPENSITIES]
    unknown, row_names = _untestable(log, [name for name in names if name != HOUR])
    names = [name for name in names if name not in unknown and name not in row_names]
    unknown |= dict.fromkeys(names[_MOST_COLUMNS:], f"is beyond the {_MOST_COLUMNS} columns that are tested")
    names = names[:_MOST_COLUMNS]
    pairs = sum(len(each.sums.arms) for each in estimates)
    bins = _room(pairs, 1)
    found = context_sums(
        log, [[name] for name in names], bins=bins, intervals=min(bins, _INTERVALS), pools=_POOLS, progress=progress
    )
    alone = {each.columns[0]: each for each in found}
    notes += [f"{name} {reason}" for name, reason in (*unknown.items(), *row_names.items())]
    notes += [f"{name} {reason}" for name, each in alone.items() if (reason := _no_cause(each))]
    tested = [name for name, each in alone.items() if not _no_cause(each)]
    known = Confounding(UNTESTED, tuple(tested), left_out=tuple(notes), unknown=tuple(unknown))
    if not tested:
        return known, estimates
    followed = _followed([_test(alone[name], name) for name in tested], len(tested))
    start = [alone[followed[0].column]] if followed else []
    if not followed and aggregates.rows <= _MOST_ROWS_TOGETHER:
        couples = list(combinations(tested[:_MOST_TOGETHER], 2))
        start = _followed_together(context_sums(log, couples, bins=_COARSE, progress=progress)) if couples else []
        followed = [replace(_test_all(each), column=name) for each in start for name in each.columns]
    if not followed:
        return replace(known, kind=FREE), estimates
    return _adjust(log, aggregates, estimates, replace(known, followed=tuple(followed)), alone, start[0], progress)


def _untestable(log: Log, names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The columns whose values cannot be compared, with the reason, from the first rows that count: times, and names of rows."""
    batch = next((batch for batch in log.batches(context=names) if batch.arms.size), None) if names else None
    if batch is None or batch.context is None:
        return {}, {}
    found = batch.context
    times = {name: "holds times, which are not tested" for name in names if holds_times(found[name])}
    others = [name for name in names if name not in times and names_rows(found[name], _MANY_VALUES)]
    return times, dict.fromkeys(others, "has too many values to test")


def _room(pairs: int, columns: int) -> int:
    """How many values of each of some columns can be told apart; `pairs` of segments and arms have sums for each of them."""
    size = int((_CELLS / pairs) ** (1.0 / columns)) - (_POOLS if columns == 1 else 1) - 1
    return min(max(size, _COARSE), _FINE if columns == 1 else _MIDDLE)


def _stretches(aggregates: Aggregates) -> Stretches:
    rows = np.add.reduce([each.sums[:, :, N].sum(axis=0) for each in aggregates.segments])
    middle = np.cumsum(rows) - rows / 2.0
    last = np.flatnonzero(np.diff(np.floor(_MIDDLE * middle / rows.sum())))  # the last blocks of stretches
    return Stretches(aggregates.starts[last + 1] - 1e-9 * aggregates.width, aggregates.by_rows)


def _adjust(
    log: Log,
    aggregates: Aggregates,
    estimates: tuple[SegmentEstimates, ...],
    known: Confounding,
    alone: dict[str, ContextSums],
    context: ContextSums,
    progress: Callable[[int], None] | None,
) -> tuple[Confounding, tuple[SegmentEstimates, ...]]:
    """Adjust for the columns of a context, then for the one that is followed most within their values, and so on."""
    chosen = list(context.columns)
    pairs = sum(len(each.sums.arms) for each in estimates)
    stretches = _stretches(aggregates)
    while True:
        others = [name for name in (*(each.column for each in known.followed), TIME) if name not in chosen]
        groups, bins = [[*chosen, name] for name in others], _room(pairs, len(chosen) + 1)
        joint = context_sums(log, groups, bins=bins, stretches=stretches, progress=progress) if others else ()
        still = _followed([_test(each, each.columns[-1]) for each in joint], len(known.tested))
        named = [name for name in chosen if name != TIME]
        if not still or (len(named) == _MOST_ADJUSTED and still[0].column != TIME):
            break
        chosen.append(still[0].column)
        context = next(each for each in joint if each.columns[-1] == chosen[-1])
    adjusted = None if still else _at_best_level(estimates, context, [alone[name] for name in named], known)
    if adjusted is None:
        return replace(known, kind=SUSPECT, followed=(*(each for each in still if each.column != TIME), *known.followed)), estimates
    return replace(known, kind=ADJUSTED, adjusted=tuple(named)), adjusted


def _at_best_level(
    estimates: tuple[SegmentEstimates, ...], context: ContextSums, alone: Sequence[ContextSums], known: Confounding
) -> tuple[SegmentEstimates, ...] | None:
    """The estimates, adjusted for values that are told apart as finely as the rows allow; None if that is not fine enough."""
    levels = []
    for bins in (_FINE, _MIDDLE, _COARSE):
        adjusted = tuple(adjust_segment(each, merged(context, bins)) for each in estimates)
        rows = [sum(each.sums.rows for each in part if each.usable.sum() > 1) for part in (adjusted, estimates)]
        arms = sum(each.sums.rows * each.usable.sum() for each in adjusted)
        if rows[0] >= 0.5 * rows[1] and not any(_left_over(each, bins, known) for each in alone):
            levels.append((arms, adjusted))
    most = max((arms for arms, _ in levels), default=0)
    return next((adjusted for arms, adjusted in levels if arms >= _KEPT * most), None)


def _left_over(alone: ContextSums, bins: int, known: Confounding) -> bool:
    """Whether the choice follows the values of a column that are merged at a level."""
    (column,) = alone.columns
    before = next(each.strength for each in known.followed if each.column == column)
    strata = strata_of_values(alone, bins)
    within = dependence_of(column, _tables(alone, strata))
    return within.p_value < LEVEL and within.strength > max(WEAKEST, _LEFT_OVER * before if alone.ordered[0] else 0.0)


def _tables(context: ContextSums, strata: Integers, groups: Integers | None = None) -> Iterable[Floats]:
    """Tables of rows by arm and value for each segment and stratum; values of the same group are merged."""
    if groups is not None:
        pairs, places = np.unique(np.column_stack([strata, groups]), axis=0, return_inverse=True)
        context, strata = summed_by(context, places.ravel()), pairs[:, 0]
    for each in context.segments.values():
        for stratum in range(int(strata.max()) + 1):
            mine = np.flatnonzero(strata == stratum)
            yield each.sums[:, mine, 0]


def _no_cause(context: ContextSums) -> str:
    """Why a column cannot be a cause of the choice; empty if it can."""
    whole = sum(each.sums.sum(axis=0) for each in context.segments.values())
    assert isinstance(whole, np.ndarray)
    if whole.shape[0] < 2:
        return "has one value only"
    within = (whole[:, 2] - whole[:, 1] ** 2 / np.maximum(whole[:, 0], 1.0)).sum()
    total = whole[:, 2].sum() - whole[:, 1].sum() ** 2 / whole[:, 0].sum()
    return "tells the outcome" if total > 0.0 and within <= 1e-9 * total else ""


def _test(context: ContextSums, column: str) -> Dependence:
    """Test the last column of a context within segments and the joint values of the other columns, at each level."""
    last = len(context.columns) - 1
    strata = strata_of_values(context, _FINE, last=False)
    codes = context.codes[:, last]
    groups = [group_of(context, last, bins)[codes] for bins in (_COARSE, _MIDDLE)]
    rows = sum(each.sums[:, :, 0].sum() for each in context.segments.values())
    if _THIN * np.unique(codes).size <= rows:
        groups.append(codes)
    levels = {np.unique(each).size: each for each in groups}
    found = [dependence_of(column, _tables(context, strata, each)) for each in levels.values()]
    surest = min(found, key=lambda each: (each.p_value, -each.strength))
    return replace(surest, p_value=min(len(found) * surest.p_value, 1.0))


def _test_all(context: ContextSums) -> Dependence:
    """Test all columns of a context together within segments."""
    return dependence_of(" and ".join(context.columns), _tables(context, np.zeros(context.codes.shape[0], np.int64)))


def _followed_together(couples: Sequence[ContextSums]) -> list[ContextSums]:
    """The couple of columns that the choice follows most although it follows neither alone; empty if there is none."""
    found = _followed([_test_all(each) for each in couples], 2 * len(couples))
    return [each for each in couples if found and " and ".join(each.columns) == found[0].column]


def _followed(found: list[Dependence], tests: int) -> list[Dependence]:
    """Those that chance does not explain, the strongest first."""
    sure = [each for each in found if each.p_value < LEVEL / tests and each.strength > WEAKEST]
    return sorted(sure, key=lambda each: -each.strength)
