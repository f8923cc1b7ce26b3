"""Runs that start with known outcomes: they learn from them, and count none of them."""

from typing import Any

import numpy as np
import pytest

from thrifty import Bernoulli, Instance, KnownOutcomes, Runs, World, simulate
from thrifty.simulation.setting import Setting

WORLD = Instance([0.7, 0.88, 0.9], [0.2, 0.5, 1.0], 0.05)
KNOWN = [KnownOutcomes(400, 280), KnownOutcomes(400, 352), KnownOutcomes(400, 360)]


def play(world: Instance | World, policy: str, known: Any = None) -> Runs:
    return simulate(world, policy, rounds=300, runs=4, seed=3, checkpoints=1, known=known)


@pytest.mark.parametrize("policy", ["cs-ids", "cs-balance", "cs-ts", "cs-ucb", "cs-ucb+restart", "cs-ucb+discount=0.999"])
def test_a_rule_that_knows_its_arms_need_not_learn_them(policy: str) -> None:
    cold = play(WORLD, policy)[policy].pulls[:, -1]
    warm = play(WORLD, policy, KNOWN)[policy].pulls[:, -1]
    assert (warm.sum(axis=1) == 300).all()  # known outcomes are no pulls
    assert warm[:, 0].max() < cold[:, 0].min()  # the bad arm is hardly tried; it would be by chance in none of 10,000 seeds


def test_known_outcomes_are_the_statistics_that_so_many_pulls_would_have_left() -> None:
    """best-known plays every arm 50 times, then the best: with 50 known outcomes of each it plays the best at once."""
    few = [KnownOutcomes(50, 25), KnownOutcomes(50, 26), KnownOutcomes(50, 24)]
    runs = simulate(Instance([0.5, 0.5, 0.5], [0.0, 0.0, 0.0], 0.0), "best-known", known=few, rounds=10, runs=1, trace=True)
    trace = runs["best-known"].trace
    assert trace is not None
    assert trace[0, 0] == 1


def test_nothing_known_of_an_arm_is_nothing_known() -> None:
    plain, none = play(WORLD, "cs-ts"), play(WORLD, "cs-ts", [None] * 3)
    assert np.array_equal(plain["cs-ts"].pulls, none["cs-ts"].pulls)


def test_a_window_lets_go_of_known_outcomes() -> None:
    """All 400 known outcomes of each arm lie: the window of 60 has forgotten them after 60 rounds."""
    liars = [KnownOutcomes(400, 396), KnownOutcomes(400, 40), KnownOutcomes(400, 40)]
    world = Instance([0.1, 0.1, 0.9], [0.2, 0.5, 1.0], 0.05)
    seen = {
        policy: simulate(world, policy, known=liars, rounds=2000, runs=2, seed=5)[policy].pulls[:, -1, 2].min()
        for policy in ("cs-ts", "cs-ts+window=60")
    }
    assert seen["cs-ts+window=60"] > 1000


def test_unknown_costs_are_known_by_their_sums() -> None:
    world = World([0.9, 0.9], [Bernoulli(0.2), Bernoulli(0.8)], 0.1)
    known = [KnownOutcomes(500, 450, 100.0, cost_squares=100.0), KnownOutcomes(500, 450, 400.0, cost_squares=400.0)]
    pulls = play(world, "cs-ids", known)["cs-ids"].pulls[:, -1]
    assert pulls[:, 0].min() > 280
    with pytest.raises(ValueError, match="need the sum of their costs: arm 0 has none"):
        play(world, "cs-ids", [KnownOutcomes(5, 3), None])


def test_runs_say_what_was_known(tmp_path: object) -> None:
    runs = play(WORLD, "cs-ts", KNOWN)
    path = f"{tmp_path}/runs.npz"
    runs.save(path)
    assert Runs.load(path).known == runs.known == [each.to_dict() for each in KNOWN]
    assert "360.0" in runs.to_csv()
    setting = Setting(WORLD, "cs-ts", rounds=300, runs=4, seed=3)
    assert setting.fits(play(WORLD, "cs-ts"))
    assert not setting.fits(runs)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((0, 0), "outcomes must be a whole number from 1 to 100000, got 0"),
        ((1.5, 1), "got 1.5"),
        ((True, 1), "got True"),
        (("4", 1), "got '4'"),
        ((10**6, 1), "scale all sums of the arm down"),
        ((4, 5), "rewards must be a number from 0 to 4, got 5"),
        ((4, float("nan")), "got nan"),
        ((4, -1), "got -1"),
        ((4, 2, -1.0), r"costs must be a number from 0 to 4e\+15, got -1.0"),
        ((4, 2, float("inf")), "got inf"),
        ((4, 2, None, 0.5), "reward_squares must be a number from 1 to 2, got 0.5"),
        ((4, 2, 8.0, None, 1.0), "cost_squares must be a number from 16 to 64, got 1.0"),
        ((4, 2, None, None, 1.0), "cost_squares goes with costs"),
    ],
)
def test_sums_that_no_outcomes_have_are_refused(given: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KnownOutcomes(*given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "complaint"),
    [([KnownOutcomes(4, 2)], "got 1 for 3 arms"), ([(4, 2), None, None], r"got \(4, 2\) for arm 0")],
)
def test_known_outcomes_are_given_arm_by_arm(known: list[object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        play(WORLD, "cs-ts", known)


def test_a_policy_that_weighs_outcomes_cannot_know_any() -> None:
    with pytest.raises(ValueError, match="cs-exp3 weighs every outcome by the probability of its decision"):
        simulate(Instance([0.5, 0.4], [1.0, 0.0], 0.1), ["cs-ucb", "cs-exp3"], rounds=10, known=[KnownOutcomes(4, 2), None])
