"""A router whose statistics forget: the log keeps everything, the rule does not."""

from pathlib import Path

import pytest

from tests.router.test_router import ARMS, make, play
from thrifty.router import Router

WAS = {"alpha-tel": 0.9, "beta-sms": 0.3, "gamma": 0.9}
NOW = {"alpha-tel": 0.9, "beta-sms": 0.3, "gamma": 0.0}


@pytest.mark.parametrize("policy", ["cs-ucb+window=300", "cs-ucb+discount=0.995", "cs-ucb+restart"])
def test_it_leaves_an_arm_that_died_and_comes_back(policy: str) -> None:
    # Without forgetting, 2,000 successes outweigh the 300 failures after the arm died.
    router = make(policy=policy)
    play(router, WAS, 2000, segment="DE")
    assert play(router, NOW, 300, segment="DE", seed=2)[-50:].count("gamma") <= 5
    seen = router.statistics("DE")["gamma"]
    assert seen[1] > 1000  # the log and the sums that users see forget nothing
    assert play(router, WAS, 1000, segment="DE", seed=3)[-50:].count("gamma") >= 40


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
