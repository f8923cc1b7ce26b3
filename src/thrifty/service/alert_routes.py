"""Routes of alerts and of the budgets they are about."""

from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thrifty.service.errors import ServiceProblemError
from thrifty.service.queries import AlertsQuery

if TYPE_CHECKING:
    from thrifty.service.app import App


class AlertRoutes:
    """The handlers."""

    def __init__(self, app: "App") -> None:
        self.app = app

    async def show(self, request: Request) -> Response:
        """The newest alerts, those that last and those that ended."""
        asked: AlertsQuery = request.state.asked
        return JSONResponse({"alerts": await run_in_threadpool(self.app.alerts.newest, asked.limit)})

    async def budget(self, request: Request) -> Response:
        """What a router has spent today, and what is to be expected."""
        router = self.app.routers.router(unquote(request.path_params["name"]))
        forecast = await run_in_threadpool(router.forecast)
        return JSONResponse({"router": router.name, **forecast._asdict(), "tight": forecast.tight, "hopeless": forecast.hopeless})

    async def test(self, request: Request) -> Response:
        """Send a test alert; it is on its way when this answers."""
        if not self.app.alerts.sends:
            raise ServiceProblemError(409, "webhook", "there is no webhook: start the service with alert_url and alert_secret")
        await run_in_threadpool(self.app.alerts.test, self.app.who(request.scope))
        return JSONResponse({"result": "queued"}, status_code=202)
