"""Spending: what decisions of the last days cost, by the hour in which they were made, and what the rest of the day will cost.

It is a fold of the log, in the log's order: a restarted router and all replicas have the same numbers. A decision costs its price
until its outcome says otherwise; one of unknown price costs nothing until then, and one that turned out void costs nothing. Days
are those of UTC. Decisions in shadow mode cost nothing.
"""

from bisect import bisect_right
from math import inf, isnan, nan
from typing import Any, NamedTuple

from thrifty.router.records import ARRIVED, OUTCOME_COST, OUTCOME_VALUE, PRICE, SETTLED, WIDTH, DecisionRecords
from thrifty.router.rows import is_shadow
from thrifty.store.log import Row

HOUR_S, DAY_H = 3600, 24

KEPT_H = 8 * DAY_H
"""Hours that are remembered."""

_DECISIONS, _FREE, _FREE_COST, _TIGHT, _TIGHT_COST = range(5)
"""Places in an hour: all decisions; those of known cost and what they cost, in minutes that were not tight, and in others."""


class DayForecast(NamedTuple):
    """A day so far, and what is to be expected of its rest.

    `free` is the spend of the whole day if nothing is saved, `saving` if only the cheapest feasible arms are taken from now on;
    None while that is not known.
    """

    budget: float
    spent: float
    decisions: int
    decisions_left: float
    free: float | None
    saving: float | None

    @property
    def tight(self) -> bool:
        """Whether the budget is in danger."""
        return self.budget > 0.0 and self.free is not None and self.free > self.budget

    @property
    def hopeless(self) -> bool:
        """Whether the budget cannot be kept without going below the floor."""
        return self.tight and (self.spent > self.budget or (self.saving is not None and self.saving > self.budget))


class Spending:
    """What decisions cost, by hour.

    >>> spending = Spending()
    >>> for minute in range(60):
    ...     spending.count(60.0 * minute, 2.0, budget=1000.0)
    >>> spending.forecast(3600.0, 1000.0).spent, spending.forecast(3600.0, 1000.0).free
    (120.0, 2880.0)
    >>> spending.tight
    True

    """

    def __init__(self) -> None:
        self._hours: dict[int, list[Any]] = {}
        self._first, self._minute = inf, -1  # when the first decision was made; the minute of the last
        self.tight = False
        self._turns: list[int] = []  # minutes in which `tight` became what it was not

    def take_decision(self, row: Row, budget: float) -> None:
        """Count a row of the log that is a decision."""
        if row.detail is None or not is_shadow(row.detail):
            self.count(row.at, nan if row.cost is None else row.cost, budget=budget)

    def take_outcome(self, records: DecisionRecords, slot: int, value: float, cost: float, how: int) -> None:
        """Count what an outcome, which is about to be applied, changes: nothing if the decision cost its price."""
        old, void = _cost_so_far(records, slot * WIDTH), how == ARRIVED and value != value
        new = 0.0 if void else cost
        if new != new or new == old:
            return
        note = records.note(records.key_at(slot))
        if note is None or not is_shadow(note.detail):
            self.correct(records.get(slot, "at"), old, new)

    def count(self, at: float, price: float, *, budget: float) -> None:
        """Count a decision; its price is NaN where it is unknown. Once a minute it is found out whether the budget is tight."""
        minute = int(at // 60)
        if minute > self._minute:
            self._begin_minute(at, minute, budget)
        hour = self._hours.get(int(at // HOUR_S)) or self._begin_hour(at)
        hour[_DECISIONS] += 1
        if price == price:  # not NaN
            place = self._place(minute)
            hour[place] += 1
            hour[place + 1] += price

    def _begin_minute(self, at: float, minute: int, budget: float) -> None:
        self._minute, before = minute, self.tight
        self.tight = budget > 0.0 and self.forecast(at, budget).tight
        if self.tight != before:
            self._turns = [*(turn for turn in self._turns if turn > minute - 60 * KEPT_H), minute]

    def _place(self, minute: int) -> int:
        """Where decisions of a minute are counted."""
        if minute >= self._minute:
            return _TIGHT if self.tight else _FREE
        later = len(self._turns) - bisect_right(self._turns, minute)  # turns since then
        return _TIGHT if self.tight != bool(later % 2) else _FREE

    def correct(self, at: float, old: float, new: float) -> None:
        """A decision made at a time turned out to cost `new`, and was counted with `old`; NaN where unknown."""
        hour = self._hours.get(int(at // HOUR_S))
        if hour is None:
            return
        place = self._place(int(at // 60))
        hour[place] += int(isnan(old))
        hour[place + 1] += new - (0.0 if isnan(old) else old)

    def _begin_hour(self, at: float) -> list[Any]:
        hour, self._first = int(at // HOUR_S), min(self._first, at)
        newest = max(self._hours, default=hour)
        begun = [0, 0, 0.0, 0, 0.0]
        if hour > newest - KEPT_H:
            self._hours[hour] = begun
            for old in [each for each in self._hours if each <= max(hour, newest) - KEPT_H]:
                del self._hours[old]
        return begun

    # -- looking ahead -----------------------------------------------------------------------------------------------

    def forecast(self, now: float, budget: float) -> DayForecast:
        """How the day of `now` stands."""
        midnight = int(now // (DAY_H * HOUR_S)) * DAY_H
        day = self._sum(midnight, midnight + DAY_H)
        lately = self._sum(int(now // HOUR_S) - DAY_H + 1, int(now // HOUR_S) + 1)
        free, saving = _ratio(lately[_FREE_COST], lately[_FREE]), _ratio(lately[_TIGHT_COST], lately[_TIGHT])
        if free is None or (saving is not None and saving > free):
            free = saving
        left, spent = self._left(now, midnight, day[_DECISIONS]), day[_FREE_COST] + day[_TIGHT_COST]
        unknown = day[_DECISIONS] - day[_FREE] - day[_TIGHT]
        return DayForecast(
            budget,
            spent,
            day[_DECISIONS],
            left,
            None if free is None else spent + (unknown + left) * free,
            None if saving is None else spent + (unknown + left) * saving,
        )

    def _left(self, now: float, midnight: int, so_far: float) -> float:
        """Decisions to expect until the end of the day: by the days before, as far as they are whole, or by the last hour."""
        hour = now / HOUR_S - midnight  # of the day
        whole = [midnight - DAY_H * ago for ago in range(1, KEPT_H // DAY_H) if (midnight - DAY_H * ago) * HOUR_S >= self._first]
        if not whole:
            passed = min(max(now - self._first, 60.0), HOUR_S)
            return self._between(now / HOUR_S - 1, now / HOUR_S) / passed * (DAY_H - hour) * HOUR_S
        before = sum(self._between(start, start + hour) for start in whole) / len(whole)
        after = sum(self._between(start + hour, start + DAY_H) for start in whole) / len(whole)
        usual = (before + after) / DAY_H  # an hour's worth, so that the first minutes of a day decide nothing
        return after * min(max(_ratio(so_far + usual, before + usual) or 1.0, 0.1), 10.0)

    def _between(self, start: float, end: float) -> float:
        """Decisions between two times in hours, taken to be even within each hour but the one that is under way."""
        total = 0.0
        for hour in range(int(start), int(end) + 1):
            known = self._hours.get(hour)
            if known is not None:
                running = hour == max(self._hours)
                share = min(end, hour + 1) - max(start, hour)
                total += known[_DECISIONS] * (1.0 if running else max(share, 0.0))
        return total

    def _sum(self, start: int, end: int) -> list[Any]:
        found = [self._hours[hour] for hour in range(start, end) if hour in self._hours]
        return [sum(numbers) for numbers in zip(*found, strict=True)] if found else [0, 0, 0.0, 0, 0.0]

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def dump(self) -> list[Any]:
        """Plain values."""
        first = None if self._first == inf else self._first
        return [sorted([hour, *numbers] for hour, numbers in self._hours.items()), first, self._minute, self.tight, self._turns]

    @classmethod
    def load(cls, dumped: list[Any] | None) -> "Spending":
        """What was dumped; nothing for a snapshot of an older version."""
        spending = cls()
        if dumped is not None:
            hours, first, spending._minute, spending.tight, turns = dumped
            spending._turns = list(turns)
            spending._hours = {hour: list(numbers) for hour, *numbers in hours}
            spending._first = inf if first is None else first
        return spending


def _cost_so_far(records: DecisionRecords, base: int) -> float:
    """What the decision whose record begins at `base` cost by its last outcome, or by its price; NaN if neither is known."""
    floats = records.floats
    if records.integers[base + SETTLED] == ARRIVED and isnan(floats[base + OUTCOME_VALUE]):
        return 0.0
    cost = floats[base + OUTCOME_COST]
    return float(cost if cost == cost else floats[base + PRICE])


def _ratio(total: float, count: float) -> float | None:
    return total / count if count else None
