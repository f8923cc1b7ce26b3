"""Pruning keeps the statistics, on either store."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clock import Clock
from tests.postgres import Postgres
from tests.store.test_sqlite import ARMS, disturb
from thrifty.cli.main import main
from thrifty.router import Router
from thrifty.router.export import decisions
from thrifty.store import StoreError, open_store

DAY = 86_400.0


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'r.db'}"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.database()


@pytest.fixture
def clock() -> Clock:
    """A clock that a test can set: `clock.now += DAY`."""
    return Clock(time.time() - 10 * DAY)


def start(store: Any, clock: Clock) -> Router:
    return Router(ARMS, 0.1, store=store, policy="cs-ts", propensity_draws=0, clock=clock)


def facts(router: Router) -> Any:
    return {name: router.statistics(name) for name in router.segments()}, router.counts, router.groups, router.version


def test_statistics_stay_and_only_old_decisions_go(url: str, clock: Any) -> None:
    store = open_store(url)
    router = start(store, clock)
    for decision_id, _ in disturb(router, 40, 1):
        router.record(decision_id, status="success")
    old = router.decide()
    router.record(old.id, status="failure")
    clock.now += 5 * DAY
    young = router.decide("DE/x", request_id="young")
    before = facts(router)
    assert router.prune(clock.now - DAY, by="ann") > 40
    assert facts(router) == before
    assert [line.decision_id for line in decisions(store.journal("router"), "router")] == [young.id]
    with pytest.raises(KeyError, match="no decision"):
        router.record(old.id, status="success")
    assert router.record(young.id, status="success") == "recorded"
    changes = [(row.code, json.loads(str(row.detail))) for _, row in store.journal("router").scan() if row.kind == "c"]
    assert [code for code, _ in changes[:2]] == ["create", "add"]
    assert [code for code, _ in changes[-2:]] == ["prune", "pruned"]
    assert changes[-1][1]["by"] == "ann"
    assert changes[-1][1]["rows"] > 40
    after = facts(router)
    store.close()
    store = open_store(url)
    again = Router.reopen("router", store, clock=clock)
    assert facts(again) == after
    assert again.record(young.id, status="success") == "duplicate"
    assert again.decide("DE/x", request_id="young").id == young.id
    assert again.prune(clock.now - DAY) == 0
    store.close()


def test_a_decision_that_waits_is_kept_however_few_days_are(url: str, clock: Any) -> None:
    store = open_store(url)
    router = start(store, clock)
    waiting = router.decide()
    clock.now += 60.0  # less than the deadline
    assert router.prune(clock.now) == 0
    assert router.record(waiting.id, status="success") == "recorded"
    store.close()


def test_without_the_snapshots_nothing_starts_rather_than_counting_wrongly(url: str, clock: Any) -> None:
    store = open_store(url)
    router = start(store, clock)
    disturb(router, 30, 2)
    clock.now += 5 * DAY
    assert router.prune(clock.now - DAY) > 30
    run = store.execute if url.startswith("sqlite") else store.query
    run("DELETE FROM snapshots")
    with pytest.raises(StoreError, match="were pruned, and no snapshot that covers them is whole"):
        Router.reopen("router", store)
    with pytest.raises(StoreError, match="nothing was pruned"):
        store.journal("router").prune(before=clock.now, upto=10**9)
    store.close()


def test_a_replica_that_still_knew_a_pruned_decision_forgets_it(postgres: Postgres, clock: Any) -> None:
    url = postgres.database()
    stores = [open_store(url), open_store(url)]
    one, two = (start(store, clock) for store in stores)
    old = one.decide()
    one.record(old.id, status="failure")
    while two.counts["outcomes"] == 0:
        time.sleep(0.01)
    stores[1].writer._listeners.clear()  # it does not hear of the pruning, and takes an outcome
    clock.now += 5 * DAY
    assert one.prune(clock.now - DAY) == 2
    before = facts(one)[0]
    two.record_soon(old.id, status="success")
    one.decide()
    assert facts(one)[0] != before
    before = facts(one)
    for store in stores:
        store.close()
    store = open_store(url)
    assert facts(Router.reopen("router", store, clock=clock)) == before
    store.close()


def test_the_command_prunes_and_a_deleted_router_stays_deleted(url: str, clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
    router = start(url, clock)
    for _ in range(5):
        router.decide()
    clock.now += DAY
    router.delete()
    router._owned_store.close()
    assert main(["prune", url, "--keep-days", "2"]) == 0
    assert capsys.readouterr().out == "router: 10 rows deleted\n"  # five decisions and what the deadline said of them
    assert main(["prune", url, "--keep-days", "2", "--router", "mail"]) == 2
    assert "has no router 'mail'; it has router" in capsys.readouterr().err
    assert main(["prune", url, "--keep-days", "-2"]) == 2
    assert "keep-days must be" in capsys.readouterr().err
    store = open_store(url)
    assert store.routers() == []
    store.close()


def test_a_router_in_memory_has_nothing_to_prune() -> None:
    with pytest.raises(ValueError, match="without a store"):
        Router({"a": 1.0}, 0.1, policy="cs-ucb").prune(0.0)
