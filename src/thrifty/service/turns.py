"""Turns: calls that run in threads, a few at a time, so that no crowd of them takes all threads or the interpreter."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool

from thrifty.service.errors import ServiceProblemError

AT_ONCE, WAITING = 2, 500
"""Reads that run at once, and that may wait for their turn."""

Result = TypeVar("Result")


class ReadTurns:
    """Reads that take milliseconds: looks at statistics, previews, reads of the log. For the thread of the loop."""

    def __init__(self) -> None:
        self._free, self._waiting = asyncio.Semaphore(AT_ONCE), 0

    async def run(self, call: Callable[[], Result]) -> Result:
        """The result of a call in a thread, when it is its turn; 503 if too many wait."""
        if self._waiting >= WAITING:
            raise ServiceProblemError(503, "busy", f"{WAITING} reads wait already; try again later")
        self._waiting += 1
        try:
            async with self._free:
                return await run_in_threadpool(call)
        finally:
            self._waiting -= 1


class ChangeTurns:
    """Changes: those of one router wait for each other here, so that they take one thread and not all."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of routers that are being changed

    async def run(self, name: str, change: Callable[[], Any]) -> Any:
        """The result of a change of the router of this name, in a thread."""
        lock = self._locks.get(name) or asyncio.Lock()
        self._locks[name] = lock
        async with lock:
            return await run_in_threadpool(change)
