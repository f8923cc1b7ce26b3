import math
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.clock import Clock
from thrifty import Instance, simulate
from thrifty.router import Router
from thrifty.router.packing import Layout
from thrifty.streams import make_streams, spread_seed, start_stream

ARMS = {"alpha-tel": 0.0079, "beta-sms": 0.0062, "gamma": 0.0041}


def make(arms: dict[str, float | None] | None = None, **settings: Any) -> Router:
    return Router(arms or ARMS, 0.05, **{"policy": "cs-ucb", **settings})


def play(router: Router, means: dict[str, float], rounds: int, *, seed: int = 1, segment: str = "") -> list[str]:
    rng = random.Random(seed)
    arms = []
    for _ in range(rounds):
        decision = router.decide(segment)
        router.record(decision.id, reward=float(rng.random() < means[decision.arm]))
        arms.append(decision.arm)
    return arms


def test_a_stream_made_in_the_kernel_is_the_row_of_make_streams() -> None:
    words, stream = spread_seed(7, (3,)), np.empty(4, np.uint64)
    for key in (0, 1, 12345, 2**62):
        start_stream(words, key, stream)
        assert (stream == make_streams(7, np.array([[3, key]]))[0]).all()


def check_that_the_simulator_agrees(policy: str, rounds: int) -> None:
    # Rewards of 0 and 1 are certain, so that both see the same outcomes whatever they draw.
    world = Instance([1.0, 0.0, 1.0], [0.9, 0.1, 0.5], 0.1)
    runs = simulate(world, policy, rounds=rounds, runs=1, trace=True, threads=1)  # nobody knows the horizon
    trace = runs[runs.results[0].policy].trace
    assert trace is not None
    router = Router({"0": 0.9, "1": 0.1, "2": 0.5}, 0.1, policy=policy)
    arms = play(router, {"0": 1.0, "1": 0.0, "2": 1.0}, rounds)
    assert [int(arm) for arm in arms] == trace[0].tolist()


def check_that_it_learns(policy: str, rounds: int, last: int) -> None:
    router = Router({"dear": 1.0, "good": 0.5, "bad": 0.1}, 0.1, policy=policy)
    arms = play(router, {"dear": 0.95, "good": 0.9, "bad": 0.2}, rounds)
    assert arms[-last:].count("good") > 0.8 * last


@pytest.mark.parametrize("policy", ["cs-ucb", "cs-etc:tau=20"])
def test_the_router_chooses_what_the_simulator_chooses(policy: str) -> None:
    check_that_the_simulator_agrees(policy, rounds=2000)


@pytest.mark.parametrize("policy", ["cs-ts", "cs-etc:tau=500"])
def test_it_learns_the_cheapest_arm_that_is_good_enough(policy: str) -> None:
    check_that_it_learns(policy, rounds=2500, last=500)


def test_an_outcome_counts_once_and_a_later_one_corrects_it() -> None:
    router = make()
    decision = router.decide()
    assert router.record(decision.id, reward=0) == "recorded"
    assert router.record(decision.id, status="failure") == "duplicate"
    assert router.record(decision.id, status="success") == "corrected"
    assert router.statistics()[decision.arm] == (1, 1, 1.0, ARMS[decision.arm])
    assert router.record(decision.id, status="void") == "corrected"
    assert router.statistics()[decision.arm] == (0, 0, 0.0, 0.0)
    assert router.record(decision.id, reward=0.25, cost=0.5) == "corrected"
    assert router.statistics()[decision.arm] == (1, 1, 0.25, 0.5)


def test_an_older_outcome_that_comes_late_is_stale() -> None:
    router = make()
    decision = router.decide()
    router.record(decision.id, reward=1, occurred_at=200.0)
    assert router.record(decision.id, reward=0, occurred_at=100.0) == "stale"
    assert router.statistics()[decision.arm][2] == 1.0


def test_outcomes_in_any_order_give_the_same_statistics() -> None:
    one, other = make(policy="uniform"), make(policy="uniform")
    ids = [(one.decide("a/b").id, other.decide("a/b").id) for _ in range(60)]
    for n, (first, _) in enumerate(ids):
        one.record(first, reward=n % 2)
    for n, (_, second) in reversed(list(enumerate(ids))):
        other.record(second, reward=n % 2)
    for segment in ("", "a", "a/b"):
        assert [row[:3] for row in one.statistics(segment).values()] == [row[:3] for row in other.statistics(segment).values()]


