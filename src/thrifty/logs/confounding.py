"""Confounding: was the arm chosen by what also decides the outcome?

Without logged propensities, arms are compared as if they had been chosen at random within a segment and stretch of time. An
operator who sends the hard cases to the good arm breaks this. So the choice is tested against every other column of the log. The
estimates are adjusted for the columns that it follows, the one that it follows most first, until it follows no other within their
joint values. What is not in the log cannot be tested: `sensitivity.py` says how strong a hidden cause would have to be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thrifty.logs.adjustment import adjust_segment
from thrifty.logs.context import EMPTY, HOUR, OTHER, ContextSums, context_columns, context_sums
from thrifty.logs.dependence import Dependence, dependence_of
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.reading import Log

LEVEL, WEAKEST = 0.01, 0.02
"""The probability with which a choice that follows no column is said to follow one, and the least strength that counts."""

_MOST_COLUMNS, _MOST_ADJUSTED = 40, 3
_MANY_VALUES = 0.8  # the share of rows beyond the most frequent values from which a column names rows, and is no cause
_PROPENSITIES = ("propensity", "pscore", "probability", "prob")
_DAYS = 3.0  # a log must be longer for the hour of the day to be told from the time

LOGGED, FREE, UNTESTED, ADJUSTED, SUSPECT = "logged", "free", "untested", "adjusted", "suspect"


@dataclass(frozen=True)
class Confounding:
    """What is known about how arms were chosen.

    `kind` is "logged" (propensities are logged), "free" (the choice follows none of the columns `tested`), "untested" (there is
    nothing to test it with), "adjusted" (it follows the columns `adjusted`, and the estimates are adjusted for them) or "suspect"
    (it follows the columns in `followed`, and the estimates cannot be adjusted). `left_out` are columns that were not tested,
    with the reason.
    """

    kind: str
    tested: tuple[str, ...] = ()
    followed: tuple[Dependence, ...] = ()
    adjusted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

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
    log: Log, estimates: tuple[SegmentEstimates, ...], days: float, progress: Callable[[int], None] | None = None
) -> tuple[Confounding, tuple[SegmentEstimates, ...]]:
    """Test the choice against the other columns of a log without propensities, and adjust the estimates for those it follows.

    The log is read once more, and again for every column that it is adjusted for.
    """
    names = [name for name in context_columns(log) if name not in log.columns.after and (name != HOUR or days >= _DAYS)]
    kinds = log.parts[0].scan().collect_schema()
    names = [name for name in names if name not in kinds or not kinds[name].is_temporal()]
    notes = [f"{name} looks like a propensity: name it with --propensity" for name in names if name.lower() in _PROPENSITIES]
    names = [name for name in names if name.lower() not in _PROPENSITIES][:_MOST_COLUMNS]
    alone = {each.columns[0]: each for each in context_sums(log, [[name] for name in names], progress=progress)} if names else {}
    notes += [f"{name} {reason}" for name, each in alone.items() if (reason := _no_cause(each))]
    tested = [name for name, each in alone.items() if not _no_cause(each)]
    if not tested:
        return Confounding(UNTESTED, left_out=tuple(notes)), estimates
    known = Confounding(FREE, tuple(tested), left_out=tuple(notes))
    followed = _followed([_test(alone[name], name) for name in tested], len(tested))
    if not followed:
        return known, estimates
    return _adjust(log, estimates, replace(known, followed=tuple(followed)), alone[followed[0].column], progress)


def _adjust(
    log: Log,
    estimates: tuple[SegmentEstimates, ...],
    known: Confounding,
    context: ContextSums,
    progress: Callable[[int], None] | None,
) -> tuple[Confounding, tuple[SegmentEstimates, ...]]:
    """Adjust for the column followed most, then for the one that is followed most within its values, and so on."""
    chosen = [known.followed[0].column]
    while True:
        others = [each.column for each in known.followed if each.column not in chosen]
        joint = context_sums(log, [[*chosen, name] for name in others], progress=progress) if others else ()
        still = _followed([_test(each, each.columns[-1], within=len(chosen)) for each in joint], len(known.tested))
        if not still or len(chosen) == _MOST_ADJUSTED:
            break
        chosen.append(still[0].column)
        context = next(each for each in joint if each.columns[-1] == chosen[-1])
    adjusted = tuple(adjust_segment(each, context) for each in estimates)
    rows = [sum(each.sums.rows for each in part if each.usable.sum() > 1) for part in (adjusted, estimates)]
    if still or rows[0] < 0.5 * rows[1]:
        return replace(known, kind=SUSPECT, followed=(*still, *known.followed) if still else known.followed), estimates
    return replace(known, kind=ADJUSTED, adjusted=tuple(chosen)), adjusted


def _no_cause(context: ContextSums) -> str:
    """Why a column cannot be a cause of the choice; empty if it can."""
    whole = sum(each.sums.sum(axis=0) for each in context.segments.values())
    assert isinstance(whole, np.ndarray)
    rows = whole[:, 0].sum()
    if sum(whole[place, 0] for place, name in enumerate(context.values) if name.endswith(f"= {OTHER}")) > _MANY_VALUES * rows:
        return "has too many values to test"
    if len([name for name in context.values if not name.endswith(f"= {EMPTY}")]) < 2 and whole.shape[0] < 2:
        return "has one value only"
    within = (whole[:, 2] - whole[:, 1] ** 2 / np.maximum(whole[:, 0], 1.0)).sum()
    total = whole[:, 2].sum() - whole[:, 1].sum() ** 2 / rows
    return "tells the outcome" if total > 0.0 and within <= 1e-9 * total else ""


def _test(context: ContextSums, column: str, *, within: int = 0) -> Dependence:
    """Test the last column of a context within segments, and within the joint values of the `within` columns before it."""
    if within == 0:
        return dependence_of(column, (each.sums[:, :, 0] for each in context.segments.values()))
    first = np.array([value.rsplit(f", {column} ", 1)[0] for value in context.values])
    strata = [np.flatnonzero(first == each) for each in dict.fromkeys(first.tolist())]
    return dependence_of(column, (each.sums[:, stratum, 0] for each in context.segments.values() for stratum in strata))


def _followed(found: list[Dependence], tests: int) -> list[Dependence]:
    """Those that chance does not explain, the strongest first."""
    sure = [each for each in found if each.p_value < LEVEL / tests and each.strength > WEAKEST]
    return sorted(sure, key=lambda each: -each.strength)
