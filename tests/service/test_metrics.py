"""/metrics: counters and histograms are right, hostile names are escaped, and the number of series is bounded."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.postgres import Postgres
from tests.service.test_http import SMS, Caller, running
from thrifty.service.request_counts import SECONDS, RequestCounts

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(client: Caller) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            assert (sample.name, frozenset(sample.labels.items())) not in found
            found[sample.name, frozenset(sample.labels.items())] = sample.value
    return found


def value(series: Series, name: str, **labels: str) -> float:
    return series[f"thrifty_{name}", frozenset(labels.items())]


def play(client: Caller, router: str, *rewards: float, **more: Any) -> list[str]:
    """Decide and record; the arms that were chosen."""
    arms = []
    for reward in rewards:
        decision = client.post("/v1/decisions", json={"router": router, **more}).json()
        answer = client.post("/v1/outcomes", json={"decision_id": decision["decision_id"], "reward": reward})
        assert answer.json()["result"] == "recorded"
        arms.append(decision["arm"])
    return arms


def test_rewards_and_seconds_are_counted_in_buckets(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json={**SMS, "arms": {"only": 0.5}})
        play(client, "sms", 0.0, 0.05, 0.1, 0.95, 1.0)
        last = client.post("/v1/decisions", json={"router": "sms"}).json()["decision_id"]
        for reward in (1.0, 0.5):  # a correction
            client.post("/v1/outcomes", json={"decision_id": last, "reward": reward})
        void = client.post("/v1/decisions", json={"router": "sms"}).json()["decision_id"]
        client.post("/v1/outcomes", json={"decision_id": void, "status": "void"})
        series = read(client)
        arm = {"router": "sms", "arm": "only"}
        counts = [value(series, "reward_bucket", **arm, le=le) for le in ("0.0", "0.1", "0.9", "1.0", "+Inf")]
        assert counts == [1, 3, 3, 6, 6]
        assert value(series, "reward_count", **arm) == 6
        assert value(series, "reward_sum", **arm) == pytest.approx(3.1)
        assert (value(series, "arm_decisions", **arm), value(series, "arm_outcomes", **arm)) == (6, 6)
        assert value(series, "arm_reward_sum", **arm) == pytest.approx(2.6)
        assert value(series, "arm_cost_sum", **arm) == pytest.approx(3.0)
        route = {"route": "/v1/decisions"}
        assert value(series, "request_duration_seconds_count", **route) == 7
        assert value(series, "request_duration_seconds_bucket", **route, le="+Inf") == 7
        assert value(series, "request_duration_seconds_sum", **route) == value(series, "request_seconds_total", **route) > 0
        ends = [value(series, "request_duration_seconds_bucket", **route, le=str(end)) for end in SECONDS]
        assert ends == sorted(ends)


def test_names_that_were_there_before_are_there_still(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json=SMS)
        play(client, "sms", 1.0)
        names = {name for name, _ in read(client)}
        text = client.get("/metrics").text
    before = (
        "decisions_total outcomes_total expired_total memory_bytes memory_limit_bytes segments max_segments pending compiled stale"
    )
    before += (
        " requests_total request_seconds_total connections connections_refused_total slow_calls_waiting store_away commits_total"
    )
    assert {f"thrifty_{name}" for name in before.split()} <= names
    assert "# TYPE thrifty_quarantined gauge" in text
    for line in text.splitlines():
        if line.startswith("# HELP"):
            assert len(line.split(maxsplit=3)) == 4, f"no help: {line}"


def test_many_who_ask_at_once_share_one_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as client:
        made, text = list[float](), client.app.metrics.text

        def slow_text() -> str:
            made.append(time.monotonic())
            time.sleep(0.2)
            return text()

        monkeypatch.setattr(client.app.metrics, "text", slow_text)
        with ThreadPoolExecutor(40) as pool:
            asked = [pool.submit(client.get, "/metrics") for _ in range(40)]
            assert client.get("/v1/routers").elapsed.total_seconds() < 2.0  # no thread is taken by those who wait
            assert {each.result().status_code for each in asked} == {200}
        assert 1 <= len(made) < 20
        client.get("/metrics")
        before = len(made)
        client.put("/v1/routers/new", json=SMS)
        assert 'thrifty_decisions_total{router="new"}' in client.get("/metrics").text  # never older than the request
        assert len(made) == before + 1


def test_refused_keys_are_counted_on_every_route(tmp_path: Path) -> None:
    with running(tmp_path, {"ann": "admin"}) as client:
        client.post("/v1/decisions", json={"router": "sms"})
        for path in ("/v1/routers", "/v1/routers/sms", "/v1/drift"):
            client.get(path, headers={"authorization": "Bearer wrong"})
        series = read(client)
        counted = {
            route: value(series, "requests_total", route=route, status="401")
            for route in ("/v1/decisions", "/v1/routers", "/v1/drift")
        }
        assert counted == {"/v1/decisions": 1, "/v1/routers": 2, "/v1/drift": 1}


def test_alerts_that_last_are_counted_by_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as client:
        monkeypatch.setattr(client.app.alerts, "open", lambda: [{"rule": "floor broken"}] * 2)
        series = read(client)
        assert value(series, "alerts", rule="floor broken", severity="page") == 2
        assert value(series, "alerts", rule="newcomer proven", severity="info") == 0


def test_hostile_names_of_arms_are_escaped(tmp_path: Path) -> None:
    names = ['a"b', "back\\slash", "</script>", "naïve ☃", "x} 1"]
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json={**SMS, "arms": dict.fromkeys(names, 0.1)})
        play(client, "sms", *[1.0] * 10)
        series = read(client)
        assert sum(value(series, "arm_decisions", router="sms", arm=name) for name in names) == 10


def test_routers_and_arms_beyond_the_limit_are_summed_as_other(tmp_path: Path) -> None:
    with running(tmp_path, metrics_routers=2, metrics_arms=3) as client:
        for name in ("b", "c"):
            client.put(f"/v1/routers/{name}", json=SMS)
        read(client)
        for name in ("a", "other"):  # which come later, although their names do not
            client.put(f"/v1/routers/{name}", json=SMS)
        for name in ("a", "b", "c", "other"):
            play(client, name, 1.0, 0.0, 1.0)
        series = read(client)
        assert [value(series, "decisions_total", router=name) for name in ("b", "c", "other")] == [3, 3, 6]
        arms = {tuple(sorted(dict(labels).values())) for name, labels in series if name == "thrifty_arm_decisions"}
        assert arms == {("a", "b"), ("b", "b"), ("a", "c"), ("c", "other"), ("other", "other")}
        assert sum(count for (name, _), count in series.items() if name == "thrifty_arm_decisions") == 12
        assert sum(count for (name, _), count in series.items() if name == "thrifty_reward_count") == 12
        assert value(series, "metrics_folded", what="routers") == 2
        assert value(series, "metrics_folded", what="arms") == 1
        client.delete("/v1/routers/b")
        client.put("/v1/routers/d", json=SMS)
        again = read(client)
        assert value(again, "decisions_total", router="other") == 6  # a name keeps what it was given
        assert value(again, "decisions_total", router="d") == 0


def test_replicas_show_the_sums_of_all_and_the_rewards_of_their_own(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.database()
    with running(tmp_path, store=url) as one, running(tmp_path, store=url) as two:
        one.put("/v1/routers/sms", json={**SMS, "arms": {"only": 0.5}})
        while two.get("/v1/routers/sms").status_code != 200:
            time.sleep(0.05)
        play(one, "sms", 1.0, 1.0)
        play(two, "sms", 0.0)
        until = time.monotonic() + 10
        while [value(read(each), "outcomes_total", router="sms") for each in (one, two)] != [3, 3]:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert [value(read(each), "reward_count", router="sms", arm="only") for each in (one, two)] == [2, 1]
        assert [value(read(each), "arm_outcomes", router="sms", arm="only") for each in (one, two)] == [3, 3]


def test_a_second_that_is_the_end_of_a_bucket_is_in_it() -> None:
    counts = RequestCounts()
    for seconds in (*SECONDS, 99.0):
        counts.add("x", 200, seconds)
    assert counts.times["x"][:-1] == [1] * (len(SECONDS) + 1)
