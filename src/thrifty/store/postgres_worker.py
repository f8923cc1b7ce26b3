"""One thread with a connection of its own, so that a caller can stop waiting for a database that hangs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import Any

import psycopg

from thrifty.store.log import StoreError


class PostgresWorker:
    """Runs statements one after another, each for a limited time.

    Parameters
    ----------
    connect : opens a connection
    place : the database, as error messages name it
    name : the name of the thread

    """

    def __init__(self, connect: Callable[[], Any], *, place: str, name: str) -> None:
        self._connect, self._place = connect, place
        self._connection: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._closed = False

    def run(self, work: Callable[[Any], Any], *, timeout_s: float) -> Any:
        """The result of `work(connection)`; a StoreError if it does not come in time. Work is repeated if the connection broke."""
        if self._closed:
            raise StoreError("the store is closed")
        try:
            return self._thread.submit(self._attempt, work).result(timeout_s)
        except TooLate:
            raise StoreError(f"{self._place} does not answer") from None
        except psycopg.Error as error:
            raise StoreError(f"cannot use {self._place}: {str(error).strip()}") from error

    def _attempt(self, work: Callable[[Any], Any]) -> Any:
        for again in (True, False):
            if self._connection is None or self._connection.closed:
                self._connection = self._connect()
            try:
                return work(self._connection)
            except psycopg.OperationalError:
                self._connection.close()
                if not again:
                    raise
        return None

    def close(self) -> None:
        """Close the connection; work that waits for its turn is cancelled."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._connection is not None:
            self._connection.close()
