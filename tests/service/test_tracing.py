"""OpenTelemetry spans: one for each request, below the trace of the caller; none, and no import, unless they are asked for."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from tests.service.conftest import Service
from tests.service.test_http import SMS, Caller, running
from thrifty.cli.main import main
from thrifty.service import tracing
from thrifty.service.app import App
from thrifty.service.config import Config
from thrifty.store import open_store

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    made = InMemorySpanExporter()
    monkeypatch.setattr(tracing, "exporter_named", lambda _name: made)
    return made


def spans(client: Caller, exporter: InMemorySpanExporter) -> list[Any]:
    client.app.tracing.flush()
    found = list(exporter.get_finished_spans())
    exporter.clear()
    return found


def told(span: Any) -> tuple[str, int]:
    return span.name, span.attributes["http.response.status_code"]


def test_every_request_has_a_span_below_the_trace_of_its_caller(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    with running(tmp_path, {"ann": "admin"}, trace_exporter="memory") as client:
        client.headers.update({"authorization": "Bearer ann", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})
        client.put("/v1/routers/sms", json=SMS)
        decision = client.post("/v1/decisions", json={"router": "sms"}).json()
        client.post("/v1/outcomes", json=[{"decision_id": decision["decision_id"], "reward": 1}] * 3)
        client.post("/v1/decisions", json=[{"router": "sms"}] * 60)  # which runs in a worker thread
        client.post("/v1/decisions", content=iter([b'{"router": ', b'"sms"}']))  # which comes through ASGI
        client.get("/v1/routers/sms", params={"token": "secret"})  # which it does not have
        for path in ("/healthz", "/readyz", "/metrics"):
            client.get(path)
        client.get("/wp-admin/x")
        client.post("/v1/decisions", json={"router": "no"})
        client.get("/v1/routers", headers={"authorization": "Bearer wrong"})
        found = spans(client, exporter)
    assert [told(span) for span in found] == [
        ("PUT /v1/routers", 201),
        ("POST /v1/decisions", 200),
        ("POST /v1/outcomes", 200),
        ("POST /v1/decisions", 200),
        ("POST /v1/decisions", 200),
        ("GET /v1/routers", 422),
        ("GET", 404),
        ("POST", 404),
        ("GET /v1/routers", 401),
    ]
    for span in found:
        assert (f"{span.context.trace_id:032x}", span.kind) == (TRACE, SpanKind.SERVER)
        assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
        assert 0 < span.end_time - span.start_time < 60e9
        assert not any(word in span.to_json() for word in ("secret", "Bearer", "ann"))
    assert found[0].resource.attributes["service.name"] == "thrifty"


def test_an_internal_error_is_an_error_of_its_span(
    tmp_path: Path, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, trace_exporter="memory") as client:
        client.put("/v1/routers/sms", json=SMS)
        monkeypatch.setattr(client.app.routers, "router", lambda *_values, **_more: 1 / 0)
        assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 500
        assert client.get("/v1/routers/sms").status_code == 500
        found = spans(client, exporter)[1:]
        assert [span.status.is_ok for span in found] == [False, False]


def test_without_the_setting_nothing_of_it_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from thrifty.service.app import App, HotPath; from thrifty.service.config import Config\n"
        "from thrifty.store import open_store\n"
        f"app = App(Config(), open_store('sqlite:///{tmp_path}/s.db'))\n"
        "assert type(app.hot_path) is HotPath and app.tracing is None and app._answer == app._route\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry') or name == 'thrifty.service.tracing']"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_exporter_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:///{tmp_path / 's.db'}")
    with pytest.raises(ValueError, match=r"trace_exporter 'nosuch' is not installed \(there are: .*console.*pip install"):
        App(Config(trace_exporter="nosuch"), store)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ValueError, match=r"trace_exporter needs opentelemetry.sdk.trace: pip install 'thrifty\[tracing\]'"):
        App(Config(trace_exporter="console"), store)
    store.close()
    assert main(["serve", "--store", f"sqlite:///{tmp_path / 's.db'}", "--port", "0", "--trace-exporter", "nosuch"]) == 2


def test_a_service_writes_its_spans_before_it_ends(launch: Callable[..., Service], capfd: pytest.CaptureFixture[str]) -> None:
    service = launch("--trace-exporter", "console")
    httpx.get(f"{service.url}/v1/routers")
    code, _ = service.stop()
    assert (code, '"name": "GET /v1/routers"' in capfd.readouterr().out) == (0, True)
