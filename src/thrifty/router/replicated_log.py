"""The replicated log: a router's side of a log that other replicas write to as well.

The log's order decides. A decision counts as pending at once, because that much is the same in any order; outcomes and changes are
applied only when they come back from the log, in the order in which every replica applies them. So sums are the same everywhere,
bit for bit, and nothing has to be undone but a decision whose request_id another replica had answered before.
"""

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from thrifty.actions import ACTIONS
from thrifty.router.decision import Decision
from thrifty.router.engine import Engine
from thrifty.router.records import ARRIVED, DEFAULTED, Key, Numbers, number_or_nan
from thrifty.router.restore import DecisionInFlightError, Recalled, passed_over, recall, remember, restore
from thrifty.router.state import State
from thrifty.router.state_log import StateLog
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Journal, Row, StoreError

if TYPE_CHECKING:
    from thrifty.router.router import Router

log = logging.getLogger("thrifty.router")

PATIENCE_S = 2.0
"""How long to wait for a decision that another replica has written and this one has not read."""

GRACE_S = 2.0
"""How long the replica that made a decision may be late with its default outcome before another writes it."""

_COUNTED = frozenset((*ACTIONS, "settings", "rollout", "changes"))  # changes that make a new version, unless they have no effect


@dataclass(slots=True)
class Flight:
    """A decision of this replica that is not in the log yet."""

    key: Key
    segment: int
    arm: int
    counted: int  # one if it counts as pending in the state
    answers: list[Decision] = field(default_factory=list)
    present: bool = True  # False once the router was created anew


