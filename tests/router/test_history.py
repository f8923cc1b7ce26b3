"""The history in the store: what it counts, and that it agrees with the log whatever happened to the process or the file."""

import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from tests.router import history_twin
from tests.router.pair import Clock
from thrifty.router import Router
from thrifty.router import records as router_records
from thrifty.router.changing import add_change
from thrifty.store import StoreError, open_store, postgres_outbox
from thrifty.store.log import Row
from thrifty.store.sqlite_history import SqliteHistory
from thrifty.store.sqlite_schema import MIGRATIONS

ARMS = {"a": 1.0, "b": 0.5}


@pytest.fixture(autouse=True)
def _uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_COMPILE", "never")
    monkeypatch.setattr(postgres_outbox, "SHORTEST_PATIENCE_S", 30.0)  # a machine under load makes single commits slow


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'h.db'}"
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.database()


@pytest.fixture
def store(url: str) -> Iterator[Any]:
    opened = open_store(url)
    yield opened
    opened.close()


def make(store: Any, clock: Clock | None = None, **settings: Any) -> Router:
    return Router(ARMS, 0.1, store=store, name="r", clock=clock or Clock(), policy="cheapest", **settings)


def play(router: Router, clock: Clock, decisions: int, *, seed: int = 1) -> None:
    """Decisions at random times and of random segments; some have outcomes, some of these are corrected, and some are void."""
    rng, ids = random.Random(seed), list[str]()
    for _ in range(decisions):
        clock.passed += rng.choice([0.25, 7.0, 90.0])
        ids.append(router.decide(rng.choice(["", "DE", "DE/x", "FR"])).id)
        for _ in range(rng.choice([0, 1, 1, 2])):
            how: dict[str, Any] = rng.choice([{"reward": 0.25}, {"reward": 1.0}, {"status": "void"}, {"reward": 0.5, "arm": "a"}])
            router.record(rng.choice(ids[-20:]), cost=rng.choice([0.5, 2.0]), **how)


def rows_of(store: Any) -> list[Row]:
    return [row for _, row in store.journal("r").scan()]


def check(store: Any, router: Router, rows: list[Row] | None = None) -> None:
    """The history, the log and the live counts agree."""
    router.history()
    history_twin.check(store, "r", rows_of(store) if rows is None else rows)
    (total,) = sums(store, step="day")
    assert total[0] == router.counts["decisions"]


def sums(store: Any, **asked: Any) -> set[tuple[Any, ...]]:
    """Sums of everything, over all steps."""
    found = store.history("r", **{"since": 0.0, "until": 4e9, "by": (), **asked}).rows
    names = ("decisions", "outcomes", "rewards", "costs")
    return {tuple(sum(row[name] for row in found) for name in names)}


def broken(_batch: list[tuple[int, Any]]) -> None:
    """A commit that fails."""
    raise StoreError("the disk is full")


def wait_until_filled(router: Router) -> None:
    until = time.monotonic() + 20.0
    while True:
        router.history_keeper.write(router)
        assert router.state.history is not None
        if router.state.history.complete:
            return
        assert time.monotonic() < until, "the history is never filled"
        time.sleep(0.01)


def forget_history(store: Any) -> None:
    """Make the store one that an older version has kept."""
    for table in ("history", "history_upto"):
        (store.query_long if store.shared else store.execute)(f"DELETE FROM {table}")


def test_history_and_live_statistics_are_the_same(store: Any) -> None:
    clock = Clock()
    router = make(store, clock)
    play(router, clock, 60)
    check(store, router)
    for segment in router.segments():
        found = store.history("r", step="day", since=0.0, until=4e9, segment=segment).rows
        for arm, (_, seen, reward, cost) in router.statistics(segment).items():
            mine = [row for row in found if row["arm"] == arm]
            total = tuple(sum(row[name] for row in mine) for name in ("outcomes", "rewards", "costs"))
            assert total == (seen, reward, cost)