@pytest.mark.parametrize(("default", "after"), [("failure", (1, 1, 0.0)), ("ignore", (0, 0, 0.0))])
def test_a_deadline_settles_a_decision_and_a_late_outcome_corrects_it(default: str, after: tuple[int, int, float]) -> None:
    clock = Clock()
    router = make(deadline_s=10, default_outcome=default, clock=clock)
    decision = router.decide()
    clock.now += 9.9
    router.expire()
    assert router.pending == 1
    clock.now += 0.2
    router.expire()
    assert router.pending == 0
    assert router.statistics()[decision.arm][:3] == after
    assert router.record(decision.id, reward=1) == "recorded"
    assert router.statistics()[decision.arm][:3] == (1, 1, 1.0)


def test_without_a_store_memory_is_bounded_and_the_oldest_decision_is_settled_early(remember: Callable[[int], int]) -> None:
    router = make(memory_bytes=remember(100), policy="uniform")
    ids = [router.decide().id for _ in range(1000)]
    assert router.pending == 100
    assert sum(row[1] for row in router.statistics().values()) == 900
    assert router.gauges()["memory_bytes"] <= router.gauges()["memory_limit_bytes"]
    with pytest.raises(KeyError, match="older than what is remembered"):
        router.record(ids[0], reward=1)


def test_a_retry_gets_the_same_decision() -> None:
    router = make(policy="uniform")
    first = [router.decide("x", request_id=f"r{n}") for n in range(20)]
    again = [router.decide("x", request_id=f"r{n}") for n in range(20)]
    assert [d.id for d in first] == [d.id for d in again]
    assert [d.arm for d in first] == [d.arm for d in again]
    assert all(d.repeated for d in again)
    assert all(set(d.fallbacks) == set(ARMS) - {d.arm} for d in again)
    assert sum(row[0] for row in router.statistics().values()) == 20


def test_only_eligible_arms_are_chosen_and_a_price_may_hold_for_once() -> None:
    router = make()
    play(router, dict.fromkeys(ARMS, 0.9), 300)
    assert {router.decide(eligible=["alpha-tel", "beta-sms"]).arm for _ in range(50)} == {"beta-sms"}
    cheaper = router.decide(eligible={"alpha-tel": 0.0001, "beta-sms": None})
    assert cheaper.arm == "alpha-tel"
    only = router.decide(eligible=["gamma"])
    assert (only.arm, only.code, only.fallbacks) == ("gamma", "only", ())


def test_the_rule_for_an_eligible_set_knows_what_came_back_elsewhere() -> None:
    router = make()
    router.decide(eligible=["alpha-tel", "gamma"])
    play(router, {"alpha-tel": 0.9, "beta-sms": 0.9, "gamma": 0.0}, 2000)
    counts = [router.decide(eligible=["alpha-tel", "gamma"]).arm for _ in range(20)]
    assert counts.count("alpha-tel") == 20


def test_a_young_segment_borrows_from_its_parents_until_it_knows_better() -> None:
    means = {"alpha-tel": 0.9, "beta-sms": 0.9, "gamma": 0.0}
    router, alone = make(policy="cs-ucb"), make(policy="cs-ucb", leaning=False)
    for each in (router, alone):
        for operator in ("vodafone", "o2"):
            play(each, means, 300, segment=f"DE/{operator}")
    assert "gamma" not in play(router, means, 100, segment="DE/telekom")
    assert play(alone, means, 100, segment="DE/telekom").count("gamma") > 5
    borrowed = {arm.arm: arm.borrowed for arm in router.explain("DE/telekom").arms}
    assert borrowed["beta-sms"] > 5
    assert "borrowed" in str(router.explain("DE/telekom"))
    assert not any(arm.borrowed for arm in alone.explain("DE/telekom").arms)
    assert router.segments() == ["", "DE", "DE/o2", "DE/telekom", "DE/vodafone"]
    assert router.statistics("DE") == router.statistics()
    unlike = {"alpha-tel": 0.9, "beta-sms": 0.1, "gamma": 0.9}
    play(router, unlike, 500, segment="DE/e-plus")
    assert router.decide("DE/e-plus").arm == "gamma"
    assert play(router, means, 100, segment="DE/vodafone").count("beta-sms") > 90


