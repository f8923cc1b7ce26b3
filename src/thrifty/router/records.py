"""Decision records: recent decisions in memory, until a limit in bytes; older ones are found in the log.

Fifty thousand objects would be fifty thousand things for the garbage collector to visit again and again: pauses of a tenth of a
second. So the numbers of a decision are a row of one record array, which compiled code writes and reads too.
"""

from collections import OrderedDict, deque
from itertools import islice
from math import isnan, nan
from mmap import mmap
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import record

CODES = ("exploit", "explore", "only", "newcomer", "holdout", "pinned", "baseline", "fallback", "budget")
"""Why an arm was chosen; a record keeps the number."""

EXPLOIT, EXPLORE, ONLY, HOLDOUT = 0, 1, 2, 4
GROUPS = {"holdout": "holdout", "baseline": "baseline", "fallback": "baseline"}
"""Groups of decisions by their code. All other codes are "routed", which is all traffic that is compared with these: a budget or a
pin changes what routing brings and costs. In the history, a decision in shadow mode is "shadow"."""

OPEN, DEFAULTED, ARRIVED = 0, 1, 2
"""How a decision stands: without an outcome, with the default one of its deadline, with one that came."""

DecisionRecord = record(
    [
        ("replica", np.int64),
        ("sequence", np.int64),
        ("segment", np.int64),  # where it is counted
        ("made", np.int64),  # the arm it decided for
        ("arm", np.int64),  # the arm that was used, as far as is known
        ("code", np.int64),
        ("version", np.int64),  # of the router when it was made
        ("at", np.float64),
        ("due", np.float64),  # by the monotonic clock
        ("propensity", np.float64),
        ("price", np.float64),  # NaN where unknown
        ("sent", np.int64),  # what it counts for in the sums of its arm: this and the next four
        ("seen", np.int64),
        ("reward", np.float64),
        ("cost", np.float64),
        ("priced", np.int64),
        ("settled", np.int64),
        ("outcome_at", np.float64),  # the last outcome: when, its reward (NaN for void), and its cost (NaN where unknown)
        ("outcome_value", np.float64),
        ("outcome_cost", np.float64),
        ("waiting", np.int64),  # for an outcome, or the deadline
        ("forgotten", np.int64),  # one if a reset of its arm forgot what it counted for
        ("logged", np.int64),  # position of its own row in the log; 0 while that is not known
        ("position", np.int64),  # of its last row: what to wait for before it is durable
    ]
)
"""A decision as the router remembers it: what it counts for now, and what an outcome would change."""

FIELDS: tuple[str, ...] = DecisionRecord.names or ()
WIDTH = len(FIELDS)
_RECORD_BYTES = DecisionRecord.itemsize
_PLACE = {name: place for place, name in enumerate(FIELDS)}
REPLICA, SEQUENCE, SEGMENT, MADE, ARM, CODE = (_PLACE[name] for name in ("replica", "sequence", "segment", "made", "arm", "code"))
PRICE, SENT, SETTLED, WAITING, POSITION = (_PLACE[name] for name in ("price", "sent", "settled", "waiting", "position"))
AT, DUE, LOGGED, OUTCOME_AT = (_PLACE[name] for name in ("at", "due", "logged", "outcome_at"))
OUTCOME_VALUE, OUTCOME_COST = _PLACE["outcome_value"], _PLACE["outcome_cost"]
"""Places of numbers in a record, which is WIDTH numbers wide, for `DecisionRecords.integers` and `floats`."""

_OTHERS = Struct("=q2d2q3d4q").pack(0, 0.0, 0.0, 0, OPEN, nan, nan, nan, 1, 0, 0, 0)
"""Bytes of the numbers `seen` to `position` of a decision that waits for an outcome."""

_WRITE = Struct(f"=7q4dq{len(_OTHERS)}s").pack_into
"""Write the bytes of a record: the numbers that the maker of a decision knows, `replica` to `sent`, and the others."""

_FLOATS = frozenset(name for name in FIELDS if DecisionRecord[name] == np.float64)

Key = tuple[int, int]
"""The replica that made a decision, and its number there."""

BYTES_OF_RECORD = DecisionRecord.itemsize + 400
"""A record, its key and its places in the tables, about."""

BYTES_OF_NOTE = 400

Made = tuple[int, int, int, int, int, float, float, float, float, int]
"""Numbers of a new decision in the order of a record: segment, made, arm, code, version, at, due, propensity, price, sent."""

Numbers = tuple[memoryview, memoryview, int]
"""Numbers of a record as integers and as floats, and where they begin."""


class Note(NamedTuple):
    """What is kept of a decision besides its numbers, where there is anything."""

    request_id: str | None
    segment: str  # that was asked for; it may be counted in one above
    detail: str | None

    @property
    def n_bytes(self) -> int:
        """About."""
        return BYTES_OF_NOTE + sum(len(text) for text in self if text is not None)


