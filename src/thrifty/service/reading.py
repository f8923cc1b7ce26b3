"""Reads for people and pages: the overview, the changes of a router, its recent decisions, and events."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from thrifty.router import Router
from thrifty.service.bodies import name_of
from thrifty.service.events import EventStream
from thrifty.service.overview import FRESH_S, encode
from thrifty.service.queries import ChangesQuery, DecisionsQuery, EventsQuery, FrontierQuery, SegmentsQuery
from thrifty.service.turns import ReadTurns

if TYPE_CHECKING:
    from thrifty.service.app import App


class Reading:
    """The handlers."""

    def __init__(self, app: "App", reads: ReadTurns) -> None:
        self.app, self._reads = app, reads

    async def overview(self, _request: Request) -> Response:
        """All routers at a glance."""
        return Response(await self._reads.run(self.app.overview.body), media_type="application/json")

    async def events(self, request: Request) -> Response:
        """A stream of events."""
        asked: EventsQuery = request.state.asked
        if asked.router is not None:
            self.app.routers.router(asked.router)
        if request.method == "HEAD":
            return Response(media_type=EventStream.media_type)
        headers, access = request.scope["headers"], self.app.access
        return EventStream(self.app.events, self.app.events.join(asked.router, lambda: access.is_allowed(headers, "view")))

    async def changes(self, request: Request) -> Response:
        """The changes of a router, newest first."""
        asked: ChangesQuery = request.state.asked
        router = self._router(request)
        return await self._answer(lambda: {"changes": router.changes(asked.limit, before=asked.before)})

    async def decisions(self, request: Request) -> Response:
        """Recent decisions of a router, newest first."""
        asked: DecisionsQuery = request.state.asked
        router = self._router(request)
        return await self._answer(lambda: {"decisions": router.recent_decisions(asked.limit, segment=asked.segment)})

    async def segments(self, request: Request) -> Response:
        """The segments seen so far and the explanation of all of them together; or, with `details`, a table of them."""
        asked: SegmentsQuery = request.state.asked
        router = self._router(request)
        if not asked.details:
            return await self._answer(lambda: {"segments": router.segments(), "all": router.explain().to_dict()})
        which = {"search": asked.search, "sort": asked.sort, "limit": asked.limit, "offset": asked.offset}
        return await self._answer(lambda: router.segment_table(**which, max_age_s=FRESH_S))

    async def frontier(self, request: Request) -> Response:
        """What other alphas would give."""
        asked: FrontierQuery = request.state.asked
        return Response(await self.app.frontiers.body(self._router(request), asked.segment), media_type="application/json")

    async def _answer(self, read: Callable[[], Any]) -> Response:
        """The result of a read, made and encoded in a thread."""
        return Response(await self._reads.run(lambda: encode(read())), media_type="application/json")

    def _router(self, request: Request) -> Router:
        return self.app.routers.router(name_of(request))
