"""Server-sent events: what changed, once a second, made once for all listeners.

A listener holds the newest event of each kind and nothing older, so a slow one costs no memory. One that does not read for
`SEND_S` seconds is dropped.
"""

import asyncio
import logging
import time
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.overview import EVERY_S, Overview, encode

if TYPE_CHECKING:
    from thrifty.service.app import App

HEARTBEAT_S = 15.0
"""Seconds of silence after which a comment is sent, so that nobody in between takes the connection for dead."""

SEND_S = 5.0
"""Seconds that a listener has to read before it is dropped."""

LAST_S = 0.5
"""Seconds that the end of a stream may take."""

MOST_ALERTS = 100
"""Alerts that wait for one listener, at most; the oldest are left out."""

log = logging.getLogger("thrifty.service")


class Made(NamedTuple):
    """An event, and what differs if it has changed: all of it but the time at which it was made."""

    key: bytes
    body: bytes


class Listener:
    """Somebody who listens: events that wait to be sent."""

    def __init__(self, router: str | None, is_allowed: Callable[[], bool]) -> None:
        self.router, self.ending, self.is_allowed = router, False, is_allowed
        self._events: dict[str, bytes] = {}
        self._alerts: list[bytes] = []
        self._news = asyncio.Event()

    def put(self, kind: str, body: bytes) -> None:
        """Let an event wait, in the place of an older one of the same kind."""
        if kind == "alert":
            self._alerts = [*self._alerts[1 - MOST_ALERTS :], body]
        else:
            self._events[kind] = body
        self._news.set()

    def end(self) -> None:
        """Let the stream end."""
        self.ending = True
        self._news.set()

    async def take(self) -> bytes:
        """What there is to send: events, or a comment after a long silence."""
        try:
            await asyncio.wait_for(self._news.wait(), HEARTBEAT_S)
        except TimeoutError:
            return b": still here\n\n"
        self._news.clear()
        waiting = [*self._events.items(), *(("alert", body) for body in self._alerts)]
        self._events, self._alerts = {}, []
        return b"".join(b"event: %s\ndata: %s\n\n" % (kind.encode(), body) for kind, body in waiting)


class Events:
    """All listeners, and what they hear. For the thread of the loop."""

    def __init__(self, app: "App", overview: Overview) -> None:
        self._app, self._overview = app, overview
        self._listeners: set[Listener] = set()
        self._last: dict[str | None, Made] = {}  # what was sent last: the overview under None, routers by name
        self._alerts: dict[int, dict[str, Any]] | None = None  # those that last, by their id; None before the first look
        self._closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    def join(self, router: str | None, is_allowed: Callable[[], bool]) -> Listener:
        """Somebody new, for as long as it `is_allowed`; 503 if there are too many."""
        if self._closed:
            raise ServiceProblemError(503, "draining", "the service is stopping")
        if len(self._listeners) >= self._app.config.max_streams:
            message = f"{self._app.config.max_streams} streams of events are open, which is max_streams; try again later"
            raise ServiceProblemError(503, "streams", message, retry_s=5.0)
        listener = Listener(router, is_allowed)
        self._listeners.add(listener)
        for kind, name in (("overview", None), ("router", router)):
            if (kind == "overview" or name is not None) and name in self._last:
                listener.put(kind, self._last[name].body)
        return listener

    def leave(self, listener: Listener) -> None:
        """Forget a listener."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """End all streams: the service stops."""
        self._closed = True
        for listener in self._listeners:
            listener.end()

    def check(self) -> None:
        """End the streams whose key was revoked or has expired; called a few times a second."""
        for listener in self._listeners:
            if not listener.is_allowed():
                listener.end()

    async def run(self) -> None:
        """Once a second, if anybody listens: make what they hear, and send what has changed."""
        while True:
            await asyncio.sleep(EVERY_S)
            if not self._listeners:
                self._last.clear()
                self._alerts = None
                continue
            try:
                await self._tell()
            except Exception as error:
                internal_problem(error, during="events")

    async def _tell(self) -> None:
        wanted = {each.router for each in self._listeners if each.router is not None}
        made = await asyncio.to_thread(self._make, wanted)
        before, self._last = self._last, made
        changed = {name: each.body for name, each in made.items() if name not in before or before[name].key != each.key}
        alerts = self._new_alerts()
        for listener in self._listeners:
            for alert in alerts:
                listener.put("alert", alert)
            if None in changed:
                listener.put("overview", changed[None])
            if listener.router in changed and listener.router is not None:
                listener.put("router", changed[listener.router])

    def _new_alerts(self) -> list[bytes]:
        """Alerts that began or ended since the last look. Those that last when the first listener comes are in the overview."""
        lasting = {alert["id"]: alert for alert in self._app.alerts.open()}
        before, self._alerts = lasting if self._alerts is None else self._alerts, lasting
        ended = [{**alert, "until": time.time()} for number, alert in before.items() if number not in lasting]
        return [encode(alert) for alert in (*ended, *(alert for number, alert in lasting.items() if number not in before))]

    def _make(self, wanted: set[str]) -> dict[str | None, Made]:
        """All events, in a worker thread."""
        overview = self._overview.latest()
        made: dict[str | None, Made] = {None: Made(encode({**overview, "at": 0}), encode(overview))}
        for name in wanted:
            body = self._overview.router_body(name)
            made[name] = Made(body, body)
        return made


class EventStream(Response):
    """The answer to GET /v1/events: it ends when the listener leaves or reads nothing, the key is revoked, or the service stops."""

    media_type = "text/event-stream"

    def __init__(self, events: Events, listener: Listener) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events, self._listener = events, listener

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Stream until somebody has had enough."""
        gone = asyncio.ensure_future(_disconnected(receive, self._listener))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b"retry: 2000\n\n", "more_body": True})
            while not gone.done():
                body = await self._listener.take()
                if self._listener.ending or not self._listener.is_allowed():
                    break
                try:
                    await asyncio.wait_for(send({"type": "http.response.body", "body": body, "more_body": True}), SEND_S)
                except TimeoutError:
                    log.info("stream dropped", extra={"facts": {"reason": "it is not read", "seconds": SEND_S}})
                    await _abort(scope, gone)
                    return
            try:
                await asyncio.wait_for(send({"type": "http.response.body", "body": b"", "more_body": False}), LAST_S)
            except TimeoutError:
                await _abort(scope, gone)
        finally:
            gone.cancel()
            self._events.leave(self._listener)


async def _abort(scope: MutableMapping[str, Any], gone: "asyncio.Future[None]") -> None:
    """End the connection without sending what waits to be read."""
    scope["thrifty.abort"]()
    await asyncio.wait({gone}, timeout=LAST_S)


async def _disconnected(receive: Any, listener: Listener) -> None:
    """Return when the client has gone, and wake the stream for that."""
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end()
