"""Levers: changes of a running router by people, each with what it would do, and each undone by another."""

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thrifty.router import ACTIONS, ConflictError, Router
from thrifty.service.bodies import name_of, read_body
from thrifty.service.errors import ServiceProblemError
from thrifty.service.lever_messages import AlphaRequest, PreviewRequest, RolloutRequest, UndoRequest
from thrifty.service.messages import ArmRequest, decoded
from thrifty.service.overview import FRESH_S, encode
from thrifty.service.turns import ChangeTurns, ReadTurns

if TYPE_CHECKING:
    from collections.abc import Callable

    from thrifty.service.app import App


class Levers:
    """The handlers."""

    def __init__(self, app: "App", changes: ChangeTurns, reads: ReadTurns) -> None:
        self.app, self._changes, self._reads = app, changes, reads

    async def change_arm(self, request: Request) -> Response:
        """Add, retire, pause, resume, price, reset, pin or unpin an arm."""
        arm, _, action = request.path_params["change"].rpartition(":")
        if action not in ACTIONS or not arm:
            raise ServiceProblemError(404, "action", f"the path must end in ARM:ACTION, with one of {', '.join(ACTIONS)}")
        wanted = await self._read(request, ArmRequest, default=b"{}")
        router, by, price = self._router(request), self.app.who(request.scope), _price(action, wanted.price)
        return await self._pull(router, lambda: router.change(action, arm, price=price, by=by, version=wanted.version))

    async def set_alpha(self, request: Request) -> Response:
        """Change alpha, and leave everything else as it is."""
        wanted: AlphaRequest = await self._read(request, AlphaRequest)
        router, by = self._router(request), self.app.who(request.scope)
        return await self._pull(router, lambda: router.adjust(alpha=wanted.alpha, by=by, version=wanted.version))

    async def undo(self, request: Request) -> Response:
        """Undo one change."""
        wanted: UndoRequest = await self._read(request, UndoRequest)
        router, by = self._router(request), self.app.who(request.scope)
        return await self._pull(router, lambda: router.undo(wanted.position, by=by, version=wanted.version))

    async def show_rollout(self, request: Request) -> Response:
        """How far the rollout of a router is."""
        router = self._router(request)
        return JSONResponse(await self._reads.run(lambda: router.rollout().to_dict()))

    async def move_rollout(self, request: Request) -> Response:
        """Move the rollout of a router; this ends a fallback."""
        wanted: RolloutRequest = await self._read(request, RolloutRequest)
        router, by = self._router(request), self.app.who(request.scope)
        await self._pull(router, lambda: router.move_rollout(wanted.to, share=wanted.share, by=by, version=wanted.version))
        return await self.show_rollout(request)

    async def preview(self, request: Request) -> Response:
        """What a change would do; nothing is changed."""
        wanted: PreviewRequest = await self._read(request, PreviewRequest)
        router, asked = self._router(request), msgspec.structs.asdict(wanted)
        asked["price"] = _price(wanted.action, wanted.price)
        try:
            found = await self._reads.run(lambda: encode(router.preview(**asked, max_age_s=FRESH_S)))
            return Response(found, media_type="application/json")
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from error

    async def _pull(self, router: Router, change: "Callable[[], None]") -> Response:
        """Make a change in a thread, and show the router as it is then."""
        try:
            await self._changes.run(router.name, change)
        except ConflictError as error:
            raise ServiceProblemError(409, "conflict", str(error)) from None
        except KeyError as error:
            raise ServiceProblemError(404, "position", str(error.args[0])) from None
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from error
        return JSONResponse(await run_in_threadpool(shown, router))

    def _router(self, request: Request) -> Router:
        return self.app.routers.router(name_of(request))

    async def _read(self, request: Request, kind: Any, default: bytes = b"") -> Any:
        body = await read_body(request.receive, request.scope["headers"], self.app.config.max_body)
        return decoded(msgspec.json.Decoder(kind), body or default)


def _price(action: str, price: "float | msgspec.UnsetType | None") -> float | None:
    """The price that goes with a change; a ServiceProblemError where it was forgotten, or would have no effect."""
    if action == "price" and price is msgspec.UNSET:
        raise ServiceProblemError(422, "value", "price is missing: give the new price of the arm, or null if it is unknown")
    if action not in ("add", "price") and isinstance(price, float):
        raise ServiceProblemError(422, "value", f"{action} takes no price, got {price:g}: change it by the action price")
    return price if isinstance(price, float) else None


def shown(router: Router) -> dict[str, Any]:
    """A router with its arms and settings, as plain values."""
    arms = router.arms
    found = {
        name: {"price": price, "status": status, "newcomer": arm in arms.newcomers}
        for arm, (name, price, status) in enumerate(zip(arms.names, arms.prices, arms.status, strict=True))
    }
    pinned = None if arms.pinned is None else arms.names[arms.pinned]
    start = router.state.configuration.known_left
    known = None if start is None else {"source": start.source, "outcomes": start.total}
    return {
        "name": router.name,
        "version": router.version,
        "arms": found,
        "pinned": pinned,
        "known": known,
        **router.settings.to_dict(),
    }