def test_too_many_segments_share_their_parent() -> None:
    router = make(max_segments=3)
    for n in range(10):
        router.decide(f"s{n}")
    assert router.segments() == ["", "s0", "s1"]
    assert sum(row[0] for row in router.statistics().values()) == 10


@pytest.mark.parametrize("policy", ["cs-etc:tau=500", "cs-ts"])
def test_a_new_arm_is_neither_starved_nor_flooded(policy: str) -> None:
    # 2,000 decisions at a share of 0.1: 200 expected, standard deviation 13; the bounds fail by chance less than once in 10^9.
    router = make(policy=policy, newcomer_share=0.1, propensity_draws=0)
    means = {"alpha-tel": 0.9, "beta-sms": 0.9, "gamma": 0.9, "delta": 0.1}
    play(router, means, 3000)
    router.change("add", "delta", price=0.001)
    arms = play(router, means, 2000, seed=2)
    assert 20 <= arms.count("delta") <= 290
    before = router.statistics()["alpha-tel"]
    router.change("retire", "delta")
    assert router.statistics()["alpha-tel"] == before
    assert "delta" not in play(router, means, 200)


def test_a_good_new_arm_becomes_the_choice() -> None:
    router = make(policy="cs-etc:tau=30")
    play(router, dict.fromkeys(ARMS, 0.9), 500)
    router.change("add", "delta", price=0.001)
    arms = play(router, {**dict.fromkeys(ARMS, 0.9), "delta": 0.99}, 3000)
    assert arms[-200:] == ["delta"] * 200


def test_prices_pauses_and_pins_take_effect_at_once() -> None:
    router = make(policy="cs-etc:tau=20")
    play(router, dict.fromkeys(ARMS, 0.9), 200)
    assert router.decide().arm == "gamma"
    router.change("price", "gamma", price=1.0)
    assert router.decide().arm == "beta-sms"
    router.change("pause", "beta-sms")
    assert router.decide().arm == "alpha-tel"
    router.change("resume", "beta-sms")
    router.change("pin", "gamma")
    pinned = router.decide()
    assert (pinned.arm, pinned.code) == ("gamma", "pinned")
    router.change("unpin")
    assert router.decide().arm == "beta-sms"
    assert router.version == 5


def test_reset_forgets_one_arm_and_keeps_the_others() -> None:
    router = make()
    play(router, dict.fromkeys(ARMS, 0.5), 100)
    waiting = router.decide()
    kept = {name: row for name, row in router.statistics().items() if name != "gamma"}
    router.change("reset", "gamma")
    after = router.statistics()
    assert after["gamma"][1] == 0
    assert {name: row for name, row in after.items() if name != "gamma"} == kept
    router.record(waiting.id, reward=1)


@pytest.mark.parametrize("status", ["failure", "void"])
def test_an_outcome_from_before_a_reset_cannot_be_corrected_into_the_new_statistics(status: str) -> None:
    router = make()
    decision = router.decide()
    router.record(decision.id, status=status)
    router.change("reset", decision.arm)
    assert router.record(decision.id, status="success") == "corrected"
    assert router.record(decision.id, status="success") == "duplicate"
    assert router.statistics()[decision.arm] == (0, 0, 0.0, 0.0)


def test_an_outcome_that_occurred_before_the_deadline_still_corrects_the_default_one() -> None:
    clock = Clock()
    router = make(deadline_s=10, clock=clock)
    decision = router.decide()
    clock.now += 60.0
    router.expire()
    assert router.record(decision.id, reward=1, occurred_at=clock.now - 55.0) == "recorded"
    assert router.statistics()[decision.arm][:3] == (1, 1, 1.0)


