import os
import random
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clock import WallClock
from thrifty.router import Router
from thrifty.store import Row, StoreError
from thrifty.store.group_commit import GroupCommit
from thrifty.store.sqlite import SqliteStore

ARMS: dict[str, float | None] = {"a": 0.3, "b": 0.2, "c": 0.1}


def open_router(path: Path, **settings: Any) -> Router:
    return Router(ARMS, 0.1, store=f"sqlite:///{path}", **{"policy": "cs-ts", "propensity_draws": 0, **settings})


def disturb(router: Router, rounds: int, seed: int) -> list[tuple[str, str]]:
    """Decisions, late outcomes, corrections, changes of every kind."""
    rng = random.Random(seed)
    chosen, ids = [], []
    for n in range(rounds):
        eligible = rng.choice([None, None, ["a", "b"], {"a": 0.01, "c": None}])
        decision = router.decide(rng.choice(["DE/x", "DE/y", "FR", ""]), eligible=eligible, request_id=f"{seed}-{n}")
        chosen.append((decision.id, decision.arm))
        ids.append(decision.id)
        for _ in range(rng.choice([0, 1, 2])):
            status = rng.choice(["success", "success", "failure", "void"])
            router.record(rng.choice(ids), status=status, cost=rng.choice([None, 0.05]))
        if n == rounds // 3:
            router.change("add", f"new{seed}", price=0.05)
        if n == rounds // 2:
            router.change("price", "a", price=0.25)
    return chosen


def everything(router: Router) -> Any:
    facts = {name: router.statistics(name) for name in router.segments()}
    return facts, router.pending, router.counts, router.groups, router.version, router.arms.newcomers


def close_without_snapshot(router: Router) -> None:
    router._owned_store.close()


@pytest.mark.parametrize("policy", ["cs-ts", "cs-etc:tau=20"])
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_restored_router_continues_bit_for_bit(tmp_path: Path, policy: str, snapshot: bool) -> None:
    straight = open_router(tmp_path / "one.db", policy=policy)
    disturb(straight, 120, 1)
    with_break = open_router(tmp_path / "two.db", policy=policy)
    disturb(with_break, 120, 1)
    (with_break.close if snapshot else lambda: close_without_snapshot(with_break))()
    arms: Any = {**ARMS, "a": 0.25, "new1": 0.05}
    again = Router(arms, 0.1, store=f"sqlite:///{tmp_path / 'two.db'}", policy=policy, propensity_draws=0)
    assert everything(again) == everything(straight)
    assert disturb(again, 120, 2) == disturb(straight, 120, 2)
    assert everything(again) == everything(straight)
    straight.close()
    again.close()


def test_a_retry_after_a_restart_gets_the_same_decision(tmp_path: Path) -> None:
    router = open_router(tmp_path / "r.db")
    first = router.decide("x", request_id="q")
    close_without_snapshot(router)
    again = open_router(tmp_path / "r.db")
    second = again.decide("x", request_id="q")
    assert (second.id, second.arm, second.repeated) == (first.id, first.arm, True)
    again.close()


def test_an_outcome_for_a_decision_that_left_memory_is_found_in_the_log(tmp_path: Path, remember: Callable[[int], int]) -> None:
    memory_bytes = remember(10)
    router = open_router(tmp_path / "r.db", memory_bytes=memory_bytes)
    ids = [router.decide().id for _ in range(50)]
    assert router.pending == 50  # whether in memory or not
    assert len(router.state.records) <= 11
    assert router.record(ids[0], status="success") == "recorded"
    assert router.record(ids[0], status="success") == "duplicate"
    assert router.record(ids[0], status="failure") == "corrected"
    before = everything(router)
    close_without_snapshot(router)
    again = open_router(tmp_path / "r.db", memory_bytes=memory_bytes)
    assert everything(again) == before
    again.close()


@pytest.mark.parametrize("end", ["live", "snapshot", "log"])
@pytest.mark.parametrize("remembered", [5, 1000])
def test_a_reset_holds_for_decisions_that_left_memory_and_after_a_restart(
    tmp_path: Path, end: str, remembered: int, remember: Callable[[int], int]
) -> None:
    memory_bytes = remember(remembered)
    router = open_router(tmp_path / "r.db", memory_bytes=memory_bytes)
    ids = [router.decide().id for _ in range(20)]
    for each in ids[:10]:
        router.record(each, status="failure")
    router.change("reset")
    late = {router.decide().id: "success" for _ in range(3)}
    if end != "live":
        (router.close if end == "snapshot" else lambda: close_without_snapshot(router))()
        router = open_router(tmp_path / "r.db", memory_bytes=memory_bytes)
    before = everything(router)[0]
    assert [router.record(each, status="success") for each in ids[:10]] == ["corrected"] * 10
    assert everything(router)[0] == before
    assert [router.record(each, status=status) for each, status in late.items()] == ["recorded"] * 3
    assert sum(row[2] for row in router.statistics().values()) == 3
    after = everything(router)
    close_without_snapshot(router)
    again = open_router(tmp_path / "r.db", memory_bytes=memory_bytes)
    assert everything(again) == after
    again.close()


