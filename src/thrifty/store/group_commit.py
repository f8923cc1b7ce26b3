"""One thread owns the writing connection; callers hand it rows and wait until they are durable.

Group commit comes by itself: while one commit is under way, rows gather, and the next commit takes all of them. There is no timer.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from thrifty.store.log import StoreError

PATIENCE = 16
"""How often the writer lets other threads go first before it commits, at most."""


class GroupCommit:
    """Commits what is appended, in order.

    Parameters
    ----------
    commit : takes a list of (position, item) and returns when they are durable, or raises StoreError and leaves nothing of them
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
        self._gates: list[tuple[int, threading.Lock]] = []  # of those who wait, with what for
        self._items: list[tuple[int, Any]] = []
        self._next = self.durable = durable
        self._closing = self._idle = False
        self._lost: deque[tuple[int, int, StoreError]] = deque(maxlen=100)  # first and last position, and why
        self.generation = 0  # how often items were lost
        self.failure: StoreError | None = None
        self.callbacks: list[Callable[[], None]] = []  # called after every commit, in the writer's thread
        self.begin_soon: Callable[[], None] | None = None  # called when the writer is idle and has work, instead of `begin`
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="thrifty-writer", daemon=True)
        self._thread.start()

    def append(self, item: Any, generation: int) -> int:
        """Hand over an item; its position. Refused from a caller who has not yet noticed that earlier items were lost."""
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
        """Commit what was appended. Without `begin_soon` that happens by itself."""
        with self._lock:
            self._work.notify()

    def wait(self, position: int) -> None:
        """Return when `position` is durable; raise when it is lost."""
        while not self.is_durable(position):
            gate = threading.Lock()
            gate.acquire()
            with self._lock:
                if self._is_durable(position):
                    return
                self._gates.append((position, gate))
                if self._idle:  # nobody else may begin while this thread waits
                    self._work.notify()
            gate.acquire()

    def is_durable(self, position: int) -> bool:
        """Whether `wait` would return at once; raises like it."""
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
            except Exception as error:  # a defect; those who wait are told, rather than left waiting for a thread that is gone
                failure = StoreError(f"cannot commit: {error!r}")
            with self._lock:
                self.commits += 1
                if failure is not None:
                    # A position is never given out twice, so that whoever still waits for a lost one is told.
                    self._lost.append((batch[0][0], self._next, failure))
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
        """The next batch, all that there is; None at the end."""
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
        """Threads that are ready to run do so first, as long as they have something for the same commit, and not for ever."""
        before = 0
        for _ in range(PATIENCE):
            if len(self._items) == before:
                return
            before = len(self._items)
            time.sleep(0)

    def close(self) -> None:
        """Commit what was appended, and stop."""
        with self._lock:
            self._closing = True
            self._work.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()
