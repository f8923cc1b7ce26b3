"""Kill the service at random moments under load, and count: everything acknowledged is there, nothing twice."""

import random
import threading
import time
from typing import Any

import httpx

from tests.service.conftest import Service
from thrifty.router import Router
from thrifty.store import open_store

SMS = {"arms": {"a": 0.3, "b": 0.2, "c": 0.1}, "alpha": 0.1, "policy": "cs-ts"}


class Load:
    """Four callers who retry with the same request_id until they get an answer, and remember what was acknowledged."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.decided: dict[str, tuple[str, str]] = {}  # request_id -> decision_id, arm
        self.recorded: dict[str, int] = {}  # decision_id -> reward
        self.stopping = False
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(4)]
        for thread in self.threads:
            thread.start()

    def _work(self, number: int) -> None:
        rng, count = random.Random(number), 0
        with httpx.Client(base_url=self.url, timeout=5) as client:
            while not self.stopping:
                count += 1
                request_id = f"{number}-{count}"
                asked = {"router": "sms", "segment": rng.choice(["DE", "FR/x"]), "request_id": request_id}
                answer = self._insist(client, "/v1/decisions", asked)
                if answer is None:
                    return
                self.decided[request_id] = answer["decision_id"], answer["arm"]
                reward = rng.randrange(2)
                told = {"decision_id": answer["decision_id"], "reward": reward}
                if self._insist(client, "/v1/outcomes", told) is None:
                    return
                self.recorded[answer["decision_id"]] = reward

    def _insist(self, client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
        while not self.stopping:
            try:
                response = client.post(path, json=body)
                if response.status_code == 200:
                    return response.json()
                assert response.status_code == 503, response.text
            except httpx.TransportError:
                time.sleep(0.02)
        return None

    def stop(self) -> None:
        self.stopping = True
        for thread in self.threads:
            thread.join(10)


def check(store_url: str, load: Load, live: dict[str, Any] | None = None) -> int:
    """Compare what was acknowledged with the log and with its fold; the number of decisions in the log."""
    store = open_store(store_url)
    try:
        rows = [row for _, row in store.journal("sms").read(0)]
        decisions = {f"sms.{row.replica:x}.{row.sequence:x}": row for row in rows if row.kind == "d"}
        outcomes = [f"sms.{row.replica:x}.{row.sequence:x}" for row in rows if row.kind == "o"]
        assert len(decisions) == sum(row.kind == "d" for row in rows), "a decision is there twice"
        assert len(outcomes) == len(set(outcomes)), "an outcome is there twice"
        asked = [row.request_id for row in decisions.values()]
        assert len(asked) == len(set(asked)), "a request was decided twice"
        rewards = {f"sms.{row.replica:x}.{row.sequence:x}": row.value for row in rows if row.kind == "o"}
        for request_id, (decision_id, arm) in load.decided.items():
            assert decisions[decision_id].request_id == request_id
            assert decisions[decision_id].arm == arm
        for decision_id, reward in load.recorded.items():
            assert rewards[decision_id] == reward
        folded = Router.reopen("sms", store)
        statistics = folded.statistics()
        for arm in "abc":
            mine = [each for each, row in decisions.items() if row.arm == arm]
            seen = [each for each in mine if each in rewards]
            assert statistics[arm][:3] == (len(mine), len(seen), sum(rewards[each] or 0.0 for each in seen))
        if live is not None:
            assert {arm["arm"]: (arm["decisions"], arm["outcomes"], arm["reward_sum"]) for arm in live["all"]["arms"]} == {
                arm: row[:3] for arm, row in statistics.items()
            }
        return len(decisions)
    finally:
        store.close()


def kill_again_and_again(service: Service, kills: int, *, seed: int = 1) -> int:
    """Start, load, kill, `kills` times; then stop in peace, and check. The number of decisions made."""
    rng = random.Random(seed)
    service.start()
    assert httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=60).status_code == 201
    load = Load(service.url)
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 0.6))
            service.kill()
            service.start()
        time.sleep(0.3)
    finally:
        load.stop()
    live = httpx.get(f"{service.url}/v1/routers/sms/segments").json()
    service.kill()
    return check(service.store, load, live)
