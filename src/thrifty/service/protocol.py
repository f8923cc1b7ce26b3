"""HTTP for the hot routes without the way through ASGI; everything else takes it.

uvicorn makes a scope, a task, two queues of messages and an event of every request, which takes longer than to decide. A POST to
the hot_path whose body has a stated length needs none of that: the parser hands its body to the hot_path, and the answer goes to the
socket when it is durable. Whatever is unusual (a body in chunks or too long, Expect, a request behind one that is not answered yet)
goes through ASGI to the same hot_path. docs/decisions/011 has the figures.
"""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thrifty.service.hot_path import ROLES, Headers

if TYPE_CHECKING:
    from thrifty.service.app import App

_HOT = {path.encode(): path for path in ROLES}
_OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class HotRequest:
    """One request to the hot_path and its answer, with all that uvicorn wants to know of what a connection is busy with."""

    __slots__ = ("body", "disconnected", "keep_alive", "path", "protocol", "response_complete")

    message_event = asyncio.Event()  # which uvicorn sets when the connection is lost; nobody waits for it

    def __init__(self, protocol: "HotProtocol", path: str, keep_alive: bool) -> None:
        self.protocol, self.path, self.keep_alive = protocol, path, keep_alive
        self.body = b""
        self.disconnected = self.response_complete = False

    def reply(self, status: int, body: bytes, headers: Headers) -> None:
        """Answer, unless nobody is there any more, and let the next request come."""
        self.response_complete = True
        transport = self.protocol.transport
        if self.disconnected or transport.is_closing():
            return
        if status == 200 and self.keep_alive:
            head = _OK % len(body)
        else:
            fixed = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            close = [] if self.keep_alive else [(b"connection", b"close")]
            lines = b"".join(b"%s: %s\r\n" % header for header in (*fixed, *headers, *close))
            head = b"HTTP/1.1 %d %s\r\n%s\r\n" % (status, HTTPStatus(status).phrase.encode(), lines)
        transport.write(head + body)
        if not self.keep_alive:
            transport.close()
        self.protocol.on_response_complete()


class HotProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a shorter way to the hot_path of `service`."""

    def __init__(self, service: "App", **told: Any) -> None:
        super().__init__(**told)
        self.service = service
        self.exchange: HotRequest | None = None  # the request that is being read, if it goes to the hot_path
        self.heard_at = 0.0  # when the last data came

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self.heard_at = self.loop.time()
        super().data_received(data)

    def _unset_keepalive_if_required(self) -> None:
        """Leave the timer of an idle connection alone: it asks when it is due, which is cheaper than to cancel it every time."""

    def on_response_complete(self) -> None:
        """Let the next request come."""
        if self.timeout_keep_alive_task is None or self.pipeline or self.transport.is_closing():
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()

    def timeout_keep_alive_handler(self) -> None:
        """End the connection if it is idle, and otherwise ask again later."""
        self.timeout_keep_alive_task = None
        left = self.heard_at + self.timeout_keep_alive - self.loop.time()
        busy = self.cycle is not None and not self.cycle.response_complete
        if left <= 0.0 and not busy:
            super().timeout_keep_alive_handler()
        elif not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(max(left, 1.0), self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        """Leave the scope for later: most requests need none."""
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        """Choose the way."""
        path = _HOT.get(self.url)
        idle = self.cycle is None or self.cycle.response_complete
        if path is not None and idle and self.parser.get_method() == b"POST" and self._is_plain():
            keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
            self.exchange = self.cycle = HotRequest(self, path, keep_alive)  # type: ignore[assignment]
            return
        self.exchange = None
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.headers += headers
        self.url, self.expect_100_continue = url, expects
        super().on_headers_complete()

    def _is_plain(self) -> bool:
        """Whether the body has a stated length within the limit and the request asks for nothing else."""
        length = -1
        for name, value in self.headers:
            if name == b"content-length" and value.isdigit():
                length = int(value)
            elif name in (b"transfer-encoding", b"expect", b"upgrade"):
                return False
        return 0 <= length <= self.service.config.max_body

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        if self.exchange is None:
            super().on_body(body)
        else:
            self.exchange.body += body

    def on_message_complete(self) -> None:
        """Ask the hot_path."""
        exchange = self.exchange
        if exchange is None:
            super().on_message_complete()
            return
        self.exchange = None
        self.service.hot_path.take(exchange.path, self.headers, exchange.body, exchange.reply)
