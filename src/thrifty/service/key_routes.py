"""Routes of keys: made, listed and revoked while the service runs."""

import time
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thrifty.service.bodies import read_body
from thrifty.service.errors import ServiceProblemError
from thrifty.service.keys import digest, make_key
from thrifty.service.messages import KeyRequest, decoded

if TYPE_CHECKING:
    from thrifty.service.app import App

_decoder = msgspec.json.Decoder(KeyRequest)


class KeyRoutes:
    """The handlers."""

    def __init__(self, app: "App") -> None:
        self.app = app

    async def make(self, request: Request) -> Response:
        """Make a key. It is in the answer and nowhere else: the store has its digest."""
        app = self.app
        body = await read_body(request.receive, request.scope["headers"], app.config.max_body)
        wanted: KeyRequest = decoded(_decoder, body)
        if not app.access.keys.required and "admin" not in wanted.role.split(","):
            raise ServiceProblemError(
                422, "value", "the first key must have the role admin: from then on every request needs a key, also to make one"
            )
        key, expires_at = make_key(), None if wanted.days is None else time.time() + 86_400 * wanted.days
        await run_in_threadpool(self._add, wanted, key, expires_at)
        answer = {"name": wanted.name, "role": wanted.role, "key": key, "expires_at": expires_at}
        return JSONResponse(answer, status_code=201)

    async def show(self, _request: Request) -> Response:
        """All keys in the store: names, roles and times, never the keys or their digests."""
        keys, now = await run_in_threadpool(self.app.access.listed), time.time()
        shown = [
            {
                "name": key.name,
                "role": key.role,
                "made_at": key.made_at,
                "used_at": key.used_at,
                "expires_at": key.expires_at,
                "expired": key.expires_at is not None and now >= key.expires_at,
            }
            for key in keys
        ]
        return JSONResponse({"keys": shown})

    async def revoke(self, request: Request) -> Response:
        """Take back all keys of a name."""
        name = request.path_params["name"]
        if not await run_in_threadpool(self._remove, name):
            raise ServiceProblemError(404, "name", f"there is no key of the name {name!r:.80}")
        return Response(status_code=204)

    def _add(self, wanted: KeyRequest, key: str, expires_at: float | None) -> None:
        self.app.store.add_key(digest(key), wanted.name, wanted.role, expires_at=expires_at)
        self.app.access.refresh()

    def _remove(self, name: str) -> int:
        removed = self.app.store.remove_keys(name)
        self.app.access.refresh()
        return int(removed)
