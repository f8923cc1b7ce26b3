"""Legal calls that once crashed a router, bricked its store or made it count wrongly. Each is tried live and after a restart."""

import gc
import math
import os
import threading
import weakref
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.clock import Clock
from thrifty.forgetting import Forgetting
from thrifty.router import ColdDecisionError, LogRowError, Router, Settings
from thrifty.router.compiling import Kernel
from thrifty.router.engine import engine_for
from thrifty.router.packing import Layout
from thrifty.router.records import DecisionRecords
from thrifty.router.segment_sums import SegmentSums
from thrifty.store import open_store

ARMS: dict[str, float | None] = {"a": 0.3, "b": 0.2, "c": 0.1}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'r.db'}"


def facts(router: Router) -> Any:
    return {name: router.statistics(name) for name in router.segments()}, router.counts, router.pending, router.version


def learn(router: Router, decisions: int, segment: str = "DE/x") -> None:
    for n in range(decisions):
        router.record(router.decide(segment).id, reward=float(n % 3 > 0), cost=0.1)


def check_restart(router: Router, url: str, **more: Any) -> Router:
    """A router that is opened again is as it was, and works."""
    before = facts(router)
    router.log.wait(router.log.position)
    router._owned_store.close()
    again = Router.reopen("router", open_store(url), **more)
    assert facts(again) == before
    learn(again, 5)
    return again


POLICIES = [
    "cs-ids",
    "cs-ids+discount=.9",
    "cs-ids+restart",
    "cs-ts+window=40",
    "cs-ucb",
    "cs-etc+discount=.99",
    "pe-cs",
    "cs-exp3",
]


