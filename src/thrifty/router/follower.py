"""The follower: a router's side of a log that other replicas write to as well.

The log's order decides. A decision counts as pending at once, because that much is the same in any order; outcomes and changes are
folded only when they come back from the log, in the order in which every replica folds them. So sums are the same everywhere, bit
for bit, and nothing has to be undone but a decision whose request_id another replica had answered before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from thrifty.router.decision import Decision
from thrifty.router.fold import apply, recall
from thrifty.router.outcome import outcome_row
from thrifty.router.restore import find, take
from thrifty.router.sent import Sent
from thrifty.store.log import CHANGE, DECISION, Journal, Row, StoreError

if TYPE_CHECKING:
    from thrifty.router.logged import Logged

GRACE_S = 2.0
"""How long the replica that made a decision may be late in speaking for it before another does."""


@dataclass(slots=True)
class Flight:
    """A decision of this replica that is not in the log yet."""

    id: str
    segment: int
    arm: int
    is_pending: bool
    answers: list[Decision] = field(default_factory=list)
    counted: bool = True


class Follower:
    """Listens to the log for one router; see `thrifty.store.log.Listener`."""

    def __init__(self, router: "Logged", journal: Journal) -> None:
        self._router, self._journal = router, journal
        self._flights: dict[int, Flight] = {}
        self._said: dict[str, tuple[int, Row]] = {}  # outcomes that are not in the log yet, by decision

    def admit(self, *, keep: bool) -> None:
        """Raise a StoreError when the log takes no rows: for a while it still takes those that it can keep."""
        self._journal.admit(keep=keep)

    def is_degraded(self, ticket: int) -> bool:
        """Whether a decision waits for a store that is away."""
        return self._journal.is_degraded(ticket)

    def catch_up(self, upto: int) -> None:
        """Read what was written since the router was restored."""
        for position, row in self._journal.read(self._router._position, upto):
            self.take(position, row, None)

    def send(self, row: Row, sent: Sent | None) -> Sent:
        """Hand a decision of this replica, or the default outcome of one, to the log; the decision."""
        ticket, ledger = self._journal.append(row, keep=True), self._router._state.ledger
        if row.kind != DECISION:
            assert sent is not None
            sent.waiting = 0
            ledger.keep(sent)
            return sent
        made = apply(self._router._state, row, position=ticket)
        assert made is not None
        self._flights[ticket] = Flight(made.id, made.segment, made.arm, made.is_pending)
        return made

    def change(self, row: Row) -> int:
        """Hand a change to the log; the ticket to wait for."""
        return self._journal.append(row, keep=False)

    def record(
        self, decision_id: str, value: float | None, cost: float | None, arm: str | None, occurred_at: float | None
    ) -> tuple[str, int]:
        """Hand an outcome to the log, unless it is there or on its way; the answer, and the ticket to wait for."""
        self.admit(keep=False)
        state = self._router._state
        sent = find(state, decision_id, self._journal)
        ahead, ticket = self._latest(sent)
        row = outcome_row(state, ahead, value, cost, arm, occurred_at)
        if isinstance(row, str):
            return row, ticket
        ticket = self._journal.append(row, keep=False)
        self._said[sent.id] = ticket, row
        return row.code, ticket

    def answered(self, decision: Decision) -> None:
        """Remember what was answered with a decision that is not in the log yet."""
        flight = self._flights.get(decision.position)
        if flight is not None:
            flight.answers.append(decision)

    def _latest(self, sent: Sent) -> tuple[Sent, int]:
        """A decision as it will be once all outcomes that were told here are in the log, and the ticket to wait for."""
        ticket, row = self._said.get(sent.id, (0, None))
        if row is None:
            return sent, sent.position
        try:
            self._journal.is_durable(ticket)
        except StoreError:  # it was given up
            del self._said[sent.id]
            return sent, sent.position
        ahead = replace(sent)
        ahead.settle(row, self._router.roster.index(row.arm))
        return ahead, ticket

    def may_speak_for(self, decision_id: str, now: float) -> bool:
        """Whether it is for this replica to give a late decision its default outcome: one of its own, or of one that is gone."""
        state = self._router._state
        replica, sent = state.replica, find(state, decision_id, None)
        return (sent.replica == replica or now >= sent.due + GRACE_S + replica % 4) and self.may_write()

    def may_write(self) -> bool:
        """Whether the log takes rows that it can keep."""
        try:
            self.admit(keep=True)
        except StoreError:
            return False
        return True

    def take(self, position: int, row: Row, ticket: int | None) -> None:
        """Fold the next row of the log."""
        router = self._router
        with router._lock:
            if position <= router._position:
                return
            flight = None if ticket is None else self._flights.pop(ticket, None)
            if flight is None or not flight.counted:
                ledger = router._state.ledger
                take(router._state, row, self._journal, before=position)
                if row.kind == CHANGE and router._state.ledger is not ledger:  # it was created anew
                    for each in self._flights.values():
                        each.counted = False
            if ticket is not None and row.kind != DECISION:
                decision_id = router._state.id_of(row.replica, row.sequence)
                if self._said.get(decision_id, (0, None))[0] == ticket:
                    del self._said[decision_id]
            router._reached(position)

    def refuse(self, ticket: int, known: Row) -> None:
        """Take a decision back: its request_id was decided before, and whoever waits gets that decision instead."""
        router = self._router
        with router._lock:
            state, flight = router._state, self._flights.pop(ticket)
            if flight.counted:
                self._count(flight, -1)
                state.ledger.remove(flight.id)
            first = state.ledger.find(state.id_of(known.replica, known.sequence)) or recall(state, [known])[0]
            again = router._repeat(first)
            for decision in flight.answers:
                decision.become(again)

    @contextmanager
    def grounded(self) -> Iterator[None]:
        """Meanwhile the state counts only what is in the log."""
        flying = [flight for flight in self._flights.values() if flight.counted]
        for flight in flying:
            self._count(flight, -1)
        try:
            yield
        finally:
            for flight in flying:
                self._count(flight, 1)

    def _count(self, flight: Flight, by: int) -> None:
        """Count a decision that is not in the log once more, or not."""
        state = self._router._state
        if flight.is_pending:
            state.tree.nodes[flight.segment].main.fold(flight.arm, by, 0, 0.0, 0.0)
        state.decided += by
