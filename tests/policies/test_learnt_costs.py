"""Costs without a scale: by hand, in other units, in another order, and as bounds and posteriors that hold."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.policies.by_hand import plain, statistics, terms_of
from thrifty import Bernoulli, Beta, World, list_policies, policy, simulate
from thrifty.arrays import Floats
from thrifty.environments import scaled
from thrifty.policies.learnt_costs import cost_deviation, cost_unit, draw_cost, lowest_cost
from thrifty.streams import gamma, make_streams, normal

LEARNERS = [name for name, each in list_policies().items() if each.rule_for_unknown_costs]
SCALELESS = [name for name in LEARNERS if name != "scalarised"]  # whose weight is a reward per dollar


def stream() -> Any:
    return make_streams(3, np.array([[0]]))[0]


def paid(costs: list[float]) -> Any:
    stats = statistics([(len(costs), 0.0)], costs=[math.fsum(costs)])
    stats[0].cost_squares = math.fsum(cost**2 for cost in costs)
    return stats


class TestByHand:
    terms = terms_of("cs-ucb", costs=None, n_arms=1, alpha=0.1, horizon=100)

    def test_the_deviation_counts_one_outcome_more_whose_deviation_is_the_mean(self) -> None:
        deviation = plain(cost_deviation)
        assert deviation(paid([3.0]), 0) == 3.0
        assert deviation(paid([1.0, 3.0]), 0) == pytest.approx(math.sqrt((2.0 + 4.0) / 2))
        assert deviation(paid([2.0] * 400), 0) == pytest.approx(2.0 / 20)
        assert deviation(statistics([(1, 0.0)], seen=[0.25], costs=[0.5]), 0) == pytest.approx(2.0)  # a quarter of an outcome

    def test_the_lower_bound(self) -> None:
        # T = 100, so that exp(2 ln T / (n + 1)) is 100 after one outcome, 10 after three and 100^(2/1001) after a thousand.
        lowest = plain(lowest_cost)
        assert lowest(self.terms, paid([2.0]), 0) == pytest.approx(2 / (1 + math.sqrt(99)))
        assert lowest(self.terms, paid([2.0, 2.0, 2.0]), 0) == pytest.approx(2 / (1 + math.sqrt(1 / 3) * 3))
        thousand = paid([1.0] * 500 + [3.0] * 500)
        width = math.sqrt(1004 / 1000) / 2 * math.sqrt(100 ** (2 / 1001) - 1)
        assert lowest(self.terms, thousand, 0) == pytest.approx(2 / (1 + width))

    def test_nothing_paid_is_a_cost_of_nothing(self) -> None:
        for costs in ([], [0.0], [0.0, 0.0]):
            assert plain(lowest_cost)(self.terms, paid(costs), 0) == 0.0
            assert plain(draw_cost)(self.terms, paid(costs), 0, stream()) == 0.0

    def test_a_draw_is_students_t_around_the_mean_and_is_drawn_anew_while_it_is_negative(self) -> None:
        stats, mine, twins = paid([0.5, 0.1]), stream(), stream()
        deviation = plain(cost_deviation)(stats, 0)
        negative = 0
        with np.errstate(over="ignore"):
            for _ in range(200):
                drawn = -1.0
                while drawn < 0.0:
                    drawn = 0.3 + deviation / math.sqrt(2) * float(normal(twins)) / math.sqrt(float(gamma(twins, 1.0)))
                    negative += drawn < 0.0
                assert plain(draw_cost)(self.terms, stats, 0, mine) == pytest.approx(drawn)
        assert negative > 10

    def test_draws_are_divided_by_the_range_of_the_mean_costs(self) -> None:
        unit = plain(cost_unit)
        several = statistics([(2, 0.0), (4, 0.0), (0, 0.0)], costs=[6.0, 2.0, 0.0])
        assert unit(self.terms, several) == 2.5  # means of 3 and 1/2; the third has none
        assert unit(self.terms, statistics([(2, 0.0), (4, 0.0)], costs=[6.0, 12.0])) == 3.0
        assert unit(self.terms, statistics([(2, 0.0), (4, 0.0)], costs=[0.0, 0.0])) == 1.0
        given = terms_of("cs-ids:cost_scale=7", costs=None, n_arms=2, alpha=0.1, horizon=100)
        assert unit(given, several) == 7.0


# Costs of several kinds, the same arms in several units. A factor that is a power of two leaves every digit as it is.
def dollars(factor: float, order: list[int]) -> World:
    rewards: list[float] = [0.9, 0.88, 0.6, 0.91]
    costs = [
        scaled(Beta(2, 6), 4 * factor),
        scaled(Beta(1, 9), 5 * factor),
        scaled(Bernoulli(0.1), 2 * factor),
        scaled(Beta(3, 3), 30 * factor),
    ]
    return World([rewards[arm] for arm in order], [costs[arm] for arm in order], 0.05)


def choices(world: World, label: str) -> list[int]:
    trace = simulate(world, label, horizon=150, runs=1, seed=11, trace=True)[label].trace
    assert trace is not None
    return [int(arm) for arm in trace[0]]


@pytest.mark.parametrize(
    "label", [*SCALELESS, "cs-ids+window=100", "cs-ucb+discount=0.99", "cs-etc+restart", "cs-ts:prior=gaussian"]
)
@pytest.mark.usefixtures("uncompiled")
def test_dollars_or_cents_make_no_difference(label: str) -> None:
    first, second = (choices(dollars(factor, [0, 1, 2, 3]), label) for factor in (1.0, 2.0**-17))
    assert first == second


@pytest.mark.parametrize("label", ["cs-ucb", "cs-etc", "cs-direct", "one-shot-etc", "cs-ts", "cs-ids"])
def test_the_order_of_the_arms_changes_nothing_beyond_noise(label: str) -> None:
    # Money per run in two orders, 40 runs each: a difference of five standard errors would come by chance once in a million.
    orders = [[0, 1, 2, 3], [3, 2, 1, 0]]
    money = []
    for order in orders:
        world = dollars(1e-5, order)
        pulls = simulate(world, label, horizon=2000, runs=40, seed=4)[label].pulls[:, -1]
        money.append(pulls @ world.instance.costs)
    error = math.sqrt(sum(each.var(ddof=1) / 40 for each in money))
    assert abs(money[0].mean() - money[1].mean()) < 5 * max(error, 0.005 * money[0].mean())


def test_with_a_scale_that_is_far_too_large_the_order_decides() -> None:
    # What the test above is for: bounds of width 1 on costs of 1e-5 say nothing, and equal prices go to the better score or index.
    money = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        world = dollars(1e-5, order)
        pulls = simulate(world, "cs-ucb:cost_scale=1", horizon=2000, runs=20, seed=4)["cs-ucb:cost_scale=1"].pulls[:, -1]
        money.append(float((pulls @ world.instance.costs).mean()))
    assert max(money) > 2 * min(money)


@pytest.mark.parametrize(
    ("truth", "draw"),
    [
        (1e-4, lambda rng: rng.exponential(1e-4, (400, 100))),
        (1e-5, lambda rng: 1e-4 * (rng.random((400, 100)) < 0.1)),
        (1e-4 * math.exp(1.125), lambda rng: 1e-4 * rng.lognormal(0.0, 1.5, (400, 100))),
        (0.03, lambda _: np.full((400, 100), 0.03)),
    ],
    ids=["exponential", "fee of one in ten", "log-normal", "constant"],
)
def test_the_lower_bound_holds(truth: float, draw: Callable[[np.random.Generator], Floats]) -> None:
    # T = 1,000; 400 arms, 5 looks at each. The likelihood of t allows about 2 failures of 2,000; two rare fees in a row make it 11
    # in the second case. More than 30 would come by chance less than once in 100,000 seeds.
    costs = draw(np.random.default_rng(6))
    terms = terms_of("cs-ucb", costs=None, n_arms=1, alpha=0.1, horizon=1000)
    failed = 0
    for n in (1, 2, 5, 20, 100):
        for row in costs[:, :n]:
            failed += int(plain(lowest_cost)(terms, paid(row.tolist()), 0) > truth * (1 + 1e-12))
    assert failed <= 30


def test_draws_have_the_moments_of_the_posterior() -> None:
    # 30 costs of 0.002 and 0.004: mean 0.003, deviation sqrt((30e-6 + 9e-6) / 30); t with 30 degrees has variance 30 / 28.
    stats, terms = paid([0.002, 0.004] * 15), terms_of("cs-ts", costs=None, n_arms=1, alpha=0.1, horizon=100)
    mine = stream()
    with np.errstate(over="ignore"):
        drawn = np.array([plain(draw_cost)(terms, stats, 0, mine) for _ in range(4000)])
    sd = math.sqrt(39e-6 / 30 / 30 * 30 / 28)
    assert drawn.mean() == pytest.approx(0.003, abs=5 * sd / math.sqrt(4000))  # missed once in a million
    assert drawn.std() == pytest.approx(sd, rel=0.08)  # a standard error of 1.2%: missed once in a billion


def test_a_scale_must_be_a_positive_number() -> None:
    for wrong in ("0", "-1", "nan", "inf", "dollars"):
        with pytest.raises(ValueError, match=f"cost_scale must be a number of at least 1e-300, got {wrong}"):
            policy(f"cs-ucb:cost_scale={wrong}")
