"""Confidence bounds: shape, order and coverage."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import Instance, simulate
from thrifty.arrays import Floats
from thrifty.compiled import builder
from thrifty.intervals import INTERVALS, hoeffding, kl, mixture, paper
from thrifty.policies.contract import RuleTerms

Bound = Callable[[RuleTerms, int, float, float], float]
BOUNDS: dict[str, Bound] = dict(INTERVALS)
TERMS = RuleTerms(np.array([1.0, 0.0]), np.array([1, 0]), 0.1, 5000, (), ())


@pytest.mark.parametrize("interval", INTERVALS)
@given(n=st.integers(1, 100_000), share=st.floats(0.0, 1.0))
def test_bounds_surround_the_mean_and_stay_in_the_unit_interval(interval: str, n: int, share: float) -> None:
    total = round(share * n)
    lower, upper = (BOUNDS[interval](TERMS, n, float(total), side) for side in (-1.0, 1.0))
    assert 0.0 <= lower <= total / n <= upper <= 1.0


@pytest.mark.parametrize("interval", INTERVALS)
def test_without_outcomes_anything_is_possible(interval: str) -> None:
    assert [BOUNDS[interval](TERMS, 0, 0.0, side) for side in (-1.0, 1.0)] == [0.0, 1.0]


def test_the_paper_has_the_radius_it_prints() -> None:
    assert paper(TERMS, 185, 92.5, 1.0) == pytest.approx(0.5 + math.sqrt(2 * math.log(5000) / 185))


def test_kl_solves_its_equation_and_is_never_wider_than_hoeffding() -> None:
    for n, total in [(50, 5.0), (50, 25.0), (1000, 10.0), (1000, 990.0)]:
        mean, level = total / n, math.log(2 * 2 * 5000**2)
        for side in (-1.0, 1.0):
            q = kl(TERMS, n, total, side)
            divergence = mean * math.log(mean / q) + (1 - mean) * math.log((1 - mean) / (1 - q))
            assert n * divergence == pytest.approx(level, rel=1e-6)
            assert abs(q - mean) <= abs(mean - (mean + side * math.sqrt(level / (2 * n)))) + 1e-9
        assert hoeffding(TERMS, n, total, 1.0) >= kl(TERMS, n, total, 1.0)


@builder
def _worst_excess(interval, terms, rewards, mean):  # type: ignore[no-untyped-def]
    """By how much the mean is ever outside, over the whole sequence."""
    total, worst = 0.0, -1.0
    for n in range(rewards.size):
        total += rewards[n]
        worst = max(worst, mean - interval(terms, n + 1, total, 1.0), interval(terms, n + 1, total, -1.0) - mean)
    return worst


def misses(interval: str, sequences: Floats, mean: float) -> int:
    return sum(_worst_excess(INTERVALS[interval], TERMS, rewards, mean) > 0 for rewards in sequences)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.5, 0.97])
def test_the_mixture_covers_all_rounds_at_once(mean: float) -> None:
    # Two arms share delta = 0.05 and both sides of one arm get half of it: at most 2.5% of sequences may ever leave the
    # interval. Of 800
    # sequences 20 are expected at most; 45 or more happen with probability below 1e-6.
    sequences = (np.random.default_rng(1).random((800, 2000)) < mean).astype(float)
    assert misses("mixture", sequences, mean) < 45


@pytest.mark.parametrize("interval", ["paper", "hoeffding", "kl"])
def test_the_union_bounds_hardly_ever_miss(interval: str) -> None:
    # Each fails with probability below 1/T = 2e-4 for a whole sequence: none of 300, up to a chance of 6%, and 3 or more with 4e-5.
    sequences = (np.random.default_rng(2).random((300, 5000)) < 0.4).astype(float)
    assert misses(interval, sequences, 0.4) < 3


def test_the_mixture_holds_for_scores_that_are_not_zero_or_one() -> None:
    sequences = np.random.default_rng(3).beta(2, 3, (800, 1000))
    assert misses("mixture", sequences, 0.4) < 45


def test_tighter_intervals_lower_the_regret_of_cs_ucb() -> None:
    instance = Instance([0.5, 0.3], [1.0, 0.0], 0.1)
    final = simulate(instance, ["cs-ucb", "cs-ucb:interval=kl"], horizon=5000, runs=50, seed=1, checkpoints=1).final()
    assert final["cs-ucb:interval=kl"]["total"]["mean"] < final["cs-ucb"]["total"]["mean"]


def test_mixture_is_the_only_one_that_needs_no_horizon() -> None:
    other = TERMS._replace(horizon=10**9)
    assert mixture(TERMS, 100, 40.0, 1.0) == mixture(other, 100, 40.0, 1.0)
    assert kl(TERMS, 100, 40.0, 1.0) < kl(other, 100, 40.0, 1.0)
