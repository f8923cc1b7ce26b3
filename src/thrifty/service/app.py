"""The ASGI application: decisions and outcomes go to the `hot_path` without a framework in between, everything else to `admin`.

The writer wakes the loop after each commit, and all requests that the commit covered are answered at once.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from thrifty.service.config import Config
from thrifty.service.errors import ServiceProblemError
from thrifty.service.hot_path import ROLES, Headers, HotPath
from thrifty.service.keys import KeyRing, digest
from thrifty.service.routers import Routers
from thrifty.store import StoreError
from thrifty.store.group_commit import GroupCommit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("thrifty.service")

PRUNE_EVERY_S = 3600.0
"""How often old decisions are deleted, where the configuration says so."""

_JSON = (b"content-type", b"application/json")


class App:
    """The whole service behind one callable."""

    def __init__(self, config: Config, store: Any) -> None:
        from thrifty.service.admin import build_admin

        self.config, self.store = config, store
        self.keys = self._key_ring()
        if not self.keys and not config.loopback:
            raise ValueError(
                f"host {config.host} is reachable from elsewhere, and there are no keys: add one with `thrifty keys NAME`"
            )
        self.routers = Routers(store)
        self.ready = False
        self._prune_at = time.monotonic()
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds: dict[str, float] = {}
        self.hot_path = HotPath(self.routers, max_batch=config.max_batch, authorise=self.authorise, count=self.count)
        self._admin = build_admin(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} here")
        path = scope["path"]
        if path not in ROLES or scope["method"] != "POST":
            await self._admin(scope, receive, send)
            return
        started, answered = time.perf_counter(), asyncio.get_running_loop().create_future()

        def reply(*said: Any) -> None:
            if not answered.done():
                answered.set_result(said)

        try:
            self.hot_path.take(path, scope["headers"], await self._body(scope, receive), reply)
        except ServiceProblemError as problem:
            self.hot_path.refuse(problem, path, started, reply)
        status, body, headers = await answered
        headers = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def count(self, route: str, status: int, seconds: float) -> None:
        """For the metrics."""
        self.requests[route, status] = self.requests.get((route, status), 0) + 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds

    def authorise(self, headers: Headers, role: str) -> None:
        """Raise a ServiceProblemError unless the request carries a key for `role`."""
        if not self.keys:
            return
        allowed = self.keys.allows(_presented(headers), role)
        if allowed is None:
            raise ServiceProblemError(401, "key", "a valid key is needed: Authorization: Bearer KEY")
        if not allowed:
            raise ServiceProblemError(403, "role", f"this key has not the role {role}")

    def who(self, scope: Scope) -> str:
        """Who asks, for the log: the name of the key, if there is one, and the address."""
        host = scope["client"][0] if scope.get("client") else ""
        name = self.keys.name_of(_presented(scope["headers"]) or "")
        return f"{name}@{host}" if name else host

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        limit = self.config.max_body
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > limit:
                raise ServiceProblemError(413, "size", f"the body must be at most {limit} bytes, got {value.decode()}")
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > limit:
                raise ServiceProblemError(413, "size", f"the body must be at most {limit} bytes")
        return body

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        loop = asyncio.get_running_loop()

        def committed() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.hot_path.settle)

        writer, here = self.store.writer, threading.get_ident()

        def begin_soon() -> None:
            """Let all requests that the loop has at hand into the same commit."""
            if threading.get_ident() == here:
                loop.call_soon(writer.begin)
            else:
                writer.begin()

        writer.callbacks.append(committed)
        if isinstance(writer, GroupCommit):
            writer.begin_soon = begin_soon
        ticking = asyncio.create_task(self._tick())
        self.ready = True
        log.info("started", extra={"facts": {"routers": self.routers.names()}})
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.ready = False
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        writer.callbacks.remove(committed)
        writer.begin_soon = None
        await asyncio.to_thread(self.routers.close)
        log.info("stopped")
        await send({"type": "lifespan.shutdown.complete"})

    async def _tick(self) -> None:
        """Four times a second: deadlines, routers and keys of other replicas, and requests that wait for a store that is away."""
        said = ""
        while True:
            await asyncio.sleep(0.25)
            self.hot_path.settle()
            try:
                await asyncio.to_thread(self._look_around)
                said = ""
            except StoreError as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("store", extra={"facts": {"error": said}})

    def _look_around(self) -> None:
        self.routers.expire()
        if self.config.keep_days and time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            self.routers.prune(time.time() - 86_400 * self.config.keep_days)
        if self.store.shared and self.store.check() == "ready":
            self.routers.follow()
            keys = self._key_ring()
            if keys or self.config.loopback:
                self.keys = keys

    def _key_ring(self) -> KeyRing:
        keys = list(self.store.keys())
        if self.config.admin_key:
            keys.append((digest(self.config.admin_key), "admin", "admin"))
        return KeyRing(keys)


def _presented(headers: Headers) -> str | None:
    """The key that a request carries."""
    key = None
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            key = value[7:].decode("latin-1")
    return key
