"""Deadlines: which decisions wait for an outcome, and until when, whether they are in memory or only in the log.

All decisions made under one setting of `deadline_s` fall due in the order in which they were made, so each such *period* is a
queue, and the next deadline is the least of their heads. A short deadline never waits for a long one.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from thrifty.router.records import DecisionRecords, Key


@dataclass(slots=True)
class Period:
    """Decisions made while `deadline_s` was in force, from a position of the log on.

    Those that left memory while they waited lie in the log after `cold_after` and up to `cold_upto`; the first of them is due at
    `cold_due`, by the monotonic clock.
    """

    first: int
    deadline_s: float
    queue: deque[tuple[float, Key]] = field(default_factory=deque)
    cold_after: int = 0
    cold_upto: int = 0
    cold_due: float = math.inf

    @property
    def is_over(self) -> bool:
        """Whether nobody waits."""
        return not self.queue and self.cold_after >= self.cold_upto


class Deadlines:
    """The periods of a router, the last one being that of the settings in force."""

    def __init__(self, deadline_s: float, position: int = 0) -> None:
        self.periods = [Period(position, deadline_s)]
        self.next_due = math.inf  # nothing is due before this, by the monotonic clock

    def begin(self, deadline_s: float, position: int) -> None:
        """Decisions after `position` have another deadline."""
        if deadline_s != self.periods[-1].deadline_s:
            self.periods = [period for period in self.periods if not period.is_over]
            self.periods.append(Period(position, deadline_s))

    def period_at(self, position: int) -> Period:
        """The period of the decision at a position of the log."""
        found = [period for period in self.periods if period.first <= position]
        return found[-1] if found else self.periods[0]

    def add(self, key: Key, due: float, period: Period | None = None) -> None:
        """Let a decision in memory wait."""
        (period or self.periods[-1]).queue.append((due, key))
        self.next_due = min(self.next_due, due)

    def evict(self, key: Key, due: float, position: int) -> None:
        """A decision that waits is leaving memory; its row is at `position` of the log."""
        period = self.period_at(position)
        if period.cold_after >= period.cold_upto:
            period.cold_after, period.cold_due = position - 1, due
        period.cold_upto = max(period.cold_upto, position)
        self.next_due = min(self.next_due, period.cold_due)
        if period.queue and period.queue[0][1] == key:
            period.queue.popleft()

    def drop(self, key: Key) -> None:
        """The default outcome of a decision that was next is on its way."""
        for period in self.periods:
            if period.queue and period.queue[0][1] == key:
                period.queue.popleft()

    def next_in_memory(self, records: DecisionRecords, now: float) -> Key | None:
        """A decision in memory that waits and is past its deadline; otherwise None, and `next_due` is known again."""
        self.next_due = math.inf
        for period in self.periods:
            queue = period.queue
            while queue:
                due, key = queue[0]
                slot = records.slot(key)
                if slot is not None and records.get(slot, "waiting"):
                    if due <= now:
                        self.next_due = due
                        return key
                    self.next_due = min(self.next_due, due)
                    break
                queue.popleft()
            self.next_due = min(self.next_due, period.cold_due)
        return None

    def cold_periods(self, now: float) -> list[Period]:
        """Periods with decisions in the log that may be due."""
        return [period for period in self.periods if period.cold_due <= now]

    def oldest_waiting(self, records: DecisionRecords, clock: Any) -> float:
        """When the oldest decision that waits was made, about: none was made before; infinity where nobody waits."""
        found = []
        for period in self.periods:
            heads = [slot for _, key in islice(period.queue, 1) if (slot := records.slot(key)) is not None]
            found += [float(records.get(slot, "at")) for slot in heads]
            if period.cold_after < period.cold_upto:
                found.append(clock.time() - (period.deadline_s - (period.cold_due - clock.monotonic())))
        return min(found, default=math.inf)

    def dump(self, records: DecisionRecords) -> list[list[float]]:
        """Per period that matters: first position, deadline, and the position after which somebody may wait."""
        found = []
        for period in self.periods:
            waiting = (slot for _, key in period.queue if (slot := records.slot(key)) is not None and records.get(slot, "waiting"))
            # Replicas' decisions may be a little out of order, so the first of them is looked for among a hundred.
            low = [int(position) - 1 for slot in islice(waiting, 100) if (position := records.get(slot, "logged"))]
            if period.cold_after < period.cold_upto:
                low.append(period.cold_after)
            if low or period is self.periods[-1]:
                found.append([period.first, period.deadline_s, min(low, default=-1)])
        return found

    def load(self, dumped: list[list[float]], position: int) -> None:
        """Take over dumped periods. Whoever waited then, up to `position`, is found in the log."""
        self.periods = []
        for first, deadline_s, low in dumped:
            period = Period(int(first), deadline_s)
            if low >= 0:
                period.cold_after, period.cold_upto, period.cold_due = int(low), position, 0.0
            self.periods.append(period)
        self.next_due = min(period.cold_due for period in self.periods)
