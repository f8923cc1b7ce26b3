"""Routes of keys: made, listed and revoked while the service runs."""

import threading
import time
from typing import TYPE_CHECKING

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thrifty.service.bodies import read_body
from thrifty.service.errors import ServiceProblemError
from thrifty.service.keys import digest, has_lasting_admin, make_key
from thrifty.service.messages import KeyRequest, decoded

if TYPE_CHECKING:
    from thrifty.service.app import App

_FIRST = (
    "the first key must have the role admin and must not expire: from then on every request needs a key, also to make one. "
    "Make it without days, and keys that expire after it"
)
_LAST = (
    "the last admin key that does not expire cannot be revoked: nobody could make another. Make one under another name first, or "
    "revoke it in the store, with the service stopped"
)
_decoder = msgspec.json.Decoder(KeyRequest)


class KeyRoutes:
    """The handlers."""

    def __init__(self, app: "App") -> None:
        self.app, self._turn = app, threading.Lock()  # one key is revoked at a time

    async def make(self, request: Request) -> Response:
        """Make a key. It is in the answer and nowhere else: the store has its digest."""
        app = self.app
        body = await read_body(request.receive, request.scope["headers"], app.config.max_body)
        wanted: KeyRequest = decoded(_decoder, body)
        if not app.access.keys.required and ("admin" not in wanted.role.split(",") or wanted.days is not None):
            raise ServiceProblemError(422, "value", _FIRST)
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
        store, access = self.app.store, self.app.access
        with self._turn:
            stored = list(store.keys())
            others = [*(key for key in stored if key.name != name), *access.configured]
            if has_lasting_admin(stored) and not has_lasting_admin(others):
                raise ServiceProblemError(409, "last", _LAST)
            removed = store.remove_keys(name)
        access.refresh()
        return int(removed)
