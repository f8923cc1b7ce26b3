"""Work that Ctrl-C can leave: compilers and compiled code run in daemon threads, while the main thread waits in Python.

Python tells the main thread of Ctrl-C, and only between two instructions of its own. Compiled code that never returns would never
let it. A thread that was left goes on until its work ends; a daemon thread does not keep the process from ending.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

NAME = "thrifty-work"
"""How the names of the threads begin."""

_LOOK_S = 0.1


def start_jobs(jobs: Sequence[Callable[[], T]], threads: int) -> list[Future[T]]:
    """Start the jobs on so many daemon threads; the futures of their results, in the same order.

    >>> [future.result() for future in start_jobs([lambda: 1, lambda: 2], threads=2)]
    [1, 2]
    """
    futures: list[Future[T]] = [Future() for _ in jobs]
    waiting = deque(zip(futures, jobs, strict=True))

    def work() -> None:
        while True:
            try:
                future, job = waiting.popleft()
            except IndexError:
                return
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(job())
                except BaseException as error:
                    future.set_exception(error)

    for number in range(min(threads, len(jobs))):
        threading.Thread(target=copy_context().run, args=(work,), name=f"{NAME}-{number}", daemon=True).start()
    return futures


def run_interruptibly(job: Callable[[], T]) -> T:
    """What `job()` returns; Ctrl-C leaves it, even if it runs compiled code that never returns.

    >>> run_interruptibly(lambda: 3)
    3
    """
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C does not come here
        return job()
    (future,) = start_jobs([job], threads=1)
    while not wait([future], timeout=_LOOK_S).done:
        pass
    return future.result()


def leave(futures: Sequence[Future[Any]], *, patience_s: float) -> None:
    """Drop the jobs that have not begun, and give the others a moment to end."""
    for future in futures:
        future.cancel()
    wait(futures, timeout=patience_s)


def work_was_left() -> bool:
    """Whether a thread is still at work that nobody waits for."""
    return any(thread.name.startswith(NAME) for thread in threading.enumerate())
