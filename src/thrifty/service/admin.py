"""Everything but the hot routes, on Starlette: routers, arms, segments and keys here, and the routes of `status`."""

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from thrifty.router import Router
from thrifty.service.alert_routes import AlertRoutes
from thrifty.service.bodies import name_of, read_body
from thrifty.service.dashboard.routes import dashboard_routes
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.history import show_history
from thrifty.service.key_routes import KeyRoutes
from thrifty.service.levers import Levers, shown
from thrifty.service.messages import RouterRequest, decoded
from thrifty.service.policy_files import checked_policy
from thrifty.service.reading import Reading
from thrifty.service.reconcile import NO_FILE
from thrifty.service.request_counts import route_of
from thrifty.service.status import Status
from thrifty.service.turns import ChangeTurns, ReadTurns
from thrifty.store import StoreError

if TYPE_CHECKING:
    from thrifty.service.app import App

log = logging.getLogger("thrifty.service")

Handler = Callable[[Request], Awaitable[Response]]


def build_admin(app: "App") -> Starlette:
    """The Starlette application behind `app`."""
    changes, reads = ChangeTurns(), ReadTurns()
    admin, status, keys, alerts = Admin(app, changes), Status(app), KeyRoutes(app), AlertRoutes(app)
    levers, reading = Levers(app, changes, reads), Reading(app, reads)
    guarded = admin.guarded
    routes = [
        Route("/healthz", answered(status.health)),
        Route("/readyz", answered(status.readiness)),
        Route("/metrics", answered(status.metrics)),
        Route("/openapi.json", answered(status.openapi)),
        Route("/docs", answered(status.docs)),
        Route("/v1/keys", guarded(keys.make), methods=["POST"]),
        Route("/v1/keys", guarded(keys.show), methods=["GET"]),
        Route("/v1/keys/{name:path}", guarded(keys.revoke), methods=["DELETE"]),
        Route("/v1/drift", guarded(admin.drift)),
        Route("/v1/alerts", guarded(alerts.show), methods=["GET"]),
        Route("/v1/alerts/test", guarded(alerts.test), methods=["POST"]),
        Route("/v1/routers", guarded(admin.list_routers)),
        Route("/v1/routers/{name}", guarded(admin.put_router), methods=["PUT"]),
        Route("/v1/routers/{name}", guarded(admin.get_router), methods=["GET"]),
        Route("/v1/routers/{name}", guarded(admin.delete_router), methods=["DELETE"]),
        Route("/v1/routers/{name}/history", guarded(partial(show_history, app))),
        Route("/v1/routers/{name}/budget", guarded(alerts.budget), methods=["GET"]),
        Route("/v1/routers/{name}/segments", guarded(reading.segments)),
        Route("/v1/routers/{name}/segments/{segment:path}", guarded(admin.explain)),
        Route("/v1/routers/{name}/arms/{change:path}", guarded(levers.change_arm), methods=["POST"]),
        Route("/v1/routers/{name}/alpha", guarded(levers.set_alpha), methods=["POST"]),
        Route("/v1/routers/{name}/undo", guarded(levers.undo), methods=["POST"]),
        Route("/v1/routers/{name}/preview", guarded(levers.preview, reads=True), methods=["POST"]),
        Route("/v1/routers/{name}/changes", guarded(reading.changes)),
        Route("/v1/routers/{name}/decisions", guarded(reading.decisions)),
        Route("/v1/routers/{name}/frontier", guarded(reading.frontier)),
        Route("/v1/overview", guarded(reading.overview)),
        Route("/v1/events", guarded(reading.events)),
        Route("/v1/routers/{name}/rollout", guarded(levers.show_rollout), methods=["GET"]),
        Route("/v1/routers/{name}/rollout", guarded(levers.move_rollout), methods=["POST"]),
    ]
    routes += dashboard_routes(app, reads, answered, guarded)
    return Starlette(routes=routes, exception_handlers={HTTPException: _http})