def test_a_router_made_again_knows_nothing_of_the_one_that_was_deleted(tmp_path: Path) -> None:
    router = open_router(tmp_path / "r.db")
    old = router.decide()
    router.delete()
    close_without_snapshot(router)
    for _ in range(2):
        again = Router({"x": 1.0, "y": 2.0}, 0.1, store=f"sqlite:///{tmp_path / 'r.db'}", policy="cs-ts")
        with pytest.raises(KeyError, match="no decision"):
            again.record(old.id, reward=1)
        assert again.decide().id != old.id
        assert set(again.statistics()) == {"x", "y"}
        again.close()


def test_a_router_of_little_memory_is_restored_bit_for_bit(tmp_path: Path, remember: Callable[[int], int]) -> None:
    few = remember(7)
    straight, with_break = (open_router(tmp_path / name, memory_bytes=few) for name in ("one.db", "two.db"))
    for router in (straight, with_break):
        disturb(router, 40, 5)
    close_without_snapshot(with_break)
    arms: Any = {**ARMS, "a": 0.25, "new5": 0.05}
    again = Router(arms, 0.1, store=f"sqlite:///{tmp_path / 'two.db'}", policy="cs-ts", propensity_draws=0, memory_bytes=few)
    assert everything(again) == everything(straight)
    assert disturb(again, 40, 6) == disturb(straight, 40, 6)
    straight.close()
    again.close()


def test_a_corrupted_snapshot_is_rebuilt_from_the_log(tmp_path: Path) -> None:
    router = open_router(tmp_path / "r.db")
    disturb(router, 60, 3)
    before = everything(router)
    router.close()
    with sqlite3.connect(tmp_path / "r.db") as connection:
        assert connection.execute("UPDATE snapshots SET body = zeroblob(100)").rowcount == 1
    connection.close()
    arms: Any = {**ARMS, "a": 0.25, "new3": 0.05}
    again = Router(arms, 0.1, store=f"sqlite:///{tmp_path / 'r.db'}", policy="cs-ts", propensity_draws=0)
    assert everything(again) == before
    again.close()


