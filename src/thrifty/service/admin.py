"""Everything but the hot routes, on Starlette: routers, arms, segments and keys here, and the routes of `status`."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from thrifty.router import ACTIONS, Router
from thrifty.service.alert_routes import AlertRoutes
from thrifty.service.bodies import read_body
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.history import show_history
from thrifty.service.key_routes import KeyRoutes
from thrifty.service.messages import ArmRequest, RouterRequest, decoded
from thrifty.service.policy_files import checked_policy
from thrifty.service.reconcile import NO_FILE
from thrifty.service.status import Status
from thrifty.store import StoreError

if TYPE_CHECKING:
    from thrifty.service.app import App

log = logging.getLogger("thrifty.service")

Handler = Callable[[Request], Awaitable[Response]]


def build_admin(app: "App") -> Starlette:
    """The Starlette application behind `app`."""
    admin, status, keys, alerts = Admin(app), Status(app), KeyRoutes(app), AlertRoutes(app)
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
        Route("/v1/routers/{name}/segments", guarded(admin.list_segments)),
        Route("/v1/routers/{name}/segments/{segment:path}", guarded(admin.explain)),
        Route("/v1/routers/{name}/arms/{change:path}", guarded(admin.change_arm), methods=["POST"]),
    ]
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

    def __init__(self, app: "App") -> None:
        self.app = app
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # of routers that are being changed

    def guarded(self, handle: Handler) -> Handler:
        """`handle` for keys that may, counted and logged: GET needs the role view, everything else admin."""
        inner = answered(handle)

        async def guard(request: Request) -> Response:
            started = time.perf_counter()
            self.app.access.authorise(request.scope["headers"], "view" if request.method in ("GET", "HEAD") else "admin")
            response = await inner(request)
            route = "/".join(request.url.path.split("/")[:3])  # /v1/routers or /v1/keys
            self.app.count(route, response.status_code, time.perf_counter() - started)
            if request.method not in ("GET", "HEAD"):
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
        name, by = _name(request), self.app.who(request.scope)
        try:
            if wanted.policy is not msgspec.UNSET:
                wanted.policy = await run_in_threadpool(checked_policy, wanted.policy, self.app.config.policy_folder)
            router, new = await self._change(name, lambda: self.app.routers.put(name, wanted, by=by))
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from error
        return JSONResponse(_shown(router), status_code=201 if new else 200)

    async def get_router(self, request: Request) -> Response:
        """A router with its arms and settings."""
        return JSONResponse(await run_in_threadpool(_shown, self._router(request)))

    async def delete_router(self, request: Request) -> Response:
        """Take a router out of service."""
        name, by = _name(request), self.app.who(request.scope)
        await self._change(name, lambda: self.app.routers.delete(name, by=by))
        return Response(status_code=204)

    async def list_segments(self, request: Request) -> Response:
        """The segments seen so far, and the explanation of all of them together."""
        router = self._router(request)
        return JSONResponse(await run_in_threadpool(lambda: {"segments": router.segments(), "all": router.explain().to_dict()}))

    async def explain(self, request: Request) -> Response:
        """The explanation of one segment."""
        router, segment = self._router(request), request.path_params["segment"]
        if segment not in await run_in_threadpool(router.segments):
            raise ServiceProblemError(404, "segment", f"router {router.name!r} has no segment {segment!r:.80}")
        return JSONResponse(await run_in_threadpool(lambda: router.explain(segment).to_dict()))

    async def change_arm(self, request: Request) -> Response:
        """Add, retire, pause, resume, price, reset, pin or unpin an arm."""
        arm, _, action = request.path_params["change"].rpartition(":")
        if action not in ACTIONS or not arm:
            raise ServiceProblemError(404, "action", f"the path must end in ARM:ACTION, with one of {', '.join(ACTIONS)}")
        wanted = await self._read(request, ArmRequest, default=b"{}")
        router, by = self._router(request), self.app.who(request.scope)
        try:
            await self._change(router.name, lambda: router.change(action, arm, price=wanted.price, by=by))
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from error
        return JSONResponse(await run_in_threadpool(_shown, router))

    async def _change(self, name: str, change: Callable[[], Any]) -> Any:
        """Run a change in a thread. Those of one router wait for each other here, so that they take one thread and not all."""
        lock = self._locks.get(name) or asyncio.Lock()
        self._locks[name] = lock
        async with lock:
            return await run_in_threadpool(change)

    def _router(self, request: Request) -> Router:
        return self.app.routers.router(_name(request))

    async def _read(self, request: Request, kind: Any, default: bytes = b"") -> Any:
        body = await read_body(request.receive, request.scope["headers"], self.app.config.max_body)
        return decoded(msgspec.json.Decoder(kind), body or default)


def _name(request: Request) -> str:
    return unquote(request.path_params["name"])


def _shown(router: Router) -> dict[str, Any]:
    arms = router.arms
    shown = {
        name: {"price": price, "status": status, "newcomer": arm in arms.newcomers}
        for arm, (name, price, status) in enumerate(zip(arms.names, arms.prices, arms.status, strict=True))
    }
    pinned = None if arms.pinned is None else arms.names[arms.pinned]
    return {"name": router.name, "version": router.version, "arms": shown, "pinned": pinned, **router.settings.to_dict()}


def _problem(problem: ServiceProblemError) -> Response:
    headers = {name.decode(): value.decode() for name, value in problem.headers()}
    return JSONResponse(problem.to_dict(), status_code=problem.status, headers=headers)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    response = _problem(ServiceProblemError(error.status_code, "http", message))
    response.headers.update(error.headers or {})
    return response
