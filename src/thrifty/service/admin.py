"""Everything but the hot routes, on Starlette: routers, arms, segments and keys here, and the routes of `status`."""

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from thrifty.router import ConflictError, Router
from thrifty.service import queries
from thrifty.service.alert_routes import AlertRoutes
from thrifty.service.bodies import name_of, read_body
from thrifty.service.dashboard.routes import dashboard_routes
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.history import show_history
from thrifty.service.hot_path import ROLES
from thrifty.service.key_routes import KeyRoutes
from thrifty.service.levers import Levers, shown
from thrifty.service.messages import RouterRequest, decoded
from thrifty.service.policy_files import checked_policy
from thrifty.service.queries import Handler
from thrifty.service.reading import Reading
from thrifty.service.reconcile import NO_FILE
from thrifty.service.request_counts import route_of
from thrifty.service.status import Status
from thrifty.service.turns import ChangeTurns, ReadTurns
from thrifty.store import StoreError

if TYPE_CHECKING:
    from thrifty.service.app import App

log = logging.getLogger("thrifty.service")


def build_admin(app: "App") -> Starlette:
    """The Starlette application behind `app`."""
    changes, reads = ChangeTurns(), ReadTurns()
    admin, status, keys, alerts = Admin(app, changes), Status(app), KeyRoutes(app), AlertRoutes(app)
    levers, reading = Levers(app, changes, reads), Reading(app, reads)
    guarded = admin.guarded
    routes = [
        Route("/healthz", shown_to_all(status.health)),
        Route("/readyz", shown_to_all(status.readiness)),
        Route("/metrics", shown_to_all(status.metrics)),
        Route("/openapi.json", shown_to_all(status.openapi)),
        Route("/docs", shown_to_all(status.docs)),
        *(Route(path, _is_hot, methods=["POST"]) for path in ROLES),
        Route("/v1/keys", guarded(keys.make), methods=["POST"]),
        Route("/v1/keys", guarded(keys.show), methods=["GET"]),
        Route("/v1/keys/{name:path}", guarded(keys.revoke), methods=["DELETE"]),
        Route("/v1/drift", guarded(admin.drift)),
        Route("/v1/alerts", guarded(alerts.show, asked=queries.AlertsQuery), methods=["GET"]),
        Route("/v1/alerts/test", guarded(alerts.test), methods=["POST"]),
        Route("/v1/routers", guarded(admin.list_routers)),
        Route("/v1/routers/{name}", guarded(admin.put_router, asked=queries.VersionQuery), methods=["PUT"]),
        Route("/v1/routers/{name}", guarded(admin.get_router), methods=["GET"]),
        Route("/v1/routers/{name}", guarded(admin.delete_router, asked=queries.VersionQuery), methods=["DELETE"]),
        Route("/v1/routers/{name}/history", guarded(partial(show_history, app), asked=queries.HistoryParameters)),
        Route("/v1/routers/{name}/budget", guarded(alerts.budget), methods=["GET"]),
        Route("/v1/routers/{name}/segments", guarded(reading.segments, asked=queries.SegmentsQuery)),
        Route("/v1/routers/{name}/segments/{segment:path}", guarded(admin.explain)),
        Route("/v1/routers/{name}/arms/{change:path}", guarded(levers.change_arm), methods=["POST"]),
        Route("/v1/routers/{name}/alpha", guarded(levers.set_alpha), methods=["POST"]),
        Route("/v1/routers/{name}/undo", guarded(levers.undo), methods=["POST"]),
        Route("/v1/routers/{name}/preview", guarded(levers.preview, reads=True), methods=["POST"]),
        Route("/v1/routers/{name}/changes", guarded(reading.changes, asked=queries.ChangesQuery)),
        Route("/v1/routers/{name}/decisions", guarded(reading.decisions, asked=queries.DecisionsQuery)),
        Route("/v1/routers/{name}/frontier", guarded(reading.frontier, asked=queries.FrontierQuery)),
        Route("/v1/overview", guarded(reading.overview)),
        Route("/v1/events", guarded(reading.events, asked=queries.EventsQuery)),
        Route("/v1/routers/{name}/rollout", guarded(levers.show_rollout), methods=["GET"]),
        Route("/v1/routers/{name}/rollout", guarded(levers.move_rollout), methods=["POST"]),
    ]
    routes += dashboard_routes(app, reads, shown_to_all, guarded)
    return Starlette(routes=routes, exception_handlers={HTTPException: _http})


def shown_to_all(handle: Handler, *, asked: type[msgspec.Struct] = queries.NoQuery) -> Handler:
    """`handle` for everybody, with or without a key; `asked` is what its query string may be."""
    return answered(queries.asking(handle, asked))


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

    def guarded(self, handle: Handler, *, reads: bool = False, asked: type[msgspec.Struct] = queries.NoQuery) -> Handler:
        """`handle` for keys that may, counted and logged: GET, and what `reads`, needs the role view, everything else admin."""
        inner = answered(queries.asking(handle, asked))

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
        name, by, version = name_of(request), self.app.who(request.scope), request.state.asked.version
        try:
            if wanted.policy is not msgspec.UNSET:
                wanted.policy = await run_in_threadpool(checked_policy, wanted.policy, self.app.config.policy_folder)
            router, new = await self._changes.run(name, lambda: self.app.routers.put(name, wanted, by=by, version=version))
        except ConflictError as error:
            raise ServiceProblemError(409, "conflict", str(error)) from None
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from error
        return JSONResponse(shown(router), status_code=201 if new else 200)

    async def get_router(self, request: Request) -> Response:
        """A router with its arms and settings."""
        return JSONResponse(await run_in_threadpool(shown, self._router(request)))

    async def delete_router(self, request: Request) -> Response:
        """Take a router out of service."""
        name, by, version = name_of(request), self.app.who(request.scope), request.state.asked.version
        try:
            await self._changes.run(name, lambda: self.app.routers.delete(name, by=by, version=version))
        except ConflictError as error:
            raise ServiceProblemError(409, "conflict", str(error)) from None
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


async def _is_hot(_request: Request) -> Response:
    """The hot path has taken what is posted there; the route tells all other methods that there is only POST."""
    raise HTTPException(405, headers={"allow": "POST"})


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    response = _problem(ServiceProblemError(error.status_code, "http", message))
    response.headers.update(error.headers or {})
    return response
