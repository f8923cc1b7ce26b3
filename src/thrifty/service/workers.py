"""Worker threads for calls that may take long, so that the event loop never waits for them."""

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger("thrifty.service")


class Workers:
    """A few daemon threads with a queue of limited length.

    Parameters
    ----------
    name : of the threads
    threads : how many
    waiting : how many calls may wait for a thread; 0 for no limit

    >>> done = threading.Event()
    >>> workers = Workers("example", threads=1, waiting=10)
    >>> workers.submit(done.set), done.wait(5)
    (True, True)
    >>> workers.close()

    """

    def __init__(self, name: str, *, threads: int, waiting: int = 0) -> None:
        self._calls: queue.Queue[Callable[[], None] | None] = queue.Queue(waiting)
        self._threads = [threading.Thread(target=self._run, name=f"thrifty-{name}-{n}", daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Callable[[], None]) -> bool:
        """Run `call` in one of the threads; False, and it is not run, when too many wait already."""
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            return False
        return True

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return self._calls.qsize()

    def close(self) -> None:
        """Drop what waits, and let the threads end after what they are doing; nobody waits for that."""
        while True:
            try:
                self._calls.get_nowait()
            except queue.Empty:
                break
        for _ in self._threads:
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                log.exception("a call in a worker thread failed")