def test_a_context_that_is_refused_leaves_the_rule_as_it_was() -> None:
    one, other = make(policy="cs-etc:tau=5"), make(policy="cs-etc:tau=5")
    for _ in range(40):
        with pytest.raises(ValueError, match="context"):
            one.decide(context={"x": math.nan})
        assert one.decide().arm == other.decide().arm


def test_propensity_of_a_random_rule_is_the_frequency_of_its_choices() -> None:
    router = make(policy="uniform", propensity_draws=2000)
    assert router.decide().propensity == pytest.approx(1 / 3, abs=0.06)  # six standard deviations
    assert make(policy="cs-ucb").decide().propensity == 1.0


def test_a_hardly_tried_newcomer_has_all_of_its_share() -> None:
    """The other arms have what is left: two of them, taken at random in every other decision."""
    router = Router({"a": 1.0, "b": 2.0}, 0.1, policy="uniform", newcomer_share=0.5, propensity_draws=2000)
    router.change("add", "c", price=3.0)
    for decision in (router.decide() for _ in range(5)):
        assert decision.propensity == pytest.approx(0.5 if decision.arm == "c" else 0.25, abs=0.035)  # six standard deviations


def test_propensities_of_a_newcomer_add_up() -> None:
    router = make(policy="cs-etc:tau=20", newcomer_share=0.25)  # the rule would take the newcomer, then gamma
    play(router, dict.fromkeys(ARMS, 0.9), 100)
    router.change("add", "delta", price=0.001)
    seen = {(d.arm, round(d.propensity, 6)) for d in (router.decide() for _ in range(50))}
    assert seen == {("delta", 0.25), ("gamma", 0.75)}


def test_shadow_decisions_count_only_what_the_caller_reports() -> None:
    router = make(mode="shadow")
    decision = router.decide()
    assert sum(row[0] for row in router.statistics().values()) == 0
    router.record(decision.id, reward=1, arm="gamma")
    assert router.statistics()["gamma"][:3] == (1, 1, 1.0)


def test_a_fallback_that_was_used_is_credited_instead() -> None:
    router = make()
    decision = router.decide()
    router.record(decision.id, reward=1, arm=decision.fallbacks[0])
    assert router.statistics()[decision.arm][:2] == (0, 0)
    assert router.statistics()[decision.fallbacks[0]][:2] == (1, 1)


def test_the_probability_of_an_arm_is_over_the_holdout_and_all_others() -> None:
    router = Router({"dear": 1.0, "cheap": 0.1}, 0.1, policy="cs-etc:tau=50", holdout=0.25)
    play(router, {"dear": 0.95, "cheap": 0.90}, 1000)
    made = [router.decide() for _ in range(100)]
    assert {(each.code, each.arm, each.propensity) for each in made} == {("holdout", "dear", 0.25), ("exploit", "cheap", 0.75)}
    router.change("add", "new", price=0.05)  # it is tried in a tenth of the decisions that are not held out
    made = [router.decide() for _ in range(200)]
    assert {(each.code, each.arm, round(each.propensity, 9)) for each in made} == {
        ("holdout", "dear", 0.25),
        ("exploit", "cheap", 0.675),
        ("newcomer", "new", 0.075),
    }
    certain = Router({"good": 0.1, "bad": 1.0}, 0.0, policy="cs-etc:tau=50", holdout=0.25)
    play(certain, {"good": 0.95, "bad": 0.2}, 1000)
    made = [certain.decide() for _ in range(50)]
    assert {(each.code, each.arm, each.propensity) for each in made} == {("holdout", "good", 1.0), ("exploit", "good", 1.0)}


def test_without_draws_a_decision_of_the_holdout_has_no_probability() -> None:
    router = Router({"dear": 1.0, "cheap": 0.1}, 0.1, policy="cs-ts", holdout=0.5, propensity_draws=0)
    play(router, {"dear": 0.95, "cheap": 0.90}, 50)
    assert all(math.isnan(router.decide().propensity) for _ in range(20))


