"""Kill the service, one of its replicas or its database at random moments under load, and count.

Everything acknowledged is there, nothing twice. Only a decision that was given out as degraded may be lost, with its replica.
"""

import random
import threading
import time
from typing import Any

import httpx

from tests.postgres import Postgres
from tests.router import history_twin
from tests.service.conftest import Service
from thrifty.router import Router
from thrifty.store import open_store

SMS = {"arms": {"a": 0.375, "b": 0.25, "c": 0.125}, "alpha": 0.1, "policy": "cs-ts"}


class Load:
    """Four callers who retry with the same request_id until they get an answer, and remember what was acknowledged."""

    def __init__(self, *urls: str) -> None:
        self.urls = urls
        self.decided: dict[str, tuple[str, str]] = {}  # request_id -> decision_id, arm
        self.recorded: dict[str, int] = {}  # decision_id -> reward
        self.degraded: set[str] = set()  # decision_ids that were given out before they were durable
        self.lost: set[str] = set()  # decision_ids that outcomes were refused for
        self.failures: list[BaseException] = []
        self.stopping = False
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(4)]
        for thread in self.threads:
            thread.start()

    def _work(self, number: int) -> None:
        rng, count = random.Random(number), 0
        try:
            with httpx.Client(timeout=5) as client:
                while not self.stopping:
                    count += 1
                    self._call(client, rng, f"{number}-{count}")
        except BaseException as error:
            self.failures.append(error)

    def _call(self, client: httpx.Client, rng: random.Random, request_id: str) -> None:
        asked = {"router": "sms", "segment": rng.choice(["DE", "FR/x"]), "request_id": request_id}
        answer = self._insist(client, rng, "/v1/decisions", asked)
        if answer is None:
            return
        decision_id = answer["decision_id"]
        if answer["degraded"]:
            self.degraded.add(decision_id)
        self.decided[request_id] = decision_id, answer["arm"]
        reward = rng.randrange(2)
        told = self._insist(client, rng, "/v1/outcomes", {"decision_id": decision_id, "reward": reward})
        if told is not None:
            self.recorded[decision_id] = reward

    def _insist(self, client: httpx.Client, rng: random.Random, path: str, body: dict[str, Any]) -> Any:
        while not self.stopping:
            try:
                response = client.post(rng.choice(self.urls) + path, json=body)
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            if response.status_code == 200:
                return response.json()
            if response.status_code == 404 and body.get("decision_id") in self.degraded:
                self.lost.add(body["decision_id"])
                return None
            if "there is no router" in response.text:  # a replica that has not heard of it yet
                time.sleep(0.05)
                continue
            assert response.status_code == 503, response.text
            time.sleep(0.05)
        return None

    def stop(self) -> None:
        self.stopping = True
        for thread in self.threads:
            thread.join(30)
        if self.failures:
            raise self.failures[0]


def check(store_url: str, load: Load, *lives: dict[str, Any], killed: bool = True) -> int:
    """Compare what was acknowledged with the log and with its fold; the number of decisions in the log."""
    store = open_store(store_url)
    try:
        rows = [row for _, row in store.journal("sms").read(0)]
        decisions = {f"sms.{row.replica:x}.{row.sequence:x}": row for row in rows if row.kind == "d"}
        outcomes = [f"sms.{row.replica:x}.{row.sequence:x}" for row in rows if row.kind == "o"]
        assert len(decisions) == sum(row.kind == "d" for row in rows), "a decision is there twice"
        if not store.shared:  # two replicas may both write down what they were both told; the fold counts it once
            assert len(outcomes) == len(set(outcomes)), "an outcome is there twice"
        asked = [row.request_id for row in decisions.values() if row.request_id is not None]
        assert len(asked) == len(set(asked)), "a request was decided twice"
        gone = load.degraded - set(decisions)
        assert load.lost <= gone
        assert killed or not gone, "a degraded decision was lost though its replica lived on"
        rewards = {f"sms.{row.replica:x}.{row.sequence:x}": row.value for row in rows if row.kind == "o"}
        for request_id, (decision_id, arm) in load.decided.items():
            if decision_id not in gone:
                assert decisions[decision_id].request_id == request_id or decision_id in load.degraded
                assert decisions[decision_id].arm == arm
        for decision_id, reward in load.recorded.items():
            assert rewards[decision_id] == reward
        folded = Router.reopen("sms", store)
        statistics = folded.statistics()
        for arm in "abc":
            mine = [each for each, row in decisions.items() if row.arm == arm]
            seen = [each for each in mine if each in rewards]
            assert statistics[arm][:3] == (len(mine), len(seen), sum(rewards[each] or 0.0 for each in seen))
        folded.history()
        history_twin.check(store, "sms", rows)
        for live in lives:
            assert {arm["arm"]: (arm["decisions"], arm["outcomes"], arm["reward_sum"]) for arm in live["all"]["arms"]} == {
                arm: row[:3] for arm, row in statistics.items()
            }
        return len(decisions)
    finally:
        store.close()


