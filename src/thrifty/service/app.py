"""The ASGI application: decisions and outcomes go to the `hot_path` without a framework in between, everything else to `admin`.

The writer wakes the loop after each commit, and all requests that the commit covered are answered at once.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from starlette.middleware.cors import CORSMiddleware

from thrifty.service.access import Access
from thrifty.service.alerts import Alerts
from thrifty.service.bodies import Receive, read_body
from thrifty.service.config import Config
from thrifty.service.connections import Connections
from thrifty.service.dashboard.pulse import Pulse
from thrifty.service.declarations import ConfigFile
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.events import Events
from thrifty.service.frontiers import FromLog, Frontiers
from thrifty.service.history import HistoryTask
from thrifty.service.hot_path import ROLES, HotPath
from thrifty.service.metrics import Metrics
from thrifty.service.overview import Overview
from thrifty.service.queries import NoQuery, parsed
from thrifty.service.reconcile import Reconciler
from thrifty.service.request_checks import RequestChecks, has_body
from thrifty.service.request_counts import RequestCounts
from thrifty.service.routers import Routers
from thrifty.store import StoreError
from thrifty.store.group_commit import GroupCommit

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("thrifty.service")

COSTLY_FOR_S = 60.0
"""How often routers whose decisions took long are tried on the event loop again."""

TICK_S = 0.25
"""How often deadlines, replicas and time-outs are looked at."""

PRUNE_EVERY_S = 3600.0
"""How often old decisions are deleted, where the configuration says so."""

NOTE_USES_S = 60.0
"""How often the last uses of keys are stored."""

_JSON = (b"content-type", b"application/json")


class App:
    """The whole service behind one callable."""

    def __init__(self, config: Config, store: Any, *, file: ConfigFile | None = None, frontier: FromLog | None = None) -> None:
        from thrifty.service.admin import build_admin

        self.config, self.store = config, store
        self.access = Access(config, store)
        self.checks, self.connections = RequestChecks(config), Connections(config)
        self.routers, self.pulse = Routers(store), Pulse()
        self.reconciler = None if file is None else Reconciler(self.routers, file)
        self.alerts = Alerts(config, store, self.routers)
        self.started = self.draining = False
        self._prune_at = self._note_uses_at = time.monotonic()
        self.counts, self.metrics = RequestCounts(), Metrics(self)
        self.count = self.counts.add
        authorise = self.access.authorise
        self.tracing, make = _tracing(config)
        self.hot_path = make(self.routers, max_batch=config.max_batch, authorise=authorise, count=self.count)
        self.frontiers, self.overview = Frontiers(frontier), Overview(self)
        self.events = Events(self, self.overview)
        self._admin = build_admin(self)
        self._answer: Any = self._route
        if self.tracing is not None:
            self._answer = self.tracing.around(self._route)
        if config.allowed_origins:
            self._answer = CORSMiddleware(
                self._answer, allow_origins=config.allowed_origins, allow_methods=["*"], allow_headers=["*"]
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} here")
        try:
            self.checks.check(scope["headers"], has_body=has_body(scope["headers"]))
        except ServiceProblemError as problem:
            self.count("refused", problem.status, 0.0)
            await _send(send, problem.status, problem.body(), problem.headers())
            return
        await self._answer(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path not in ROLES or scope["method"] != "POST":
            await self._admin(scope, receive, send)
            return
        started, answered = time.perf_counter(), asyncio.get_running_loop().create_future()

        def reply(*answer: Any) -> None:
            if not answered.done():
                answered.set_result(answer)

        try:
            parsed(NoQuery, parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
            body = await read_body(receive, scope["headers"], self.config.max_body)
            self.hot_path.take(path, scope["headers"], body, reply)
        except ServiceProblemError as problem:
            self.hot_path.refuse(problem, path, started, reply)
        status, body, headers = await answered
        await _send(send, status, body, headers)

    def who(self, scope: Scope) -> str:
        """Who asks, for the log."""
        return self.access.who(scope["headers"], scope.get("client"))

    def readiness(self) -> str:
        """What /readyz says: "ready" or "degraded", and a line for each router that is quarantined; a problem when not ready."""
        if self.draining:
            raise ServiceProblemError(503, "draining", "the service is stopping")
        if not self.started:
            raise ServiceProblemError(503, "store", "not started")
        if starting := self.routers.starting:
            raise ServiceProblemError(503, "loading", f"routers are being opened: {', '.join(starting)[:300]}")
        if self.reconciler is not None and self.reconciler.starting:
            raise ServiceProblemError(503, "loading", "the routers of the configuration file are being made")
        lines = [self.store.check()]
        lines += [f"quarantined {name}: {' '.join(reason.split())}" for name, reason in self.routers.quarantined.items()]
        return "".join(f"{line}\n" for line in lines)

    # -- from start to end -------------------------------------------------------------------------------------------

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
        self.hot_path.run_on(loop)
        self.routers.open()
        self.alerts.start()
        work = [self._repeat(self._look_around), self._sweep(), HistoryTask(self).run(), self.overview.run(), self.events.run()]
        if self.reconciler is not None:
            work.append(self._repeat(self.reconciler.tick))
        tasks = [asyncio.create_task(each) for each in work]
        self.started = True
        log.info("started")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.draining = True
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.callbacks.remove(committed)
        writer.begin_soon = None
        self.hot_path.slow.close()
        await asyncio.to_thread(self._close)
        log.info("stopped")
        await send({"type": "lifespan.shutdown.complete"})

    async def _sweep(self) -> None:
        """Four times a second: connections that take too long, streams without a valid key. Now and then: costly routers."""
        loop = asyncio.get_running_loop()
        forget_at = time.monotonic() + COSTLY_FOR_S
        while True:
            await asyncio.sleep(TICK_S)
            if time.monotonic() >= forget_at:
                forget_at = time.monotonic() + COSTLY_FOR_S
                self.hot_path.forget_costly()
            try:
                self.connections.sweep(loop.time())
                self.events.check()
            except Exception as error:
                internal_problem(error, during="sweep")

    async def _repeat(self, work: Callable[[], None]) -> None:
        """Run something in a worker thread four times a second; an error is logged once as long as it is the same."""
        last = ""
        while True:
            await asyncio.sleep(TICK_S)
            try:
                await asyncio.to_thread(work)
                last = ""
            except Exception as error:
                if str(error) != last:
                    last = str(error)
                    trace = None if isinstance(error, StoreError) else error
                    log.warning("store", exc_info=trace, extra={"facts": {"error": last}})

    def _look_around(self) -> None:
        """Deadlines, uses of keys, old decisions, routers and keys of other replicas."""
        self.routers.expire()
        self.pulse.sample(self.routers.all())
        if time.monotonic() >= self._note_uses_at:
            self._note_uses_at = time.monotonic() + NOTE_USES_S
            self.access.note_uses()
        if self.config.keep_days and time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            self.routers.prune(time.time() - 86_400 * self.config.keep_days)
        if self.store.shared and self.store.check() == "ready":
            self.routers.follow()
            self.access.refresh()

    def _close(self) -> None:
        self.alerts.close()
        try:
            self.access.note_uses()
        except StoreError as error:
            log.warning("the last uses of keys are not stored", extra={"facts": {"error": str(error)}})
        self.routers.close()
        if self.tracing is not None:
            self.tracing.close()


def _tracing(config: Config) -> tuple[Any, Callable[..., HotPath]]:
    """What makes spans, or None; and what makes the hot path."""
    if not config.trace_exporter:
        return None, HotPath
    try:
        from thrifty.service.tracing import TracedHotPath, Tracing, exporter_named

        tracing = Tracing(exporter_named(config.trace_exporter))
    except ImportError as error:
        raise ValueError(f"trace_exporter needs {error.name}: pip install 'thrifty[tracing]'") from None
    return tracing, partial(TracedHotPath, tracing)


async def _send(send: Send, status: int, body: bytes, headers: Any) -> None:
    headers = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
