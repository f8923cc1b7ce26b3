"""Routes about the service itself: health, readiness, metrics and documentation. They need no key."""

import asyncio
import html
import json
import time
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from thrifty.service.openapi import describe

if TYPE_CHECKING:
    from thrifty.service.app import App


class Status:
    """The handlers."""

    def __init__(self, app: "App") -> None:
        self.app = app
        self._collecting, self._collected_at, self._metrics = asyncio.Lock(), 0.0, ""

    async def health(self, _request: Request) -> Response:
        """Alive."""
        return PlainTextResponse("ok\n")

    async def readiness(self, _request: Request) -> Response:
        """Ready to decide: routers are open, and the store takes rows, or is away for not too long."""
        return PlainTextResponse(self.app.readiness())

    async def metrics(self, _request: Request) -> Response:
        """Prometheus text, no older than the request. Requests that wait for each other share one text and one thread."""
        asked_at = time.monotonic()
        async with self._collecting:
            if self._collected_at <= asked_at:
                self._collected_at = time.monotonic()
                self._metrics = await run_in_threadpool(self.app.metrics.text)
            return PlainTextResponse(self._metrics, media_type="text/plain; version=0.0.4")

    async def openapi(self, _request: Request) -> Response:
        """The description of this service."""
        return JSONResponse(describe())

    async def docs(self, _request: Request) -> Response:
        """The same for people; it loads nothing from elsewhere."""
        described = describe()
        rows = "".join(
            f"<tr><td><code>{method.upper()} {html.escape(path)}</code></td><td>{html.escape(operation['summary'])}</td></tr>"
            for path, operations in described["paths"].items()
            for method, operation in operations.items()
            if method != "parameters"
        )
        schemas = html.escape(json.dumps(described["components"]["schemas"], indent=2))
        return HTMLResponse(
            f"<!doctype html><html lang='en'><meta charset='utf-8'><title>thrifty</title><h1>thrifty</h1><table>{rows}</table>"
            f"<h2>Bodies</h2><pre>{schemas}</pre><p><a href='/openapi.json'>openapi.json</a></p></html>"
        )
