"""Confidence bounds: shape, order and coverage."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import Instance, simulate
from thrifty.arrays import Floats
from thrifty.compiled import builder, interpreted
from thrifty.environments import Beta, World
from thrifty.intervals import INTERVALS, paper_level, radius
from thrifty.policies.contract import RuleTerms
from thrifty.statistics import ArmStatistics, Outcome, add_to_sums, counted, no_statistics

TERMS = RuleTerms(np.array([1.0, 0.0]), np.array([1, 0]), 0.1, 5000, (), ())


def bound(interval: str, n: float, total: float, side: float, *, terms: RuleTerms = TERMS, squares: float | None = None) -> float:
    """The bound after n outcomes with this sum and sum of squares, by default successes and failures."""
    stats = no_statistics(1)
    stats["seen"], stats["reward_sum"], stats["reward_squares"] = n, total, total if squares is None else squares
    return float(INTERVALS[interval](terms, stats, 0, side))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("interval", INTERVALS)
@given(n=st.integers(1, 100_000), share=st.floats(0.0, 1.0))
def test_bounds_surround_the_mean_and_stay_in_the_unit_interval(interval: str, n: int, share: float) -> None:
    total = round(share * n)
    lower, upper = (bound(interval, n, float(total), side) for side in (-1.0, 1.0))
    assert 0.0 <= lower <= total / n <= upper <= 1.0


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("n", [1, 2, 200, 10**6])
@pytest.mark.parametrize("mean", [0.0, 5e-324, 1e-320, 1e-17, 0.5, 0.99995, 0.999999, 1.0 - 2.0**-53, 1.0])
def test_means_next_to_0_and_1_have_bounds_in_plain_python_too(interval: str, n: int, mean: float) -> None:
    stats = np.zeros(1, ArmStatistics)
    stats["seen"], stats["reward_sum"], stats["reward_squares"] = n, n * mean, n * mean
    for side in (-1.0, 1.0):
        kinds: tuple[Any, Any] = INTERVALS[interval], interpreted(INTERVALS[interval])
        compiled, plain = (float(each(TERMS, stats, 0, side)) for each in kinds)
        assert compiled == pytest.approx(plain, rel=1e-9)  # each has a gamma function of its own
        assert 0.0 <= plain <= 1.0
        assert side * plain >= side * mean * (1.0 - 1e-12)


@pytest.mark.parametrize("interval", INTERVALS)
def test_without_outcomes_anything_is_possible(interval: str) -> None:
    assert [bound(interval, 0, 0.0, side) for side in (-1.0, 1.0)] == [0.0, 1.0]


def test_the_paper_has_the_radius_it_prints() -> None:
    assert bound("paper", 185, 92.5, 1.0) == pytest.approx(0.5 + math.sqrt(2 * math.log(5000) / 185))


def test_kl_solves_its_equation_and_is_never_wider_than_hoeffding() -> None:
    for n, total in [(50, 5.0), (50, 25.0), (1000, 10.0), (1000, 990.0)]:
        mean, level = total / n, math.log(2 * 2 * 5000**2)
        for side in (-1.0, 1.0):
            q = bound("kl", n, total, side)
            divergence = mean * math.log(mean / q) + (1 - mean) * math.log((1 - mean) / (1 - q))
            assert n * divergence == pytest.approx(level, rel=1e-6)
            assert abs(q - mean) <= abs(mean - (mean + side * math.sqrt(level / (2 * n)))) + 1e-9
        assert bound("hoeffding", n, total, 1.0) >= bound("kl", n, total, 1.0)


@builder
def _worst_excess(interval, terms, rewards, mean):  # type: ignore[no-untyped-def]
    """By how much the mean is ever outside, over the whole sequence."""
    stats, worst = no_statistics(1), -1.0
    for reward in rewards:
        add_to_sums(stats, 0, counted(Outcome(0, reward, math.nan)), None)
        worst = max(worst, mean - interval(terms, stats, 0, 1.0), interval(terms, stats, 0, -1.0) - mean)
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


@pytest.mark.parametrize("interval", ["paper", "hoeffding", "kl", "bernstein"])
def test_the_union_bounds_hardly_ever_miss(interval: str) -> None:
    # Each fails with probability below 1/T = 2e-4 for a whole sequence: none of 300, up to a chance of 6%, and 3 or more with 4e-5.
    sequences = (np.random.default_rng(2).random((300, 5000)) < 0.4).astype(float)
    assert misses(interval, sequences, 0.4) < 3


def test_the_mixture_holds_for_scores_that_are_not_zero_or_one() -> None:
    sequences = np.random.default_rng(3).beta(2, 3, (800, 1000))
    assert misses("mixture", sequences, 0.4) < 45


def test_bernstein_holds_for_scores_that_vary_little_and_is_narrower_than_the_others_there() -> None:
    # It fails with probability below 1/T = 2e-4 for a whole sequence: none of 100, up to a chance of 2%.
    sequences = 0.45 + 0.1 * np.random.default_rng(4).beta(2, 2, (100, 2000))
    assert misses("bernstein", sequences, 0.5) == 0
    n, total, squares = 2000, float(sequences[0].sum()), float((sequences[0] ** 2).sum())
    widths = {
        each: bound(each, n, total, 1.0, squares=squares) - bound(each, n, total, -1.0, squares=squares) for each in INTERVALS
    }
    assert 1.5 * widths["bernstein"] < min(width for each, width in widths.items() if each != "bernstein")


def test_scores_of_low_variance_cost_cs_ucb_less_regret_with_bernstein() -> None:
    # Two models whose scores hardly vary; the cheap one is 0.03 below the floor.
    world = World([Beta(190, 10), Beta(165, 35)], [1.0, 0.0], 0.1)
    final = simulate(
        world, ["cs-ucb:interval=kl", "cs-ucb:interval=bernstein"], horizon=20_000, runs=10, seed=1, checkpoints=1
    ).final()
    assert 1.5 * final["cs-ucb:interval=bernstein"]["total"]["mean"] < final["cs-ucb:interval=kl"]["total"]["mean"]


def test_tighter_intervals_lower_the_regret_of_cs_ucb() -> None:
    instance = Instance([0.5, 0.3], [1.0, 0.0], 0.1)
    final = simulate(instance, ["cs-ucb", "cs-ucb:interval=kl"], horizon=5000, runs=50, seed=1, checkpoints=1).final()
    assert final["cs-ucb:interval=kl"]["total"]["mean"] < final["cs-ucb"]["total"]["mean"]


def test_mixture_is_the_only_one_that_needs_no_horizon() -> None:
    other = TERMS._replace(horizon=10**9)
    assert bound("mixture", 100, 40.0, 1.0) == bound("mixture", 100, 40.0, 1.0, terms=other)
    assert bound("kl", 100, 40.0, 1.0) < bound("kl", 100, 40.0, 1.0, terms=other)


class TestByHand:
    """Every constant of the bounds, by values worked out on paper. K = 2 and T = 100, so that ln T = 4.605170."""

    TERMS = RuleTerms(np.array([1.0, 0.0]), np.array([1, 0]), 0.1, 100, (), ())

    def both(self, interval: str, n: float, total: float) -> list[float]:
        return [round(bound(interval, n, total, side, terms=self.TERMS), 6) for side in (-1.0, 1.0)]

    def test_paper(self) -> None:
        # sqrt(2 * 4.605170 / 100) = sqrt(0.0921034) = 0.303485
        assert self.both("paper", 100, 40.0) == [0.096515, 0.703485]
        assert self.both("paper", 100, 90.0) == [0.596515, 1.0]
        assert self.both("paper", 100, 10.0) == [0.0, 0.403485]

    def test_hoeffding(self) -> None:
        # ln(2 * 2 * 100^2) = ln 40000 = 10.596635; sqrt(10.596635 / 200) = 0.230181
        assert self.both("hoeffding", 100, 40.0) == [0.169819, 0.630181]

    def test_kl(self) -> None:
        # n kl(0, q) = -n ln(1 - q), so q = 1 - exp(-10.596635 / 100) = 0.100545; and the mirror image of it.
        assert self.both("kl", 100, 0.0) == [0.0, 0.100545]
        assert self.both("kl", 100, 100.0) == [0.899455, 1.0]
        # At the mean 1/2: kl(1/2, q) = -ln(4 q (1 - q)) / 2 = 0.10596635, so q (1 - q) = exp(-0.2119327) / 4 = 0.202255 and
        # q = 1/2 +- sqrt(1/4 - 0.202255) = 1/2 +- 0.218507.
        assert self.both("kl", 100, 50.0) == [0.281493, 0.718507]

    def test_forty_halvings(self) -> None:
        # Without a reward the bound is 1 - exp(-ln(40000) / 64); bisection of [0, 1] ends at the next multiple of 2^-40 above it.
        wanted = math.ceil((1 - math.exp(-math.log(40_000) / 64)) * 2**40) / 2**40
        assert bound("kl", 64, 0.0, 1.0, terms=self.TERMS) == wanted

    def test_kl_after_one_outcome(self) -> None:
        # 1 - exp(-10.596635) = 0.999975
        assert self.both("kl", 1, 0.0) == [0.0, 0.999975]

    def test_bernstein(self) -> None:
        # l = ln(4 * 2 * 100^2) = ln 80000 = 11.289782. After 5,000 outcomes of 0.5 the variance is 0, and
        # 7 * 11.289782 / (3 * 4999) = 0.005270.
        both = [round(bound("bernstein", 5000, 2500.0, side, terms=self.TERMS, squares=1250.0), 6) for side in (-1.0, 1.0)]
        assert both == [0.49473, 0.50527]
        # Half of them 0 and half 1: V = 0.25005; sqrt(2 * 0.25005 * 11.289782 / 5000) = 0.033603, and 0.005270 more.
        assert self.both("bernstein", 5000, 2500.0) == [0.461127, 0.538873]

    def test_bernstein_needs_two_outcomes(self) -> None:
        assert self.both("bernstein", 1, 0.5) == [0.0, 1.0]
        assert self.both("bernstein", 1.5, 0.5) == [0.0, 1.0]

    def test_mixture(self) -> None:
        # No reward: B(1, n + 1) = 1 / (n + 1), so -ln 101 - 100 ln(1 - p) = ln(2 / 0.05) = ln 40 and
        # p = 1 - exp(-ln(4040) / 100) = 1 - exp(-0.08304) = 0.079686; and the mirror image of it.
        assert self.both("mixture", 100, 0.0) == [0.0, 0.079686]
        assert self.both("mixture", 100, 100.0) == [0.920314, 1.0]
        # One of each: B(2, 2) = 1/6, so -ln 6 - ln(p (1 - p)) = ln 40, p (1 - p) = 1/240 and p = 1/2 +- sqrt(1/4 - 1/240).
        assert self.both("mixture", 2, 1.0) == [0.004184, 0.995816]

    def test_mixture_after_one_outcome(self) -> None:
        # -ln 2 - ln(1 - p) = ln 40: p = 1 - 1/80.
        assert self.both("mixture", 1, 0.0) == [0.0, 0.9875]
        assert self.both("mixture", 1, 1.0) == [0.0125, 1.0]

    def test_mixture_of_sums_that_rounding_took_out_of_range(self) -> None:
        assert self.both("mixture", 100, -1e-12) == self.both("mixture", 100, 0.0)
        assert self.both("mixture", 100, 100.0 + 1e-12) == self.both("mixture", 100, 100.0)

    def test_the_levels(self) -> None:
        assert paper_level(100) == pytest.approx(9.210340)
        assert radius(9.0, 4.0) == 1.5

    def test_fractions_of_an_outcome_count_as_one_in_a_radius(self) -> None:
        # Outcomes that are forgotten or borrowed have a weight; the paper's radius is then that of one outcome at least.
        wide = RuleTerms(np.array([1.0, 0.0]), np.array([1, 0]), 0.1, 1, (), ())  # ln 1 = 0: no radius
        assert bound("paper", 0.5, 0.4, 1.0, terms=wide) == 0.4
        assert bound("paper", 1.0, 0.4, 1.0, terms=wide) == 0.4
        assert bound("paper", 2.0, 0.4, -1.0, terms=wide) == 0.2
