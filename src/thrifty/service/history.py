"""The history of routers: shown on request, written once a second, and pruned by age."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from msgspec import structs
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thrifty.service.errors import ServiceProblemError
from thrifty.store import StoreError

if TYPE_CHECKING:
    from thrifty.service.app import App

WRITE_EVERY_S = 1.0

PRUNE_EVERY_S = 600.0

log = logging.getLogger("thrifty.service")


async def show_history(app: "App", request: Request) -> Response:
    """Decisions, outcomes, rewards and costs of a router per minute, hour or day."""
    router, asked = app.routers.router(request.path_params["name"]), structs.asdict(request.state.asked)
    try:
        found = await run_in_threadpool(lambda: router.history(**asked).to_dict())
    except ValueError as error:
        raise ServiceProblemError(422, "value", str(error)) from error
    return JSONResponse(found)


class HistoryTask:
    """Writes what routers counted to the store, once a second."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._prune_at = time.monotonic()
        self._complaints: dict[str, str] = {}  # what was logged last, by router

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            await asyncio.to_thread(self.work)

    def work(self) -> None:
        """Write the history of every router, and delete what is too old now and then."""
        for name, router in self._app.routers.all():
            self._try(name, lambda router=router: router.history_keeper.write(router, at_once=False))
        if time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            self._try("", self._prune)

    def _prune(self) -> None:
        config, now = self._app.config, time.time()
        days = {"minute": config.keep_minutes_days, "hour": config.keep_hours_days, "day": config.keep_history_days}
        self._app.store.prune_history({step: now - 86_400 * kept for step, kept in days.items() if kept})

    def _try(self, name: str, call: Any) -> None:
        """Do something; an error is logged, once as long as it is the same."""
        try:
            call()
            self._complaints.pop(name, None)
        except Exception as error:
            if self._complaints.get(name) != str(error):
                self._complaints[name] = str(error)
                trace = None if isinstance(error, StoreError) else error
                log.warning("history", exc_info=trace, extra={"facts": {"router": name, "error": str(error)}})
