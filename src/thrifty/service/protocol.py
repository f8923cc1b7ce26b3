"""HTTP for the hot routes without ASGI; limits for all routes.

uvicorn makes a scope, a task, two queues of messages and an event of every request, which takes longer than to decide. A POST to
the hot path whose body has a stated length needs none of that: the parser hands its body to the hot path, and the answer goes to
the socket when it is durable. Whatever is unusual (a body in chunks or too long, Expect, Origin, an unknown Host, a request behind
one that is not answered yet) goes through ASGI to the same hot path. docs/decisions/011 has the figures.

This class overrides methods of uvicorn's that are not documented; pyproject.toml names the versions that it was tested with.
"""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thrifty.service.connections import BODY, HEAD, IDLE
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.hot_path import ROLES, Headers

if TYPE_CHECKING:
    from thrifty.service.app import App

FRAMING = 8
"""Bytes received for one byte of a body in chunks, at most; the rest is framing and trailers."""

_HOT = {path.encode(): path for path in ROLES}
_OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_CHECKED = frozenset((b"content-length", b"host", b"content-type", b"transfer-encoding", b"expect", b"upgrade", b"origin"))


class HotRequest:
    """One request to the hot path and its answer, with all that uvicorn reads of the request a connection is busy with."""

    __slots__ = ("body", "disconnected", "keep_alive", "path", "protocol", "response_complete")

    message_event = asyncio.Event()  # which uvicorn sets when the connection is lost; nobody waits for it
    response_started = False

    def __init__(self, protocol: "HotProtocol", path: str, keep_alive: bool) -> None:
        self.protocol, self.path, self.keep_alive = protocol, path, keep_alive
        self.body: bytes | bytearray = b""
        self.disconnected = self.response_complete = False

    def add(self, piece: bytes) -> None:
        """Keep a piece of the body; most bodies come in one."""
        if not self.body:
            self.body = piece
        elif isinstance(self.body, bytearray):
            self.body += piece
        else:
            self.body = bytearray(self.body + piece)

    def reply(self, status: int, body: bytes, headers: Headers) -> None:
        """Answer, unless nobody is there any more, and let the next request come."""
        self.response_complete = True
        transport = self.protocol.transport
        if self.disconnected or transport.is_closing():
            return
        if status == 200 and self.keep_alive:
            transport.write(_OK % len(body) + body)
        else:
            transport.write(_response(status, body, headers, keep_alive=self.keep_alive))
        if not self.keep_alive:
            transport.close()
        self.protocol.on_response_complete()


class HotProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits, and with a shorter path to the hot path of `service`."""

    def __init__(self, service: "App", **options: Any) -> None:
        super().__init__(**options)
        self.service = service
        self.exchange: HotRequest | None = None  # the request that is being read, if it goes to the hot path
        self.heard_at = self.since = self.loop.time()  # when the last data came, and when the phase began
        self.unread_since = 0.0  # since when the client reads no answers; 0.0 while it does
        self.phase, self.ending, self.refused = HEAD, False, False
        self.cycles: list[Any] = []  # requests that went through ASGI and are not answered yet
        self.heard = False  # whether any data came
        self.piece, self.begun = 0, False  # bytes of the last piece of data, and whether what is being read began in it
        self.size = self.body_size = 0  # bytes of the part that is being read, in all and of the body alone

    # -- the connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        if not self.service.connections.add(self):
            self.refuse(ServiceProblemError(503, "connections", "too many connections are open; try again later"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.service.connections.discard(self)
        for cycle in self.cycles:  # uvicorn looks at the last one only, and the others would write to a closed transport
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Drain: end the connection after the request that is being read or answered, or now if there is none."""
        self.ending = True
        self.service.events.close()  # streams would never end by themselves
        if self.exchange is not None:
            self.exchange.keep_alive = False
        elif self.phase != HEAD or not self.heard or self.owes_answer():
            super().shutdown()

    def owes_answer(self) -> bool:
        """Whether a request was read whole and is not answered yet."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return bool(self.pipeline) or (busy and self.phase != BODY)

    def time_out(self) -> None:
        """End the connection; say so if a request has begun to come."""
        started = self.phase == BODY and self.cycle is not None and (self.cycle.response_started or self.cycle.response_complete)
        if self.phase == IDLE or started or not self.heard:
            self.transport.close()
            return
        part = "headers" if self.phase == HEAD else "body"
        self.refuse(ServiceProblemError(408, "timeout", f"the {part} of the request did not come in time"))

    def refuse(self, problem: ServiceProblemError) -> None:
        """Answer, and end the connection. Behind requests that are not answered yet there is no answer, just the end."""
        self.refused, self.exchange = True, None
        if self.owes_answer():
            if self.phase == BODY:
                self.pipeline.popleft()  # the request that is refused; its body is never going to be whole
        elif not self.transport.is_closing():
            self.transport.write(_response(problem.status, problem.body(), problem.headers(), keep_alive=False))
            self.transport.close()

    def _unset_keepalive_if_required(self) -> None:
        """There is no timer: `Connections.sweep` ends idle connections."""

    def on_response_complete(self) -> None:
        """Let the next request come."""
        if self.cycles:
            self.cycles = [cycle for cycle in self.cycles if not cycle.response_complete]
        if self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.refused or (self.ending and self.phase == IDLE):
            self.transport.close()

    # -- reading -----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.refused:
            return
        self.heard_at, self.heard, self.begun, self.piece = self.loop.time(), True, False, len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self.refuse(internal_problem(error.__context__ or error, url=self.url[:200].decode("latin-1")))
            return
        except httptools.HttpParserUpgrade:  # not offered: the request is answered as if it had not asked
            pass
        except httptools.HttpParserError as error:
            self.refuse(ServiceProblemError(400, "http", f"not a valid HTTP request: {error}"))
            return
        if self.phase != IDLE and not self.begun:
            self._check_size()

    def _check_size(self) -> None:
        """Refuse headers, framing or trailers without end: the parser keeps them in memory until they are whole."""
        self.size += self.piece
        if self.size > self.service.config.max_header_bytes + FRAMING * self.body_size:
            self._refuse_headers()

    def _refuse_headers(self) -> None:
        config = self.service.config
        limit = f"{config.max_headers} headers and {config.max_header_bytes} bytes"
        self.refuse(ServiceProblemError(431, "headers", f"the address and headers of a request must be at most {limit}"))

    def on_message_begin(self) -> None:
        """Leave the scope for later: most requests need none."""
        self.url, self.headers = b"", []
        self.phase, self.since, self.size, self.body_size, self.begun = HEAD, self.heard_at, 0, 0, True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which come after the body, are dropped."""
        if self.phase == HEAD:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Choose between the hot path and ASGI."""
        if self.refused:
            return
        whole = self.begun and self.piece <= self.service.config.max_header_bytes  # all headers came in one short piece of data
        self.phase, self.since, self.size, self.begun = BODY, self.heard_at, 0, True
        path = _HOT.get(self.url)
        if len(self.headers) > self.service.config.max_headers or not (whole or self._is_short()):
            self._refuse_headers()
            return
        idle = (self.cycle is None or self.cycle.response_complete) and not self.flow.write_paused
        if path is not None and idle and self.parser.get_method() == b"POST" and self._is_plain():
            keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive() and not self.ending
            self.exchange = self.cycle = HotRequest(self, path, keep_alive)  # type: ignore[assignment]
            return
        self.exchange = None
        self._start_asgi()

    def _is_short(self) -> bool:
        """Whether the address and the headers are within the limit."""
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        return size <= self.service.config.max_header_bytes

    def _is_plain(self) -> bool:
        """Whether the body has a stated length within the limit, and Host and Content-Type are known to be allowed."""
        length, hosts, types, checks = b"", 0, 0, self.service.checks
        for name, value in self.headers:
            if name in _CHECKED:
                if name == b"content-length":
                    length = value
                elif name == b"host":
                    hosts += value in checks.known_hosts or 2
                elif name == b"content-type":
                    types += value in checks.known_types or 2
                else:
                    return False
        return hosts == types == 1 and length.isdigit() and 0 < int(length) <= self.service.config.max_body

    def _start_asgi(self) -> None:
        """Make a scope, as uvicorn does; an address that it could not read is refused."""
        url, headers = self.url, self.headers
        try:
            path = httptools.parse_url(url).path
        except httptools.HttpParserInvalidURLError:
            path = None
        if not path or not path.isascii():
            self.refuse(ServiceProblemError(400, "http", f"the address is not valid: {url[:80].decode('latin-1')!r}"))
            return
        HttpToolsProtocol.on_message_begin(self)
        self.headers += headers
        self.url = url
        self.expect_100_continue = any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)
        super().on_headers_complete()
        self.scope["thrifty.abort"] = self.transport.abort  # type: ignore[typeddict-unknown-key]
        self.cycles.append(self.cycle)
        if self.ending:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        self.body_size += len(body)
        if self.exchange is not None:
            self.exchange.add(body)
        elif not self.refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Ask the hot path."""
        self.phase, self.since = IDLE, self.heard_at
        exchange = self.exchange
        if exchange is not None:
            self.exchange = None
            try:
                self.service.hot_path.take(exchange.path, self.headers, exchange.body, exchange.reply)
            except Exception as error:
                problem = internal_problem(error, path=exchange.path)
                exchange.reply(problem.status, problem.body(), problem.headers())
        elif not self.refused:
            super().on_message_complete()


def _response(status: int, body: bytes, headers: Headers, *, keep_alive: bool) -> bytes:
    fixed = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    close = [] if keep_alive else [(b"connection", b"close")]
    lines = b"".join(b"%s: %s\r\n" % header for header in (*fixed, *headers, *close))
    return b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, HTTPStatus(status).phrase.encode(), lines, body)
