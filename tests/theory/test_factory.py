import math

import numpy as np
import pytest

from thrifty.environments.families import HardFamily
from thrifty.problem import Instance
from thrifty.streams import Stream, beta, make_streams, uniform
from thrifty.theory import Derived, derive, flip_bound, flip_linear

COUNT = 40_000


@pytest.mark.parametrize("slack", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("factor", [1.05, 1.5, 2.0, 5.0, 20.0])
def test_the_factory_is_unbiased_within_its_flip_bound(factor: float, slack: float) -> None:
    for share in (0.05, 0.5, 1.0):
        p = share * (1 - slack) / factor
        heads, flips = flip_linear(p, factor, slack=slack, count=COUNT, seed=7)
        wanted = factor * p
        # Five standard errors: each of the 60 cases fails by chance for one seed in 1.7 million.
        assert abs(heads.mean() - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / COUNT)
        assert flips.mean() + 5 * flips.std() / np.sqrt(COUNT) < flip_bound(factor, slack)


def twin_flip(p: float, factor: float, slack: float, coin: Stream, own: Stream) -> tuple[float, int]:
    """Huber's factory in plain words: gamma = 1/2, epsilon at most 0.644, k = 2.3 / (gamma epsilon), i = 1 [Huber2013]."""
    gamma, epsilon = 0.5, min(slack, 0.644)
    k, i, flips = 2.3 / (gamma * epsilon), 1, 0
    while True:
        while 0 < i < k:
            heads = uniform(coin) < p
            flips += 1
            geometric = 0 if heads else 1 + math.floor(math.log(1 - uniform(own)) / math.log(1 / factor))  # on 1, 2, ...
            i = i - 1 + geometric
        if i == 0:
            return 1.0, flips
        if uniform(own) >= (1 + gamma * epsilon) ** -i:
            return 0.0, flips
        factor *= 1 + gamma * epsilon
        epsilon *= 1 - gamma
        k /= 1 - gamma


# With a slack of 0.575 the bar 2.3 / (0.575 / 2) is exactly 8: the walk stops there, not one above it.
@pytest.mark.parametrize(
    ("p", "factor", "slack"), [(0.3, 2.0, 0.4), (0.6, 1.5, 0.1), (0.05, 3.0, 0.8), (0.4, 1.2, 0.5), (0.2, 2.0, 0.575)]
)
def test_the_factory_flips_as_often_as_its_twin(p: float, factor: float, slack: float) -> None:
    heads, flips = flip_linear(p, factor, slack=slack, count=1000, seed=3)
    coin, own = make_streams(3, np.array([[0, 0], [0, 1]]))
    with np.errstate(over="ignore"):
        expected = [twin_flip(p, factor, slack, coin, own) for _ in range(1000)]
    assert list(zip(heads.tolist(), flips.tolist(), strict=True)) == expected


def test_a_coin_that_never_shows_heads_stays_so() -> None:
    heads, _ = flip_linear(0.0, 3.0, slack=0.5, count=2000)
    assert heads.sum() == 0


def test_a_factor_of_one_is_one_flip() -> None:
    heads, flips = flip_linear(0.7, 1.0, slack=0.1, count=COUNT, seed=1)
    assert (flips == 1).all()
    assert abs(heads.mean() - 0.7) < 5 * np.sqrt(0.21 / COUNT)


def test_a_factor_that_changes_nothing_gives_the_flips_of_the_coin_whatever_the_slack() -> None:
    # 1 * 0.95 is above 1 - 0.1, which only matters where the factory has to make heads more likely.
    heads, flips = flip_linear(0.95, 1.0, slack=0.1, count=100, seed=2)
    coin = make_streams(2, np.array([[0, 0]]))[0]
    with np.errstate(over="ignore"):
        assert heads.tolist() == [float(uniform(coin) < 0.95) for _ in range(100)]
    assert flips.tolist() == [1] * 100


def test_the_streams_of_the_factory_are_those_of_seed_0_unless_another_is_named() -> None:
    unnamed, first, second = (flip_linear(0.3, 2.0, slack=0.4, count=20, **seed)[1] for seed in ({}, {"seed": 0}, {"seed": 1}))
    assert unnamed.tolist() == first.tolist()
    assert unnamed.tolist() != second.tolist()


def test_a_factor_below_one_takes_at_most_one_flip() -> None:
    heads, flips = flip_linear(0.8, 0.5, slack=0.1, count=COUNT, seed=1)
    assert flips.max() == 1
    assert abs(flips.mean() - 0.5) < 5 * np.sqrt(0.25 / COUNT)
    assert abs(heads.mean() - 0.4) < 5 * np.sqrt(0.24 / COUNT)


@pytest.mark.parametrize(
    ("p", "factor", "slack", "message"),
    [
        (0.5, 2.0, 0.1, "at most 1 - slack"),
        (0.5, 0.0, 0.1, "factor must be positive"),
        (0.0, math.inf, 0.1, "factor must be positive"),
        (0.1, 2.0, 0.0, "slack must be in"),
        (0.0, 2.0, 1.0, "slack must be in"),  # 2 * 0 is at most 1 - 1: only the slack itself is wrong
    ],
)
def test_the_factory_refuses_what_it_cannot_make(p: float, factor: float, slack: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        flip_linear(p, factor, slack=slack, count=1)


@pytest.mark.parametrize("inner", ["cs-etc", "cs-ucb", "oracle"])
@pytest.mark.parametrize("member", [0, 2])
def test_the_derived_algorithm_keeps_the_relation_of_the_proof(inner: str, member: int) -> None:
    alpha = 0.3
    family = HardFamily(alpha, (1 - alpha) / 3, (1 - alpha) / 30, 3)
    derived = derive(inner, family, member=member, rounds=3000, runs=10, seed=3)
    assert (derived.calls.sum(axis=1) == 3000).all()
    assert (derived.pulls[:, 0] == derived.calls[:, 0]).all()
    assert derived.pulls_per_call <= derived.bound_per_call == pytest.approx(19 / (1 - alpha))
    assert derived.outer_regret.mean() <= derived.bound_per_call * derived.inner_regret.mean()


def test_the_inner_policy_sees_rewards_of_the_lifted_means() -> None:
    # The oracle pulls arm 1 for ever; the factory's flips then have the cost of pi_0's pulls, and pulls exceed calls.
    family = HardFamily(0.5, 0.15, 0.05, 1)
    derived = derive("oracle", family, member=1, rounds=2000, runs=2, seed=1)
    assert (derived.calls[:, 1] == 2000).all()
    assert (derived.pulls[:, 1] > 2000).all()
    assert derived.inner_regret.tolist() == [0.0, 0.0]


def test_a_family_too_rich_for_the_factory_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be at most 0\.5 for the factory"):
        derive("cs-etc", HardFamily(0.3, 0.34, 0.1, 2), member=0, rounds=10, runs=1)


def test_a_family_that_just_suits_the_factory_is_taken() -> None:
    family = HardFamily(0.5, 0.1875, 0.0625, 1)  # (0.1875 + 0.0625) / 0.5 is exactly 1/2
    assert derive("cheapest", family, member=1, rounds=10, runs=1).calls.tolist() == [[10, 0]]


def twin_derived(family: HardFamily, *, member: int, rounds: int, seed: int, run: int) -> tuple[list[int], list[int]]:
    """Appendix B in plain words, with Thompson sampling inside: calls and pulls. Streams 0, 1, 2: coins, policy, factory."""
    coin, own, factory = make_streams(seed, np.array([[run, 0], [run, 1], [run, 2]]))
    means = [family.p + family.epsilon * (arm == member > 0) for arm in range(family.n_dear + 1)]  # of the instance at alpha = 0
    won, calls, pulls = ([0] * len(means) for _ in range(3))
    for _ in range(rounds):
        draws = [beta(own, 1.0 + w, 1.0 + n - w) for w, n in zip(won, calls, strict=True)]
        arm = draws.index(max(draws))
        if arm == 0:
            reward, flips = float(uniform(coin) < means[0]), 1
        else:
            reward, flips = twin_flip(means[arm], 1 / (1 - family.theta), 0.5, coin, factory)
        won[arm] += int(reward)
        calls[arm] += 1
        pulls[arm] += flips
    return calls, pulls


@pytest.mark.parametrize("member", [0, 1])
def test_the_derived_algorithm_pulls_what_its_twin_pulls(member: int) -> None:
    family = HardFamily(0.25, 0.2, 0.15, 2)
    derived = derive("ts", family, member=member, rounds=150, runs=2)  # seed 0 by default
    with np.errstate(over="ignore"):
        expected = [twin_derived(family, member=member, rounds=150, seed=0, run=run) for run in range(2)]
    assert list(zip(derived.calls.tolist(), derived.pulls.tolist(), strict=True)) == expected
    assert (derived.calls > 0).all()  # so that every arm had its say


def test_a_rule_that_weighs_outcomes_learns_in_the_reduction() -> None:
    """CS-EXP3 ignores outcomes without a propensity: it gives up the free arm, which is below the floor, only if it gets them."""
    derived = derive("cs-exp3", HardFamily(0.25, 0.1, 0.25, 1), member=1, rounds=20_000, runs=4, seed=1)
    assert (derived.calls[:, 0] < 0.5 * derived.calls.sum(axis=1)).all()


def test_the_reduction_refuses_a_policy_that_forgets() -> None:
    with pytest.raises(ValueError, match=r"the reduction plays policies that keep all they have seen, got cs-etc\+window=50"):
        derive("cs-etc+window=50", HardFamily(0.25, 0.25, 0.1, 2), member=0, rounds=10, runs=1)


def test_the_figures_of_derived_runs_by_hand() -> None:
    inner = Instance([0.2, 0.5, 0.4], [0.0, 1.0, 1.0], 0.5)  # floor 0.25, so arm 2 is optimal nowhere: the cheapest feasible is 1
    outer = Instance([0.2, 0.25, 0.2], [0.0, 1.0, 1.0], 0.0)  # floor 0.25: arm 1 is optimal, arm 0 misses it by 0.05
    calls, pulls = np.array([[4, 2, 1], [6, 0, 1]]), np.array([[4, 10, 3], [6, 0, 5]])
    derived = Derived(inner, outer, calls, pulls)
    assert derived.pulls_per_call == pytest.approx((10 + 3 + 0 + 5) / (2 + 1 + 0 + 1))
    assert derived.bound_per_call == pytest.approx(9.5 * 2 / 0.5)  # factor 1 / (1 - 0.5), slack 1/2
    assert derived.outer_regret.tolist() == pytest.approx([0.05 * 4, 0.05 * 6])  # no arm is dearer than arm 1
    assert derived.inner_regret.tolist() == pytest.approx([0.05 * 4, 0.05 * 6])  # 0.25 - 0.2 for arm 0; arms 1 and 2 cost alike


def test_regret_of_derived_runs_is_quality_and_cost_together() -> None:
    # The floor is 0.25. Inside, arm 1 is the cheapest good enough: arm 0 lacks 0.05, arm 2 costs 0.5 more.
    inner = Instance([0.2, 0.5, 0.4], [0.0, 0.5, 1.0], 0.5)
    # Outside, at alpha = 0, arm 1 is best with 0.25: arm 0 lacks 0.05, arm 2 costs 0.5 more. That it lacks 0.05 too is not counted.
    outer = Instance([0.2, 0.25, 0.2], [0.0, 0.5, 1.0], 0.0)
    derived = Derived(inner, outer, np.array([[4, 2, 1], [6, 0, 3]]), np.array([[4, 10, 3], [6, 0, 5]]))
    assert derived.inner_regret.tolist() == pytest.approx([0.05 * 4 + 0.5 * 1, 0.05 * 6 + 0.5 * 3])
    assert derived.outer_regret.tolist() == pytest.approx([0.05 * 4 + 0.5 * 3, 0.05 * 6 + 0.5 * 5])


def test_pulls_per_call_of_few_calls() -> None:
    instance = Instance([0.2, 0.5], [0.0, 1.0], 0.5)
    once = Derived(instance, instance, np.array([[4, 1]]), np.array([[4, 6]]))
    assert once.pulls_per_call == 6.0
    never = Derived(instance, instance, np.array([[4, 0]]), np.array([[4, 0]]))
    assert never.pulls_per_call == 0.0
