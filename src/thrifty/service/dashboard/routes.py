"""Routes of the dashboard: pages without data for everybody, and their parts for keys that may view."""

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from thrifty.service.dashboard.parts import Content, Parts
from thrifty.service.dashboard.rendering import asset, render
from thrifty.service.errors import ServiceProblemError
from thrifty.service.queries import Handler, RouterPartQuery, SegmentPageQuery, ServicePartQuery
from thrifty.service.turns import ReadTurns

if TYPE_CHECKING:
    from thrifty.service.app import App

Wrapper = Callable[..., Handler]

FRESH_S = 1.0
"""Seconds for which a part is given to all who ask for it: ten dashboards cost what one does."""

MOST_KEPT = 200
"""Parts that are kept."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy: nothing from elsewhere, nothing inline."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
ASSETS = {"dashboard.js": "text/javascript", "dashboard.css": "text/css", "icon.svg": "image/svg+xml"}

_OF_SERVICE = ("overview", "alerts")
_OF_ROUTER = ("tags", "head", "picture", "arms", "series", "frontier", "rollout", "segments", "decisions", "changes")


def dashboard_routes(app: "App", reads: ReadTurns, shown_to_all: Wrapper, guarded: Wrapper) -> list[Route]:
    """All routes: pages and files are shown to everybody, parts are `guarded`."""
    dashboard = Dashboard(app, reads)
    return [
        Route("/", shown_to_all(dashboard.overview_page)),
        Route("/routers/{name}", shown_to_all(dashboard.router_page)),
        Route("/routers/{name}/segments/{segment:path}", shown_to_all(dashboard.segment_page, asked=SegmentPageQuery)),
        Route("/keys", shown_to_all(dashboard.keys_page)),
        Route("/dashboard/overview", guarded(dashboard.service_part, asked=ServicePartQuery)),
        Route("/dashboard/keys", guarded(dashboard.keys_part, asked=ServicePartQuery)),
        Route("/dashboard/routers/{name}", guarded(dashboard.router_part, asked=RouterPartQuery)),
        Route("/dashboard/{asset}", shown_to_all(dashboard.asset)),
    ]


class Dashboard:
    """The handlers."""

    def __init__(self, app: "App", reads: ReadTurns) -> None:
        self.app, self.parts, self._reads = app, Parts(app), reads
        self._kept: OrderedDict[tuple[object, ...], tuple[float, asyncio.Future[str]]] = OrderedDict()

    # -- for everybody -----------------------------------------------------------------------------------------------

    async def overview_page(self, request: Request) -> Response:
        """All routers."""
        return self._page("overview", request)

    async def router_page(self, request: Request) -> Response:
        """One router."""
        return self._page("router", request)

    async def segment_page(self, request: Request) -> Response:
        """One segment of a router."""
        return self._page("segment", request)

    async def keys_page(self, request: Request) -> Response:
        """The keys."""
        return self._page("keys", request)

    def _page(self, page: str, request: Request) -> Response:
        return _unchanging(_shell(page, self.app.access.keys.required), "text/html", request)

    async def asset(self, request: Request) -> Response:
        """The script, the stylesheet or the icon."""
        name = request.path_params["asset"]
        if name not in ASSETS:
            raise ServiceProblemError(404, "asset", f"there is no {name!r:.80} here; there are {', '.join(ASSETS)}")
        return _unchanging(asset(name), ASSETS[name], request)

    # -- for keys that may view --------------------------------------------------------------------------------------

    async def service_part(self, request: Request) -> Response:
        """A part of the page of all routers."""
        name = _part(request, _OF_SERVICE)
        return await self._answer(request, {name: getattr(self.parts, name)}, ())

    async def router_part(self, request: Request) -> Response:
        """A part of the page of a router or of a segment."""
        router = self.app.routers.router(request.path_params["name"])
        query: RouterPartQuery = request.state.asked
        names, segment = _parts(query.part), query.segment or None
        if segment is not None and segment not in await self._reads.run(router.segments):
            raise ServiceProblemError(404, "segment", f"router {router.name!r} has no segment {segment!r:.80}")
        contents = {name: partial(getattr(self.parts, name), router, segment, query) for name in names}
        if "frontier" in contents:
            found = json.loads(await self.app.frontiers.body(router, segment or ""))
            contents["frontier"] = partial(self.parts.frontier, router, found, query)
        return await self._answer(request, contents, (router.name, router.version))

    async def keys_part(self, request: Request) -> Response:
        """The keys and the form to make one."""
        _part(request, ("keys",))
        may_change = self._may(request)
        return _html(await self._reads.run(lambda: render("part_keys.html.j2", **self.parts.keys(), may_change=may_change)))

    async def _answer(self, request: Request, contents: Mapping[str, Callable[[], Content]], of: tuple[object, ...]) -> Response:
        """Parts, rendered in a worker thread once a second for all who ask for the same. Several are in an element each."""
        may_change = self._may(request)
        key = (request.url.query, may_change, *of)
        now = time.monotonic()
        made = self._kept.get(key)
        if made is None or now - made[0] > FRESH_S or (made[1].done() and (made[1].cancelled() or made[1].exception() is not None)):

            def work() -> str:
                texts = {
                    name: render(f"part_{name}.html.j2", **content(), may_change=may_change) for name, content in contents.items()
                }
                if len(texts) == 1:
                    return "".join(texts.values())
                return "".join(f'<div data-answer="{name}">{text}</div>' for name, text in texts.items())

            made = (now, asyncio.ensure_future(self._reads.run(work)))
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return _html(await asyncio.shield(made[1]))

    def _may(self, request: Request) -> bool:
        """Whether the one who asks may change things."""
        return self.app.access.is_allowed(request.scope["headers"], "admin")


def _part(request: Request, parts: tuple[str, ...]) -> str:
    name: str = request.state.asked.part
    if name not in parts:
        raise ServiceProblemError(404, "part", f"part must be one of {', '.join(parts)}, got {name!r:.80}")
    return name


def _parts(text: str) -> list[str]:
    """Names of parts, separated by commas, or a ServiceProblemError."""
    names = list(dict.fromkeys(text.split(",")))
    wrong = next((name for name in names if name not in _OF_ROUTER), None)
    if wrong is not None:
        raise ServiceProblemError(404, "part", f"part must be one or more of {', '.join(_OF_ROUTER)}, got {wrong!r:.80}")
    return names


@cache
def _shell(page: str, required: bool) -> bytes:
    template = "router" if page == "segment" else page
    return render(f"{template}.html.j2", page=page, keys="required" if required else "none").encode()


def _unchanging(body: bytes, kind: str, request: Request) -> Response:
    """A body that is the same for everybody; a browser that has it is told so."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {**HEADERS, "etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


def _html(text: str) -> Response:
    return Response(text, media_type="text/html", headers={**HEADERS, "cache-control": "no-store"})
