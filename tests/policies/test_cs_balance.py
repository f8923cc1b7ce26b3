"""CS-Balance: what it promises beyond the contract, and its parts by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.by_hand import memory_of, plain, statistics, terms_of
from thrifty import Bernoulli, Instance, World, simulate
from thrifty.environments import scaled
from thrifty.policies import cs_balance
from thrifty.statistics import Outcome

shares = st.floats(0.01, 0.99)


def asked(
    means: list[float],
    looks: list[float],
    costs: list[float],
    *,
    alpha: float = 0.1,
    label: str = "cs-balance",
    horizon: int = 1000,
) -> tuple[Any, Any]:
    """Terms and a memory with these estimates."""
    terms = terms_of(label, costs=costs, alpha=alpha, horizon=horizon)
    memory = memory_of("cs-balance", terms)
    memory.means[:], memory.looks[:] = means, looks
    return terms, memory


class TestBudget:
    @given(st.tuples(shares, shares), st.tuples(st.integers(1, 10_000), st.integers(1, 10_000)), shares, st.integers(100, 10**6))
    def test_a_rival_of_an_arm_that_looks_good_enough_is_looked_at_this_often_at_most(
        self, means: tuple[float, float], looks: tuple[int, int], alpha: float, horizon: int
    ) -> None:
        terms, memory = asked(list(means), list(looks), [0.0, 1.0], alpha=alpha, horizon=horizon)
        rival = plain(cs_balance.settle_doubts)(terms, memory, 0, 0, 0, 1) == 1
        if rival and means[0] >= (1 - alpha) * means[1] and looks[0] >= looks[1]:
            assert looks[1] <= (0.57 * 0.5 * horizon) ** (2 / 3)

    def test_it_is_looked_at_until_its_looks_have_cost_what_they_may_save(self) -> None:
        # Arm 0 is known to be at 1/2, on the floor: z = 0, s = 0.5 / sqrt(n). n * 1 * 0.5 = 0.5 * 10^6 * 0.398942 s at n = 3,413.
        found = [
            plain(cs_balance.settle_doubts)(*asked([0.5, 0.5], [10**9, n], [0.0, 1.0], alpha=0.0, horizon=10**6), 0, 0, 0, 1)
            for n in (3_380, 3_440)
        ]
        assert found == [1, 0]

    def test_regret_grows_no_faster_than_the_bound_on_the_floor(self) -> None:
        # Arm 1 is exactly on the floor: regret over T^(2/3) stays below 1.3. Measured: 0.72, 0.66 and 0.62 with standard errors of
        # 0.06, so five of them are left.
        for horizon in (2_000, 20_000, 200_000):
            final = simulate(Instance([0.5, 0.45], [1.0, 0.0], 0.1), "cs-balance", horizon=horizon, runs=200, seed=3, checkpoints=1)
            assert final.final()["cs-balance"]["total"]["mean"] < 1.3 * horizon ** (2 / 3)


class TestParts:
    def test_normal_chances(self) -> None:
        # Phi(-1) = 0.158655, phi(1) = 0.241971: E[max(Z + 1, 0)] = 0.241971 + 0.841345 and E[max(Z - 1, 0)] = 0.241971 - 0.158655.
        assert plain(cs_balance.clear_chance)(1.0) == pytest.approx(0.158655, rel=1e-5)
        assert plain(cs_balance.excess)(1.0) == pytest.approx(1.083316, rel=1e-5)
        assert plain(cs_balance.excess)(-1.0) == pytest.approx(0.083316, rel=1e-4)

    def test_the_variance_is_that_of_an_arm_on_the_floor(self) -> None:
        # Floor 0.5 * 0.8 = 0.4: 0.24 / 10 outcomes of arm 0. The rival that sets the floor at 0.2 has 0.4: 0.25 * 0.24 / 20.
        terms, memory = asked([0.2, 0.8], [10.0, 20.0], [0.0, 1.0], alpha=0.5)
        assert plain(cs_balance.own_part)(terms, memory, 0, 1) == pytest.approx(0.024)
        assert plain(cs_balance.rival_part)(terms, memory, 0, 1) == pytest.approx(0.003)
        z, s = plain(cs_balance.difference)(terms, memory, 0, 1)
        assert s == pytest.approx(math.sqrt(0.027))
        assert z == pytest.approx(0.2 / math.sqrt(0.027))

    def test_a_floor_out_of_reach_leaves_a_little_variance(self) -> None:
        # No rival can set the floor at 0.9 if half of its mean is enough: 0.01 stands in for 1 (1 - 1). A floor of 0 likewise.
        terms, memory = asked([0.9, 0.0], [2.0, 5.0], [0.0, 1.0], alpha=0.5)
        assert plain(cs_balance.rival_part)(terms, memory, 0, 1) == pytest.approx(0.25 * 0.01 / 5)
        assert plain(cs_balance.own_part)(terms, memory, 0, 1) == pytest.approx(0.01 / 2)
        memory.looks[:] = 0.0  # forgotten: as if there were half an outcome
        assert plain(cs_balance.own_part)(terms, memory, 0, 1) == pytest.approx(0.02)
        assert plain(cs_balance.rival_part)(terms, memory, 0, 1) == pytest.approx(0.005)

    @pytest.mark.parametrize(("horizon", "rejected"), [(1500, True), (1530, False)])
    def test_an_arm_is_rejected_once_the_looks_have_lost_more_than_it_may_save(self, horizon: int, rejected: bool) -> None:
        # s^2 = 0.16 / 25 + 0.25 / 50 = 0.0114, s = 0.106771, z = 0.3 / s = 2.80976. Phi(-z) = 0.0024789, phi(z) = 0.0077016,
        # so E(z) = 2.81050, and 25 looks have lost 25 s E(z) = 7.502. The arm may save 2 T * 1 * 0.0024789: as much at T = 1,513.
        terms, memory = asked([0.5, 0.8], [25.0, 50.0], [0.0, 1.0], alpha=0.0, horizon=horizon)
        assert plain(cs_balance.is_rejected)(terms, memory, 0, 1, 1, 1) == rejected

    def test_an_arm_that_no_rival_puts_below_the_floor_is_not_rejected(self) -> None:
        terms, memory = asked([0.5, 0.5], [10**9, 10**9], [0.0, 1.0], alpha=0.0)
        assert not plain(cs_balance.is_rejected)(terms, memory, 0, 1, 1, 1)

    def test_estimates_are_shrunk_to_their_centre(self) -> None:
        # Means 30.5 / 101 and 70.5 / 101, average 0.5. Beyond chance: 2 * (0.198020^2 - 0.210788 / 101 * 0.5) = 0.0763365.
        # Between arms: (1/12 + 0.0763365) / 2 = 0.0798349. Centre 1/2, so the strength is 0.25 / 0.0798349 = 3.131463.
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=100)
        memory = memory_of("cs-balance", terms)
        plain(cs_balance.estimate)(terms, statistics([(100, 30.0), (100, 70.0)]), memory)
        assert memory.means.tolist() == pytest.approx([31.565731 / 103.131463, 71.565731 / 103.131463], rel=1e-6)
        assert memory.looks.tolist() == [100.0, 100.0]

    def test_arms_that_look_alike_are_shrunk_more(self) -> None:
        # Nothing beyond chance: between arms 1/12 / 4, so the strength is 0.25 * 48 = 12, and all means are the centre.
        terms = terms_of("cs-balance", costs=[0.0, 1.0, 2.0, 3.0], alpha=0.1, horizon=100)
        memory = memory_of("cs-balance", terms)
        plain(cs_balance.estimate)(terms, statistics([(10, 5.0)] * 4), memory)
        assert memory.means.tolist() == pytest.approx([0.5] * 4)
        plain(cs_balance.estimate)(terms, statistics([(10, 5.0)] * 3 + [(10, 6.0)]), memory)
        assert memory.means[3] - memory.means[0] == pytest.approx(1.0 / 22.0, rel=1e-2)

    def test_a_decision_that_is_pending_is_a_look(self) -> None:
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=100)
        memory, stats = memory_of("cs-balance", terms), statistics([(10, 5.0), (10, 5.0)])
        stats[1].pending = 7
        plain(cs_balance.estimate)(terms, stats, memory)
        assert memory.looks.tolist() == [10.0, 17.0]

    def test_an_unknown_cost_is_its_mean_less_one_part_in_the_root_of_its_outcomes(self) -> None:
        terms = terms_of("cs-balance", costs=None, n_arms=3, alpha=0.1, horizon=100)
        memory, stats = memory_of("cs-balance", terms), statistics([(4, 1.0), (25, 1.0), (1, 1.0)], costs=[40.0, 100.0, 3.0])
        plain(cs_balance.price_arms)(stats, memory)  # 10 * (1 - 1/2) = 5, 4 * (1 - 1/5) = 3.2, and 0 after one outcome
        assert memory.prices.tolist() == pytest.approx([1.0, 0.64, 0.0])
        assert memory.order.tolist() == [2, 1, 0]

    def test_prices_are_in_shares_of_the_range_of_costs(self) -> None:
        for costs, prices in (([2.0, 4.0, 7.0], [0.4, 0.8, 1.4]), ([3.0, 3.0, 3.0], [3.0, 3.0, 3.0])):
            terms = terms_of("cs-balance", costs=costs, alpha=0.1, horizon=100)
            assert memory_of("cs-balance", terms).prices.tolist() == pytest.approx(prices)
        terms = terms_of("cs-balance", costs=None, n_arms=2, alpha=0.1, horizon=100)
        for spent, prices in (([40.0, 100.0], [5 / 1.8, 3.2 / 1.8]), ([40.0, 156.25], [5.0, 5.0])):
            memory = memory_of("cs-balance", terms)
            plain(cs_balance.price_arms)(statistics([(4, 1.0), (25, 1.0)], costs=spent), memory)  # as above; then both at 5
            assert memory.prices.tolist() == pytest.approx(prices)

    def test_an_arm_whose_outcomes_are_all_forgotten_is_at_the_centre(self) -> None:
        # Means 0.5 / 1 and 50.5 / 101: all at 1/2.
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=100)
        memory = memory_of("cs-balance", terms)
        plain(cs_balance.estimate)(terms, statistics([(100, 0.0), (100, 50.0)], seen=[0.0, 100.0]), memory)
        assert memory.means.tolist() == [0.5, 0.5]
        # A quarter of an outcome, not won. Means 0.5 / 1.25 = 0.4 and 0.5, average 0.45. Beyond chance there is less than nothing:
        # 2 * 0.05^2 - (0.24 / 1.25 + 0.25 / 101) / 2. So the variance between arms is 1/24. The centre is
        # (0.45 * 100.25 + 50) / 200.25 = 0.474969, the strength 0.249373 * 24 = 5.984963, the mean 5.984963 * centre / 6.234963.
        plain(cs_balance.estimate)(terms, statistics([(100, 0.0), (100, 50.0)], seen=[0.25, 100.0]), memory)
        assert memory.means[0] == pytest.approx(5.984963 * 0.474969 / 6.234963, rel=1e-5)
        assert memory.looks.tolist() == [0.25, 100.0]

    def test_what_chance_makes_of_the_distance_between_arms_depends_on_their_outcomes(self) -> None:
        # A quarter of an outcome, won, and none of a hundred: means 0.6 and 0.004950, average 0.302475. Beyond chance:
        # 2 * 0.297525^2 - (0.24 / 1.25 + 0.004926 / 101) / 2 = 0.081018. Between arms: (1/12 + 0.081018) / 2 = 0.082175.
        # Centre 0.401114, strength 2.923278: (0.25 + 2.923278 * 0.401114) / 3.173278 = 0.448296.
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=100)
        memory = memory_of("cs-balance", terms)
        plain(cs_balance.estimate)(terms, statistics([(100, 0.25), (100, 0.0)], seen=[0.25, 100.0]), memory)
        assert memory.means[0] == pytest.approx(0.448296, rel=1e-5)

    def test_looks_at_an_arm_of_the_same_cost_are_not_free(self) -> None:
        # Arm 0 is known to be at 1/2: z = 0, s = 0.5 / sqrt(n). n * 0.02 * 0.5 = 0.5 * 100 * 0.398942 s at n = 99.8.
        found = [
            plain(cs_balance.settle_doubts)(*asked([0.5, 0.5], [10**9, n], [1.0, 1.0], alpha=0.0, horizon=100), 0, 0, 0, 1)
            for n in (99, 101)
        ]
        assert found == [1, 0]

    @pytest.mark.parametrize(("exchange", "better"), [(1.5, 0), (2, 1)])
    def test_a_forgotten_arm_has_half_a_look(self, exchange: float, better: int) -> None:
        # z = 0, s^2 = 0.25 / 0.6 + 0.25 / 0.5 and s = 0.957427. A look at arm 0 tells 0.25 / 0.36 = 0.694 and costs 0.381952 times
        # the exchange. One at the rival, of which nothing is left, tells 1 and costs 1. 0.694 is between 0.573 and 0.764.
        terms, memory = asked([0.5, 0.5], [0.6, 0.0], [0.0, 1.0], alpha=0.0, label=f"cs-balance:exchange={exchange}")
        assert plain(cs_balance._better_look)(terms, memory, 0, 1, 0, 1) == better

    def test_of_two_that_are_quite_alike_the_arm_is_played(self) -> None:
        terms, memory = asked([0.5, 0.5], [20.0, 20.0], [1.0, 1.0], alpha=0.0)
        assert plain(cs_balance._better_look)(terms, memory, 0, 1, 0, 0) == 0

    def test_a_rival_without_outcomes_is_looked_at(self) -> None:
        terms, memory = asked([0.5, 0.5], [100.0, 0.0], [0.0, 1.0])
        assert plain(cs_balance.settle_doubts)(terms, memory, 0, 0, 0, 1) == 1

    def test_an_arm_that_one_rival_rejects_stays_rejected(self) -> None:
        terms, memory = asked([0.5, 0.9, 0.1], [2000.0, 2000.0, 2000.0], [0.0, 1.0, 2.0])
        assert plain(cs_balance.balanced)(terms, memory) == 1

    def test_the_first_arm_is_due_first(self) -> None:
        for costs, choose in (([0.0, 1.0], cs_balance.choose), (None, cs_balance.choose_unknown_costs)):
            terms = terms_of("cs-balance", costs=costs, n_arms=2, alpha=0.1, horizon=100)
            memory = memory_of("cs-balance", terms)
            memory.plan[:] = [1, 5]
            assert plain(choose)(terms, statistics([(0, 0.0), (3, 3.0)]), memory, None) == 0

    def test_equal_prices_are_ordered_by_number(self) -> None:
        memory = memory_of("cs-balance", terms_of("cs-balance", costs=None, n_arms=3, alpha=0.1, horizon=100))
        memory.prices[:], memory.order[:] = [0.5, 0.5, 0.5], [2, 0, 1]
        plain(cs_balance.sort_by_price)(memory)
        assert memory.order.tolist() == [0, 1, 2]

    def test_of_equal_costs_the_best_estimate_stands_for_its_cost(self) -> None:
        _, memory = asked([0.3, 0.5, 0.6, 0.9], [9.0] * 4, [0.0, 0.5, 0.5, 1.0])
        assert [plain(cs_balance.cheapest_by_estimates)(memory, floor) for floor in (0.5, 0.3, 0.7)] == [2, 0, 3]
        _, memory = asked([0.3, 0.5, 0.6], [9.0] * 3, [0.0, 0.5, 0.5])
        assert plain(cs_balance.cheapest_by_estimates)(memory, 0.5) == 2

    @pytest.mark.parametrize(("looks", "better"), [(20.0, 0), (100.0, 1)])
    def test_the_arm_that_tells_more_for_its_regret_is_looked_at(self, looks: float, better: int) -> None:
        # z = 0 and s^2 = 0.25 / n + 0.25 / 20. A look at arm 0 costs 0.39894 s, one at the rival 1. Without the common 0.25:
        # n = 20, s = 0.15811: 1/400 > 1/400 * 0.0631. n = 100, s = 0.12247: 1/10,000 < 1/400 * 0.0489 = 1/8,187.
        terms, memory = asked([0.5, 0.5], [looks, 20.0], [0.0, 1.0], alpha=0.0)
        assert plain(cs_balance._better_look)(terms, memory, 0, 1, 0, 1) == better

    def test_a_look_costs_the_quality_that_it_loses_beside_the_best_arm(self) -> None:
        # Arm 0 beside arm 1: s^2 = 0.16 / 25 + 0.25 / 50, and s E(z) = 0.106771 * 2.81050 = 0.300080. The best arm loses nothing.
        terms, memory = asked([0.5, 0.8], [25.0, 50.0], [0.0, 1.0], alpha=0.0, label="cs-balance:exchange=2")
        assert plain(cs_balance.quality_cost)(terms, memory, 0, 1) == pytest.approx(0.60016, rel=1e-5)
        assert plain(cs_balance.quality_cost)(terms, memory, 1, 1) == 0.0

    def test_a_plan_lasts_while_its_arm_grows_by_a_share(self) -> None:
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=10_000)
        memory, stats = memory_of("cs-balance", terms), statistics([(1000, 900.0), (200, 20.0)])
        stats["sent"][:] = [1000, 200]
        arms = [plain(cs_balance.choose)(terms, stats, memory, None) for _ in range(20)]
        assert arms == [0] * 20
        assert memory.plan.tolist() == [0, 0]  # 2% of 1,000 outcomes: the plan is used up
        plain(cs_balance.choose)(terms, stats, memory, None)
        assert memory.plan.tolist() == [0, 19]
        plain(cs_balance.observe)(terms, stats, memory, Outcome(0, 0.9, math.nan, math.nan))
        assert memory.plan.tolist() == [0, 0]

    def test_an_outcome_leaves_the_plan_and_the_choice_is_certain(self) -> None:
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=10_000)
        memory = memory_of("cs-balance", terms)
        memory.plan[:] = [1, 5]
        plain(cs_balance.observe)(terms, None, memory, Outcome(0, 1.0, math.nan, 1.0))
        assert memory.plan.tolist() == [1, 5]
        assert plain(cs_balance.propensity)(terms, None, memory, 1) == 1.0


class TestBehaviour:
    def test_it_is_good_on_both_sides_of_the_floor(self) -> None:
        # The best worst case of the paper's policies over Table 1 is 722 (CS-ETC). 100 runs a point; the worst point, 0.45, has a
        # mean of 214 and a standard error of some 45: four of them below 400.
        for mean in (0.30, 0.40, 0.45, 0.50, 0.60):
            instance = Instance([0.5, mean], [1.0, 0.0], 0.1)
            final = simulate(instance, "cs-balance", horizon=5000, runs=100, seed=5, checkpoints=1).final()
            assert final["cs-balance"]["total"]["mean"] < 400

    @pytest.mark.parametrize("means", [[0.5, 0.9], [0.9, 0.5], [0.5, 0.9, 0.6, 0.55]])
    def test_where_all_arms_cost_the_same_no_run_stays_on_a_bad_one(self, means: list[float]) -> None:
        instance = Instance(means, [1.0] * len(means), 0.1)
        final = simulate(instance, "cs-balance", horizon=5000, runs=200, seed=7, checkpoints=1).final()
        assert final["cs-balance"]["total"]["q95"] < 30  # to stay on the second best arm costs 1,050 and more

    def test_exchange_trades_quality_for_cost(self) -> None:
        instance = Instance([0.5, 0.42], [1.0, 0.0], 0.1)
        careful, thrifty = "cs-balance:exchange=8", "cs-balance:exchange=0.3"
        final = simulate(instance, [careful, thrifty], horizon=5000, runs=60, seed=1, checkpoints=1).final()
        assert final[careful]["quality"]["mean"] < 0.8 * final[thrifty]["quality"]["mean"]

    @pytest.mark.parametrize("known", [True, False])
    def test_the_unit_of_cost_does_not_matter(self, known: bool) -> None:
        worlds = [
            World([0.5, 0.46, 0.2], [unit * cost if known else scaled(Bernoulli(cost), unit) for cost in (1.0, 0.5, 0.25)], 0.1)
            for unit in (1.0, 2.0**-12)
        ]
        traces = [simulate(each, "cs-balance", horizon=2000, runs=2, seed=3, trace=True)["cs-balance"].trace for each in worlds]
        assert traces[0] is not None
        assert (traces[0] == traces[1]).all()

    def test_the_order_of_the_arms_does_not_matter_where_costs_are_in_dollars(self) -> None:
        # Spend with the arms in either order: 20 runs of 3,000 rounds, means of 0.0016 dollars with standard errors below 2%.
        costs = [scaled(Bernoulli(0.5), dollars) for dollars in (0.0001, 0.002, 0.03)]
        spent = []
        for order in ([0, 1, 2], [2, 1, 0]):
            world = World([(0.6, 0.92, 0.94)[arm] for arm in order], [costs[arm] for arm in order], 0.05)
            pulls = simulate(world, "cs-balance", horizon=3000, runs=20, seed=2, checkpoints=1)["cs-balance"].pulls[:, -1]
            spent.append(float((pulls.mean(axis=0) * world.instance.costs).sum() / 3000))
        assert spent[0] == pytest.approx(spent[1], rel=0.15)
        assert max(spent) < 0.003  # the optimal arm costs 0.001, the best 0.015

    def test_a_thousand_arms_are_played(self) -> None:
        rng = np.random.default_rng(3)
        instance = Instance(rng.uniform(0.1, 0.9, 1000), rng.uniform(0, 1, 1000), 0.1)
        pulls = simulate(instance, "cs-balance", horizon=20_000, runs=2, seed=1, checkpoints=1)["cs-balance"].pulls[:, -1]
        good = instance.feasible & (instance.costs <= instance.costs[instance.optimal_arm] + 0.05)
        assert (pulls[:, good].sum(axis=1) > 12_000).all()