def test_a_second_process_is_refused_clearly(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    with pytest.raises(StoreError, match="in use by another process"):
        SqliteStore(tmp_path / "r.db")
    store.close()
    SqliteStore(tmp_path / "r.db").close()


def test_a_locked_database_is_an_error_and_nothing_is_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db", busy_s=0.1)
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", propensity_draws=0)
    decision = router.decide()
    intruder = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    for _ in range(3):
        with pytest.raises(StoreError, match="database is locked"):
            router.record(decision.id, reward=1)
        with pytest.raises(StoreError, match="database is locked"):
            router.decide()
    assert [row[:2] for row in router.statistics().values()].count((1, 0)) == 1
    intruder.execute("ROLLBACK")
    intruder.close()
    assert router.record(decision.id, reward=1) == "recorded"
    assert sum(row[0] for row in router.statistics().values()) == 1
    router.close()
    store.close()


def test_a_full_disk_is_an_error_and_nothing_is_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db")
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", propensity_draws=0)
    done = [router.decide().id for _ in range(20)]
    (pages,) = store._writing.execute("PRAGMA page_count").fetchone()
    store._writing.execute(f"PRAGMA max_page_count = {pages}")  # SQLite answers SQLITE_FULL, as for a disk without room
    failed = 0
    for n in range(2000):
        try:
            done.append(router.decide("s" * 150 + str(n % 3)).id)
        except StoreError as error:
            failed += "full" in str(error)
            if failed == 3:
                break
    assert failed == 3
    assert sum(row[0] for row in router.statistics().values()) == len(done)
    store._writing.execute("PRAGMA max_page_count = 1000000")
    done.append(router.decide().id)
    assert [router.record(each, status="success") for each in done] == ["recorded"] * len(done)
    router.close()
    store.close()


def test_a_file_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open"):
        SqliteStore(tmp_path / "nowhere" / "r.db")
    (tmp_path / "text.db").write_text("this is not a database, it is a text that goes on for a while\n" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        SqliteStore(tmp_path / "text.db")


def test_a_read_only_file_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore(tmp_path / "r.db").close()
    connect = sqlite3.connect
    monkeypatch.setattr(  # root may write any file, so the connection is opened read-only instead
        "thrifty.store.sqlite.sqlite3.connect", lambda path, **kw: connect(f"file:{path}?mode=ro", uri=True, **kw)
    )
    store = SqliteStore(tmp_path / "r.db")
    with pytest.raises(StoreError, match="readonly database"):
        Router(ARMS, 0.1, store=store, policy="cs-ts")
    store.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "r.db").close()
    connection = sqlite3.connect(tmp_path / "r.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="written by a newer thrifty"):
        SqliteStore(tmp_path / "r.db")


def test_a_clock_that_jumps_back_counts_nothing_wrong(tmp_path: Path) -> None:
    clock = WallClock(1e9)
    router = Router(ARMS, 0.1, store=f"sqlite:///{tmp_path / 'r.db'}", policy="cs-ts", clock=clock, deadline_s=100)
    ids = [router.decide().id for _ in range(5)]
    clock.now -= 1e6
    ids += [router.decide().id for _ in range(5)]
    router.record(ids[0], reward=1)
    close_without_snapshot(router)
    clock.now -= 1e6
    again = Router(ARMS, 0.1, store=f"sqlite:///{tmp_path / 'r.db'}", policy="cs-ts", clock=clock, deadline_s=100)
    assert again.pending == 9
    assert [again.record(each, reward=1) for each in ids[1:]] == ["recorded"] * 9
    again.close()


def test_rows_become_durable_in_order_and_many_share_a_commit() -> None:
    batches: list[list[Any]] = []
    slow = threading.Event()

    def commit(batch: list[tuple[int, Any]]) -> None:
        slow.wait(0.05)
        batches.append(batch)

    writer = GroupCommit(commit, durable=0)
    positions = [writer.append(n, 0) for n in range(100)]
    writer.wait(positions[-1])
    assert [item for batch in batches for _, item in batch] == list(range(100))
    assert len(batches) < 10
    writer.close()


def test_rows_behind_a_failed_commit_are_lost_with_it_and_late_callers_are_told() -> None:
    def commit(_batch: list[tuple[int, Any]]) -> None:
        raise StoreError("no room")

    writer = GroupCommit(commit, durable=0)
    position = writer.append("a", 0)
    with pytest.raises(StoreError, match="no room"):
        writer.wait(position)
    with pytest.raises(StoreError, match="no room"):
        writer.append("b", 0)
    second = writer.append("c", 1)  # from somebody who noticed
    assert second > position
    for _ in range(2):  # whoever asks again, and late, gets the same answer
        with pytest.raises(StoreError, match="no room"):
            writer.wait(position)
    writer.close()


def test_values_are_data_and_never_statements(tmp_path: Path) -> None:
    nasty = "x'); DROP TABLE log; --"
    router = Router({nasty: 0.1, 'b"; --': 0.2}, 0.1, store=f"sqlite:///{tmp_path / 'r.db'}", policy="cs-ts")
    decision = router.decide(nasty, request_id=nasty)
    router.record(decision.id, reward=1)
    before = everything(router)
    close_without_snapshot(router)
    again = Router({nasty: 0.1, 'b"; --': 0.2}, 0.1, store=f"sqlite:///{tmp_path / 'r.db'}", policy="cs-ts")
    assert everything(again) == before
    again.close()


def test_the_log_says_what_happened(tmp_path: Path) -> None:
    router = open_router(tmp_path / "r.db")
    decision = router.decide("x", eligible=["a", "b"], request_id="q")
    router.record(decision.id, reward=0.5, cost=0.15)
    store = router._owned_store
    rows = [row for _, row in store.journal("router").read(0)]
    assert [row.kind for row in rows] == ["c", "d", "o"]
    assert rows[1] == Row(
        "d",
        0,
        1,
        rows[1].at,
        "x",
        "q",
        decision.arm,
        decision.propensity,
        ARMS[decision.arm],
        "explore",
        '{"eligible": [["a", 0.3], ["b", 0.2]]}',
    )
    assert rows[2][6:10] == (decision.arm, 0.5, 0.15, "recorded")
    router.close()
    assert os.path.exists(tmp_path / "r.db")


def test_a_defect_in_a_commit_reaches_those_who_wait() -> None:
    def commit(_batch: list[tuple[int, Any]]) -> None:
        raise AttributeError("no such thing")

    writer = GroupCommit(commit, durable=0)
    for generation in range(2):
        with pytest.raises(StoreError, match="cannot commit: AttributeError"):
            writer.wait(writer.append("a", generation))
    writer.close()


def test_a_row_with_a_parameter_that_its_policy_has_no_more_is_read_without_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'r.db'}"
    router = Router({"a": 1.0, "b": 0.5}, 0.1, store=store, policy="cs-ids:exchange=2,power=3+restart")
    router.decide()
    router.close()
    with sqlite3.connect(tmp_path / "r.db") as connection:
        connection.execute("UPDATE log SET detail = replace(detail, 'exchange=2', 'leniency=0.7')")
        connection.execute("DELETE FROM snapshots")
        assert connection.execute("SELECT count(*) FROM log WHERE detail LIKE '%leniency%'").fetchone() == (1,)
    opened = SqliteStore(tmp_path / "r.db")
    again = Router.reopen("router", opened)
    assert again.settings.policy == "cs-ids:power=3+restart"
    assert again.decide().arm in ("a", "b")
    again.close()
    opened.close()
    with pytest.raises(ValueError, match="cs-ids has no parameter leniency"):
        Router({"a": 1.0}, 0.1, policy="cs-ids:leniency=0.7")