@pytest.mark.parametrize("group", [{"holdout": 0.5}, {"mode": "canary", "canary_share": 0.5, "baseline": "dear"}])
def test_a_rule_that_weighs_outcomes_knows_every_probability_also_without_draws(group: dict[str, Any]) -> None:
    made = []
    for draws in (0, 20):
        router = Router({"dear": 1.0, "cheap": 0.1}, 0.1, policy="cs-exp3", propensity_draws=draws, **group)
        rng = random.Random(1)
        for _ in range(60):
            made.append(router.decide())
            router.record(made[-1].id, float(rng.random() < 0.9))
    facts = [(each.arm, each.code, round(each.propensity, 9)) for each in made]
    assert facts[:60] == facts[60:]
    assert not any(math.isnan(each.propensity) for each in made)


def test_the_holdout_takes_the_best_arm_and_measures_the_saving() -> None:
    router = Router({"dear": 1.0, "cheap": 0.1}, 0.1, policy="cs-etc:tau=50", holdout=0.2)
    arms = play(router, {"dear": 0.95, "cheap": 0.90}, 4000)
    explained = router.explain()
    assert explained.measured is not None
    holdout, routed = (explained.measured[group]["mean_cost"] for group in ("holdout", "routed"))
    assert holdout is not None
    assert routed is not None
    assert holdout > routed
    # 0.2 of the last 3,000, standard deviation 22; "dear" is the best arm by then.
    assert arms[-3000:].count("dear") == pytest.approx(600, abs=150)


def test_unknown_costs_are_learnt_from_outcomes() -> None:
    router = Router({"a": None, "b": None}, 0.1, policy="cs-etc:tau=100")
    for _ in range(1000):
        decision = router.decide()
        router.record(decision.id, reward=1, cost={"a": 0.9, "b": 0.2}[decision.arm])
    assert router.decide().arm == "b"
    with pytest.raises(ValueError, match="cost must come with the outcome of 'b'"):
        router.record(router.decide().id, reward=1)


def test_explanations_and_reasons_speak() -> None:
    router = make(policy="cs-etc:tau=300")
    assert "nothing is known yet" in str(router.explain())
    play(router, {"alpha-tel": 0.7, "beta-sms": 0.9, "gamma": 0.1}, 1500)
    text = str(router.explain("DE"))
    assert "beta-sms is the cheapest arm whose mean clears the floor" in text
    assert "by the statistics of all segments: nobody has asked for this one" in text
    reason = router.decide().reason
    assert reason.code == "exploit"
    assert reason.best_arm in ARMS
    assert "exploit: the cheapest arm whose mean reward clears the floor" in str(reason)
    arms = {arm.arm: arm for arm in router.explain().arms}
    assert arms["gamma"].low <= 0.1 <= arms["gamma"].high
    assert not arms["gamma"].feasible