class ReplicatedLog(StateLog):
    """Writes to the log, and listens to it for one router; see `thrifty.store.log.Listener`."""

    journal: Journal

    def __init__(self, router: "Router", journal: Journal) -> None:
        self._router, self.journal = router, journal
        self._flights: dict[int, Flight] = {}
        self._outcomes: dict[Key, tuple[int, Row]] = {}  # taken here and not in the log yet
        self._expiring: set[Key] = set()  # decisions whose default outcome is not in the log yet
        self._flying: set[Key] = set()  # keys of the flights
        self._overtaken: set[int] = set()  # tickets of changes that had no effect

    # -- StateLog ----------------------------------------------------------------------------------------------------

    def restore(self, fresh: State) -> State:
        """See `StateLog`."""
        state, self.position, self.snapshot_position = restore(fresh, self.journal)
        return state

    def listen(self) -> None:
        """Follow the log from where it was restored."""
        self.journal.listen(self)

    def admit(self) -> None:
        """See `StateLog`. For a while the store still takes decisions that it can keep."""
        if self.failed is not None:
            raise StoreError(f"this router cannot follow its log: {self.failed}")
        self.journal.admit(keep=True)

    def admit_outcome(self, key: Key) -> None:
        """See `StateLog`. Outcomes are not kept for a store that is away, and a decision must be in the log before its outcome."""
        self.admit()
        self.journal.admit(keep=False)
        if key in self._flying:
            raise DecisionInFlightError("the decision is not stored yet: send the outcome again")

    def made_segments(self, state: State, first: int) -> None:
        """See `StateLog`. The segments stay provisional until the decision lands: it may be taken back."""
        for segment in state.segments.by_number[first:]:
            segment.provisional = True

    def _take_back_segments(self, state: State) -> None:
        """Remove the newest segments that are provisional and have no decision on its way. Others stay, and nobody sees them."""
        segments = state.segments
        used = {flight.segment for flight in self._flights.values() if flight.present}
        while (last := segments.by_number[-1]).provisional and last.number not in used:
            segments.take_back(last.number)

    def add_decision(self, state: State, row: Row, slot: int) -> int:
        """See `StateLog`."""
        records = state.records
        flight = Flight(records.key_at(slot), records.get(slot, "segment"), records.get(slot, "arm"), records.get(slot, "sent"))
        try:
            ticket = self.journal.append(row, keep=True)
        except StoreError:
            self._count(state, flight, -1)
            records.remove(flight.key)
            self._take_back_segments(state)
            raise
        records.put(slot, "position", ticket)
        self._flights[ticket] = flight
        self._flying.add(flight.key)
        return ticket

    def add_outcome(self, state: State, row: Row, slot: int) -> int:  # noqa: ARG002
        """See `StateLog`; applied when it comes back. No other default outcome is written meanwhile."""
        default = row.code == "default"
        ticket = self.journal.append(row, keep=default)
        if default:
            self._expiring.add((row.replica, row.sequence))
        else:
            self._outcomes[row.replica, row.sequence] = ticket, row
        return ticket

    def add_change(self, state: State, row: Row, engine: Engine | None) -> int:  # noqa: ARG002
        """See `StateLog`; applied when it comes back."""
        return self.journal.append(row, keep=False)

    def was_overtaken(self, position: int) -> bool:
        """See `StateLog`."""
        found = position in self._overtaken
        self._overtaken.discard(position)
        return found

    def latest(self, state: State, slot: int) -> tuple[Numbers, int]:
        """See `StateLog`."""
        records, key = state.records, state.records.key_at(slot)
        ticket, row = self._outcomes.get(key, (0, None))
        if row is not None and self._is_lost(ticket):
            del self._outcomes[key]
            row = None
        if row is None:
            numbers, _ = super().latest(state, slot)
            return numbers, 0 if records.get(slot, "logged") else records.get(slot, "position")
        ahead = records.table[slot : slot + 1].copy()
        ahead["arm"], ahead["settled"] = state.arms.index(row.arm), DEFAULTED if row.code == "default" else ARRIVED
        ahead["outcome_at"], ahead["outcome_value"] = row.at, number_or_nan(row.value)
        ahead["outcome_cost"] = number_or_nan(row.cost)
        return (ahead.view(np.int64).data, ahead.view(np.float64).data, 0), ticket

    def may_evict(self, position: int) -> bool:  # noqa: ARG002
        """See `StateLog`: what has a position in a shared log is durable."""
        return True

    def _is_lost(self, ticket: int) -> bool:
        try:
            self.journal.is_durable(ticket)
        except StoreError:
            return True
        return False

    def may_expire(self, state: State, key: Key, now: float) -> bool:
        """See `StateLog`: one of this replica's own, or of a replica that is gone."""
        slot = state.records.slot(key)
        if slot is None or key in self._expiring or key in self._flying:
            return False
        late = now - state.records.get(slot, "due")
        return (key[0] == state.replica or late >= GRACE_S + state.replica % 4) and self._takes_rows()

    def _takes_rows(self) -> bool:
        try:
            self.admit()
        except StoreError:
            return False
        return True

    def answered(self, decision: Decision) -> None:
        """See `StateLog`."""
        flight = self._flights.get(decision.position)
        if flight is not None:
            flight.answers.append(decision)

    def before_capture(self, state: State) -> None:
        """See `StateLog`."""
        self._count_flights(state, -1)

    def after_capture(self, state: State) -> None:
        """See `StateLog`."""
        self._count_flights(state, 1)

    def _count_flights(self, state: State, by: int) -> None:
        for flight in self._flights.values():
            if flight.present:
                self._count(state, flight, by)

    def _count(self, state: State, flight: Flight, by: int) -> None:
        if flight.counted:
            state.segments.sums.count_pending(flight.segment, flight.arm, by)
        state.decided += by
        state.waiting += by

    def find(self, state: State, key: Key) -> list[Recalled]:
        """See `StateLog`: as far as the log has been applied here. Waits for a decision that this replica has not read yet.

        A StoreError for one that another replica may have given out before it was stored.
        """
        rows = self.journal.find(*key)
        passed = state.sequence if key[0] == state.replica else state.sequences.get(key[0], 0)
        if not rows and key[1] > passed:  # a lower number was stored, and pruned or taken back since
            if self.journal.may_come(*key):
                raise StoreError("the decision is not stored yet: send the outcome again")
            rows = self.journal.find(*key)  # it may have come meanwhile
        self._catch_up_to(rows[0][0] if rows else 0)
        return recall(state, self.journal.find(*key, before=self.position + 1)) if rows else []

    def _catch_up_to(self, position: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while self.position < position:
            if time.monotonic() > until:
                raise StoreError(f"this replica has not read row {position} of the log yet: try again")
            time.sleep(0.002)

    def flush(self) -> None:
        """See `StateLog`; a StoreError where that takes too long."""
        until = time.monotonic() + PATIENCE_S
        while self._expiring:
            if time.monotonic() > until:
                raise StoreError("default outcomes are not stored yet: try again")
            time.sleep(0.002)

    def wait(self, position: int) -> None:
        """See `StateLog`."""
        self.journal.wait(position)

    def is_durable(self, position: int) -> bool:
        """See `StateLog`."""
        return self.journal.is_durable(position)

    def is_degraded(self, position: int) -> bool:
        """See `StateLog`."""
        return self.journal.is_degraded(position)

    def leave(self) -> None:
        """See `StateLog`."""
        self.journal.ignore()

    # -- Listener, in the thread of the store --------------------------------------------------------------------------

    def catch_up(self, upto: int) -> None:
        """Read what was written since the router was restored."""
        for position, row in self.journal.read(self.position, upto):
            self.take(position, row, None)

    def take(self, position: int, row: Row, ticket: int | None) -> None:
        """Apply the next row of the log. A decision that is not in memory is looked up before the router is locked."""
        router, key = self._router, (row.replica, row.sequence)
        if position <= self.position:
            return
        found: list[Recalled] = []
        if row.kind == OUTCOME and key not in router.state.records:
            found = recall(router.state, self.journal.find(*key, before=position))
        with router.lock:
            state, flight = router.state, None if ticket is None else self._flights.pop(ticket, None)
            if flight is not None:
                self._flying.discard(flight.key)
            assert state.history is not None
            state.history.position = position
            if row.kind == OUTCOME:
                self._expiring.discard(key)
            if flight is not None and flight.present and row.kind == DECISION:
                self._landed(state, row, position)
            elif row.kind != OUTCOME or key in state.records or found:
                if row.kind == OUTCOME and key not in state.records:
                    remember(state, found[0])
                before = state.version
                self._apply(state, row, position)
                if ticket is not None and row.kind == CHANGE and row.code in _COUNTED and state.version == before:
                    self._overtaken.add(ticket)
            else:
                passed_over(state, row, position)
            if ticket is not None and row.kind == OUTCOME and self._outcomes.get(key, (0, None))[0] == ticket:
                del self._outcomes[key]
            self.position = position
            router.moved_on()

    def _landed(self, state: State, row: Row, position: int) -> None:
        """A decision of this replica is in the log. Whatever changed since it was made stands before it there, and holds for it."""
        state.landed(row)
        records, key = state.records, (row.replica, row.sequence)
        slot = records.slot(key)
        if slot is None:
            return
        records.put(slot, "logged", position)
        state.segments.confirm(state.segments.by_number[records.get(slot, "segment")])
        if records.get(slot, "version") != state.version:
            period = state.deadlines.period_at(position)
            due = state.due_of(row.at, period.deadline_s)
            records.put(slot, "version", state.version)
            records.put(slot, "due", due)
            state.deadlines.add(key, due, records, period)

    def _apply(self, state: State, row: Row, position: int) -> None:
        records, key = state.records, (row.replica, row.sequence)
        kept = 0 if (slot := records.slot(key)) is None else records.get(slot, "position")
        state.apply(row, position)
        slot = records.slot(key)
        if row.kind != CHANGE and slot is not None:
            records.put(slot, "position", kept if row.kind == OUTCOME else 0)
        if row.kind == CHANGE and state.records is not records:  # created anew
            for flight in self._flights.values():
                state.decided -= flight.present  # it is counted when it lands
                flight.present = False

    def refuse(self, ticket: int, known: Row) -> None:
        """Take a decision back: its request_id was decided before, and whoever waits gets that decision instead."""
        router, key = self._router, (known.replica, known.sequence)
        rows = [] if key in router.state.records else self.journal.find(*key, before=self.position + 1)
        found = recall(router.state, rows or [(self.position, known)])
        with router.lock:
            state, flight = router.state, self._flights.pop(ticket)
            self._flying.discard(flight.key)
            if flight.present:
                self._count(state, flight, -1)
                state.records.remove(flight.key)
                self._take_back_segments(state)
            if key not in state.records:
                remember(state, found[0])
            again = router.repeat(key)
            for decision in flight.answers:
                decision.become(again)

    def fail(self, error: Exception) -> None:
        """Stop: a row cannot be applied. The router is quarantined; others go on."""
        self.failed = f"{type(error).__name__}: {error}"
        log.error("a router cannot follow its log", extra={"facts": {"router": self._router.name, "error": self.failed}})