def answered(handle: Handler) -> Handler:
    """`handle`, with every exception as an answer."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except HTTPException:
            raise
        except ServiceProblemError as problem:
            return _problem(problem)
        except StoreError as error:
            return _problem(ServiceProblemError(503, "store", str(error)))
        except Exception as error:
            return _problem(internal_problem(error, method=request.method, path=request.url.path[:200]))

    return answer


class Admin:
    """The handlers of routers, arms and segments."""

    def __init__(self, app: "App", changes: ChangeTurns) -> None:
        self.app, self._changes = app, changes

    def guarded(self, handle: Handler, *, reads: bool = False) -> Handler:
        """`handle` for keys that may, counted and logged: GET, and what `reads`, needs the role view, everything else admin."""
        inner = answered(handle)

        async def guard(request: Request) -> Response:
            started, viewing = time.perf_counter(), reads or request.method in ("GET", "HEAD")
            route = route_of(request.url.path)
            try:
                self.app.access.authorise(request.scope["headers"], "view" if viewing else "admin")
            except ServiceProblemError as problem:
                self.app.count(route, problem.status, time.perf_counter() - started)
                raise
            response = await inner(request)
            self.app.count(route, response.status_code, time.perf_counter() - started)
            if not viewing:
                facts = {"method": request.method, "path": request.url.path, "status": response.status_code}
                log.info("changed", extra={"facts": {**facts, "by": self.app.who(request.scope)}})
            return response

        return answered(guard)

    async def list_routers(self, _request: Request) -> Response:
        """The names of all routers."""
        return JSONResponse({"routers": self.app.routers.names(), "quarantined": self.app.routers.quarantined})

    async def drift(self, _request: Request) -> Response:
        """How routers differ from what the configuration file declares."""
        reconciler = self.app.reconciler
        return JSONResponse(NO_FILE if reconciler is None else await run_in_threadpool(reconciler.drift))

    async def put_router(self, request: Request) -> Response:
        """Make a router, or make it as wanted."""
        wanted = await self._read(request, RouterRequest)
        name, by = name_of(request), self.app.who(request.scope)
        try:
            if wanted.policy is not msgspec.UNSET:
                wanted.policy = await run_in_threadpool(checked_policy, wanted.policy, self.app.config.policy_folder)
            router, new = await self._changes.run(name, lambda: self.app.routers.put(name, wanted, by=by))
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from error
        return JSONResponse(shown(router), status_code=201 if new else 200)

    async def get_router(self, request: Request) -> Response:
        """A router with its arms and settings."""
        return JSONResponse(await run_in_threadpool(shown, self._router(request)))

    async def delete_router(self, request: Request) -> Response:
        """Take a router out of service."""
        name, by = name_of(request), self.app.who(request.scope)
        await self._changes.run(name, lambda: self.app.routers.delete(name, by=by))
        return Response(status_code=204)

    async def explain(self, request: Request) -> Response:
        """The explanation of one segment."""
        router, segment = self._router(request), request.path_params["segment"]
        if segment not in await run_in_threadpool(router.segments):
            raise ServiceProblemError(404, "segment", f"router {router.name!r} has no segment {segment!r:.80}")
        return JSONResponse(await run_in_threadpool(lambda: router.explain(segment).to_dict()))

    def _router(self, request: Request) -> Router:
        return self.app.routers.router(name_of(request))

    async def _read(self, request: Request, kind: Any, default: bytes = b"") -> Any:
        body = await read_body(request.receive, request.scope["headers"], self.app.config.max_body)
        return decoded(msgspec.json.Decoder(kind), body or default)


def _problem(problem: ServiceProblemError) -> Response:
    headers = {name.decode(): value.decode() for name, value in problem.headers()}
    return JSONResponse(problem.to_dict(), status_code=problem.status, headers=headers)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    response = _problem(ServiceProblemError(error.status_code, "http", message))
    response.headers.update(error.headers or {})
    return response
