"""The ledger: recent decisions in the order in which they were made, until their outcome or their deadline.

Fifty thousand objects would be fifty thousand things for the garbage collector to look at again and again: pauses of a tenth of a
second. So the numbers of a decision lie in a ring of records, which compiled code writes and reads too; `Sent` is one of them taken
out, and `keep` puts it back.
"""

import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from thrifty.router.sent import NUMBERS, Entry, Note, Sent

_WIDTH = len(NUMBERS)
_WAITING, _POSITION = NUMBERS.index("waiting"), NUMBERS.index("position")
_DUE, _AT = NUMBERS.index("due"), NUMBERS.index("at")


class Ledger:
    """Remembered decisions by id, by request_id and by age. Each has a number; numbers grow, and the oldest go first."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids: deque[str] = deque()  # of the numbers from `_oldest` on, the forgotten ones included
        self._oldest = self._next = 0
        self._first_waiting = 0  # nobody before this number waits
        self._notes: dict[int, Note] = {}
        self._requests: dict[str, str] = {}  # id by request_id
        self.next_due = math.inf  # nothing is past its deadline before this, by the monotonic clock
        self._entries: Any = np.zeros(0, Entry)
        self._mask = 0
        self._make_room(1024)

    def _make_room(self, room: int) -> None:
        """A ring of `room` entries, a power of two, with those there are."""
        grown: Any = np.zeros(room, Entry)
        numbers = np.arange(self._oldest, self._next)
        grown[numbers & (room - 1)] = self._entries[numbers & self._mask]
        self._entries, self._mask = grown, room - 1
        self.address = grown.ctypes.data
        self._integers: memoryview = grown.view(np.int64).data  # the same numbers; reading one from Python is ten times faster
        self._floats: memoryview = grown.view(np.float64).data

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Sent]:
        for id, number in list(self._numbers.items()):
            yield self._look(id, number)

    def _look(self, id: str, number: int) -> Sent:
        sent = Sent(*self._entries[number & self._mask].item())
        sent.id, sent.note = id, self._notes.get(number)
        return sent

    def find(self, id: str) -> Sent | None:
        """The decision of an id."""
        number = self._numbers.get(id)
        return None if number is None else self._look(id, number)

    def answered(self, request_id: str) -> Sent | None:
        """The decision that was asked for with a request_id."""
        return self.find(self._requests.get(request_id, ""))

    def next_slot(self) -> int:
        """Where the entry of the decision to come shall lie."""
        if self._next - self._oldest > self._mask:
            self._drop_forgotten()
            if self._next - self._oldest > self._mask:
                self._make_room(2 * (self._mask + 1))
        return self._next & self._mask

    def slot_of(self, id: str) -> int | None:
        """Where the entry of a decision lies."""
        number = self._numbers.get(id)
        return None if number is None else number & self._mask

    def made_by(self, slot: int) -> tuple[int, int, int]:
        """The replica, the sequence and the arm of the decision in a slot."""
        replica, sequence, _, made = self._integers[slot * _WIDTH : slot * _WIDTH + 4]
        return replica, sequence, made

    def add(self, sent: Sent) -> None:
        """Remember a decision."""
        slot = self.next_slot()
        self.entered(sent.id, sent.due, sent.note)
        self._write(slot, sent)

    def entered(self, id: str, due: float, note: Note | None) -> None:
        """Remember the decision whose numbers are in the next slot, or will be at once."""
        number = self._next
        self._next = number + 1
        self._numbers[id] = number
        self._ids.append(id)
        if due < self.next_due:
            self.next_due = due
        if note is not None:
            self._notes[number] = note
            self._requests[note.request_id] = id

    def place(self, slot: int, position: int) -> None:
        """Say where in the log the last row about a decision is."""
        self._integers[slot * _WIDTH + _POSITION] = position

    def keep(self, sent: Sent) -> None:
        """Remember what has become of a decision, if it is still remembered."""
        number = self._numbers.get(sent.id)
        if number is not None:
            self._write(number & self._mask, sent)

    def _write(self, slot: int, sent: Sent) -> None:
        self._entries[slot] = tuple([getattr(sent, name) for name in NUMBERS])

    def remove(self, id: str) -> None:
        """Forget a decision."""
        number = self._numbers.pop(id, None)
        if number is not None:
            self._integers[(number & self._mask) * _WIDTH + _WAITING] = 0
            self._drop_note(id, number)

    def _drop_note(self, id: str, number: int) -> None:
        note = self._notes.pop(number, None)
        if note is not None and self._requests.get(note.request_id) == id:
            del self._requests[note.request_id]

    def _drop_forgotten(self) -> None:
        """Let the ring begin with a decision that is remembered."""
        while self._ids and self._numbers.get(self._ids[0]) != self._oldest:
            self._ids.popleft()
            self._oldest += 1

    def forget(self, before: float) -> None:
        """Forget all decisions made before a time."""
        floats, mask = self._floats, self._mask
        for id in [id for id, number in self._numbers.items() if floats[(number & mask) * _WIDTH + _AT] < before]:
            self.remove(id)

    def trim(self, limit: int) -> str | None:
        """Forget the oldest decisions until there is room for one more, but none that still waits: the id of that is returned."""
        numbers, ids, notes = self._numbers, self._ids, self._notes
        while len(numbers) >= limit:
            oldest, id = self._oldest, ids[0]
            if self._integers[(oldest & self._mask) * _WIDTH + _WAITING]:
                return id
            ids.popleft()
            self._oldest = oldest + 1
            if numbers.get(id) == oldest:
                del numbers[id]
            if notes:
                self._drop_note(id, oldest)
        return None

    def due(self, now: float) -> str | None:
        """The id of the first decision that still waits and is past its deadline, by the monotonic clock."""
        for number in range(max(self._first_waiting, self._oldest), self._next):
            base = (number & self._mask) * _WIDTH
            if self._integers[base + _WAITING]:
                self._first_waiting, self.next_due = number, self._floats[base + _DUE]
                return self._ids[number - self._oldest] if self.next_due <= now else None
        self._first_waiting, self.next_due = self._next, math.inf
        return None

    @property
    def waiting(self) -> int:
        """How many wait for an outcome."""
        numbers = np.arange(self._oldest, self._next) & self._mask
        return int(self._entries["waiting"][numbers].sum())
