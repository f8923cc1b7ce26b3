"""Calls that may take long run in worker threads, and errors that nobody expected are answered and logged."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.test_http import SMS, Caller, decide, running
from tests.service.test_protocol import PLAIN, POST, answers, connect
from thrifty.router import ColdDecisionError, Router
from thrifty.service import hot_path
from thrifty.service.answers import Done
from thrifty.service.workers import Workers

MAIL = POST + b'content-length: 18\r\n\r\n{"router": "mail"}'


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Caller]:
    with running(tmp_path) as client:
        for name in ("sms", "mail"):
            assert client.put(f"/v1/routers/{name}", json=SMS).status_code == 201
        yield client


class Slow:
    """A router whose calls wait for `gate`; it notes which threads called."""

    def __init__(self, client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        self.router, self.gate, self.threads = client.app.routers.router("sms"), threading.Event(), set[str]()
        self.responsive = False
        inner: dict[str, Any] = {name: getattr(self.router, name) for name in ("decide_soon", "record", "record_soon")}
        monkeypatch.setattr(Router, "responsive", property(self._is_responsive))
        for name, call in inner.items():
            setattr(self.router, name, self._slowed(call))

    def _is_responsive(self, router: Router) -> bool:
        return self.responsive or router is not self.router

    def _slowed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def slowed(*values: Any, **named: Any) -> Any:
            if not self.responsive:
                self.threads.add(threading.current_thread().name)
                self.gate.wait(30)
            return call(*values, **named)

        return slowed


def start(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    return thread, found


def test_a_router_that_is_not_responsive_holds_up_nobody(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    first = decide(client)
    slow = Slow(client, monkeypatch)
    asked = [{"router": "mail"}, {"router": "sms"}, {"router": "nobody"}, {"router": "mail"}]
    told = [{"decision_id": first["decision_id"], "reward": 1}]
    waiting = [
        start(lambda: client.post("/v1/decisions", json={"router": "sms", "request_id": "q"})),
        start(lambda: client.post("/v1/decisions", json=asked)),
        start(lambda: client.post("/v1/outcomes", json=told)),
    ]
    time.sleep(0.3)
    slowest = 0.0
    for _ in range(50):
        started = time.perf_counter()
        assert client.post("/v1/decisions", json={"router": "mail"}).status_code == 200
        assert client.get("/healthz").status_code == 200
        slowest = max(slowest, time.perf_counter() - started)
    assert slowest < 1.0
    assert not any(found for _, found in waiting)
    slow.gate.set()
    for thread, _ in waiting:
        thread.join(20)
    one, batch, outcomes = (found[0] for _, found in waiting)
    assert one.json()["arm"] in ("a", "b")
    assert [each.get("arm") is not None for each in batch.json()] == [True, True, False, True]
    assert batch.json()[2]["error"]["code"] == "router"
    assert outcomes.json()[0]["result"] == "recorded"
    assert all(name.startswith("thrifty-slow") for name in slow.threads)
    slow.responsive = True
    assert decide(client, request_id="q")["decision_id"] == one.json()["decision_id"]


def test_requests_of_one_connection_are_answered_in_order(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(client, monkeypatch)
    with connect(client) as connection:
        connection.sendall(PLAIN + MAIL + MAIL)
        time.sleep(0.3)
        slow.gate.set()
        got = [json.loads(body)["decision_id"].partition(".")[0] for _, _, body in answers(connection, 3)]
    assert got == ["sms", "mail", "mail"]


@pytest.mark.parametrize("behind", [b"garbage\r\n\r\n", b"x: y\r\n" * 20_000, POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n"])
def test_a_wrong_request_behind_a_slow_one_does_not_take_its_answer(
    client: Caller, monkeypatch: pytest.MonkeyPatch, behind: bytes
) -> None:
    slow = Slow(client, monkeypatch)
    with connect(client) as connection:
        connection.sendall(PLAIN + MAIL + behind)
        time.sleep(0.3)
        slow.gate.set()
        got = [json.loads(body)["decision_id"].partition(".")[0] for _, _, body in answers(connection, 2)]
        assert got == ["sms", "mail"]
        assert connection.recv(1) == b""


def test_when_too_many_wait_the_next_gets_503(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_path, "SLOW_WAITING", 3)
    client.app.hot_path.slow = Workers("slow", threads=1, waiting=3)
    slow = Slow(client, monkeypatch)
    waiting = [start(lambda: client.post("/v1/decisions", json={"router": "sms"}))]
    until = time.monotonic() + 20.0
    while not slow.threads:
        assert time.monotonic() < until
        time.sleep(0.01)
    waiting += [start(lambda: client.post("/v1/decisions", json={"router": "sms"})) for _ in range(3)]
    while client.app.hot_path.slow.waiting < 3:
        assert time.monotonic() < until
        time.sleep(0.01)
    refused = client.post("/v1/decisions", json={"router": "sms"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
    assert refused.headers["retry-after"] == "1"
    assert "thrifty_slow_calls_waiting 3" in client.get("/metrics").text
    slow.gate.set()
    for thread, found in waiting:
        thread.join(20)
        assert found[0].status_code == 200


def test_a_decision_that_left_memory_is_looked_up_in_a_worker(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Router, "responsive", True)
    made = [decide(client)["decision_id"] for _ in range(3)]
    router: Any = client.app.routers.router("sms")
    record_soon, threads = router.record_soon, []

    def cold(decision_id: str, *values: Any, cold: bool, **named: Any) -> Any:
        if not cold and decision_id != made[0]:
            raise ColdDecisionError(decision_id)
        if cold:
            threads.append(threading.current_thread().name)
        return record_soon(decision_id, *values, cold=cold, **named)

    router.record_soon = cold
    told = [{"decision_id": each, "reward": 1} for each in (made[0], made[1], made[1], "sms.0.fff")]
    answer = client.post("/v1/outcomes", json=told).json()
    assert [each.get("result") for each in answer] == ["recorded", "recorded", "duplicate", None]
    assert answer[3]["error"]["code"] == "decision"
    assert client.post("/v1/outcomes", json={"decision_id": made[2], "reward": 1}).json()["result"] == "recorded"
    assert client.post("/v1/outcomes", json={"decision_id": "sms.0.ffe", "reward": 1}).status_code == 404
    assert all(name.startswith("thrifty-slow") for name in threads)
    assert len(threads) == 5


def internal_errors(caplog: pytest.LogCaptureFixture) -> dict[str, logging.LogRecord]:
    return {record.facts["request_id"]: record for record in caplog.records if record.message == "internal error"}  # type: ignore[attr-defined]


def is_internal(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It is a 500 with a request id, under which the log has a trace."""
    assert answer.status_code == 500, answer.text
    error = answer.json()["error"]
    assert error["code"] == "internal"
    record = internal_errors(caplog)[error["request_id"]]
    assert record.exc_info is not None
    assert "the wheel came off" in str(record.exc_info[1])
    assert "wheel" not in answer.text


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("the wheel came off")