def test_groups_are_kept_apart(store: Any) -> None:
    router = make(store, holdout=0.5, mode="live")
    for _ in range(40):
        router.record(router.decide().id, reward=1)
    found = {row["group"]: row for row in router.history(since=0.0, until=4e9, by=["group"]).rows}
    counted = {name: group[0] for name, group in router.groups.items() if group[0]}
    assert counted == {name: row["outcomes"] for name, row in found.items()}
    router.configure(ARMS, type(router.settings)(alpha=0.1, policy="cheapest", mode="shadow"))
    router.record(router.decide().id, reward=1, arm="a")
    shadow = router.history(since=0.0, until=4e9, by=["arm", "group"]).rows
    assert [(row["arm"], row["decisions"], row["outcomes"]) for row in shadow if row["group"] == "shadow"] == [
        ("a", 0, 1),
        ("b", 1, 0),
    ]


def test_a_fallback_is_baseline_traffic_and_a_pin_is_routed_traffic(store: Any) -> None:
    router = make(store, baseline="a")
    assert set(router_records.GROUPS) == {"holdout", "baseline", "fallback"}  # all other codes are routed
    router.wait(add_change(router, "fallback", {"at": 1.0, "text": "", "by": "guardrail"}, None))
    router.change("pin", "b")
    pinned = router.decide()
    router.change("unpin")
    fallen = router.decide()
    for made in (pinned, fallen):
        router.record(made.id, reward=1)
    rows = router.history(since=0.0, until=4e9, by=["arm", "group"]).rows
    shown = [(row["arm"], row["group"], row["decisions"], row["outcomes"]) for row in rows]
    assert (pinned.code, fallen.code) == ("pinned", "fallback")
    assert sorted(shown) == [("a", "baseline", 1, 1), ("b", "routed", 1, 1)]
    assert {name: group[0] for name, group in router.groups.items() if group[0]} == {"baseline": 1}


def test_a_reset_changes_no_history(store: Any) -> None:
    router = make(store)
    id = router.decide().id
    router.record(id, reward=1)
    router.change("reset")
    assert router.statistics()["b"][1:] == (0, 0.0, 0.0)
    assert sums(store, step="hour") <= {(0, 0, 0, 0), (1, 1, 1.0, 0.5)}
    router.record(id, reward=0.25)  # what was forgotten does not come back to the statistics, but it happened
    assert router.statistics()["b"][1:] == (0, 0.0, 0.0)
    check(store, router)
    assert sums(store, step="hour") == {(1, 1, 0.25, 0.5)}


def test_a_router_that_is_deleted_and_made_again_goes_on_with_its_history(store: Any) -> None:
    clock = Clock()
    router = make(store, clock)
    play(router, clock, 20)
    router.delete()
    router.leave()
    router = make(store, clock)
    play(router, clock, 20, seed=2)
    check(store, router)


def test_a_store_of_an_older_version_is_filled_from_its_log(store: Any) -> None:
    clock = Clock()
    router = make(store, clock, memory_bytes=65_536)
    play(router, clock, 60)
    router.snapshots.take_now(router)
    play(router, clock, 20, seed=2)
    router.leave()
    forget_history(store)
    router = Router.reopen("r", store, clock=clock)
    play(router, clock, 20, seed=3)
    wait_until_filled(router)
    check(store, router)
    play(router, clock, 20, seed=4)
    router.leave()
    check(store, Router.reopen("r", store, clock=clock))


def test_a_prune_waits_until_the_log_is_counted(store: Any) -> None:
    clock = Clock()
    router = make(store, clock, deadline_s=10.0)
    play(router, clock, 30)
    clock.passed += 100.0
    router.expire()
    router.log.flush()
    router.close()
    router.leave()
    rows = rows_of(store)
    forget_history(store)
    router = Router.reopen("r", store, clock=clock)
    assert router.prune(clock.time()) > 0
    check(store, router, rows)


