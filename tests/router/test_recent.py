"""Recent decisions: the same list whatever is in memory, before and after a restart."""

from pathlib import Path
from typing import Any

import pytest

from tests.postgres import Postgres
from thrifty.router import Router, recent
from thrifty.store import StoreError, open_store

ARMS = {"a": 1.0, "b": 0.5}


def made_and_told(router: Router, decisions: int) -> list[str]:
    """The ids of decisions with a note each, newest first; half get an outcome at once, and old ones one that is late."""
    ids: list[str] = []
    for n in range(decisions):
        made = router.decide(f"s{n % 7}/o{n % 2}", request_id=f"r{n}", context={"n": n})
        ids.append(made.id)
        if n % 2:
            router.record(made.id, 1.0)
        if n % 9 == 0 and n > 300:
            router.record(ids[n - 300], 0.0)  # which comes back from the log
    return ids[::-1]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_list_does_not_depend_on_what_is_in_memory(kind: str, tmp_path: Path, postgres: Postgres) -> None:
    url = f"sqlite:///{tmp_path}/a.db" if kind == "sqlite" else postgres.database()
    given: dict[str, Any] = {"name": "r", "policy": "cheapest", "memory_bytes": 65_536}
    store = open_store(url)
    router = Router(ARMS, 0.1, store=store, **given)
    ids = made_and_told(router, 600)
    assert len(router.state.records) < 120
    asked: list[dict[str, Any]] = [{}, {"limit": 500}, {"segment": "s3", "limit": 500}, {"segment": "s3/o1"}, {"segment": "s9"}]
    before = [router.recent_decisions(**each) for each in asked]
    assert [[each["decision_id"] for each in some] for some in before[:2]] == [ids[:50], ids[:500]]
    wanted = [id for n, id in enumerate(reversed(ids)) if n % 7 == 3][::-1]
    assert [each["decision_id"] for each in before[2]] == wanted
    assert (len(before[3]), before[4]) == (len(wanted) // 2, [])
    assert [each["outcome"] is not None for each in before[0]] == [n % 2 == 0 for n in range(50)]
    assert before[1][-1]["request_id"] == "r100"
    for graceful in (True, False, True):
        if graceful:
            router.close()
        router.leave()
        store.close()
        store = open_store(url)
        router = Router.reopen("r", store)
        assert [router.recent_decisions(**each) for each in asked] == before
    router.leave()
    store.close()


def test_decisions_that_were_pruned_or_are_of_an_earlier_router_are_not_listed(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    router = Router(ARMS, 0.1, store=store, name="r", policy="cheapest", memory_bytes=65_536, deadline_s=1e-9)
    old = made_and_told(router, 150)
    router.expire()
    assert [each["decision_id"] for each in router.recent_decisions(500)] == old
    router.prune(2e9 * 2)
    assert router.recent_decisions(500) == []
    made = router.decide().id
    assert [each["decision_id"] for each in router.recent_decisions(500)] == [made]
    router.delete()
    router = Router(ARMS, 0.1, store=store, name="r", policy="cheapest")
    assert router.recent_decisions() == []
    store.close()


def test_those_in_memory_are_listed_while_the_store_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    router = Router(ARMS, 0.1, store=store, name="r", policy="cheapest", memory_bytes=65_536)
    ids = made_and_told(router, 300)

    def away(*_: Any, **__: Any) -> None:
        raise StoreError("away")

    monkeypatch.setattr(router.log.journal, "recent", away)
    listed = [each["decision_id"] for each in router.recent_decisions(500)]
    assert listed == ids[: len(listed)]
    assert 0 < len(listed) < 120
    store.close()


def test_a_segment_is_looked_for_among_so_many_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST_LOOKED_AT", 200)
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    router = Router(ARMS, 0.1, store=store, name="r", policy="cheapest", memory_bytes=65_536)
    first = router.decide("rare").id
    made_and_told(router, 199)
    assert [each["decision_id"] for each in router.recent_decisions(segment="rare")] == [first]
    router.decide("other")
    assert router.recent_decisions(segment="rare") == []
    store.close()