@pytest.mark.parametrize(("first", "then"), [*pairwise([*POLICIES, POLICIES[0]]), *pairwise([*POLICIES[::-1], POLICIES[-1]])])
def test_a_policy_is_changed_on_a_live_router(store: str, first: str, then: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy=first)
    learn(router, 30)
    known = router.statistics("DE/x")
    router.configure(ARMS, Settings(alpha=0.1, policy=then))
    assert router.statistics("DE/x") == known
    learn(router, 30)
    check_restart(router, store)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("oracle", "is given the truth"),
        ("cs-ids+window=2000000000", "at most 1000000 outcomes"),
        ("cs-ids+window=2", "at least one outcome of every arm"),
        ("/nowhere/mine.py", "cannot read"),
        ("cs-idss", "did you mean"),
    ],
)
def test_a_policy_that_cannot_work_is_refused_and_leaves_no_row(store: str, policy: str, message: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts")
    learn(router, 3)
    before, position = facts(router), router.log.position
    with pytest.raises(ValueError, match=message):
        router.configure(ARMS, Settings(alpha=0.1, policy=policy))
    assert (facts(router), router.log.position) == (before, position)
    check_restart(router, store)


def test_a_policy_file_that_fails_when_it_runs_is_refused_and_leaves_no_row(store: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from thrifty.compiled import kernel\nfrom thrifty.policies.contract import Policy, Rule\n"
        "@kernel\ndef choose(terms, stats, memory, stream):\n    return stats[99].sent\n"
        'POLICY = Policy("mine", "wrong", Rule(choose))\n'
    )
    router = Router(ARMS, 0.1, store=store, policy="cs-ts")
    position = router.log.position
    with pytest.raises(ValueError, match=r"mine\.py:5: choose in round 1 raises IndexError"):
        router.configure(ARMS, Settings(alpha=0.1, policy=str(file)))
    assert router.log.position == position
    check_restart(router, store)


def test_a_router_whose_policy_file_is_gone_cannot_be_opened_and_says_which_row(store: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from thrifty.policies import baselines\nPOLICY = baselines.CHEAPEST\n")
    router = Router(ARMS, 0.1, store=store, policy=str(file))
    router.wait(router.log.position)
    router._owned_store.close()
    file.unlink()
    opened = open_store(store)
    with pytest.raises(LogRowError, match=r"row 1 of the log of 'router' cannot be applied.*mine\.py") as failure:
        Router.reopen("router", opened)
    assert (failure.value.position, failure.value.row.code) == (1, "create")
    opened.close()


@pytest.mark.parametrize("policy", ["cs-ts", "cs-ucb", "cs-etc", "cs-ids"])
def test_eligible_arms_with_prices_on_a_router_with_an_unknown_price(store: str, policy: str) -> None:
    router = Router({"a": 0.3, "b": None, "c": 0.1}, 0.1, store=store, policy=policy)
    for n in range(20):
        decision = router.decide("DE", eligible=["a", "c"] if n % 2 else {"b": 0.2, "c": 0.1})
        router.record(decision.id, reward=1, cost=0.2)
        router.record(router.decide("DE").id, reward=0, cost=0.1)
    router.change("price", "b", price=0.25)
    router.change("add", "w")  # of unknown price
    learn(router, 20)
    check_restart(router, store)


def test_an_arm_without_a_price_is_refused_where_the_policy_needs_prices(store: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="pe-cs")
    position = router.log.position
    with pytest.raises(ValueError, match="pe-cs needs to know the costs"):
        router.change("add", "w")
    assert router.log.position == position
    check_restart(router, store)


def test_many_segments_and_a_path_of_a_hundred_parts(store: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", max_segments=200)
    for n in range(70):
        learn(router, 1, f"s{n}")
    learn(router, 3, "/".join("x" * 100))
    learn(router, 3, "/".join("y" * 100))  # one too many: counted in the nearest one above that exists
    assert len(router.segments()) == 171
    for n in range(70):
        learn(router, 1, f"s{n}")
    assert sum(row[0] for row in router.statistics().values()) == 146
    check_restart(router, store)


def test_an_outcome_after_its_deadline_has_its_cost(store: str) -> None:
    clock = Clock()
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", deadline_s=10, clock=clock)
    decision = router.decide()
    clock.now += 11
    router.expire()
    assert router.record(decision.id, reward=1) == "recorded"
    assert router.statistics()[decision.arm] == (1, 1, 1.0, ARMS[decision.arm])
    check_restart(router, store, clock=clock)


@pytest.mark.parametrize(
    "form", ["{0}.0.01", "{0}.0.0_1", "{0}.+0.1", "{0}.0.\u0661", "{0}.00.1", "{0}.0.1 ", "{0}.0.0x1", "{0}.0.-1"]
)
def test_a_decision_has_one_id(store: str, form: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts")
    assert router.decide().id == "router.0.1"
    with pytest.raises(KeyError, match="no decision"):
        router.record(f"router.{form}", reward=1)
    router.record("router.0.1", reward=1)
    assert router.counts["outcomes"] == 1
    router.close()


def test_duplicates_of_an_outcome_for_a_decision_that_left_memory_count_once(store: str, remember: Callable[[int], int]) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", memory_bytes=remember(5))
    ids = [router.decide().id for _ in range(30)]
    with pytest.raises(ColdDecisionError):
        router.record_soon(ids[0], reward=1)
    router.load(ids[0])
    answers = [router.record_soon(ids[0], reward=1)[0] for _ in range(8)]  # none of them is durable yet
    assert answers == ["recorded"] + ["duplicate"] * 7
    assert router.counts["outcomes"] == 1
    check_restart(router, store)


def test_a_lower_limit_of_segments_keeps_those_there_are(store: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts")
    for n in range(20):
        learn(router, 2, f"s{n}")
    router.configure(ARMS, Settings(alpha=0.1, policy="cs-ts", max_segments=3))
    learn(router, 4, "s5")
    learn(router, 4, "new")
    before = facts(router)
    router.close()
    again = Router.reopen("router", open_store(store))
    assert facts(again) == before
    assert sum(row[0] for row in again.statistics("s5").values()) == 6


def test_a_decision_stays_where_it_was_counted(store: str, remember: Callable[[int], int]) -> None:
    few = remember(3)
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", max_segments=1, memory_bytes=few)
    first = router.decide("DE", context={"counted": 1})
    assert router.segments() == [""]
    router.configure(ARMS, Settings(alpha=0.1, policy="cs-ts", memory_bytes=few))
    for _ in range(10):
        router.decide("DE", context={"counted": 1})
    router.wait(router.log.position)
    router.decide("DE")
    assert router.record(first.id, reward=1) == "recorded"  # it left memory, and "DE" is there now
    assert sum(row[1] for row in router.statistics("DE").values()) == 0
    assert sum(row[1] for row in router.statistics().values()) == 1
    check_restart(router, store)


def test_old_decisions_expire_all_at_once_while_time_goes_on(store: str, remember: Callable[[int], int]) -> None:
    class Ticking(Clock):
        def monotonic(self) -> float:
            self.now += 1e-6
            return super().monotonic()

    clock = Ticking()
    router = Router(ARMS, 0.1, store=store, policy="cheapest", deadline_s=10, clock=clock, memory_bytes=remember(5))
    for _ in range(100):
        router.decide()
    clock.now += 20
    router.expire()
    assert (router.pending, router.counts["expired"]) == (0, 100)
    router.close()


@pytest.mark.parametrize("policy", ["cs-ids+window=30", "cs-ids+discount=0.9"])
def test_withdrawn_outcomes_leave_nothing_negative_to_explain(policy: str) -> None:
    router = Router(ARMS, 0.1, policy=policy)
    ids = [router.decide().id for _ in range(40)]
    for status in ("success", "void"):
        for each in ids:
            router.record(each, status=status)
    router.change("retire", "a")
    assert all(arm.remembered >= 0.0 for arm in router.explain().arms)
    router.decide()


def test_looking_at_a_router_leaves_no_trace(tmp_path: Path) -> None:
    """What is remembered under one way to forget is taken over by the next, whether somebody looked meanwhile or not."""
    found = []
    for looks in (False, True):
        url = f"sqlite:///{tmp_path / f'{looks}.db'}"
        router = Router(ARMS, 0.1, store=url, policy="uniform")
        learn(router, 40)
        for policy in ("uniform+discount=0.9", "uniform+window=60"):
            router.configure(ARMS, Settings(alpha=0.1, policy=policy))
            if looks:
                router.explain("DE/x")
        found.append([arm.remembered for arm in router.explain("DE/x").arms])
        check_restart(router, url)
    assert found[0] == found[1]


@pytest.mark.parametrize("action", ["graduate", "create", "delete", "settings", "changes", "prune"])
def test_only_changes_of_arms_are_changes(store: str, action: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts")
    position = router.log.position
    with pytest.raises(ValueError, match="action must be one of add, retire"):
        router.change(action, "nope")
    assert router.log.position == position
    check_restart(router, store)


def test_whole_numbers_are_costs_and_larger_ones_than_can_be_summed_are_refused(store: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts")
    router.record(router.decide().id, reward=1, cost=10**15)
    router.change("price", "a", price=10**15)
    for price in (10**15 + 1, 10**19, 10**400, 1e300, math.inf):
        with pytest.raises(ValueError, match=r"must be a number from 0 to 1e\+15"):
            router.change("price", "a", price=price)
        with pytest.raises(ValueError, match=r"must be a number from 0 to 1e\+15"):
            router.record(router.decide().id, reward=1, cost=price)
    check_restart(router, store)


def test_a_large_limit_of_memory_takes_no_memory(store: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", memory_bytes=2**40)
    learn(router, 3)
    before = facts(router)
    router.close()
    assert facts(Router.reopen("router", open_store(store))) == before


def test_a_short_deadline_does_not_wait_for_a_long_one() -> None:
    clock = Clock()
    router = Router(ARMS, 0.1, policy="cs-ts", deadline_s=1000, clock=clock)
    router.decide()
    router.configure(ARMS, Settings(alpha=0.1, policy="cs-ts", deadline_s=5))
    router.decide()
    clock.now += 6
    router.expire()
    assert (router.pending, router.counts["expired"]) == (1, 1)


def test_a_decision_waits_as_long_as_its_deadline_whatever_the_rate(store: str, remember: Callable[[int], int]) -> None:
    clock = Clock()
    router = Router(ARMS, 0.1, store=store, policy="cs-ts", deadline_s=100, clock=clock, memory_bytes=remember(20))
    ids = [router.decide().id for _ in range(300)]
    assert (router.pending, router.counts["expired"]) == (300, 0)
    assert len(router.state.records) <= 21
    router.record(ids[3], reward=1)
    clock.now += 99
    ids.append(router.decide().id)
    assert router.counts["expired"] == 0
    router = check_restart(router, store, clock=clock)
    clock.now += 1
    router.expire()
    assert (router.pending, router.counts["expired"]) == (1, 299)
    assert router.record(ids[7], reward=1) == "recorded"  # corrects the default one


def test_an_expiry_without_a_price_says_nothing_about_the_cost(store: str) -> None:
    clock = Clock()
    router = Router({"a": None}, 0.1, store=store, policy="cs-ucb", deadline_s=10, clock=clock)
    router.record(router.decide().id, reward=1, cost=0.4)
    lost = router.decide()
    clock.now += 11
    router.expire()
    assert router.statistics()["a"] == (2, 2, 1.0, 0.4)
    assert router.explain().arms[0].cost == pytest.approx(0.4)
    assert router.record(lost.id, reward=1, cost=0.2) == "recorded"
    assert router.explain().arms[0].cost == pytest.approx(0.3)
    check_restart(router, store, clock=clock)


def test_corrections_of_forgotten_outcomes_leave_something_to_draw_from(store: str) -> None:
    router = Router(ARMS, 0.1, store=store, policy="cs-ts+discount=.5")
    made = [router.decide() for _ in range(12)]
    for decision in made:
        router.record(decision.id, reward=1)
    for decision in made:  # each takes back more than is remembered
        router.record(decision.id, reward=0)
        router.decide()
    check_restart(router, store)


def test_a_kernel_refuses_a_packed_array_of_another_layout() -> None:
    one, other = Layout((np.zeros(2),)), Layout((np.zeros(2), np.zeros(3, np.int64)))
    assert one.unpacker()(one.pack((np.arange(2.0),)))[0].tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="another layout"):
        one.unpacker()(other.pack((np.zeros(2), np.zeros(3, np.int64))))


def test_compiled_kernels_refuse_other_types_instead_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_COMPILE", "wait")
    engine = engine_for("cheapest")
    engine.code(True).load()
    sums = SegmentSums(2, engine.forgetting)
    sums.add(-1)
    kernel: Kernel = engine.counting.count_outcome
    records = DecisionRecords(1)
    slot = records.add((0, 1), (0, 1, 1, 0, 0, 0.0, 0.0, 1.0, 0.5, 1), None)
    kernel.call(records.table, slot, 1, 1.0, 0.5, *sums.everything)
    with pytest.raises(TypeError, match="No matching definition"):
        kernel.call(records.table, slot, 1, 1.0, 0.5, sums.sums.view(np.int64), *sums.everything[1:])
    assert sums.sums["seen"][0].tolist() == [0.0, 1.0]


def test_the_first_decision_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRIFTY_CACHE", str(tmp_path / "cache"))
    router = Router(ARMS, 0.1, policy="cs-ids")
    assert router.decide().arm in ARMS
    assert not router.responsive
    assert not list(tmp_path.rglob("*.nbc")), os.listdir(tmp_path)


def test_gauges_are_not_read_in_the_middle_of_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    router = Router(ARMS, 0.1, policy="cs-ucb")
    begun, answers, forget_by = threading.Event(), list[dict[str, float]](), SegmentSums.forget_by

    def read() -> None:
        begun.wait(20)
        answers.append(router.gauges())

    def forget_slowly(self: SegmentSums, forgetting: Forgetting) -> None:
        if self is router.state.segments.sums:
            self.forgets = True  # half of the change
            begun.set()
            reader.join(0.2)
        forget_by(self, forgetting)

    reader = threading.Thread(target=read)
    reader.start()
    monkeypatch.setattr(SegmentSums, "forget_by", forget_slowly)
    router.configure(ARMS, Settings(alpha=0.1, policy="cs-ucb+window=100"))
    reader.join(20)
    assert [answer["segments"] for answer in answers] == [1]


def test_an_engine_that_no_router_uses_is_freed() -> None:
    router = Router(ARMS, 0.1, policy="cs-etc:tau=7")
    engine = weakref.ref(engine_for("cs-etc:tau=7"))
    assert engine() is not None
    router.configure(ARMS, Settings(alpha=0.1, policy="cs-etc:tau=8"))
    assert engine() is not None  # for a while, in case that it is asked for again
    for tau in range(100, 140):
        engine_for(f"cs-etc:tau={tau}")
    assert engine() is None


def test_a_router_that_was_deleted_is_freed_without_the_garbage_collector(store: str) -> None:
    opened = open_store(store)
    gc.disable()
    try:
        router = Router(ARMS, 0.1, store=opened, policy="cs-ids")
        learn(router, 3)
        router.decide("DE", eligible=["a"])
        router.explain("DE")
        router.snapshots.take_now(router)
        router.configure(ARMS, Settings(alpha=0.1, policy="cs-ts+window=50"))
        left = [weakref.ref(each) for each in (router, router.state, router.state.records, router.state.segments)]
        router.delete()
        router.leave()
        del router
        assert [each() for each in left] == [None] * 4
    finally:
        gc.enable()
        opened.close()


def test_old_decisions_that_come_back_do_not_push_out_the_latest(store: str) -> None:
    clock = Clock()
    router = Router(ARMS, 0.1, store=store, policy="cheapest", clock=clock, memory_bytes=65_536, deadline_s=100.0)
    for _ in range(500):  # most of them leave memory while they wait
        router.decide()
    clock.now += 99.0
    latest = [router.decide(request_id=f"r{n}").id for n in range(10)]
    clock.now += 2.0
    router.expire()
    assert router.pending == 10
    assert [router.decide(request_id=f"r{n}").id for n in range(10)] == latest
    router.decide()  # durable when it returns, and so is every default outcome before it: they may leave now
    router.decide()
    assert router.state.records.n_bytes <= 65_536 + 1000
    router.close()
