"""Everything but the hot routes: routers, arms, segments, health, metrics and documentation, on Starlette."""

import html
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from thrifty.router import Router
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import ArmRequest, RouterRequest, decoded
from thrifty.service.openapi import describe
from thrifty.store import StoreError

if TYPE_CHECKING:
    from thrifty.service.app import App

ACTIONS = ("add", "retire", "pause", "resume", "price", "reset", "pin", "unpin")
log = logging.getLogger("thrifty.service")

Handler = Callable[[Request], Awaitable[Response]]


def build_admin(app: "App") -> Starlette:
    """The Starlette application behind `app`."""
    admin = Admin(app)
    routes = [
        Route("/healthz", admin.health),
        Route("/readyz", admin.readiness),
        Route("/metrics", admin.metrics),
        Route("/openapi.json", admin.openapi),
        Route("/docs", admin.docs),
        Route("/v1/routers", admin.guarded(admin.list_routers)),
        Route("/v1/routers/{name}", admin.guarded(admin.put_router), methods=["PUT"]),
        Route("/v1/routers/{name}", admin.guarded(admin.get_router), methods=["GET"]),
        Route("/v1/routers/{name}", admin.guarded(admin.delete_router), methods=["DELETE"]),
        Route("/v1/routers/{name}/segments", admin.guarded(admin.list_segments)),
        Route("/v1/routers/{name}/segments/{segment:path}", admin.guarded(admin.explain)),
        Route("/v1/routers/{name}/arms/{change:path}", admin.guarded(admin.change_arm), methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {ServiceProblemError: _problem, StoreError: _store, HTTPException: _http, ValueError: _value}
    return Starlette(routes=routes, exception_handlers=handlers)


class Admin:
    """The handlers."""

    def __init__(self, app: "App") -> None:
        self.app = app

    def guarded(self, handle: Handler) -> Handler:
        """`handle`, for keys of the role admin, counted and logged."""

        async def guard(request: Request) -> Response:
            started = time.perf_counter()
            self.app.authorise(request.scope["headers"], "admin")
            response = await handle(request)
            seconds = time.perf_counter() - started
            self.app.count("/v1/routers", response.status_code, seconds)
            if request.method != "GET":
                facts = {"method": request.method, "path": request.url.path, "status": response.status_code}
                log.info("changed", extra={"facts": facts})
            return response

        return guard

    async def health(self, _request: Request) -> Response:
        """Alive."""
        return PlainTextResponse("ok\n")

    async def readiness(self, _request: Request) -> Response:
        """Ready to decide: started, and the store takes rows, or is away for not too long."""
        if not self.app.ready:
            raise ServiceProblemError(503, "store", "not started")
        return PlainTextResponse(f"{self.app.store.check()}\n")

    async def metrics(self, _request: Request) -> Response:
        """Prometheus text."""
        app = self.app
        lines: list[str] = []

        def add(name: str, kind: str, values: list[tuple[str, float]]) -> None:
            lines.append(f"# TYPE {name} {kind}")
            lines.extend(f"{name}{labels} {value:g}" for labels, value in values)

        routers = [
            (f'{{router="{name}"}}', router) for name in app.routers.names() if (router := app.routers.find(name)) is not None
        ]
        for count in ("decisions", "outcomes", "expired"):
            add(f"thrifty_{count}_total", "counter", [(labels, router.counts[count]) for labels, router in routers])
        add("thrifty_pending", "gauge", [(labels, router.pending) for labels, router in routers])
        add("thrifty_segments", "gauge", [(labels, len(router.segments())) for labels, router in routers])
        requests = sorted(app.requests.items())
        add("thrifty_requests_total", "counter", [(f'{{route="{r}",status="{s}"}}', n) for (r, s), n in requests])
        add("thrifty_request_seconds_total", "counter", [(f'{{route="{r}"}}', n) for r, n in sorted(app.seconds.items())])
        add("thrifty_store_away", "gauge", [("", float(app.store.writer.failure is not None))])
        add("thrifty_commits_total", "counter", [("", app.store.writer.commits)])
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def openapi(self, _request: Request) -> Response:
        """The description of this service."""
        return JSONResponse(describe())

    async def docs(self, _request: Request) -> Response:
        """The same for people; it loads nothing from elsewhere."""
        said = describe()
        rows = "".join(
            f"<tr><td><code>{method.upper()} {html.escape(path)}</code></td><td>{html.escape(operation['summary'])}</td></tr>"
            for path, operations in said["paths"].items()
            for method, operation in operations.items()
            if method != "parameters"
        )
        schemas = html.escape(json.dumps(said["components"]["schemas"], indent=2))
        return HTMLResponse(
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>thrifty</title><h1>thrifty</h1><table>{rows}</table>"
            f"<h2>Bodies</h2><pre>{schemas}</pre><p><a href='/openapi.json'>openapi.json</a></p></html>"
        )

    async def list_routers(self, _request: Request) -> Response:
        """The names of all routers."""
        return JSONResponse({"routers": self.app.routers.names()})

    async def put_router(self, request: Request) -> Response:
        """Make a router, or make it be as told."""
        wanted = await self._read(request, RouterRequest)
        router, new = await run_in_threadpool(self.app.routers.put, _name(request), wanted, by=self.app.who(request.scope))
        return JSONResponse(_shown(router), status_code=201 if new else 200)

    async def get_router(self, request: Request) -> Response:
        """A router with its arms and settings."""
        return JSONResponse(_shown(self._router(request)))

    async def delete_router(self, request: Request) -> Response:
        """Take a router out of service."""
        if not await run_in_threadpool(self.app.routers.delete, _name(request), by=self.app.who(request.scope)):
            self._router(request)
        return Response(status_code=204)

    async def list_segments(self, request: Request) -> Response:
        """The segments seen so far, and the explanation of all of them together."""
        router = self._router(request)
        return JSONResponse({"segments": router.segments(), "all": router.explain().to_dict()})

    async def explain(self, request: Request) -> Response:
        """The explanation of one segment."""
        router, segment = self._router(request), request.path_params["segment"]
        if segment not in router.segments():
            raise ServiceProblemError(404, "segment", f"router {router.name!r} has no segment {segment!r:.80}")
        return JSONResponse(router.explain(segment).to_dict())

    async def change_arm(self, request: Request) -> Response:
        """Add, retire, pause, resume, price, reset, pin or unpin an arm."""
        arm, _, action = request.path_params["change"].rpartition(":")
        if action not in ACTIONS or not arm:
            raise ServiceProblemError(404, "action", f"the path must end in ARM:ACTION, with one of {', '.join(ACTIONS)}")
        told = await self._read(request, ArmRequest, default=b"{}")
        router = self._router(request)
        await run_in_threadpool(router.change, action, arm, price=told.price, by=self.app.who(request.scope))
        return JSONResponse(_shown(router))

    def _router(self, request: Request) -> Router:
        return self.app.routers.router(_name(request))

    async def _read(self, request: Request, kind: Any, default: bytes = b"") -> Any:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > self.app.config.max_body:
                raise ServiceProblemError(413, "size", f"the body must be at most {self.app.config.max_body} bytes")
        return decoded(msgspec.json.Decoder(kind), body or default)


def _name(request: Request) -> str:
    return unquote(request.path_params["name"])


def _shown(router: Router) -> dict[str, Any]:
    roster = router.roster
    arms = {
        name: {"price": price, "status": status, "newcomer": arm in roster.newcomers}
        for arm, (name, price, status) in enumerate(zip(roster.names, roster.prices, roster.status, strict=True))
    }
    pinned = None if roster.pinned is None else roster.names[roster.pinned]
    return {"name": router.name, "version": router.version, "arms": arms, "pinned": pinned, **router.settings.to_dict()}


async def _problem(_request: Request, problem: Exception) -> Response:
    assert isinstance(problem, ServiceProblemError)
    headers = {name.decode(): value.decode() for name, value in problem.headers()}
    return JSONResponse(problem.to_dict(), status_code=problem.status, headers=headers)


async def _store(request: Request, error: Exception) -> Response:
    return await _problem(request, ServiceProblemError(503, "store", str(error)))


async def _value(request: Request, error: Exception) -> Response:
    return await _problem(request, ServiceProblemError(422, "value", str(error)))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = await _problem(
        request, ServiceProblemError(error.status_code, "http", f"{request.method} {request.url.path[:200]}: {error.detail}")
    )
    response.headers.update(error.headers or {})
    return response