def look(service: Service) -> dict[str, Any]:
    """What a service knows about the router now; its history says the same."""
    live: dict[str, Any] = httpx.get(f"{service.url}/v1/routers/sms/segments").json()
    asked = {"step": "day", "by": "arm", "until": str(time.time() + 86_400.0)}
    rows = httpx.get(f"{service.url}/v1/routers/sms/history", params=asked).json()["rows"]
    for arm in live["all"]["arms"]:
        mine = [row for row in rows if row["arm"] == arm["arm"]]
        counted = tuple(sum(row[name] for row in mine) for name in ("decisions", "outcomes", "rewards"))
        assert counted == (arm["decisions"], arm["outcomes"], arm["reward_sum"])
    return live


def kill_again_and_again(service: Service, kills: int, *, seed: int = 1) -> int:
    """Start, load, kill, `kills` times, and in between stop in peace, which leaves a snapshot; check. The number of decisions."""
    rng = random.Random(seed)
    service.start()
    assert httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=300).status_code == 201
    load = Load(service.url)
    try:
        for number in range(kills):
            time.sleep(rng.uniform(0.05, 2.0))  # the history is written once a second
            service.kill()
            service.start()
            if number % 3 == 1:
                service.stop()
                service.start()
        time.sleep(0.3)
    finally:
        load.stop()
    live = look(service)
    service.kill()
    return check(service.store, load, live)


def kill_the_database_again_and_again(service: Service, postgres: Postgres, kills: int, *, seed: int = 2) -> int:
    """Start, load, kill and restart PostgreSQL, `kills` times; and check. The number of decisions made."""
    rng = random.Random(seed)
    service.start()
    assert httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=300).status_code == 201
    load = Load(service.url)
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 1.0))
            postgres.kill()
            time.sleep(rng.uniform(0.0, 1.0))
            postgres.restart()
            _wait_for(service, "ready\n")
        time.sleep(0.5)
    finally:
        load.stop()
    _wait_for(service, "ready\n")
    time.sleep(1.0)
    live = look(service)
    service.kill()
    assert load.degraded, "the database was never away"
    return check(service.store, load, live, killed=False)


def kill_replicas_again_and_again(services: list[Service], kills: int, *, seed: int = 3) -> int:
    """Start, load, kill one of several replicas and start it again, `kills` times; and check. The number of decisions made."""
    rng = random.Random(seed)
    for service in services:
        service.start()
    assert httpx.put(f"{services[0].url}/v1/routers/sms", json=SMS, timeout=300).status_code == 201
    load = Load(*(service.url for service in services))
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 1.0))
            killed = rng.choice(services)
            killed.kill()
            time.sleep(rng.uniform(0.0, 0.5))
            killed.start()
        time.sleep(0.5)
    finally:
        load.stop()
    time.sleep(2.0)  # each has seen what the others did by then
    lives = [look(service) for service in services]
    for service in services:
        service.kill()
    return check(services[0].store, load, *lives)


def _wait_for(service: Service, readiness: str) -> None:
    for _ in range(600):
        if httpx.get(f"{service.url}/readyz", timeout=10).text == readiness:
            return
        time.sleep(0.05)
    raise RuntimeError(f"the service never became {readiness!r}")