def test_a_history_that_was_filled_halfway_is_filled_further(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.router.history_keeper.FILL_ROWS", 7)
    clock = Clock()
    router = make(store, clock)
    play(router, clock, 40)
    router.snapshots.take_now(router)
    router.leave()
    forget_history(store)
    router = Router.reopen("r", store, clock=clock)
    write = type(router.history_keeper)._commit
    calls = iter(range(3))

    def interrupted(self: Any, *arguments: Any) -> None:
        if next(calls, None) is None:
            raise StoreError("killed")
        write(self, *arguments)

    monkeypatch.setattr(type(router.history_keeper), "_commit", interrupted)
    router.history_keeper.write(router)
    router.history_keeper._filling.join()  # type: ignore[union-attr]
    monkeypatch.setattr(type(router.history_keeper), "_commit", write)
    (partly,) = sums(store)
    assert 0 < partly[0] < 40
    with pytest.raises(StoreError, match="being filled from the log"):
        router.history_keeper.check_complete(router, patient=False)
    router.leave()
    router = Router.reopen("r", store, clock=clock)
    wait_until_filled(router)
    check(store, router)


def test_a_prune_of_the_log_keeps_the_history(store: Any) -> None:
    clock = Clock()
    router = make(store, clock, deadline_s=10.0)
    play(router, clock, 40)
    clock.passed += 100.0
    router.expire()
    router.log.flush()
    router.history()  # waits until the default outcomes are durable
    rows = rows_of(store)
    assert router.prune(clock.time() - 50.0) > 0
    rows += [row for row in rows_of(store) if row.code in ("prune", "pruned")]
    check(store, router, rows)
    router.leave()
    router = Router.reopen("r", store, clock=clock)
    check(store, router, rows)
    play(router, clock, 10, seed=2)
    check(store, router, rows + [row for row in rows_of(store) if row.at > rows[-1].at])


@pytest.mark.parametrize("kind", ["d", "o"])
def test_a_row_that_is_voided_leaves_the_history(url: str, kind: str) -> None:
    clock, store = Clock(), open_store(url)
    router = make(store, clock)
    play(router, clock, 20)
    router.snapshots.take_now(router)
    places = [position for position, row in store.journal("r").scan() if row.kind == kind]
    router.leave()
    store.journal("r").void(places[5], reason="a test")
    store.close()
    store = open_store(url)
    router = Router.reopen("r", store, clock=clock)
    wait_until_filled(router)
    check(store, router)
    store.close()


def test_cells_that_are_pruned_do_not_come_back_by_a_late_outcome(store: Any) -> None:
    clock = Clock()
    router = make(store, clock)
    old = router.decide("DE").id
    clock.passed += 7200.0
    router.record(router.decide("DE").id, reward=1)
    router.history()
    store.prune_history({"minute": clock.time() - 3600.0, "hour": clock.time() - 86_400.0})
    router.record(old, reward=1)
    router.history()
    assert sums(store, step="minute") == {(1, 1, 1.0, 0.5)}
    assert sums(store, step="minute", by=("segment",)) == {(1, 1, 1.0, 0.5)}
    assert sums(store, step="hour") == sums(store, step="day") == {(2, 2, 2.0, 1.0)}
    store.prune_history({"minute": clock.time() + 100.0, "hour": clock.time() + 7200.0, "day": clock.time() + 90_000.0})
    assert [len(store.history("r", step=step, since=0.0, until=4e9).rows) for step in ("minute", "hour", "day")] == [0, 0, 0]


def test_a_router_in_memory_keeps_no_history() -> None:
    with pytest.raises(ValueError, match="without a store"):
        Router(ARMS, 0.1, policy="cheapest").history()


def test_rows_that_a_failed_commit_lost_are_not_in_the_history(tmp_path: Path) -> None:
    clock, store = Clock(), open_store(f"sqlite:///{tmp_path / 'h.db'}")
    router = make(store, clock)
    rng, lost = random.Random(5), 0
    commit = store.writer._commit

    for turn in range(60):
        store.writer._commit = broken if rng.random() < 0.25 else commit
        try:
            play(router, clock, 3, seed=turn)
            router.history_keeper.write(router, at_once=rng.random() < 0.5)
        except StoreError:
            lost += 1
    store.writer._commit = commit
    assert lost > 5
    router.expire()
    check(store, router)
    store.close()


def test_a_history_on_its_way_that_is_lost_is_counted_again_though_nobody_calls(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'h.db'}")
    router, commit = make(store), store.writer._commit
    router.decide()

    store.writer._commit = broken
    with suppress(StoreError):  # the commit may have failed by the end of the call
        router.history_keeper.write(router, at_once=False)
    until = time.monotonic() + 10.0
    while store.writer.failure is None and time.monotonic() < until:
        time.sleep(0.001)
    store.writer._commit = commit
    with pytest.raises(StoreError):
        router.history_keeper.write(router, at_once=False)
    router.expire()  # as the service does four times a second
    check(store, router)
    store.close()


def test_many_places_are_written_in_pieces_and_any_of_them_may_be_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends after some pieces; the next one counts what is missing, and may end after some pieces too."""
    monkeypatch.setattr("thrifty.store.sqlite_history.PIECE_PLACES", 2)
    clock, rng, ended = Clock(), random.Random(7), 0
    store = open_store(f"sqlite:///{tmp_path / 'h.db'}")
    router, append = make(store, clock), SqliteHistory._append
    for turn in range(40):
        pieces = iter(range(rng.randrange(6)))

        def stop(self: Any, *arguments: Any, left: Any = pieces) -> int:
            if next(left, None) is None:
                raise StoreError("killed")
            return append(self, *arguments)

        play(router, clock, rng.randrange(6), seed=turn)
        monkeypatch.setattr(SqliteHistory, "_append", stop)
        try:
            if rng.random() < 0.5:
                router.snapshots.take_now(router)
            else:
                router.history_keeper.write(router)
        except StoreError:
            ended += 1
            assert store.journal("r").history.reached().position < router.log.position
        monkeypatch.setattr(SqliteHistory, "_append", append)
        if turn % 2:
            router.expire()  # restores the state, as it does after a lost commit
        else:
            router = Router.reopen("r", store, clock=clock)
        if turn % 7 == 0:
            check(store, router)
    assert ended > 10
    check(store, router)
    store.close()


def test_many_places_are_written_seldom_unless_somebody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.router.history_keeper.PLACES_A_SECOND", 2)
    store = open_store(f"sqlite:///{tmp_path / 'h.db'}")
    router = make(store)
    for segment in "abcdefgh":
        router.decide(segment)
    router.history_keeper.write(router, at_once=False)
    assert sums(store) == {(0, 0, 0, 0)}
    router.history()
    assert sums(store) == {(8, 0, 0.0, 0.0)}
    store.close()


def test_a_backup_of_a_store_that_is_written_to_has_the_history_of_its_log(tmp_path: Path) -> None:
    clock, store = Clock(), open_store(f"sqlite:///{tmp_path / 'h.db'}")
    router = make(store, clock)
    play(router, clock, 40)
    router.history()
    play(router, clock, 10, seed=2)
    store.backup(tmp_path / "copy.db")
    play(router, clock, 10, seed=3)
    store.close()
    store = open_store(f"sqlite:///{tmp_path / 'copy.db'}")
    assert sums(store) == {(40, *next(iter(sums(store)))[1:])}
    check(store, Router.reopen("r", store, clock=clock))
    store.close()


def test_a_file_of_the_schema_before_is_filled(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "h.db"
    store = open_store(f"sqlite:///{path}")
    router = make(store, clock)
    play(router, clock, 30)
    router.close()
    store.close()
    before = next(number for number, script in enumerate(MIGRATIONS) if "CREATE TABLE history" in script)
    old = sqlite3.connect(tmp_path / "old.db")
    old.executescript(f"{''.join(MIGRATIONS[:before])} PRAGMA user_version = {before}; ATTACH '{path}' AS new;")
    for table in ("log", "snapshots", "snapshot_pieces"):
        old.execute(f"INSERT INTO main.{table} SELECT * FROM new.{table}")
    old.commit()
    old.close()
    store = open_store(f"sqlite:///{tmp_path / 'old.db'}")
    router = Router.reopen("r", store, clock=clock)
    wait_until_filled(router)
    check(store, router)
    store.close()


def test_killed_at_any_moment_the_history_is_that_of_the_log(tmp_path: Path) -> None:
    """Copies of the files, made between commits, are what kill -9 leaves behind."""
    clock, path, rng = Clock(), tmp_path / "0.db", random.Random(3)
    store = open_store(f"sqlite:///{path}")
    router = make(store, clock)
    for turn in range(1, 12):
        play(router, clock, rng.randrange(1, 12), seed=turn)
        for _ in range(rng.randrange(3)):
            if rng.random() < 0.5:
                router.history_keeper.write(router)
            else:
                router.snapshots.take_now(router)
        play(router, clock, rng.randrange(3), seed=100 + turn)
        target = tmp_path / f"{turn}.db"
        store.execute("SELECT 1")
        for end in ("", "-wal"):
            shutil.copyfile(f"{path}{end}", f"{target}{end}")
        store.close()
        path, store = target, open_store(f"sqlite:///{target}")
        router = Router.reopen("r", store, clock=clock)
        if turn % 3 == 0:
            check(store, router)
    check(store, router)
    store.close()
