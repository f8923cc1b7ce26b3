"""What rows of the log add to the history in the store: decisions, outcomes, rewards and costs per minute, segment, arm and group.

The state, which is the one interpreter of rows, hands every row that it counts to `HistoryDeltas`. They are written about once a
second and before every snapshot, in one transaction with the position of the log that they reach to. After a restart the rows
behind that position are counted again by the fold that restores the state, and no others.

A reset changes no history, for it is about what happened: a decision counts with its last outcome, whatever was forgotten since.
"""

from itertools import takewhile
from math import isnan
from typing import TYPE_CHECKING, Any

from thrifty.router.records import ARM, AT, CODE, CODES, GROUPS, OPEN, OUTCOME_COST, OUTCOME_VALUE, SEGMENT, SENT, SETTLED, WIDTH
from thrifty.router.rows import counted_name, is_shadow
from thrifty.store.history import Cells, Place, Reached
from thrifty.store.log import Row

if TYPE_CHECKING:
    from thrifty.router.state import State

GROUP_OF_CODE = tuple(GROUPS.get(code, "routed") for code in CODES)
"""The groups of codes by the number of the code."""


class HistoryDeltas:
    """Deltas since the history was last written, added up. For a log that only this process writes to.

    >>> deltas = HistoryDeltas(since=0)
    >>> deltas.add((0, "DE", "a", "routed"), 1, 0, 0.0, 0.0)
    >>> deltas.take()
    {(0, 'DE', 'a', 'routed'): [1, 0, 0.0, 0.0]}

    """

    def __init__(self, *, since: int, complete: bool = True) -> None:
        self.since = since  # all rows after this position of the log are in here, or will be
        self.complete = complete  # False while rows up to `since` are not counted in the store yet
        self.position = since  # of the row that is counted now; only a shared log needs it
        self.left_over: LeftOver | None = None
        self._cells: dict[Place, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def add(self, place: Place, decisions: int, outcomes: int, reward: float, cost: float) -> None:
        """Add to the sums of a place."""
        cell = self._cells.get(place)
        if cell is None:
            self._cells[place] = [decisions, outcomes, reward, cost]
            return
        cell[0] += decisions
        cell[1] += outcomes
        cell[2] += reward
        cell[3] += cost

    def take(self) -> Cells:
        """All sums; from here on they are those of later rows."""
        cells, self._cells = self._cells, {}
        return cells

    def take_upto(self, position: int) -> list[tuple[Cells, int]]:
        """What to write, with the positions that it reaches to: all sums, after what was left over."""
        found = [] if self.left_over is None else [(self.left_over.take(), self.left_over.upto)]
        if not found or found[0][1] < position:
            found.append((self.take(), position))
        self.left_over, self.since = None, position
        return found

    def count_decision(self, row: Row) -> None:
        """Count a decision that has a place in the log."""
        group, segment = GROUPS.get(row.code, "routed"), row.segment or ""
        if row.detail is not None:
            group, segment = "shadow" if is_shadow(row.detail) else group, counted_name(row)
        self.add((row.at // 60, segment, row.arm, group), 1, 0, 0.0, 0.0)

    def count_outcome(self, state: "State", slot: int, row: Row) -> None:
        """Count an outcome in the place of the one that is known. Called before it is applied."""
        records, base, value = state.records, slot * WIDTH, row.value
        numbers = records.integers
        settled, group = numbers[base + SETTLED], GROUP_OF_CODE[numbers[base + CODE]]
        if (
            settled != OPEN or not numbers[base + SENT]
        ):  # it may have been made in shadow mode, where it counts only with an outcome
            note = records.note(records.key_at(slot))
            group = "shadow" if note is not None and is_shadow(note.detail) else group
        minute, segment = records.floats[base + AT] // 60, state.segments.by_number[numbers[base + SEGMENT]].name
        if value is not None:
            self.add((minute, segment, row.arm, group), 0, 1, value, row.cost or 0.0)
        if settled != OPEN and not isnan(records.floats[base + OUTCOME_VALUE]):
            known, cost = records.floats[base + OUTCOME_VALUE], records.floats[base + OUTCOME_COST]
            arm = state.arms.names[numbers[base + ARM]]
            self.add((minute, segment, arm, group), 0, -1, -known, 0.0 if isnan(cost) else -cost)


class LeftOver(HistoryDeltas):
    """Deltas of the rows up to a position, of places behind `done`: a process that ended had written those of the other places."""

    def __init__(self, reached: Reached) -> None:
        super().__init__(since=reached.position)
        self.upto, self._done = reached.upto, reached.done

    def add(self, place: Place, decisions: int, outcomes: int, reward: float, cost: float) -> None:
        """See `HistoryDeltas`."""
        if self._done is None or place > self._done:
            super().add(place, decisions, outcomes, reward, cost)


class SharedDeltas(HistoryDeltas):
    """Deltas of single rows with their positions. For a log of several replicas, of which another may count a row first."""

    def __init__(self, *, since: int, complete: bool = True) -> None:
        super().__init__(since=since, complete=complete)
        self._rows: list[tuple[int, Place, tuple[int, int, float, float]]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, place: Place, decisions: int, outcomes: int, reward: float, cost: float) -> None:
        """Note what the row at `position` adds to a place, unless it is counted already."""
        if self.position > self.since:
            self._rows.append((self.position, place, (decisions, outcomes, reward, cost)))

    def between(self, after: int, upto: int) -> Cells:
        """See `thrifty.store.history.Deltas`. Rows may be added meanwhile."""
        found = HistoryDeltas(since=after)
        for position, place, sums in list(self._rows):
            if after < position <= upto:
                found.add(place, *sums)
        return found.take()

    def drop(self, upto: int) -> None:
        """Forget the rows up to a position: they are counted in the store."""
        if upto > self.since:
            del self._rows[: sum(1 for _ in takewhile(lambda row: row[0] <= upto, self._rows))]
            self.since = upto


def deltas_after(reached: Reached, *, snapshot: int, shared: bool) -> HistoryDeltas:
    """Where to count the rows behind a snapshot, given how far the history in the store reaches.

    If it does not reach as far as the snapshot, the rows in between are counted later, by another fold; see `HistoryKeeper`.
    """
    complete = reached.position >= snapshot
    since = reached.position if complete else max(snapshot, reached.upto)
    if shared:
        return SharedDeltas(since=since, complete=complete)
    deltas = HistoryDeltas(since=since, complete=complete)
    deltas.left_over = LeftOver(reached) if complete and reached.done is not None else None
    return deltas


def deltas_of_row(deltas: HistoryDeltas, position: int) -> HistoryDeltas | None:
    """Where to count the row at a position; None if it is counted, or will be by another fold."""
    deltas.position = position
    if position <= deltas.since:
        return None
    left = deltas.left_over
    return left if left is not None and position <= left.upto else deltas