def test_many_threads_lose_and_double_nothing() -> None:
    router = make(policy="cs-ts", propensity_draws=0)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        mine = []
        for _ in range(300):
            mine.append(router.decide(rng.choice(["a", "b/c", ""])).id)
            if rng.random() < 0.7:
                router.record(mine.pop(rng.randrange(len(mine))), reward=1)
        for decision_id in mine:
            router.record(decision_id, reward=1)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(row[0] for row in router.statistics().values()) == 2400
    assert sum(row[1] for row in router.statistics().values()) == 2400
    assert router.pending == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Router({}, 0.1), "arms must be prices by name"),
        (lambda: Router({"a": -1.0}, 0.1), r"the price of 'a' must be a number from 0 to 1e\+15"),
        (lambda: Router({"a": math.nan}, 0.1), "the price of 'a'"),
        (lambda: Router(ARMS, 1.5), "alpha must be in"),
        (lambda: make(deadline_s=0), "deadline_s must be a number"),
        (lambda: make(mode="dead"), "mode must be one of live, canary, shadow"),
        (lambda: make(holdout=1.0), "holdout must be"),
        (lambda: make(colour="red"), "a router has no setting 'colour'"),
        (lambda: make(policy="cs-utc"), "did you mean cs-ucb"),
        (lambda: make(policy="cs-ids+window=2"), "a window must hold at least one outcome of every arm, got window=2 for 3 arms"),
        (lambda: make(leaning=1), "leaning must be true or false, got 1"),
        (lambda: make(name="a b"), "name must be 1 to 64 letters"),
        (lambda: make(store="redis://x"), "store must be sqlite"),
        (lambda: make().decide("a\n"), "segment must be 1 to 200 printable"),
        (lambda: make().decide(eligible=["nobody"]), "arm 'nobody' is unknown: name one of alpha-tel"),
        (lambda: make().decide(eligible=[]), "eligible must name at least one active arm"),
        (lambda: make().decide(context={"x": math.nan}), "context must be made of what JSON can express"),
        (lambda: make().decide(context={"x": "y" * 10_000}), "context must be at most 10000 characters of JSON, got 10009"),
        (lambda: make().decide(eligible="gamma"), "eligible must be a list of arms"),
        (lambda: make().change("paint", "gamma"), "action must be one of add"),
        (lambda: make().change("add", "gamma", price=1.0), "is there already"),
        (lambda: make({"a": 1.0}).change("pause", "a"), "is the last active one"),
        (lambda: Layout((np.zeros((2, 2)),)), "arrays of one dimension"),
    ],
)
def test_wrong_input_is_refused_with_the_remedy(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"reward": 1.1}, "reward must be a number in"),
        ({"reward": math.nan}, "reward must be a number in"),
        ({"reward": True}, "reward must be a number in"),
        ({"status": "maybe"}, "status must be one of success, failure, void"),
        ({}, "an outcome needs a reward"),
        ({"reward": 1, "status": "success"}, "an outcome needs a reward"),
        ({"reward": 1, "cost": -1}, "the price of 'the outcome'"),
        ({"reward": 1, "arm": "nobody"}, "arm 'nobody' is unknown"),
    ],
)
def test_a_wrong_outcome_changes_nothing(outcome: dict[str, Any], message: str) -> None:
    router = make()
    decision = router.decide()
    with pytest.raises(ValueError, match=message):
        router.record(decision.id, **outcome)
    assert router.pending == 1


@pytest.mark.parametrize("wrong", ["", "router", "router.0.zz", "other.0.1", "router.0.5", "router.-1.1", "router.0." + "f" * 50])
def test_an_unknown_decision_is_refused(wrong: str) -> None:
    with pytest.raises(KeyError, match="no decision"):
        make().record(wrong, reward=1)


@pytest.mark.parametrize("path", ["/", "DE/", "/DE", "DE//vodafone", "DE/ /x"])
def test_a_segment_path_with_an_empty_part_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="segment must be a path of parts that are not empty"):
        make().decide(path)


def test_an_outcome_for_a_retired_arm_counts_for_that_arm_and_changes_no_other() -> None:
    router = make()
    decision = router.decide()
    router.change("retire", decision.arm)
    before = {name: sums for name, sums in router.statistics().items() if name != decision.arm}
    assert router.record(decision.id, reward=1) == "recorded"
    assert router.statistics()[decision.arm][1] == 1
    assert {name: sums for name, sums in router.statistics().items() if name != decision.arm} == before
    assert router.decide().arm != decision.arm


def test_an_outcome_dated_before_its_decision_is_taken_as_it_is() -> None:
    router = make()
    decision = router.decide()
    assert router.record(decision.id, reward=1, occurred_at=1.0) == "recorded"
    assert router.record(decision.id, reward=0, occurred_at=2.0) == "corrected"


def test_money_saved_is_reckoned_at_the_prices_of_each_segment() -> None:
    router = Router({"good": 1.0, "cheap": 0.1}, 0.2, policy="uniform", seed=3)
    expected = 0.0
    for segment, scale in (("DE/x", 1.0), ("DE/y", 20.0), ("FR", 300.0)):
        for n in range(40):
            decision = router.decide(segment, eligible={"good": 1.0 * scale, "cheap": 0.1 * scale})
            router.record(decision.id, reward=1.0 if decision.arm == "good" else 0.9 + 0.05 * (n % 2))
            expected += 0.9 * scale if decision.arm == "cheap" else 0.0
    assert router.explain().best_arm == "good"
    assert router.explain().saved == pytest.approx(expected)
    parts = [router.explain(segment).saved for segment in ("DE", "FR")]
    assert sum(parts) == pytest.approx(expected)
    assert router.explain("DE").saved == pytest.approx(router.explain("DE/x").saved + router.explain("DE/y").saved)
