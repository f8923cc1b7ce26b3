import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.postgres import Postgres
from tests.store.test_sqlite import ARMS, disturb
from thrifty.router import Router
from thrifty.router.replicated_log import ReplicatedLog
from thrifty.store import StoreError, open_store
from thrifty.store.postgres import PostgresStore, shown
from thrifty.store.postgres_schema import MIGRATIONS


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.database()


@pytest.fixture
def replica(url: str) -> Iterator[Callable[..., Router]]:
    routers: list[Router] = []

    def start(**settings: Any) -> Router:
        routers.append(Router(ARMS, 0.1, store=url, **{"policy": "cs-ts", "propensity_draws": 0, **settings}))
        return routers[-1]

    yield start
    for router in routers:
        router._owned_store.close()


def facts(router: Router) -> Any:
    """What all replicas must agree on."""
    return (
        {name: router.statistics(name) for name in router.segments()},
        router.counts,
        router.groups,
        router.version,
        router.pending,
    )


def refolded(url: str) -> Any:
    store = open_store(url)
    try:
        return facts(Router.reopen("router", store))
    finally:
        store.close()


def agree(*routers: Router, seconds: float = 5.0) -> None:
    """Wait until all say the same; they must within a second, and get more here for the sake of a busy machine."""
    until = time.monotonic() + seconds
    while any(facts(router) != facts(routers[0]) for router in routers) and time.monotonic() < until:
        time.sleep(0.01)
    for router in routers[1:]:
        assert facts(router) == facts(routers[0])


