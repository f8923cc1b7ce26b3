"""Runs a test with both clients: `Driver` has the methods of a client, and waits for those of AsyncClient on a loop of its own."""

import asyncio
from typing import Any, Self

from thrifty.client import AsyncClient, Client


class Driver:
    """The methods of a Client, or those of an AsyncClient made to wait."""

    def __init__(self, kind: str, url: str, *args: Any, **options: Any) -> None:
        self.client: Any = {"Client": Client, "AsyncClient": AsyncClient}[kind](url, *args, **options)
        self._runner = asyncio.Runner() if kind == "AsyncClient" else None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if self._runner is None:
            return method
        runner = self._runner
        return lambda *args, **options: runner.run(method(*args, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._runner is not None:
            self._runner.close()
