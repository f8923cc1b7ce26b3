"""The daily budget: the spend is a fold of the log, and a tight budget saves what can be saved above the floor."""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.clock import Clock
from tests.postgres import Postgres
from thrifty.router import Router
from thrifty.router.choice import choose
from thrifty.router.snapshot import capture, encode, load
from thrifty.router.spending import KEPT_H, Spending
from thrifty.store import StoreError, open_store
from thrifty.store.log import DECISION, OUTCOME

MIDNIGHT = 1_700_006_400.0
PRICES: dict[str, float | None] = {"a": 8.0, "b": 6.0, "c": 4.0}
MEANS = {"a": 0.99, "b": 0.94, "c": 0.6, "d": 0.93, "e": 0.93}


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of decisions take too long with interpreted rules."""
    monkeypatch.setenv("THRIFTY_COMPILE", "wait")


def router(clock: Clock, **more: Any) -> Router:
    return Router(more.pop("arms", PRICES), 0.1, clock=clock, **{"policy": "cs-ucb", "propensity_draws": 0, **more})


def play(router: Router, clock: Clock, decisions: int, *, step_s: float, seed: int = 1) -> tuple[float, float, Counter[str]]:
    """Spend, mean reward and codes of so many decisions."""
    rng, spent, won, codes = random.Random(seed), 0.0, 0.0, Counter[str]()
    for _ in range(decisions):
        decision = router.decide()
        reward = float(rng.random() < MEANS[decision.arm])
        router.record(decision.id, reward)
        spent, won = spent + (PRICES.get(decision.arm) or 5.0), won + reward
        codes[decision.code] += 1
        clock.now += step_s
    return spent, won / decisions, codes


# -- the fold --------------------------------------------------------------------------------------------------------------


def spent_by_the_log(store: Any, name: str, day: float) -> float:
    """The slow and obvious twin: every decision of the day with its last cost."""
    costs: dict[tuple[int, int], float] = {}
    for _, row in store.journal(name).scan():
        key = row.replica, row.sequence
        shadow = row.detail is not None and "shadow" in json.loads(row.detail)
        if row.kind == DECISION and day <= row.at < day + 86_400 and not shadow:
            costs[key] = row.cost or 0.0
        elif row.kind == OUTCOME and key in costs:
            if row.code == "default":
                costs[key] = costs[key] if row.cost is None else row.cost
            else:
                costs[key] = 0.0 if row.value is None else row.cost
    return sum(costs.values())


def disturb(router: Router, clock: Clock, seed: int) -> None:
    """Outcomes of every kind, late and corrected, with costs of their own, void and never; settings that change meanwhile."""
    rng, open_ids = random.Random(seed), list[str]()
    for step in range(300):
        clock.now += rng.choice([1.0, 30.0, 400.0])
        if step == 120:
            router.configure({**PRICES, "d": None}, router.settings)
        if step in (150, 200):
            mode = {150: "shadow", 200: "live"}[step]
            router.configure(PRICES, type(router.settings)(**{**router.settings.to_dict(), "mode": mode}))
        open_ids.append(router.decide("x" if rng.random() < 0.3 else "").id)
        if rng.random() < 0.8:
            how = rng.choice(["plain", "cost", "arm", "void", "again"])
            chosen = rng.choice(open_ids)
            cost = rng.choice([1.5, 9.0]) if how != "plain" else 3.0
            router.record(chosen, status="void" if how == "void" else "success", cost=cost, arm="a" if how == "arm" else None)
        router.expire()


def test_the_spend_of_a_day_is_that_of_its_log_and_survives_restarts(tmp_path: Path) -> None:
    clock, store = Clock(MIDNIGHT), open_store(f"sqlite:///{tmp_path / 'b.db'}")
    live = router(clock, store=store, name="r", deadline_s=2000.0, daily_budget=500.0)
    disturb(live, clock, 3)
    today = clock.now // 86_400 * 86_400
    assert live.forecast().spent == pytest.approx(spent_by_the_log(store, "r", today))
    before = live.state.spending.dump()
    live.close()
    store.close()
    again = open_store(f"sqlite:///{tmp_path / 'b.db'}")
    assert Router.reopen("r", again, clock=clock).state.spending.dump() == before
    again.query("SELECT 1")
    again.execute("DELETE FROM snapshots")
    assert Router.reopen("r", again, clock=clock).state.spending.dump() == before
    again.close()


def test_replicas_agree_on_the_spend_and_on_whether_it_is_tight(postgres: Postgres) -> None:
    clock, url = Clock(MIDNIGHT), postgres.database()
    one, two = (router(clock, store=url, name="r", daily_budget=900.0) for _ in range(2))
    for number in range(200):
        clock.now += 60.0
        each = (one, two)[number % 2]
        decided = each.decide().id
        while True:
            try:
                each.record(decided, 1.0, cost=5.0 + number % 3)
                break
            except StoreError:  # a slow commit: the outcome is to be sent again
                time.sleep(0.01)
    for each in (one, two):
        each.log._catch_up_to(each._owned_store.journal("r").end())  # type: ignore[attr-defined]
    assert one.state.spending.dump() == two.state.spending.dump()
    assert one.forecast().spent == pytest.approx(sum(5.0 + number % 3 for number in range(200)))
    assert one.state.spending.tight
    for each in (one, two):
        each.close()


def test_a_snapshot_of_an_older_version_opens_with_nothing_spent() -> None:
    clock = Clock(MIDNIGHT)
    old = router(clock)
    play(old, clock, 20, step_s=60.0)
    line, _, rest = bytes(encode(capture(old.state), old.lock)).partition(b"\n")
    header = json.loads(line)
    del header["spending"], header["settings"]["daily_budget"]
    found = load(old.state.begun_anew(), json.dumps(header).encode() + b"\n" + rest, 0)
    assert (found.spending.dump(), found.settings.daily_budget) == (Spending().dump(), 0.0)


def test_only_the_last_days_are_remembered() -> None:
    spending = Spending()
    for hour in range(1000):
        spending.count(3600.0 * hour, 1.0, budget=0.0)
    spending.count(0.0, 1.0, budget=0.0)  # a row that comes late
    spending.correct(0.0, 1.0, 5.0)
    hours = spending.dump()[0]
    assert len(hours) == KEPT_H
    assert hours[0] == [1000 - KEPT_H, 1, 1, 1.0, 0, 0.0]


def test_a_late_cost_is_counted_where_its_decision_was() -> None:
    """Minutes 0 to 9 are free, 10 to 19 tight, the rest free again: only then is the budget raised."""
    spending = Spending()
    for minute in range(30):
        spending.count(60.0 * minute, float("nan"), budget=0.0 if minute < 10 else 1.0 if minute < 20 else 1e9)
        spending.correct(60.0 * minute, float("nan"), 3.0)
    ((_, decisions, free, free_cost, tight, tight_cost),) = spending.dump()[0]
    assert (decisions, free, free_cost, tight, tight_cost) == (30, 20, 60.0, 10, 30.0)
    for minute in (5, 15, 25):
        spending.correct(60.0 * minute, 3.0, 4.0)
    assert spending.dump()[0][0][2:] == [20, 62.0, 10, 31.0]


# -- looking ahead ---------------------------------------------------------------------------------------------------------


def test_the_rest_of_a_day_is_expected_as_on_the_days_before() -> None:
    """Half of the traffic comes between 20 and 22 hours; today has twice as much as usual."""
    spending = Spending()
    for day in range(3):
        for hour in range(24):
            for _ in range((50 if hour in (20, 21) else 5) * (2 if day == 2 else 1)):
                if day < 2 or hour < 12:
                    spending.count(86_400.0 * day + 3600.0 * hour, 2.0, budget=0.0)
    forecast = spending.forecast(86_400.0 * 2 + 12 * 3600.0, 100.0)
    assert forecast.spent == 2.0 * 120
    assert forecast.decisions_left == pytest.approx(2 * 150, rel=0.1)
    assert forecast.free == pytest.approx(2.0 * (120 + 300), rel=0.1)


def test_the_first_day_is_expected_to_go_on_as_the_last_hour_did() -> None:
    spending = Spending()
    for minute in range(600):
        spending.count(60.0 * minute, 1.0, budget=0.0)
    assert spending.forecast(36_000.0, 1.0).free == pytest.approx(1440, rel=0.02)


# -- choosing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["cs-balance+restart", "cs-ts"])
def test_a_budget_that_can_be_kept_is_kept(policy: str) -> None:
    """The holdout costs 10% of 2 more: 6.2 a decision against 6. Seeds are fixed, so this fails always or never."""
    clock = Clock(MIDNIGHT)
    subject = router(clock, policy=policy, holdout=0.1, daily_budget=0.0)
    subject.change("pin", "a")  # so that it is known to be the best
    play(subject, clock, 200, step_s=60.0, seed=3)
    subject.change("unpin")
    play(subject, clock, 1240, step_s=60.0, seed=4)
    spent, _, _ = play(subject, clock, 1440, step_s=60.0)
    budget = 6.06 * 1440
    assert spent > budget
    subject.configure(PRICES, type(subject.settings)(**{**subject.settings.to_dict(), "daily_budget": budget}))
    spent, quality, codes = play(subject, clock, 1440, step_s=60.0, seed=2)
    assert spent <= budget
    assert quality > 0.9
    assert codes["budget"] > 0
    assert codes["holdout"] > 0  # a part of it could be afforded


def test_a_budget_that_cannot_be_kept_is_said_to_be_so_and_the_floor_stays() -> None:
    clock = Clock(MIDNIGHT)
    subject = router(clock, policy="cs-balance", daily_budget=4.5 * 1440)
    _, quality, codes = play(subject, clock, 1440, step_s=60.0)
    assert quality > 0.9 * 0.95
    assert subject.forecast().saving is not None
    assert codes["budget"] > 1000
    clock.now -= 3600.0
    assert subject.forecast().hopeless


def test_without_a_budget_nothing_is_changed() -> None:
    one, two = Clock(MIDNIGHT), Clock(MIDNIGHT)
    plenty = play(router(one, policy="cs-ts", holdout=0.1), one, 300, step_s=60.0)
    assert plenty == play(router(two, policy="cs-ts", holdout=0.1, daily_budget=1e9), two, 300, step_s=60.0)
    assert "budget" not in plenty[2]


def test_dear_arms_of_which_little_is_known_are_still_tried() -> None:
    """Otherwise the floor would be that of the cheap arm, whatever the dear one is worth."""
    clock = Clock(MIDNIGHT)
    subject = router(clock, arms={"a": 8.0, "c": 4.0}, policy="cs-ucb", daily_budget=1.0)
    _, quality, _ = play(subject, clock, 1000, step_s=60.0)
    assert subject.explain().best_arm == "a"
    assert quality > 0.85


def test_a_pinned_arm_stays_and_dear_newcomers_wait_while_cheap_ones_are_tried() -> None:
    clock = Clock(MIDNIGHT)
    subject = router(clock, policy="cs-ucb", daily_budget=1.0)
    play(subject, clock, 1000, step_s=30.0)
    assert subject.state.spending.tight
    subject.change("pin", "a")
    assert subject.decide().arm == "a"
    subject.change("unpin")
    subject.change("add", "d", price=7.0)
    subject.change("add", "e", price=5.0)
    arms = Counter(subject.decide().arm for _ in range(200))
    assert arms["d"] == 0
    assert 5 < arms["e"] < 50


@pytest.mark.parametrize("held_out", [{}, {"holdout": 0.3, "guardrail": "on"}])
def test_propensities_are_right_while_the_budget_is_tight(held_out: dict[str, Any]) -> None:
    """Weights 1 / propensity average 1 over the decisions that could take an arm. The statistics stand still meanwhile.

    2,000 decisions, 20 draws each: six standard errors; the seed is fixed.
    """
    clock = Clock(MIDNIGHT)
    arms = {"a": 8.0, "b": 6.0, "c": 4.0}
    subject = router(clock, arms=arms, policy="cs-ts", propensity_draws=20, daily_budget=1.0, **held_out)
    for arm, n, won in (("a", 60, 57), ("b", 150, 138), ("c", 20, 17)):
        subject.change("pin", arm)
        for number in range(n):
            subject.record(subject.decide().id, float(number < won))
            clock.now += 60.0
    subject.change("unpin")
    assert subject.state.spending.tight
    made = [subject.decide() for _ in range(2000)]
    taken = Counter(each.arm for each in made)
    assert {"budget", "explore"} | ({"holdout"} if held_out else set()) == {each.code for each in made}
    for arm in (arm for arm, count in taken.items() if count > 20):
        share = taken[arm] / len(made)
        stated = sum(each.propensity for each in made if each.arm == arm) / taken[arm]
        assert stated == pytest.approx(share, abs=6 * (share * (1 - share) / 2000) ** 0.5 + 0.02)


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf"), "10", True, None])
def test_a_budget_that_is_none_is_refused(budget: Any) -> None:
    with pytest.raises(ValueError, match="daily_budget must be a number of at least 0"):
        router(Clock(), daily_budget=budget)


@pytest.mark.parametrize("tried", [5, 100])
def test_propensities_beside_a_newcomer_are_frequencies_while_the_budget_is_tight(tried: int) -> None:
    """A newcomer that is the cheapest feasible arm where it is offered, and another arm where it is not."""
    router = Router({"a": 1.0, "b": 2.0}, 0.1, policy="uniform", newcomer_share=0.5, propensity_draws=1000)
    router.change("add", "n", price=0.5)
    for arm in ("a",) * 10 + ("b",) * 10 + ("n",) * tried:
        router.record(router.decide(eligible=[arm]).id, 1)
    router.state.spending.tight = True
    made = [choose(router.state, sequence, router.state.segments.root, None) for sequence in range(1000, 1200)]
    share = {"a": 0.25, "b": 0.25, "n": 0.5}  # the rest is dispensable beside a newcomer that is well known
    assert {rule.names[place] for place, _, _, rule, _ in made} == set(share)
    for place, _, likely, rule, _ in made:
        assert likely == pytest.approx(share[rule.names[place]], abs=0.08)  # five standard deviations