class DecisionRecords:
    """Records by key and by request_id, in the order in which they came.

    Old decisions that came back from the log are in a queue of their own, and leave first when they take more than half of the
    memory: a thousand deadlines that pass at once must not push out what was decided a second ago, which a retry may ask for.
    """

    def __init__(self, room: int = 256) -> None:
        self._slots: dict[Key, int] = {}
        self._order: deque[Key] = deque()
        self._recalled: OrderedDict[Key, int] = OrderedDict()  # bytes of those that came back from the log
        self._recalled_bytes = 0
        self._free: list[int] = []  # rows that were given back
        self._unused = 0  # rows from here on were never given out
        self._notes: dict[Key, Note] = {}
        self._requests: dict[str, Key] = {}
        self.n_bytes = 0  # how much memory the records take, about
        self.removals = 0  # how many records have left
        self.table: NDArray[Any] = np.zeros(0, DecisionRecord)
        self._make_room(room)

    def _make_room(self, room: int) -> None:
        grown = _empty_table(room)
        grown[: self.table.size] = self.table
        self.table = grown
        self.integers: memoryview = grown.view(np.int64).data  # the same numbers; reading one from Python is ten times faster
        self.floats: Any = grown.view(np.float64).data
        self._bytes: memoryview = grown.view(np.uint8).data

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: Key) -> bool:
        return key in self._slots

    def all_keys(self) -> list[Key]:
        """Keys of all records."""
        return list(self._slots)

    def newest(self, skip: int, count: int) -> tuple[list[Key], bool]:
        """Keys of decisions from the newest on, after leaving some out; and whether there may be more."""
        keys = list(islice(reversed(self._order), skip, skip + count))
        return [key for key in keys if key in self._slots], len(keys) == count

    def slot(self, key: Key) -> int | None:
        """The row of a decision in `table`, or None where it is not in memory."""
        return self._slots.get(key)

    def at(self, key: Key) -> int:
        """The row of a decision that is in memory."""
        return self._slots[key]

    def get(self, slot: int, field: str) -> Any:
        """One number of a record."""
        place = slot * WIDTH + _PLACE[field]
        return self.floats[place] if field in _FLOATS else self.integers[place]

    def put(self, slot: int, field: str, value: Any) -> None:
        """Change one number of a record."""
        place = slot * WIDTH + _PLACE[field]
        if field in _FLOATS:
            self.floats[place] = value
        else:
            self.integers[place] = value

    def key_at(self, slot: int) -> Key:
        """The key of a record."""
        return self.integers[slot * WIDTH], self.integers[slot * WIDTH + 1]

    def add(self, key: Key, made: Made, note: Note | None) -> int:
        """The row of a new decision, with the numbers in `made`; it waits for an outcome."""
        slot = self.place(key, note)
        _WRITE(self._bytes, slot * _RECORD_BYTES, *key, *made, _OTHERS)
        return slot

    def place(self, key: Key, note: Note | None, *, newest: bool = True) -> int:
        """A free row for a decision; the caller fills it. One that is not the newest came back from the log.

        The newest decision of a request_id answers it. One that came back from the log does not: a newer one may have left memory.
        """
        if self._free:
            slot = self._free.pop()
        else:
            if self._unused == self.table.size:
                self._make_room(2 * self.table.size)
            slot, self._unused = self._unused, self._unused + 1
        self._slots[key] = slot
        self.n_bytes += BYTES_OF_RECORD
        if newest:
            self._order.append(key)
        else:
            self._recalled[key] = BYTES_OF_RECORD + (0 if note is None else note.n_bytes)
            self._recalled_bytes += self._recalled[key]
        if note is not None:
            self._notes[key] = note
            self.n_bytes += note.n_bytes
            if note.request_id is not None and newest:
                self._requests[note.request_id] = key
        return slot

    def used_table(self) -> NDArray[Any]:
        """The rows of `table` that were ever given out; some may have been given back."""
        return self.table[: self._unused]

    def made_between(self, after: float, upto: float) -> NDArray[Any]:
        """A copy of the records of decisions made after a time, up to another, in no order."""
        table = self.used_table()
        at = table["at"]
        places = np.flatnonzero((at > after) & (at <= upto)).tolist()
        return table[[place for place in places if self._slots.get(self.key_at(place)) == place]]

    def note(self, key: Key) -> Note | None:
        """What is kept besides the numbers."""
        return self._notes.get(key)

    def answered(self, request_id: str) -> Key | None:
        """The decision that was made for a request_id, if it is in memory."""
        return self._requests.get(request_id)

    def remove(self, key: Key) -> None:
        """Forget a decision."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self.removals += 1
        if len(self._order) > 2 * len(self._slots) + 64:
            self._order = deque(each for each in self._order if each in self._slots)
        self._free.append(slot)
        self.n_bytes -= BYTES_OF_RECORD
        if self._recalled:
            self._recalled_bytes -= self._recalled.pop(key, 0)
        note = self._notes.pop(key, None) if self._notes else None
        if note is not None:
            self.n_bytes -= note.n_bytes
            if note.request_id is not None and self._requests.get(note.request_id) == key:
                del self._requests[note.request_id]

    def oldest(self) -> Key | None:
        """The record that is to leave first."""
        if self._recalled and 2 * self._recalled_bytes > self.n_bytes:
            return next(iter(self._recalled))
        order, slots = self._order, self._slots
        while order:
            key = order[0]
            if key in slots:
                return key
            order.popleft()
        return next(iter(self._recalled), None)


def _empty_table(room: int) -> NDArray[Any]:
    """Zeros. Memory of its own from the system: a page of it is taken when it is first used, and all goes back when it is freed.

    The allocator of C would keep large arrays for itself, per thread, and fill them with zeros when they are asked for again.
    """
    return np.frombuffer(mmap(-1, room * _RECORD_BYTES), DecisionRecord)


def number_or_nan(value: float | None) -> float:
    """NaN for None."""
    return nan if value is None else value


def number_or_none(value: float) -> float | None:
    """None for NaN."""
    return None if isnan(value) else value


def forget_outcomes(table: Any, arms: list[int]) -> None:
    """A reset keeps what is pending. An outcome it forgot cannot be corrected any more: that would count what it did away with."""
    pending = (table["sent"] == 1) & (table["seen"] == 0)
    forgotten = np.isin(table["arm"], arms) & (table["waiting"] == 0) & ~pending
    for name in ("sent", "seen", "reward", "cost", "priced"):
        table[name][forgotten] = 0
    table["forgotten"][forgotten] = 1
