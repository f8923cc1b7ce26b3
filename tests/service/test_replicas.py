"""Services on PostgreSQL: replicas see each other; the database goes away and comes back."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres import Postgres
from tests.service.test_http import SMS, Caller, running
from thrifty.router.export import decisions
from thrifty.service.keys import digest
from thrifty.store import StoreError


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    yield postgres.database()
    postgres.restart()


def soon(happens: Callable[[], bool], seconds: float = 10.0) -> None:
    """It happens; within a second on an idle machine."""
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def ask(client: Caller, request_id: str | None = None) -> Any:
    response = client.post("/v1/decisions", json={"router": "sms", "request_id": request_id})
    assert response.status_code == 200, response.text
    return response.json()


def tell(client: Caller, decision: Any, reward: float = 1.0) -> Any:
    return client.post("/v1/outcomes", json={"decision_id": decision["decision_id"], "reward": reward})


def tell_all(client: Caller, made: list[Any]) -> Any:
    return client.post("/v1/outcomes", json=[{"decision_id": each["decision_id"], "reward": 1.0} for each in made])


def counted(client: Caller) -> Any:
    arms = client.get("/v1/routers/sms/segments").json()["all"]["arms"]
    return {arm["arm"]: (arm["decisions"], arm["outcomes"], arm["reward_sum"]) for arm in arms}


def test_replicas_share_routers_decisions_outcomes_changes_and_keys(tmp_path: Path, url: str) -> None:
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as two:
        assert one.put("/v1/routers/sms", json=SMS).status_code == 201
        soon(lambda: two.get("/v1/routers").json()["routers"] == ["sms"])
        first, second = ask(one, "q"), ask(two, "q")
        assert (second["decision_id"], second["arm"], second["repeated"]) == (first["decision_id"], first["arm"], True)
        assert tell(two, first).json()["result"] == "recorded"
        soon(lambda: tell(one, first).json()["result"] == "duplicate")
        others = [ask(client) for client in (one, two) * 5]
        batch = [{"decision_id": each["decision_id"], "reward": 0.5} for each in others]
        assert [each["result"] for each in two.post("/v1/outcomes", json=batch).json()] == ["recorded"] * 10
        soon(lambda: counted(one) == counted(two))
        assert sum(row[1] for row in counted(one).values()) == 11
        assert two.post("/v1/routers/sms/arms/b:pause").status_code == 200
        soon(lambda: one.get("/v1/routers/sms").json()["arms"]["b"]["status"] == "paused")
        assert one.delete("/v1/routers/sms").status_code == 204
        soon(lambda: two.post("/v1/decisions", json={"router": "sms"}).status_code == 404)
        one.app.store.add_key(digest("secret"), "ann", "admin")
        soon(lambda: two.get("/v1/routers").status_code == 401)
        assert two.get("/v1/routers", headers={"authorization": "Bearer secret"}).status_code == 200


def test_while_the_database_is_away_decisions_go_on_for_the_stated_time_and_outcomes_are_refused(
    tmp_path: Path, url: str, postgres: Postgres
) -> None:
    with running(tmp_path, store=url, degraded_s=4.0) as client:
        client.put("/v1/routers/sms", json=SMS)
        before = ask(client)
        postgres.kill()
        soon(lambda: client.get("/readyz").text == "degraded\n")
        away = [ask(client, f"r{n}") for n in range(20)]
        assert all(each["degraded"] for each in away)
        assert len({each["decision_id"] for each in away}) == 20
        assert ask(client, "r0")["decision_id"] == away[0]["decision_id"]
        for refused in (tell(client, before), tell(client, away[0]), client.post("/v1/routers/sms/arms/a:pause")):
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
        assert "thrifty_store_away 1" in client.get("/metrics").text
        assert client.get("/v1/routers/sms/segments").status_code == 200
        soon(lambda: client.post("/v1/decisions", json={"router": "sms"}).status_code == 503)
        late = client.post("/v1/decisions", json={"router": "sms"})
        assert late.headers["retry-after"] == "1"
        assert "away for more than 4 s" in late.json()["error"]["message"]
        assert client.get("/readyz").status_code == 503
        postgres.restart()
        soon(lambda: client.get("/readyz").text == "ready\n", seconds=30.0)
        after = ask(client)
        assert not after["degraded"]
        again = ask(client, "r0")
        assert (again["decision_id"], again["degraded"]) == (away[0]["decision_id"], False)
        assert [tell(client, each).json()["result"] for each in (before, *away, after)] == ["recorded"] * 22
        lines = {line.decision_id: line for line in decisions(client.app.store.journal("sms"), "sms")}
        made = [line for line in lines.values() if not line.degraded]
        assert {each["decision_id"] for each in away} <= {line.decision_id for line in lines.values() if line.degraded}
        assert {before["decision_id"], after["decision_id"]} == {line.decision_id for line in made}
        assert sum(row[0] for row in counted(client).values()) == len(lines)
        assert sum(row[1] for row in counted(client).values()) == 22


def test_a_database_that_hangs_is_away_too(tmp_path: Path, url: str, postgres: Postgres) -> None:
    with running(tmp_path, store=url) as client:
        client.put("/v1/routers/sms", json=SMS)
        before = ask(client)
        postgres.pause()
        try:
            hung = ask(client)
            assert hung["degraded"]
            assert tell(client, before).status_code == 503
        finally:
            postgres.resume()
        soon(lambda: tell(client, before).status_code == 200)
        assert tell(client, hung).json()["result"] in ("recorded", "duplicate")
        assert sum(row[1] for row in counted(client).values()) == 2


def test_a_request_decided_here_degraded_and_there_durably_keeps_both_decisions(tmp_path: Path, url: str) -> None:
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as two:
        one.put("/v1/routers/sms", json=SMS)
        soon(lambda: two.get("/v1/routers").json()["routers"] == ["sms"])
        writer = one.app.store.writer
        connect, writer._connect = writer._connect, lambda: (_ for _ in ()).throw(OSError("the wire is cut"))
        writer._connection.close()
        soon(lambda: one.get("/readyz").text == "degraded\n")
        here, there = ask(one, "q"), ask(two, "q")
        assert (here["degraded"], there["degraded"]) == (True, False)
        writer._connect = connect
        soon(lambda: one.get("/readyz").text == "ready\n")
        soon(lambda: ask(one, "q")["decision_id"] == there["decision_id"])
        assert [tell(client, each).json()["result"] for client, each in ((two, here), (one, there))] == ["recorded"] * 2
        soon(lambda: counted(one) == counted(two))
        assert sum(row[0] for row in counted(one).values()) == 2


def test_an_outcome_waits_for_a_decision_that_is_not_stored_yet_and_holds_up_nobody(tmp_path: Path, url: str) -> None:
    with running(tmp_path, store=url) as client:
        client.put("/v1/routers/sms", json=SMS)
        stored, client.app.store.writer._usual_s = ask(client), 0.0
        calls: list[Callable[[list[Any]], Any]] = [
            lambda made: tell(client, made[0]),
            lambda made: tell_all(client, [stored, *made]),
        ]
        for told in calls:
            with psycopg.connect(url) as other, ThreadPoolExecutor(1) as pool:
                other.execute("SELECT position FROM thrifty.head FOR UPDATE")  # every commit waits for this transaction
                made = [ask(client), ask(client)]
                assert made[0]["degraded"]
                answer = pool.submit(told, made)
                time.sleep(0.2)
                assert not answer.done()
                assert client.get("/healthz").status_code == 200
                other.commit()
                assert answer.result().status_code == 200, answer.result().text
        results = tell_all(client, [stored, *made]).json()
        assert [each["result"] for each in results] == ["duplicate"] * 3
        soon(lambda: sum(row[1] for row in counted(client).values()) == 4)


def test_an_outcome_does_not_wait_for_ever(tmp_path: Path, url: str) -> None:
    with running(tmp_path, store=url) as client:
        client.put("/v1/routers/sms", json=SMS)
        ask(client)
        client.app.store.writer._usual_s = 0.0  # so that decisions do not wait long for a commit
        with psycopg.connect(url) as other:
            other.execute("SELECT position FROM thrifty.head FOR UPDATE")
            made, began = ask(client), time.monotonic()
            refused = tell(client, made)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert 0.9 < time.monotonic() - began < 5.0
            with pytest.raises(StoreError, match=r"not stored yet|is away"):  # it is away after two seconds
                client.app.routers.router("sms").record(made["decision_id"], 1.0)
        soon(lambda: tell(client, made).status_code == 200)


def test_outcomes_of_a_batch_are_all_stored_or_all_refused(tmp_path: Path, url: str, postgres: Postgres) -> None:
    with running(tmp_path, store=url) as client:
        client.put("/v1/routers/sms", json=SMS)
        made = client.post("/v1/decisions", json=[{"router": "sms"}] * 200).json()
        told = [{"decision_id": each["decision_id"], "reward": 1.0} for each in made]
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(client.post("/v1/outcomes", json=told)))
        caller.start()
        postgres.kill()
        caller.join()
        postgres.restart()
        soon(lambda: client.get("/readyz").text == "ready\n", seconds=30.0)
        seen = sum(row[1] for row in counted(client).values())
        assert answers[0].status_code in (200, 503)
        assert seen == 200 if answers[0].status_code == 200 else seen in (0, 200)
        assert {each["result"] for each in client.post("/v1/outcomes", json=told).json()} <= {"recorded", "duplicate"}
        assert sum(row[1] for row in counted(client).values()) == 200


def test_an_outcome_waits_for_a_decision_that_another_replica_has_not_stored_yet(tmp_path: Path, url: str) -> None:
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as two:
        one.put("/v1/routers/sms", json=SMS)
        soon(lambda: two.get("/v1/routers").json()["routers"] == ["sms"])
        stored, one.app.store.writer._usual_s = ask(one), 0.0
        with psycopg.connect(url) as other:
            other.execute("SELECT position FROM thrifty.head FOR UPDATE")  # every commit waits for this transaction
            last = ask(one)
            assert last["degraded"]
            name, replica, sequence = last["decision_id"].split(".")
            refused = tell(two, last)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "not stored yet" in refused.text
            assert tell(two, {"decision_id": f"{name}.{replica}.{int(sequence, 16) + 500_000:x}"}).status_code == 404
            assert tell(two, {"decision_id": f"{name}.7777.1"}).status_code == 404
        soon(lambda: tell(two, last).status_code == 200)
        assert tell(two, stored).json()["result"] == "recorded"
