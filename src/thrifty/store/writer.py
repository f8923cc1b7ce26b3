"""One thread owns the writing connection; callers hand it rows and wait until they are durable.

Group commit comes by itself: while one commit is under way, rows gather, and the next commit takes all of them. There is no timer.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from thrifty.store.row import StoreError


class Writer:
    """Commits what is appended, in order.

    Parameters
    ----------
    commit : takes a list of (position, item) and returns when they are durable, or raises StoreError and leaves nothing of them
    durable : the position of the last item that is durable already

    >>> done = []
    >>> writer = Writer(done.extend, durable=5)
    >>> writer.wait(writer.append("a", 0))
    >>> done
    [(6, 'a')]
    >>> writer.close()

    """

    def __init__(self, commit: Callable[[list[tuple[int, Any]]], None], *, durable: int) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._work, self._done = threading.Condition(self._lock), threading.Condition(self._lock)
        self._items: list[tuple[int, Any]] = []
        self._next = self.durable = durable
        self._closing = False
        self._lost: deque[tuple[int, int, StoreError]] = deque(maxlen=100)  # first and last position, and why
        self.generation = 0  # how often items were lost
        self.failure: StoreError | None = None
        self.callbacks: list[Callable[[], None]] = []
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="thrifty-writer", daemon=True)
        self._thread.start()

    def append(self, item: Any, generation: int) -> int:
        """Hand over an item; its position. Refused from a caller who has not yet noticed that earlier items were lost."""
        with self._lock:
            if generation != self.generation or self._closing:
                raise StoreError(f"the store is not taking rows: {self.failure or 'it is closed'}")
            self._next += 1
            self._items.append((self._next, item))
            if len(self._items) == 1:
                self._work.notify()
            return self._next

    def wait(self, position: int) -> None:
        """Return when `position` is durable; raise when it is lost."""
        with self._lock:
            while not self._is_durable(position):
                self._done.wait()

    def is_durable(self, position: int) -> bool:
        """Whether `wait` would return at once; raises like it."""
        with self._lock:
            return self._is_durable(position)

    def _is_durable(self, position: int) -> bool:
        for first, last, failure in self._lost:
            if first <= position <= last:
                raise StoreError(f"not stored: {failure}")
        return self.durable >= position

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._items:
                    if self._closing:
                        return
                    self._work.wait()
                batch, self._items = self._items, []
            failure = None
            try:
                self._commit(batch)
            except StoreError as error:
                failure = error
            with self._lock:
                self.commits += 1
                if failure is None:
                    self.durable = batch[-1][0]
                    self.failure = None
                else:
                    # A position is never given out twice, so that whoever still waits for a lost one is told.
                    self._lost.append((batch[0][0], self._next, failure))
                    self.failure, self._items = failure, []
                    self.generation += 1
                self._done.notify_all()
            for callback in self.callbacks:
                callback()

    def close(self) -> None:
        """Commit what was appended, and stop."""
        with self._lock:
            self._closing = True
            self._work.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()