@pytest.mark.parametrize("chunked", [False, True])
def test_an_error_on_a_hot_route_is_a_500_with_a_request_id_and_a_trace(
    client: Caller, caplog: pytest.LogCaptureFixture, chunked: bool
) -> None:
    router: Any = client.app.routers.router("sms")
    router.decide_soon = broken
    asked = b'{"router": "sms"}'
    is_internal(client.post("/v1/decisions", content=iter([asked]) if chunked else asked), caplog)
    batch = client.post("/v1/decisions", json=[{"router": "mail"}, {"router": "sms"}, {"router": "mail"}]).json()
    assert [("arm" in each) for each in batch] == [True, False, True]
    assert batch[1]["error"]["request_id"] in internal_errors(caplog)


def test_one_failing_answer_does_not_stop_the_others(
    client: Caller, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    router: Any = client.app.routers.router("sms")
    gate = threading.Event()
    monkeypatch.setattr(Done, "is_certain", lambda self: gate.is_set() and Router.is_durable(self.router, self.position))
    waiting = [
        start(lambda name=name: client.post("/v1/decisions", json={"router": name}))  # type: ignore[misc]
        for name in ("mail", "sms", "mail", "sms", "mail")
    ]
    time.sleep(0.3)
    router.finish = broken
    gate.set()
    for thread, _ in waiting:
        thread.join(20)
    assert sorted(found[0].status_code for _, found in waiting) == [200, 200, 200, 500, 500]
    for _, found in waiting:
        if found[0].status_code == 500:
            is_internal(found[0], caplog)


def test_an_error_in_a_worker_is_a_500_too(
    client: Caller, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    Slow(client, monkeypatch)
    client.app.routers.router("sms").decide_soon = broken  # type: ignore[method-assign]
    is_internal(client.post("/v1/decisions", json={"router": "sms"}), caplog)


@pytest.mark.parametrize(
    "path", ["/v1/routers/sms", "/v1/routers/sms/segments", "/v1/routers/sms/segments/", "/v1/routers/sms/arms/a:pause"]
)
def test_an_error_on_an_admin_route_is_a_500_with_a_request_id_and_a_trace(
    client: Caller, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    router: Any = client.app.routers.router("sms")
    router.configure = router.change = router.explain = router.segments = broken
    if path.endswith("sms"):
        answer = client.put(path, json=SMS)
    else:
        answer = client.post(path) if path.endswith("pause") else client.get(path)
    is_internal(answer, caplog)
    assert client.get("/healthz").status_code == 200


def test_an_error_in_the_protocol_itself_is_a_500(
    client: Caller, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.app.hot_path, "take", broken)
    with connect(client) as connection:
        decide_again = PLAIN.replace(b"host: localhost", f"host: 127.0.0.1:{client.base_url.port}".encode())  # a Host that is known
        connection.sendall(decide_again)
        status, _, body = answers(connection, 1)[0]
    assert status == 500
    assert json.loads(body)["error"]["request_id"] in internal_errors(caplog)


def test_the_tick_goes_on_after_an_error(client: Caller, caplog: pytest.LogCaptureFixture) -> None:
    router: Any = client.app.routers.router("sms")
    ticks: list[int] = []
    mail: Any = client.app.routers.router("mail")
    router.expire, mail.expire = broken, lambda: ticks.append(1)
    before = len(ticks)
    time.sleep(1.2)
    assert len(ticks) - before >= 2
    warned = [record for record in caplog.records if record.message == "router"]
    assert len(warned) == 1
    assert warned[0].exc_info is not None


def test_a_router_whose_decisions_take_long_decides_in_workers(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    router: Any = client.app.routers.router("sms")
    monkeypatch.setattr(Router, "responsive", True)
    decide_soon, threads = router.decide_soon, []

    def costly(*values: Any, **named: Any) -> Any:
        threads.append(threading.current_thread().name)
        time.sleep(2 * hot_path.COSTLY_S)
        return decide_soon(*values, **named)

    router.decide_soon = costly
    assert len(client.post("/v1/decisions", json=[{"router": "sms"}] * 5).json()) == 5
    on_the_loop = [not name.startswith("thrifty-slow") for name in threads]
    assert on_the_loop == [True] * hot_path.COSTLY_IN_A_ROW + [False] * (5 - hot_path.COSTLY_IN_A_ROW)
    client.app.hot_path.forget_costly()
    decide(client)
    assert not threads[-1].startswith("thrifty-slow")
