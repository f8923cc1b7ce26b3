"""The overview and the stream of events: live, made once, and no burden: slow readers are dropped, and a stop ends all."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.test_http import SMS, Caller, decide, running
from thrifty.service import events, rates
from thrifty.service.keys import digest


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Caller]:
    with running(tmp_path, max_streams=3) as client:
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        yield client


@contextmanager
def listening(client: Caller, query: str = "", **headers: str) -> Iterator[Iterator[tuple[str, Any]]]:
    """The events of a stream, as they come: the kind and the data."""
    with client.stream("GET", f"/v1/events{query}", headers=headers, timeout=20) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")

        def parsed() -> Iterator[tuple[str, Any]]:
            kind = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    yield kind, json.loads(line[6:])

        yield parsed()


def learn(client: Caller, count: int, reward: int = 1) -> None:
    for _ in range(count):
        made = decide(client)
        client.post("/v1/outcomes", json={"decision_id": made["decision_id"], "reward": reward})


def test_the_overview_has_all_routers_at_a_glance(client: Caller) -> None:
    learn(client, 10)
    time.sleep(1.1)  # the first overview may be older than the last outcome
    found = client.get("/v1/overview").json()
    assert (found["store"], found["quarantined"]) == ("ready", {})
    (sms,) = found["routers"]
    assert (sms["name"], sms["decisions"], sms["outcomes"], sms["pending"], sms["alarms"]) == ("sms", 10, 10, 0, [])
    assert sms["quality"] == 1.0 > sms["quality_low"] > 0.6
    assert sms["saving_low"] <= sms["saving"] <= sms["saving_high"]
    assert sms["saving_basis"] == "model"
    assert sms["floor"] == pytest.approx(0.95)


def test_rewards_next_to_one_hide_no_router(client: Caller) -> None:
    # Interpreted bounds ended in a logarithm of zero, and the overview of all routers in 500.
    for reward in (0.99995, 1.0 - 2.0**-53, 1e-320):
        client.post("/v1/outcomes", json={"decision_id": decide(client)["decision_id"], "reward": reward})
        time.sleep(1.1)
        assert client.get("/v1/overview").status_code == 200
        assert client.get("/v1/routers/sms/segments?details=1").status_code == 200


def test_a_router_that_cannot_be_summed_up_hides_no_other(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    client.put("/v1/routers/mail", json=SMS)

    def fail(**_: Any) -> None:
        raise ZeroDivisionError("no figures today")

    monkeypatch.setattr(client.app.routers.router("mail"), "summary", fail)
    time.sleep(1.1)
    mail, sms = client.get("/v1/overview").json()["routers"]
    assert (mail["name"], sms["name"], sms["alarms"]) == ("mail", "sms", [])
    assert [(each["rule"], each["severity"]) for each in mail["alarms"]] == [("fault", "page")]
    assert "no figures today" in mail["alarms"][0]["text"]


def test_the_overview_is_made_once_a_second_for_all(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    make = client.app.overview._make

    def counted() -> dict[str, Any]:
        made.append(time.monotonic())
        return make()

    monkeypatch.setattr(client.app.overview, "_make", counted)
    with listening(client) as one, listening(client) as other:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            client.get("/v1/overview")
        learn(client, 1)
        assert next(one)[0] == next(other)[0] == "overview"
    assert len(made) <= 5
    assert min(b - a for a, b in pairwise(made)) >= 0.89


def test_a_decision_is_in_an_event_within_two_seconds(client: Caller) -> None:
    with listening(client, "?router=sms") as stream:
        assert {next(stream)[0], next(stream)[0]} == {"overview", "router"}
        made, started = decide(client), time.monotonic()
        while True:
            kind, data = next(stream)
            if kind == "router" and data["decisions"]:
                break
        assert time.monotonic() - started < 2.0
        assert data["decisions"][0]["decision_id"] == made["decision_id"]
        assert data["router"]["decisions_per_minute"] in (0, 1)
        assert data["explanation"]["segment"] == ""


def test_an_alert_reaches_everybody(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(client) as one, listening(client) as other:
        for stream in (one, other):
            assert next(stream)[0] == "overview"
        lasting = [{"id": 7, "rule": "floor", "router": "sms", "until": None}]
        monkeypatch.setattr(client.app.alerts, "open", lambda: lasting)
        for stream in (one, other):
            assert next(data for kind, data in stream if kind == "alert") == lasting[0]
        time.sleep(1.0)
        assert client.get("/v1/overview").json()["routers"][0]["alarms"] == lasting
        monkeypatch.setattr(client.app.alerts, "open", list)
        for stream in (one, other):
            assert next(data for kind, data in stream if kind == "alert")["until"] > 1e9


def test_silence_is_broken_by_a_comment_and_nothing_is_sent_twice(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.2)
    with client.stream("GET", "/v1/events", timeout=20) as response:
        lines, started = [], time.monotonic()
        for line in response.iter_lines():
            lines.append(line)
            if time.monotonic() - started > 2.5:
                break
    assert lines.count("event: overview") == 1
    assert lines.count(": still here") >= 5


def test_there_are_at_most_max_streams(client: Caller) -> None:
    with listening(client), listening(client), listening(client):
        refused = client.get("/v1/events")
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "5"
        assert refused.json()["error"]["code"] == "streams"
    deadline = time.monotonic() + 5
    while len(client.app.events):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert client.head("/v1/events").status_code == 200
    assert client.get("/v1/events?router=nobody").status_code == 404
    assert client.get("/v1/events?router=a&router=b").status_code == 422
    assert client.get("/v1/events?x=1").status_code == 422


def test_a_reader_that_never_reads_is_dropped_and_holds_up_nobody(client: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "SEND_S", 0.3)
    numbers = count()
    large = lambda: [{"id": next(numbers), "router": "", "text": "x" * 400_000} for _ in range(20)]  # noqa: E731
    monkeypatch.setattr(client.app.alerts, "open", large)
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        wait_for(lambda: len(client.app.events) == 1)
        deadline = time.monotonic() + 15
        while len(client.app.events) and time.monotonic() < deadline:
            decide(client)
            time.sleep(0.02)
        assert len(client.app.events) == 0
        wait_for(lambda: len(client.app.connections) <= 1)


def wait_for(done: Any) -> None:
    deadline = time.monotonic() + 10
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stop_ends_open_streams_at_once(tmp_path: Path) -> None:
    ended: list[float] = []
    with running(tmp_path, drain_s=8.0) as client:
        client.put("/v1/routers/sms", json=SMS)
        begun = threading.Barrier(4)

        def listen() -> None:
            with httpx.stream("GET", f"{client.base_url}/v1/events", timeout=30) as response:
                begun.wait()
                for _ in response.iter_raw():
                    pass
            ended.append(time.monotonic())

        threads = [threading.Thread(target=listen) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait()
        stopped = time.monotonic()
    for thread in threads:
        thread.join(10)
    assert len(ended) == 3  # whole answers: httpx raises where one is cut off
    assert max(ended) - stopped < 2.0


def test_a_stream_ends_when_its_key_is_revoked(tmp_path: Path) -> None:
    admin = {"authorization": "Bearer a"}
    with running(tmp_path, {"v": "view", "a": "admin", "d": "decide"}) as client:
        client.put("/v1/routers/sms", json=SMS, headers=admin)
        assert client.get("/v1/events").status_code == 401
        assert client.get("/v1/events", headers={"authorization": "Bearer d"}).status_code == 403
        with listening(client, authorization="Bearer v") as stream:
            assert next(stream)[0] == "overview"
            assert client.delete("/v1/keys/v", headers=admin).status_code == 204
            revoked_at = time.monotonic()
            assert [event for event in stream if event[0] != "overview"] == []  # the first ones may be on their way
            assert time.monotonic() - revoked_at < 1.0


def test_a_stream_ends_when_its_key_expires(tmp_path: Path) -> None:
    with running(tmp_path, {"a": "admin"}) as client:
        client.put("/v1/routers/sms", json=SMS, headers={"authorization": "Bearer a"})
        expires_at = time.time() + 1.5
        client.app.store.add_key(digest("v"), "v", "view", expires_at=expires_at)
        client.app.access.refresh()
        with listening(client, authorization="Bearer v") as stream:
            assert {kind for kind, _ in stream} == {"overview"}
        assert 0.0 <= time.time() - expires_at < 1.0


def test_rates_are_of_the_last_minute_and_begin_anew_with_the_sums() -> None:
    class Fake:
        life, totals_now = 1, (0, 0, 0.0, 0.0, 0.0)

        def totals(self) -> Any:
            return self.life, self.totals_now

    router: Any = Fake()
    kept = rates.RouterRates()
    for second in range(1200):
        router.totals_now = (second, second // 2, second / 2, second / 4, second * 1.0)
        kept.sample(router, float(second))
    shown = kept.shown()
    assert (shown["decisions_per_minute"], shown["outcomes_per_minute"]) == (60, 30)
    assert shown["recent"]["quality"] == pytest.approx(0.5)
    assert 885 <= shown["recent"]["spend"] <= 916
    router.life, router.totals_now = 2, (1200, 600, 0.0, 0.0, 0.0)
    kept.sample(router, 1200.0)
    assert kept.shown()["decisions_per_minute"] == 0
    assert kept.shown()["recent"]["quality"] is None
