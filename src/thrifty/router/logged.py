"""What is logged: a state and the log that it is the fold of, alone or with other replicas."""

import json
import threading
import time
from contextlib import nullcontext
from math import nan
from typing import Any

from thrifty.router.decision import Decision
from thrifty.router.fold import apply
from thrifty.router.follower import Follower
from thrifty.router.outcome import default_row
from thrifty.router.restore import find, restore
from thrifty.router.roster import Roster
from thrifty.router.sent import ARRIVED, CODES, SPOKEN_FOR, Sent
from thrifty.router.settings import Settings
from thrifty.router.snapshot import dump
from thrifty.router.state import State
from thrifty.store.log import CHANGE, OUTCOME, Journal, Row, StoreError

_new = tuple.__new__  # half the time of calling the class

SNAPSHOT_EVERY = 100_000
"""Rows of the log between two snapshots."""


class Logged:
    """The state of a router, and the log that everything that changes it is written to."""

    def __init__(self, state: State) -> None:
        self.name = state.name
        self._lock = threading.RLock()
        self._state = state
        self._journal: Journal | None = None
        self._follower: Follower | None = None
        self._position = self._snapshot_at = 0
        self._stale = False  # while the fold of the log begins anew

    @property
    def settings(self) -> Settings:
        """What the router was told."""
        return self._state.settings

    @property
    def roster(self) -> Roster:
        """Its arms."""
        return self._state.roster

    def finish(self, decision: Decision) -> None:
        """Note, after waiting for a decision, whether it is given out degraded: before it is durable, because the store is away."""
        if self._follower is not None:
            decision.degraded = self._follower.is_degraded(decision.position)

    def is_degraded(self, position: int) -> bool:
        """Whether a decision need not be waited for any longer, because the store is away."""
        return self._follower is not None and self._follower.is_degraded(position)

    def wait(self, position: int) -> None:
        """Return when what was given this `position` is durable; or, of a decision, is going to be because the store is away."""
        if self._journal is not None and position:
            try:
                self._journal.wait(position)
            except StoreError:
                self._reload()
                raise

    def is_durable(self, position: int) -> bool:
        """Whether `wait(position)` would return at once; raises like it."""
        if self._journal is None or not position:
            return True
        try:
            return self._journal.is_durable(position)
        except StoreError:
            self._reload()
            raise

    def prune(self, before: float, *, by: str = "") -> int:
        """Delete decisions made before a time (seconds since 1970) and their outcomes from the log; the number of rows deleted.

        The statistics stay as they are, kept in snapshots. Decisions that may still wait for an outcome stay too. Outcomes of
        deleted decisions are refused from now on. Changes are never deleted, and this becomes one more.
        """
        if self._journal is None:
            raise ValueError("a router without a store has no log to prune")
        with self._lock:
            before = min(before, self._state.clock() - self.settings.deadline_s)
            for sent in [sent for sent in self._state.ledger if sent.waiting and sent.at < before]:
                self._speak_for(sent.id)
            position = self._take_change("prune", {"before": before, "by": by})
        self.wait(position)
        with self._lock:
            self._snapshot()
            covered = self._position
        rows = self._journal.prune(before=before, upto=covered)
        with self._lock:
            position = self._take_change("pruned", {"before": before, "rows": rows, "by": by})
        self.wait(position)
        with self._lock:
            self._snapshot()
        return rows

    def _repeat(self, sent: Sent) -> Decision:
        """The same decision once more; its reason and fallbacks are of what is known now."""
        state, note = self._state, sent.note
        detail = json.loads(note.detail) if note is not None and note.detail is not None else {}
        segment = state.tree.nodes[sent.segment].name if note is None else note.segment
        node = state.tree.segment(segment)
        try:
            view = node.view(state.roster.key_of(dict(detail["eligible"]))) if "eligible" in detail else node.main
        except ValueError:  # none of those arms is active any more
            view = node.main
        view.look()
        arm, code = state.roster.names[sent.made], CODES[sent.code]
        decision = Decision(sent.id, arm, code, sent.propensity, segment, sent.version, view)
        decision.position, decision.repeated = sent.position, True
        if self._follower is not None:
            self._follower.answered(decision)
        return decision

    def expire(self) -> None:
        """Give every decision past its deadline the default outcome; `decide` and `record` do so by themselves."""
        with self._lock:
            self._ready()
            if self._follower is not None:
                self._make_room()

    def _make_room(self) -> None:
        """Other replicas' decisions fill the memory too. Whoever decides makes room before; who only listens, a little later."""
        ledger, limit = self._state.ledger, self.settings.remember + self.settings.remember // 10
        while (oldest := ledger.trim(limit + 1)) is not None and self._follower is not None and self._follower.may_write():
            self._speak_for(oldest)

    def _ready(self) -> None:
        if self._stale:
            self._reload()
        ledger, now = self._state.ledger, time.monotonic()
        while (late := ledger.due(now)) is not None:
            if self._follower is not None and not self._follower.may_speak_for(late, now):
                return
            self._speak_for(late)

    def _speak_for(self, decision_id: str) -> None:
        """The default outcome of a decision."""
        state, settings = self._state, self.settings
        usual = self._follower is None and settings.default_outcome == "failure" and not settings.holdout
        if usual and self._settle_as_usual(state, decision_id, 0.0, "default") is not None:
            return
        sent = find(state, decision_id, self._journal)
        self._take_in(default_row(state, sent), sent)

    def _settle_as_usual(self, state: State, decision_id: str, value: float, code: str) -> int | None:
        """Nearly every outcome: one kernel does what `apply` would do with the row. Its position; None if it is not as usual."""
        ledger, at, how = state.ledger, state.clock(), ARRIVED if code == "recorded" else SPOKEN_FOR
        slot = ledger.slot_of(decision_id)
        if slot is None:
            return None
        paid = state.tree.root.main.tell(0, 0, 0, 0, value, 0.0, nan, state.tree.books, ledger.address, slot, at, how)
        if paid != paid:  # NaN
            return None
        if how == ARRIVED:
            state.arrived += 1
        else:
            state.expired += 1
        if self._journal is None:
            return 0
        replica, sequence, made = ledger.made_by(slot)
        row = (OUTCOME, replica, sequence, at, None, None, state.roster.names[made], value, paid, code, None)
        position = self._append(_new(Row, row))
        ledger.place(slot, position)
        self._reached(position)
        return position

    def _take_change(self, action: str, body: dict[str, Any]) -> int:
        state = self._state
        arm = body.get("arm")
        row = Row(CHANGE, state.replica, state.sequence, state.clock(), None, None, arm, None, None, action, json.dumps(body))
        if self._follower is not None:
            return self._follower.change(row)
        self._take_in(row)
        return self._position

    def _take_in(self, row: Row, sent: Sent | None = None) -> Any:
        """Hand a row to the log and fold it into the state."""
        if self._journal is None:
            return apply(self._state, row, sent)
        if self._follower is not None:
            return self._follower.send(row, sent)
        position = self._append(row)
        sent = apply(self._state, row, sent, position)
        self._reached(position)
        return sent

    def _append(self, row: Row) -> int:
        """Hand a row to the log; its position. If the log does not take it, the fold begins anew."""
        assert self._journal is not None
        try:
            return self._journal.append(row)
        except StoreError:
            self._reload()
            raise

    def _reached(self, position: int) -> None:
        """The state is the fold of the log up to `position`."""
        self._position = position
        if position - self._snapshot_at >= SNAPSHOT_EVERY:
            self._snapshot()

    def _snapshot(self) -> None:
        assert self._journal is not None
        self._snapshot_at = self._position
        with nullcontext() if self._follower is None else self._follower.grounded():
            body = dump(self._state)
        self._journal.save_snapshot(self._position, body)

    def _restore(self, journal: Journal) -> None:
        """Be the fold of a log."""
        old, self._journal = self._state, journal
        journal.recover()
        arms = dict(zip(old.roster.names, old.roster.prices, strict=True))
        fresh = State(self.name, arms, old.settings, replica=journal.replica, clock=old.clock)
        self._state, self._position, self._snapshot_at = restore(fresh, journal)
        if journal.shared:
            self._follower = Follower(self, journal)
            journal.listen(self._follower)

    def _reload(self) -> None:
        """The log did not take what the state already counts: fold the log anew, so that nothing is counted that is not there.

        Of a shared log nothing is counted before it is there.
        """
        if self._follower is not None:
            return
        with self._lock:
            assert self._journal is not None
            self._stale = True
            self._restore(self._journal)
            self._stale = False
