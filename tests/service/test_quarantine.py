"""A router that cannot be opened, or that fails later, is quarantined: 503 for it alone. One that is being opened gets 503 too."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Service
from tests.service.test_http import SMS, Caller, running
from thrifty.service import routers
from thrifty.store import StoreError

REASON = "row 7 cannot be applied"


def made(folder: Path, *names: str) -> None:
    """A store with routers of these names."""
    with running(folder) as client:
        for name in names:
            assert client.put(f"/v1/routers/{name}", json=SMS).status_code == 201


REOPEN = routers.reopen


def breaking(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    """`reopen` raises for this router."""

    def reopen(wanted: str, store: Any) -> Any:
        if wanted == name:
            raise error
        return REOPEN(wanted, store)

    monkeypatch.setattr(routers, "reopen", reopen)


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


def is_quarantined(client: Caller, name: str, reason: str) -> None:
    """All that is promised of a quarantined router, and that others run."""
    others = client.post("/v1/decisions", json=[{"router": "mail"}, {"router": name}]).json()
    assert others[0]["arm"] in SMS["arms"]  # type: ignore[operator]
    assert others[1]["error"]["code"] == "quarantined"
    asked = (
        client.post("/v1/decisions", json={"router": name}),
        client.post("/v1/outcomes", json={"decision_id": f"{name}.0.1", "reward": 1}),
        client.get(f"/v1/routers/{name}"),
        client.get(f"/v1/routers/{name}/segments"),
        client.post(f"/v1/routers/{name}/arms/a:pause"),
    )
    for answer in asked:
        status, code, message = refusal(answer)
        assert (status, code) == (503, "quarantined")
        assert "retry-after" in answer.headers
        assert repr(name) in message
        assert reason in message
        assert "thrifty repair" in message
    for answer in (client.put(f"/v1/routers/{name}", json=SMS), client.delete(f"/v1/routers/{name}")):
        status, code, message = refusal(answer)
        assert (status, code) == (409, "quarantined")
        assert "thrifty repair" in message
    ready = client.get("/readyz")
    assert (ready.status_code, ready.text) == (200, f"ready\nquarantined {name}: {reason}\n")
    assert f'thrifty_quarantined{{router="{name}"}} 1' in client.get("/metrics").text
    assert client.get("/v1/routers").json() == {"routers": ["mail"], "quarantined": {name: reason}}


def test_a_router_that_cannot_be_opened_is_quarantined_and_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made(tmp_path, "sms", "mail")
    breaking(monkeypatch, "sms", RuntimeError(REASON))
    with running(tmp_path) as client:
        is_quarantined(client, "sms", f"RuntimeError: {REASON}")
    (record,) = [record for record in caplog.records if record.message == "router quarantined"]
    assert record.exc_info is not None
    assert record.facts["router"] == "sms"  # type: ignore[attr-defined]
    monkeypatch.undo()
    with running(tmp_path) as client:  # repaired
        assert client.get("/v1/routers").json() == {"routers": ["mail", "sms"], "quarantined": {}}


def test_a_missing_policy_file_quarantines_its_router_alone(tmp_path: Path, launch: Callable[..., Service]) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    file = folder / "mine.py"
    file.write_text("from thrifty.policies import policy\nPOLICY = policy('cs-ucb')\n")
    service = launch("--policy-folder", str(folder))
    for name, more in (("mine", {"policy": "mine.py"}), ("mail", {})):
        assert httpx.put(f"{service.url}/v1/routers/{name}", json={**SMS, **more}, timeout=300).status_code == 201
    service.stop()
    file.unlink()
    service.start()
    assert httpx.post(f"{service.url}/v1/decisions", json={"router": "mail"}).status_code == 200
    status, code, message = refusal(httpx.post(f"{service.url}/v1/decisions", json={"router": "mine"}))
    assert (status, code) == (503, "quarantined")
    assert "mine.py" in message
    events = [json.loads(line) for line in service.stop()[1].splitlines()]
    (event,) = [event for event in events if event["event"] == "router quarantined"]
    assert (event["router"], event["level"]) == ("mine", "error")
    assert "Traceback" in event["trace"]


def test_a_router_that_fails_later_is_quarantined(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        for name in ("sms", "mail"):
            client.put(f"/v1/routers/{name}", json=SMS)
        failed = client.app.routers.router("sms")
        failed.log.failed = REASON
        until = time.monotonic() + 5.0
        while not client.app.routers.quarantined:
            assert time.monotonic() < until
            time.sleep(0.01)
        is_quarantined(client, "sms", REASON)


def test_while_a_router_is_being_opened_it_gets_503_and_everything_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "sms", "mail")
    gate = threading.Event()

    def reopen(name: str, store: Any) -> Any:
        if name == "sms":
            gate.wait(30)
        return REOPEN(name, store)

    monkeypatch.setattr(routers, "reopen", reopen)
    with running(tmp_path, opened=False) as client:
        try:
            assert client.get("/healthz").status_code == 200
            until = time.monotonic() + 10.0
            while client.app.routers.starting != ["sms"]:
                assert time.monotonic() < until
                time.sleep(0.01)
            assert client.post("/v1/decisions", json={"router": "mail"}).status_code == 200
            for answer in (
                client.post("/v1/decisions", json={"router": "sms"}),
                client.put("/v1/routers/sms", json=SMS),
                client.delete("/v1/routers/sms"),
                client.get("/readyz"),
            ):
                assert refusal(answer)[:2] == (503, "loading")
                assert answer.headers["retry-after"] == "1"
            assert client.put("/v1/routers/third", json=SMS).status_code == 201
        finally:
            gate.set()
        while client.get("/readyz").status_code != 200:
            time.sleep(0.01)
        assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 200


def test_a_store_that_is_away_is_no_reason_for_quarantine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "sms")
    monkeypatch.setattr(routers, "RETRY_S", 0.05)
    away = threading.Event()
    away.set()

    def reopen(name: str, store: Any) -> Any:
        if away.is_set():
            raise StoreError("no connection")
        return REOPEN(name, store)

    monkeypatch.setattr(routers, "reopen", reopen)
    monkeypatch.setattr(routers.Routers, "_is_away", lambda _self: away.is_set())
    with running(tmp_path, opened=False) as client:
        time.sleep(0.3)
        assert refusal(client.post("/v1/decisions", json={"router": "sms"}))[:2] == (503, "loading")
        away.clear()
        while client.get("/readyz").status_code != 200:
            time.sleep(0.01)
        assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 200


def test_a_slow_change_of_one_router_holds_up_no_other(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        for name in ("sms", "mail"):
            client.put(f"/v1/routers/{name}", json=SMS)
        gate, slow = threading.Event(), client.app.routers.router("sms")
        slow.configure = lambda *_, **__: gate.wait(60)  # type: ignore[method-assign, assignment]
        waiting = [threading.Thread(target=client.put, args=("/v1/routers/sms",), kwargs={"json": SMS}) for _ in range(60)]
        try:
            for thread in waiting:
                thread.start()
            time.sleep(0.5)
            started = time.monotonic()
            assert client.put("/v1/routers/mail", json={**SMS, "alpha": 0.2}).status_code == 200
            assert client.post("/v1/routers/mail/arms/a:pause").status_code == 200
            assert client.get("/v1/routers/sms/segments").status_code == 200
            assert client.post("/v1/decisions", json={"router": "sms"}).status_code == 200
            assert client.get("/metrics").status_code == 200
            assert time.monotonic() - started < 5.0
        finally:
            gate.set()
            for thread in waiting:
                thread.join()


def test_a_router_of_another_replica_that_cannot_be_opened_is_quarantined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Any
) -> None:
    url = postgres.database()
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as two:
        breaking(monkeypatch, "sms", RuntimeError(REASON))
        for name in ("sms", "mail"):
            assert one.put(f"/v1/routers/{name}", json=SMS).status_code == 201
        until = time.monotonic() + 20.0
        while not (two.app.routers.quarantined and two.app.routers.names() == ["mail"]):
            assert time.monotonic() < until
            time.sleep(0.05)
        is_quarantined(two, "sms", f"RuntimeError: {REASON}")
        assert one.delete("/v1/routers/sms").status_code == 204
        while two.app.routers.quarantined:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert two.post("/v1/decisions", json={"router": "sms"}).status_code == 404
