"""State logs: how a router's calls become rows, and rows become its state. In memory only, or in a log of its own.

`thrifty.router.replicated_log` has the third: a log that other replicas write to as well.
"""

from thrifty.router.decision import Decision
from thrifty.router.engine import Engine
from thrifty.router.records import LOGGED, POSITION, WIDTH, Key, Numbers
from thrifty.router.restore import Recalled, recall, restore
from thrifty.router.state import State
from thrifty.store.log import Journal, Row, StoreError


class StateLog:
    """What a router does with a row. This one writes it nowhere: the state lives as long as the process.

    All methods up to `after_capture` are called under the router's lock.
    """

    journal: Journal | None = None
    position = 0  # the state is that of the log up to here
    snapshot_position = 0  # of the newest snapshot
    stale = False  # whether the state counts rows that the log lost
    failed: str | None = None  # why the log can no longer be followed

    def restore(self, fresh: State) -> State:
        """The state of the log, given one that knows nothing."""
        return fresh

    def made_segments(self, state: State, first: int) -> None:
        """Note that the segments from this number on were made for a decision that is not written down yet."""

    def add_decision(self, state: State, row: Row, slot: int) -> int:  # noqa: ARG002
        """Write down a decision that was applied; what to `wait` for."""
        state.landed(row)
        return 0

    def add_outcome(self, state: State, row: Row, slot: int) -> int:
        """Write down and apply an outcome; what to `wait` for."""
        state.apply_outcome(row, slot)
        return 0

    def add_change(self, state: State, row: Row, engine: Engine | None) -> int:
        """Write down and apply a change that was tried; what to `wait` for."""
        state.apply(row, 0, engine)
        return 0

    def was_overtaken(self, position: int) -> bool:  # noqa: ARG002
        """Whether a change that is durable had no effect, because one of another replica came first. Asked once."""
        return False

    def latest(self, state: State, slot: int) -> tuple[Numbers, int]:
        """The record of a decision with all outcomes taken here, and what to wait for before it is durable."""
        records, base = state.records, slot * WIDTH
        return (records.integers, records.floats, base), records.integers[base + POSITION]

    def may_expire(self, state: State, key: Key, now: float) -> bool:  # noqa: ARG002
        """Whether it is for this replica to write the default outcome of a decision that is due."""
        return True

    def admit(self) -> None:
        """Raise a StoreError where decisions cannot be taken now."""

    def admit_outcome(self, key: Key) -> None:
        """Raise a StoreError where an outcome of this decision cannot be taken now."""

    def may_evict(self, position: int) -> bool:
        """Whether a decision whose last row is at `position` may leave memory: the log can give it back."""
        return self.is_durable(position)

    def answered(self, decision: Decision) -> None:
        """Note who got a decision that is not in the log yet."""

    def before_capture(self, state: State) -> None:
        """Let the state count only what is in the log, until `after_capture`."""

    def after_capture(self, state: State) -> None:
        """Undo `before_capture`."""

    # -- without the lock

    def flush(self) -> None:
        """Return when default outcomes that were written here are applied here."""

    def find(self, state: State, key: Key) -> list[Recalled]:  # noqa: ARG002
        """A decision that is not in memory, from the log; nothing where it is not there either."""
        return []

    def wait(self, position: int) -> None:
        """Return when everything up to `position` is durable; raise a StoreError where it is not going to be."""

    def is_durable(self, position: int) -> bool:  # noqa: ARG002
        """Whether `wait` would return at once because everything is durable; raises like it."""
        return True

    def is_degraded(self, position: int) -> bool:  # noqa: ARG002
        """Whether a decision need not be waited for any longer, because the store is away."""
        return False

    def leave(self) -> None:
        """Follow the log no more."""


class LocalLog(StateLog):
    """A log that only this process writes to. What is applied before it is durable is undone by restoring, if a commit fails."""

    def __init__(self, journal: Journal) -> None:
        self.journal: Journal = journal

    def restore(self, fresh: State) -> State:
        """See `StateLog`."""
        self.journal.recover()
        state, self.position, self.snapshot_position = restore(fresh, self.journal)
        self.stale = False
        return state

    def add_decision(self, state: State, row: Row, slot: int) -> int:
        """See `StateLog`."""
        position, base = self._append(row), slot * WIDTH
        state.records.integers[base + LOGGED] = state.records.integers[base + POSITION] = position
        state.landed(row)
        return position

    def add_outcome(self, state: State, row: Row, slot: int) -> int:
        """See `StateLog`."""
        state.apply_outcome(row, slot)
        position = self._append(row)
        state.records.integers[slot * WIDTH + POSITION] = position
        return position

    def add_change(self, state: State, row: Row, engine: Engine | None) -> int:
        """See `StateLog`."""
        position = self._append(row)
        state.apply(row, position, engine)
        return position

    def _append(self, row: Row) -> int:
        try:
            self.position = self.journal.append(row)
        except StoreError:
            self.stale = True
            raise
        return self.position

    def find(self, state: State, key: Key) -> list[Recalled]:
        """See `StateLog`."""
        return recall(state, self.journal.find(*key))

    def wait(self, position: int) -> None:
        """See `StateLog`."""
        try:
            self.journal.wait(position)
        except StoreError:
            self.stale = True
            raise

    def is_durable(self, position: int) -> bool:
        """See `StateLog`."""
        try:
            return self.journal.is_durable(position)
        except StoreError:
            self.stale = True
            raise
