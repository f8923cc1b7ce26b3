"""Cases that `test_uncompiled.py` runs with the compiler off: every policy here would take it half a minute.

A router whose statistics forget: the log keeps everything, the rule does not. And CS-EXP3, which weighs outcomes by propensities.
"""

from pathlib import Path

import pytest

from tests.router.test_router import ARMS, check_that_it_learns, check_that_the_simulator_agrees, make, play
from thrifty.router import Router

WAS = {"alpha-tel": 0.9, "beta-sms": 0.3, "gamma": 0.9}
NOW = {"alpha-tel": 0.9, "beta-sms": 0.3, "gamma": 0.0}


@pytest.mark.parametrize("policy", ["cs-ucb", "cs-ucb+window=200", "cs-ucb+discount=0.995", "cs-ucb+restart"])
def test_it_leaves_an_arm_that_died_and_comes_back(policy: str) -> None:
    router = make(policy=policy)
    play(router, WAS, 1000, segment="DE")
    after = play(router, NOW, 50, segment="DE", seed=2)[-10:].count("gamma")
    if policy == "cs-ucb":  # fifty failures among a thousand outcomes leave a mean of .86, above the floor
        assert after >= 8
        return
    assert after <= 3
    assert router.statistics("DE")["gamma"][1] > 500  # the log and the sums that users see forget nothing
    assert play(router, WAS, 600, segment="DE", seed=3)[-50:].count("gamma") >= 40


def test_a_window_must_hold_the_arms_that_come() -> None:
    with pytest.raises(ValueError, match="got window=3 for 4 arms"):
        make(policy="cs-ucb+window=3").change("add", "delta", price=0.1)


def test_an_explanation_says_what_is_remembered() -> None:
    router = make(policy="cs-ucb+window=100")
    play(router, WAS, 500)
    arms = {arm.arm: arm for arm in router.explain().arms}
    assert sum(arm.outcomes for arm in arms.values()) == 500
    assert sum(arm.remembered for arm in arms.values()) == 100
    assert f"{arms['gamma'].outcomes} outcomes, {arms['gamma'].remembered:g} remembered" in str(router.explain())


@pytest.mark.parametrize("policy", ["cs-ucb+window=50", "cs-ucb+discount=0.98", "cs-ucb+restart"])
def test_a_restored_router_goes_on_as_if_nothing_had_happened(policy: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'r.db'}"

    def first(router: Router) -> None:
        play(router, WAS, 150, segment="DE/x")
        decision = router.decide("DE/y")
        router.record(decision.id, reward=1)
        router.record(decision.id, reward=0)  # a correction of what is remembered
        router.change("add", "delta", price=0.001)
        play(router, {**NOW, "delta": 0.8}, 100, segment="DE/x", seed=2)

    def then(router: Router) -> list[str]:
        arms = play(router, {**NOW, "delta": 0.8}, 100, segment="DE/x", seed=3)
        router.change("reset", "gamma")
        return arms + play(router, {**WAS, "delta": 0.8}, 100, segment="DE/y", seed=4)

    whole = make(policy=policy)
    first(whole)
    wanted = then(whole)
    with make(policy=policy, store=url) as router:
        first(router)
    with make({**ARMS, "delta": 0.001}, policy=policy, store=url) as restored:
        assert then(restored) == wanted
        assert restored.statistics() == whole.statistics()


@pytest.mark.parametrize("policy", ["ucb1", "cs-ucb+window=90", "cs-ucb+discount=0.98", "cs-ucb+restart"])
def test_the_router_chooses_what_the_simulator_chooses(policy: str) -> None:
    check_that_the_simulator_agrees(policy, rounds=400)


def test_a_rule_that_weighs_outcomes_by_their_propensity_is_told_it() -> None:
    check_that_it_learns("cs-exp3", rounds=2000, last=500)