def test_replicas_see_each_other_and_agree_with_the_log(url: str, replica: Callable[..., Router]) -> None:
    one, two = replica(), replica()
    ids = [router.decide("DE/x").id for router in (one, two) * 10]
    assert len(set(ids)) == 20
    for n, each in enumerate(ids):
        assert (one, two)[n // 3 % 2].record(each, reward=0.1 * (n % 11)) == "recorded"
    one.change("price", "a", price=0.25)
    two.change("add", "d", price=0.05)
    agree(one, two)
    assert one.arms.prices == two.arms.prices == [0.25, 0.2, 0.1, 0.05]
    assert facts(one) == refolded(url)
    assert one.counts == {"decisions": 20, "outcomes": 20, "expired": 0}


def test_a_disturbed_pair_agrees_bit_for_bit(url: str, replica: Callable[..., Router]) -> None:
    one, two = replica(), replica()
    failures: list[BaseException] = []

    def work(router: Router, seed: int) -> None:
        try:
            disturb(router, 60, seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=each) for each in ((one, 1), (two, 2), (one, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    agree(one, two)
    assert facts(one) == refolded(url)
    one.close()  # with a snapshot
    assert facts(two) == refolded(url)


def test_an_outcome_that_reaches_two_replicas_counts_once(url: str, replica: Callable[..., Router]) -> None:
    one, two = replica(), replica()
    for n in range(20):
        decision = (one, two)[n % 2].decide()
        threads = [
            threading.Thread(target=router.record, args=(decision.id,), kwargs={"reward": reward})
            for router, reward in ((one, 0.25), (two, 0.25), (one, 0.25), (two, 0.75 if n % 3 else 0.25))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    agree(one, two)
    assert one.counts == {"decisions": 20, "outcomes": 20, "expired": 0}
    assert sum(row[1] for row in one.statistics().values()) == 20
    assert facts(one) == refolded(url)


def test_a_request_is_decided_once_whichever_replicas_are_asked(url: str, replica: Callable[..., Router]) -> None:
    one, two = replica(policy="uniform"), replica(policy="uniform")
    answers: dict[str, list[tuple[str, str]]] = {}

    def ask(router: Router, seed: int) -> None:
        for n in random.Random(seed).sample(range(30), 30):
            decision = router.decide("s", request_id=f"r{n}")
            answers.setdefault(f"r{n}", []).append((decision.id, decision.arm))

    threads = [threading.Thread(target=ask, args=(router, seed)) for seed, router in enumerate((one, two) * 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {len(given) for given in answers.values()} == {6}
    assert all(len(set(given)) == 1 for given in answers.values())
    agree(one, two)
    assert one.counts["decisions"] == 30
    assert sum(row[0] for row in one.statistics("s").values()) == 30
    assert facts(one) == refolded(url)


def test_a_retry_finds_a_decision_that_left_memory_long_ago(replica: Callable[..., Router], remember: Callable[[int], int]) -> None:
    router = replica(memory_bytes=remember(5), policy="uniform")
    first = router.decide(request_id="q")
    for _ in range(20):
        router.decide()
    again = router.decide(request_id="q")
    assert (again.id, again.arm, again.repeated) == (first.id, first.arm, True)
    assert router.counts["decisions"] == 21
    assert router.record(first.id, reward=1) == "recorded"


def test_request_ids_are_free_again_after_a_router_was_deleted(url: str, replica: Callable[..., Router]) -> None:
    router = replica()
    first = router.decide(request_id="q")
    router.delete()
    again = replica()
    second = again.decide(request_id="q")
    assert second.id != first.id
    assert not second.repeated
    with pytest.raises(KeyError):
        again.record(first.id, reward=1)
    assert facts(again) == refolded(url)


def test_an_outcome_may_come_to_a_replica_that_has_not_seen_the_decision(replica: Callable[..., Router]) -> None:
    one, two = replica(), replica()
    two._owned_store.writer._listeners.clear()  # it is deaf for a moment
    decision = one.decide("DE")
    assert isinstance(two.log, ReplicatedLog)
    threading.Timer(0.2, two.log.listen).start()
    assert two.record(decision.id, status="success") == "recorded"
    until = time.monotonic() + 5
    while one.counts["outcomes"] == 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert one.statistics("DE")[decision.arm][:3] == (1, 1, 1.0)


def test_the_deadline_of_a_replica_that_died_is_spoken_by_another_and_only_once(url: str, replica: Callable[..., Router]) -> None:
    one, two, three = (replica(deadline_s=0.3) for _ in range(3))
    ids = [one.decide().id for _ in range(5)]
    agree(one, two, three)
    one._owned_store.close()
    until = time.monotonic() + 15
    while two.counts["expired"] < 5 and time.monotonic() < until:
        two.expire()
        three.expire()
        time.sleep(0.02)
    assert two.counts == {"decisions": 5, "outcomes": 0, "expired": 5}
    assert two.record(ids[0], reward=1) == "recorded"
    agree(two, three)
    assert facts(two) == refolded(url)


def test_changes_that_exclude_each_other_leave_an_arm_to_choose(url: str, replica: Callable[..., Router]) -> None:
    one, two = replica(), replica()
    one.change("retire", "c")
    agree(one, two)
    one._owned_store.writer._listeners.clear()  # it does not hear that b is retired, and retires a
    two.change("retire", "b")
    one.change("retire", "a")
    agree(two)
    assert two.arms.active() == ["a"]
    assert two.decide().arm == "a"
    assert facts(two) == refolded(url)


def test_a_router_that_two_replicas_make_at_once_is_made_once(url: str) -> None:
    stores = [open_store(url) for _ in range(4)]
    routers: list[Router] = []
    threads = [
        threading.Thread(target=lambda store=store: routers.append(Router(ARMS, 0.1, store=store, policy="cs-ts")))
        for store in stores
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({store.replica for store in stores}) == 4
    for router in routers:
        router.decide()
    agree(*routers)
    assert routers[0].counts["decisions"] == 4
    assert stores[0].routers() == ["router"]
    for store in stores:
        store.close()


def test_snapshots_leave_out_what_is_not_in_the_log_yet(
    url: str, replica: Callable[..., Router], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thrifty.router.snapshots.SNAPSHOT_EVERY", 10)
    one, two = replica(), replica()
    threads = [
        threading.Thread(target=disturb, args=(router, 40, seed)) for seed, router in enumerate((one, one, two, two), start=5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agree(one, two)
    for router in (one, two):
        if router.snapshots._thread is not None:
            router.snapshots._thread.join(20)  # the last snapshot is written in the background
    store = open_store(url)
    assert 1 <= len(list(store.journal("router").snapshots())) <= 2
    store.close()
    assert facts(one) == refolded(url)


def test_a_broken_snapshot_is_rebuilt_from_the_log(url: str, replica: Callable[..., Router]) -> None:
    router = replica()
    disturb(router, 40, 9)
    before = facts(router)
    router.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("UPDATE thrifty.snapshots SET body = '\\x00'").rowcount == 1
    assert refolded(url) == before


def test_values_are_data_and_never_statements(url: str) -> None:
    nasty = "x'); DROP TABLE log; --\\"
    router = Router({nasty: 0.1, 'b"; \\N --': 0.2}, 0.1, store=url, policy="cs-ts")
    decision = router.decide(nasty, request_id=nasty)
    router.record(decision.id, reward=1)
    before = facts(router)
    router._owned_store.close()
    assert refolded(url) == before


def test_a_database_that_is_not_there_says_so_without_its_password() -> None:
    with pytest.raises(StoreError, match=r"cannot open postgresql://127.0.0.1:1/x: .*refused") as caught:
        PostgresStore("postgresql://ann:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)
    assert shown("postgresql://?nonsense=1") == "postgresql://..."


def test_a_database_of_a_newer_version_is_left_alone(url: str) -> None:
    PostgresStore(url).close()
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO thrifty.schema_version VALUES (99)")
    with pytest.raises(StoreError, match="set up by a newer thrifty"):
        PostgresStore(url)


def test_every_migration_is_run_once(url: str) -> None:
    PostgresStore(url).close()
    PostgresStore(url).close()
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT version FROM thrifty.schema_version ORDER BY version").fetchall()
    assert found == [(number,) for number in range(1, len(MIGRATIONS) + 1)]


def test_replicas_that_start_together_on_an_empty_database_migrate_it_once(url: str) -> None:
    stores: list[PostgresStore] = []
    threads = [threading.Thread(target=lambda: stores.append(PostgresStore(url))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({store.replica for store in stores}) == 5
    for store in stores:
        store.close()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM thrifty.schema_version").fetchone() == (len(MIGRATIONS),)


def test_a_replica_that_only_listens_bounds_its_memory(
    url: str, replica: Callable[..., Router], remember: Callable[[int], int]
) -> None:
    memory_bytes = remember(20)
    busy, idle = replica(memory_bytes=memory_bytes), replica(memory_bytes=memory_bytes)
    for _ in range(100):
        busy.decide()
    until = time.monotonic() + 10
    while (idle.counts["decisions"] < 100 or len(idle.state.records) > 22) and time.monotonic() < until:
        idle.expire()
        time.sleep(0.01)
    assert len(idle.state.records) <= 22
    agree(busy, idle)
    assert facts(busy)[:4] == refolded(url)[:4]


def test_an_unknown_propensity_is_null_in_the_log(url: str, replica: Callable[..., Router]) -> None:
    router = replica(propensity_draws=0)
    for _ in range(20):
        router.record(router.decide().id, reward=1)
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT value FROM thrifty.log WHERE kind = 'd'").fetchall()
    assert {value for (value,) in found} == {None, 1.0}  # certain while nothing is known, then random


def test_two_answers_to_one_request_in_flight_both_become_the_first(replica: Callable[..., Router]) -> None:
    one, two = replica(policy="uniform"), replica(policy="uniform")
    two._owned_store.writer._listeners.clear()  # it does not hear of the first decision
    first = one.decide(request_id="q")
    assert isinstance(two.log, ReplicatedLog)
    two.log.listen()
    writer = two._owned_store.writer
    with writer._order:  # what is written now comes back only after both have asked
        answers = [two.decide_soon(request_id="q") for _ in range(2)]
    for answer, ticket in [(answer, answer.position) for answer in answers]:
        two.wait(ticket)
        assert (answer.id, answer.arm) == (first.id, first.arm)
    agree(one, two)
