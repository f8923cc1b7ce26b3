"""OpenTelemetry spans, where the setting `trace_exporter` asks for them; without it this module is not even imported.

One span for each request, with the trace of the caller (`traceparent`) as its parent. Sampling, the address of the collector and
everything else is taken from the standard variables OTEL_*, which the SDK reads itself.
"""

import threading
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from thrifty.service.hot_path import ROLES, Headers, HotPath, Reply
from thrifty.service.request_counts import route_of

CLOSE_S = 2.0
"""How long the end of the service waits for spans to be exported."""

GROUP = "opentelemetry_traces_exporter"
"""The entry points under which packages offer exporters: otlp, console, ..."""

_UNTRACED = ("/healthz", "/readyz", "/metrics")


def exporter_named(name: str) -> Any:
    """The exporter of a name, or a ValueError with those that are installed."""
    found = entry_points(group=GROUP)
    if name not in found.names:
        there = ", ".join(sorted(found.names)) or "none"
        raise ValueError(f"trace_exporter {name!r:.80} is not installed (there are: {there}): pip install 'thrifty[tracing]'")
    return found[name].load()()


class Tracing:
    """Makes spans with the SDK of OpenTelemetry and hands them to an exporter, in a thread of the SDK."""

    def __init__(self, exporter: Any) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = TracerProvider(resource=Resource.create({"service.name": "thrifty"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer, self._parent = self._provider.get_tracer("thrifty"), TraceContextTextMapPropagator()
        self._server, self._error, self.use = trace.SpanKind.SERVER, trace.StatusCode.ERROR, trace.use_span

    def start(self, method: str, path: str, headers: Headers) -> Any:
        """A span of a request. It has neither headers nor the query of the address, which may hold secrets."""
        carried = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name.startswith(b"trace")}
        attributes = {"http.request.method": method, "url.path": path[:200]}
        return self._tracer.start_span(method, self._parent.extract(carried), kind=self._server, attributes=attributes)

    def end(self, span: Any, method: str, path: str, status: int) -> None:
        """End a span. Its name has the first parts of the path, unless nobody serves that."""
        span.set_attribute("http.response.status_code", status)
        if status != 404:
            route = route_of(path)
            span.set_attribute("http.route", route)
            span.update_name(f"{method} {route}")
        if status >= 500:
            span.set_status(self._error)
        span.end()

    def around(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """An ASGI application with a span for each request but those of the hot path, which has its own, and probes."""

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            method, path, status = scope["method"], scope["path"], 500
            if path in _UNTRACED or (path in ROLES and method == "POST"):
                await inner(scope, receive, send)
                return

            async def observe(message: Any) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            span = self.start(method, path, scope["headers"])
            try:
                with self.use(span, end_on_exit=False):
                    await inner(scope, receive, observe)
            finally:
                self.end(span, method, path, status)

        return answer

    def flush(self) -> None:
        """Have all spans exported that have ended."""
        self._provider.force_flush()

    def close(self) -> None:
        """Export what is left. A collector that does not answer is not waited for: what it does not take is lost."""
        ending = threading.Thread(target=self._provider.shutdown, name="thrifty-tracing", daemon=True)
        ending.start()
        ending.join(CLOSE_S)


class TracedHotPath(HotPath):
    """A hot path with a span for each request, one for a whole batch; it ends when the answer is written."""

    def __init__(self, tracing: Tracing, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self._tracing = tracing

    def take(self, path: str, headers: Headers, body: bytes | bytearray, reply: Reply) -> None:
        """See `HotPath`."""
        span = self._tracing.start("POST", path, headers)
        span.set_attribute("http.request.body.size", len(body))

        def answer(status: int, content: bytes, more: Headers) -> None:
            try:
                reply(status, content, more)
            finally:
                self._tracing.end(span, "POST", path, status)

        super().take(path, headers, body, answer)
