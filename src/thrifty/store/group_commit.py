"""Group commit: one thread owns the writing connection; callers append items and wait until they are durable.

While one commit runs, items collect, and the next commit takes all of them. There is no timer.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from thrifty.store.log import StoreError

MOST_YIELDS = 16
"""How many times the writer lets other threads run before it commits, at most."""

ENOUGH = 128
"""Items that are committed without waiting for more: a thread that appends thousands would hold up everybody else's."""


class GroupCommit:
    """Commits appended items in order.

    Parameters
    ----------
    commit : gets a list of (position, item) and returns when they are durable, or raises a StoreError and stores none of them
    durable : the position of the last item that is durable already

    >>> done = []
    >>> writer = GroupCommit(done.extend, durable=5)
    >>> writer.wait(writer.append("a", 0))
    >>> done
    [(6, 'a')]
    >>> writer.close()

    """

    def __init__(self, commit: Callable[[list[tuple[int, Any]]], None], *, durable: int) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._gates: list[tuple[int, threading.Lock]] = []  # of waiting threads, with the position each waits for
        self._items: list[tuple[int, Any]] = []
        self._next = self.durable = durable
        self._closing = self._idle = False
        self._lost: deque[tuple[int, int, StoreError]] = deque(maxlen=100)  # first and last position, and why
        self.generation = 0  # how many times items were lost
        self.failure: StoreError | None = None
        self.callbacks: list[Callable[[], None]] = []  # called after every commit, in the writer's thread
        self.begin_soon: Callable[[], None] | None = None  # called instead of `begin` when an idle writer gets work
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="thrifty-writer", daemon=True)
        self._thread.start()

    def append(self, item: Any, generation: int) -> int:
        """Append an item; returns its position. A StoreError if the caller has not noticed yet that earlier items were lost."""
        with self._lock:
            if generation != self.generation or self._closing:
                raise StoreError(f"the store is not taking rows: {self.failure or 'it is closed'}")
            position = self._next = self._next + 1
            self._items.append((position, item))
            if not self._idle or len(self._items) > 1:
                return position
            if self.begin_soon is None:
                self._work.notify()
                return position
        self.begin_soon()
        return position

    def begin(self) -> None:
        """Start to commit what was appended. Only needed with `begin_soon`."""
        with self._lock:
            self._work.notify()

    def wait(self, position: int) -> None:
        """Return when `position` is durable; raise a StoreError if it was lost."""
        while not self.is_durable(position):
            gate = threading.Lock()
            gate.acquire()
            with self._lock:
                if self._is_durable(position):
                    return
                self._gates.append((position, gate))
                if self._idle:  # with `begin_soon`, the thread that would call `begin` may be this one
                    self._work.notify()
            gate.acquire()

    def is_durable(self, position: int) -> bool:
        """True if `position` is durable; a StoreError if it was lost."""
        if not self._lost:
            return self.durable >= position
        with self._lock:
            return self._is_durable(position)

    def _is_durable(self, position: int) -> bool:
        for first, last, failure in self._lost:
            if first <= position <= last:
                raise StoreError(f"not stored: {failure}")
        return self.durable >= position

    def _run(self) -> None:
        while (batch := self._gather()) is not None:
            failure = None
            try:
                self._commit(batch)
            except StoreError as error:
                failure = error
            except Exception as error:  # a defect: waiting threads must get an error, not wait for a thread that ended
                failure = StoreError(f"cannot commit: {error!r}")
            with self._lock:
                self.commits += 1
                if failure is not None:
                    # A position is never used twice, so a thread that asks for a lost one later gets an error too.
                    first = batch[0][0]
                    if self._lost and self._lost[-1][1] == first - 1:  # failure after failure is one range
                        first = self._lost.pop()[0]
                    self._lost.append((first, self._next, failure))
                    self._items = []
                    self.generation += 1
                    done, self._gates = self._gates, []
                else:
                    durable = self.durable = batch[-1][0]
                    done = [each for each in self._gates if each[0] <= durable]
                    self._gates = [each for each in self._gates if each[0] > durable]
                self.failure = failure
            for _, gate in done:
                gate.release()
            for callback in self.callbacks:
                callback()

    def _gather(self) -> list[tuple[int, Any]] | None:
        """All items there are, as the next batch; None after `close`."""
        with self._lock:
            while not self._items:
                if self._closing:
                    return None
                self._idle = True
                self._work.wait()
            self._idle = False
        self._let_others_append()
        with self._lock:
            batch, self._items = self._items, []
            return batch

    def _let_others_append(self) -> None:
        """Let other threads run first, as long as they append items to the same commit."""
        before = 0
        for _ in range(MOST_YIELDS):
            if len(self._items) == before or before >= ENOUGH:
                return
            before = len(self._items)
            time.sleep(0)

    def close(self) -> None:
        """Commit what was appended, and end the thread."""
        with self._lock:
            self._closing = True
            self._work.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()
