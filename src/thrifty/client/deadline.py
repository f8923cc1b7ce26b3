"""A network backend for httpcore that holds a deadline for a whole call.

The timeouts of httpcore are for one read or one write: a server that sends a byte from time to time can hold a synchronous call
for ever. Here each operation gets at most the time left. (Asynchronous calls are cancelled at the deadline instead.)
"""

import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore

_PIECE = 65_536  # bytes written at most under one timeout
_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


@contextmanager
def deadline(at: float) -> Iterator[None]:
    """Hold network operations of this thread to a time of time.monotonic()."""
    token = _deadline.set(at)
    try:
        yield
    finally:
        _deadline.reset(token)


def _left(timeout: float | None, kind: type[Exception]) -> float | None:
    """Seconds for one operation; raises `kind` if there are none left."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise kind("the time for this call is over")
    if timeout is not None:
        return min(timeout, left)
    return None if left == float("inf") else left


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose operations end at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes."""
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes."""
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same connection, encrypted."""
        return DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:
        """Facts about the socket."""
        return self._stream.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections, trying the addresses of a host one after the other until the deadline.

    Looking up the name of a host is up to the operating system, and not held to the deadline.
    """

    def __init__(self) -> None:
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(f"cannot look up {host}: {error}") from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for *_, address in found:
            try:
                left = _left(timeout, httpcore.ConnectTimeout)
                stream = self._backend.connect_tcp(str(address[0]), port, left, local_address, socket_options)
                return DeadlineStream(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure
