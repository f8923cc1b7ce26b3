"""Two replicas on one PostgreSQL against the twin: whatever both do, in whatever order it reaches the log, all three agree."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.postgres import Postgres
from tests.router import history_twin
from tests.router import twin_input as given
from tests.router import twin_rules as rules
from tests.router.pair import Clock, facts, facts_of_twin
from tests.router.test_twin import SHRINK, arm_of, possible
from tests.router.twin import Twin
from tests.router.twin_rules import Arms, Change
from thrifty.router import Router, Settings
from thrifty.router.snapshot import load
from thrifty.store import open_store, postgres_outbox
from thrifty.store.log import DECISION, Row

ARMS: dict[str, float | None] = {"a": 1.0, "b": 2.0}
STEPS = int(os.environ.get("THRIFTY_TWIN_STEPS", "2000")) // 10
STEPS_A_RUN = 25
GRACE_S = 10.0
"""After so long somebody has given the default outcome to the decisions of a replica that is gone."""

replicas = st.integers(0, 1)


class Replicas(RuleBasedStateMachine):
    """Rules: what callers and operators of two replicas do."""

    stores: ClassVar[list[Any]] = []
    names = count()

    @initialize(arms=given.arm_prices, chosen=given.some_settings)
    def make(self, arms: dict[str, float | None], chosen: dict[str, Any]) -> None:
        self.name, self.clock, self.position, self.steps = f"a{next(self.names)}", Clock(), 0, 0
        self.twin, self.ever = Twin(self.name, self.clock.time), list[Row]()
        arms, chosen = possible(arms, {"alpha": 0.125, "policy": "cs-ucb", "deadline_s": 100.0, "propensity_draws": 4, **chosen})
        first = Router(arms, store=self.stores[0], name=self.name, clock=self.clock, **chosen)
        self.routers = [first, Router.reopen(self.name, self.stores[1], clock=self.clock)]
        self.decided: dict[str, str] = {}  # arm by id
        self.agree()

    def agree(self) -> None:
        """Both replicas catch up with the log, and count what the twin counts."""
        until = time.monotonic() + 20.0
        while True:
            self.follow()
            wanted = facts_of_twin(self.twin)
            found = [facts(router) for router in self.routers]
            if all(each == wanted for each in found):
                return
            if time.monotonic() > until:
                assert found[0] == wanted
                assert found[1] == wanted
            time.sleep(0.005)

    def follow(self) -> None:
        """Let the twin fold what is new in the log. `read` would refuse after a prune."""
        for position, row in self.stores[0].journal(self.name).scan():
            if position > self.position:
                self.position = position
                self.check_row(row)
                self.twin.take(row)
                self.ever.append(row)

    def check_row(self, row: Row) -> None:
        """No number is given out twice, and nobody is given up before the deadline."""
        if row.kind == DECISION:
            assert row.sequence > self.twin.sequences.get(row.replica, 0)
        if row.code == "default":
            made = self.twin.decisions[row.replica, row.sequence]
            assert made.due <= self.clock.time()

    def id_at(self, place: int) -> str:
        ids = list(self.decided) or [f"{self.name}.0.1"]
        return ids[-1 - place % len(ids)]

    @rule(some=st.lists(st.tuples(replicas, given.requests, given.places, st.none() | given.outcomes), min_size=1, max_size=8))
    def decide_and_record(self, some: list[tuple[int, dict[str, Any], int, dict[str, Any] | None]]) -> None:
        for who, request, place, outcome in some:
            asked = {name: value for name, value in request.items() if name != "eligible"}
            made = self.routers[who].decide(**asked)
            assert self.decided.setdefault(made.id, made.arm) == made.arm
            if outcome is not None:
                self.tell(self.routers[1 - who], place, outcome)

    @rule(who=replicas, place=given.places, outcome=given.outcomes)
    def record_twice(self, who: int, place: int, outcome: dict[str, Any]) -> None:
        """The second replica may not have heard of the first outcome yet."""
        self.tell(self.routers[who], place, outcome)
        self.tell(self.routers[1 - who], place, outcome)

    def tell(self, router: Router, place: int, outcome: dict[str, Any]) -> None:
        said = {"cost": 0.5, **outcome}
        if "arm" in said:
            said["arm"] = arm_of(list(self.twin.arms), said["arm"])
        if "occurred_at" in said:
            said["occurred_at"] += self.clock.time()
        id = self.id_at(place)
        try:
            assert router.record(id, **said) in ("recorded", "corrected", "duplicate", "stale")
        except KeyError:
            self.agree()
            with pytest.raises(KeyError):  # it was pruned, or there was never a decision
                self.twin.find(id)

    @rule(who=replicas, change=given.changes, other=given.changes)
    def change(self, who: int, change: Change, other: Change) -> None:
        """The second replica may not have heard of the first change yet: what it refuses, or makes in vain, is not known before."""
        self.agree()
        self.ask(lambda: self.make_change(who, change), lambda: rules.changed_all(self.twin.arms, [change]), self.twin.settings)
        with suppress(ValueError):
            self.make_change(1 - who, other)

    def make_change(self, who: int, change: Change) -> None:
        action, arm, price = change
        self.routers[who].change(action, arm, price=price, by="ann")

    @rule(who=replicas, arms=st.none() | given.arm_prices, chosen=given.some_settings)
    def configure(self, who: int, arms: dict[str, float | None] | None, chosen: dict[str, Any]) -> None:
        self.agree()
        known, wanted = self.twin.arms, Settings(**{**self.twin.settings, **chosen})
        named = {arm: price for arm, (price, status) in known.items() if status != "retired"} if arms is None else arms
        self.ask(
            lambda: self.routers[who].configure(named, wanted, by="bob"),
            lambda: rules.changed_all(known, rules.differences(known, named)),
            wanted.to_dict(),
        )

    def ask(self, call: Callable[[], None], arms: Callable[[], Arms], settings: dict[str, Any]) -> None:
        """A replica makes a change, or refuses if the twin does."""
        try:
            rules.check_works(arms(), settings)
            rules.check_fallback(self.twin.fallback, self.twin.settings, settings)
        except ValueError:
            with pytest.raises(ValueError):  # noqa: PT011
                call()
        else:
            call()

    @rule(seconds=given.times)
    def wait(self, seconds: float) -> None:
        self.agree()
        self.clock.passed += seconds
        for router in self.routers:
            router.expire()
        self.agree()

    @rule(who=replicas, age=given.times)
    def prune(self, who: int, age: float) -> None:
        """Whoever is due is given up before: the twin would never see a row that is written and deleted within one call."""
        self.agree()
        self.clock.passed += GRACE_S + 4.0  # the decisions of a replica that left are due too
        self.expire_all()
        self.routers[who].prune(self.clock.time() - age, by="ann")

    @rule(who=replicas)
    def restart(self, who: int) -> None:
        self.routers[who].leave()
        self.routers[who] = Router.reopen(self.name, self.stores[who], clock=self.clock)

    @rule(who=replicas)
    def write_history(self, who: int) -> None:
        """Each counts what it has applied and the other has not counted yet."""
        self.routers[who].history()

    @invariant()
    def all_agree(self) -> None:
        self.steps += 1
        if self.steps % 3 == 0:
            self.agree()
        if self.steps % 9 == 0:
            self.check_history(self.steps % 2)

    def check_history(self, who: int) -> None:
        """Every row is counted once, whoever wrote the history."""
        self.agree()
        self.routers[who].history()
        history_twin.check(self.stores[who], self.name, self.ever)

    def teardown(self) -> None:
        """Nobody waits for ever, and a replica that starts now agrees too."""
        if not hasattr(self, "routers"):
            return
        if sys.exc_info()[0] is not None:
            traceback.print_exc()  # the order of two replicas is not the same in every run: a second one may not fail
        try:
            if sys.exc_info()[0] is None:
                self.finish()
        finally:
            for router in self.routers:
                router.leave()

    def finish(self) -> None:
        self.agree()
        self.clock.passed += self.twin.settings["deadline_s"] + 1000.0 + GRACE_S
        self.expire_all()
        assert self.twin.due() == []
        self.restart(0)
        self.check_history(1)
        self.check_history(0)

    def expire_all(self) -> None:
        """Both replicas give up whoever is due, as far as that is for them to do, and agree."""
        until = time.monotonic() + 20.0
        while True:
            for router in self.routers:
                router.expire()
            self.agree()
            if not self.twin.due() or time.monotonic() > until:
                break
            time.sleep(0.01)  # default outcomes are on their way to the log and back
            self.clock.passed += 0.25  # a replica that could not write one tries again a moment later, by its clock


def test_two_replicas_and_the_twin_agree_whatever_is_done(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    # A machine under load makes single commits slow; decisions that are given out meanwhile are the subject of other tests.
    monkeypatch.setattr(postgres_outbox, "SHORTEST_PATIENCE_S", 30.0)
    url = postgres.database()
    Replicas.stores = [open_store(url), open_store(url)]
    try:
        run_state_machine_as_test(
            Replicas,
            settings=settings(
                max_examples=max(STEPS // STEPS_A_RUN, 1),
                stateful_step_count=STEPS_A_RUN,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink] if SHRINK else [Phase.generate],
                report_multiple_bugs=SHRINK,
            ),
        )
    finally:
        for store in Replicas.stores:
            store.close()


@pytest.fixture
def two(postgres: Postgres) -> Iterator[tuple[Router, Router, Clock]]:
    """Two replicas of a router whose decisions wait ten seconds, and their clock."""
    clock, url = Clock(), postgres.database()
    stores = [open_store(url), open_store(url)]
    first = Router(ARMS, 0.1, store=stores[0], name="r", clock=clock, policy="cheapest", deadline_s=10.0)
    second = Router.reopen("r", stores[1], clock=clock)
    yield first, second, clock
    for router, store in zip((first, second), stores, strict=True):
        router.leave()
        store.close()


def test_an_outcome_of_a_decision_that_was_pruned_is_refused_by_the_other_replica_too(two: tuple[Router, Router, Clock]) -> None:
    first, second, clock = two
    decision = first.decide()
    assert second.record(decision.id, reward=1) == "recorded"
    clock.passed += 1000.0
    assert first.prune(clock.time() - 100.0) >= 2
    for router in (first, second):
        with pytest.raises(KeyError, match="no decision"):
            router.record(decision.id, reward=0)


def test_a_deadline_that_changed_before_a_decision_was_stored_holds_for_it(two: tuple[Router, Router, Clock]) -> None:
    first, second, clock = two
    with second.lock:  # it does not hear of the change before it decides
        first.configure(ARMS, replace(first.state.settings, deadline_s=1000.0))
        decision = second.decide_soon()
    second.wait(decision.position)
    for seconds, pending in ((500.0, 1), (501.0 + GRACE_S, 0)):
        clock.passed += seconds
        second.expire()
        second.log.flush()
        assert (second.version, second.pending) == (first.version, pending)


def test_a_decision_that_is_taken_back_leaves_no_segment_behind(two: tuple[Router, Router, Clock]) -> None:
    first, second, _ = two
    with second.lock:  # it does not hear of the first decision before it decides
        original = first.decide("DE", request_id="q")
        again = second.decide_soon("FR/orange", request_id="q")
        later = second.decide_soon("IT")
    second.wait(again.position)
    second.wait(later.position)
    assert (again.id, again.segment) == (original.id, "DE")
    assert second.segments() == ["", "DE", "IT"]
    assert second.statistics("FR/orange") == second.statistics()
    second.snapshots.take_now(second)
    journal = second.log.journal
    assert journal is not None
    position, body = next(iter(journal.snapshots()))
    copy = load(second.state.begun_anew(), body, position)
    assert copy.segments.names() == second.segments()
    assert copy.segments.statistics(copy.segments.nearest("IT").number)[0][:2] == (1, 1)
    assert second.decide("FR").segment == "FR"
    assert second.segments() == ["", "DE", "FR", "IT"]
    second.record(second.decide("FR/orange").id, reward=1)
    assert [sent for sent, *_ in second.statistics("FR").values()] == [2, 0]


def test_replicas_fall_back_together_by_one_row(postgres: Postgres) -> None:
    """One replica takes the outcomes of both; the one whose decision settled it writes the fallback, and it counts once."""
    clock, url = Clock(), postgres.database()
    stores = [open_store(url), open_store(url)]
    settings: dict[str, Any] = {"policy": "cheapest", "mode": "canary", "canary_share": 0.5, "baseline": "b"}
    first = Router(ARMS, 0.1, store=stores[0], name="r", clock=clock, **settings)
    second = Router.reopen("r", stores[1], clock=clock)
    codes: list[str] = []
    while "fallback" not in codes and len(codes) < 400:
        router, other = (first, second) if len(codes) % 2 else (second, first)
        decision = router.decide(key=f"customer-{len(codes) // 3}")  # some keys come to both
        other.record(decision.id, reward=float(decision.arm == "b"))
        codes.append(decision.code)
        clock.passed += 0.25
    assert "fallback" in codes
    until = time.monotonic() + 20.0
    while not (first.rollout().fallback and second.rollout().fallback) and time.monotonic() < until:
        time.sleep(0.01)
    assert first.rollout() == second.rollout()
    assert first.rollout().left_out > 20
    assert first.state.guardrail.dump() == second.state.guardrail.dump()
    assert (first.decide().code, second.decide().code) == ("fallback", "fallback")
    second.move_rollout("canary", by="ann")
    while first.rollout().fallback is not None and time.monotonic() < until:
        time.sleep(0.01)
    assert "fallback" not in {first.decide().code for _ in range(5)}
    shown = [(change["action"], change["by"]) for change in first.changes(10)]
    assert shown[-3:] == [("rollout", "ann"), ("fallback", "guardrail"), ("create", "")]
    for router, store in zip((first, second), stores, strict=True):
        router.leave()
        store.close()
