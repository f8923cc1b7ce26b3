"""CS-Balance: what it promises beyond the contract, and its parts by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policies.by_hand import memory_of, plain, statistics, terms_of
from thrifty import Bernoulli, ClippedGaussian, Instance, World, simulate
from thrifty.environments import scaled
from thrifty.policies import cs_balance, plans, weighing
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
    """Terms and a memory with these estimates, weighed."""
    terms = terms_of(label, costs=costs, alpha=alpha, horizon=horizon)
    memory = memory_of("cs-balance", terms)
    memory.arms["estimate"], memory.arms["looks"] = means, looks
    memory.arms["paid"] = looks
    plain(weighing.list_rivals)(memory)
    plain(weighing.weigh_regret)(terms, memory)
    plain(weighing.weigh_information)(terms, memory)
    return terms, memory


def affords(terms: Any, memory: Any, arm: int, best: int) -> bool:
    """Whether an arm is affordable beside the best one."""
    stakes = plain(cs_balance.stakes)(terms, memory, best)
    return bool(plain(cs_balance.is_affordable)(terms, memory, arm, best, *stakes))


class TestBudget:
    @given(st.tuples(shares, shares), st.tuples(st.integers(1, 10_000), st.integers(1, 10_000)), shares, st.integers(100, 10**6))
    def test_a_dearer_arm_is_looked_at_this_often_at_most_beside_one_that_looks_good_enough(
        self, means: tuple[float, float], looks: tuple[int, int], alpha: float, horizon: int
    ) -> None:
        terms, memory = asked(list(means), list(looks), [0.0, 1.0], alpha=alpha, horizon=horizon)
        if means[0] >= (1 - alpha) * means[1] and looks[0] >= looks[1] and plain(cs_balance.balanced)(terms, memory) == 1:
            assert looks[1] <= (0.57 * 0.5) ** 0.5 * horizon ** (2 / 3)

    def test_it_is_looked_at_until_its_looks_have_cost_what_they_may_save(self) -> None:
        # Arm 0 is known to be at 1/2, on the floor: z = 0, s = 0.5 / sqrt(n), and arm 1 costs 1 * 1/2. N = 10^6^(2/3) = 10^4. So
        # n / 2 * sqrt(n / 10^4) = 0.5 * 10^6 * 0.398942 * 0.5 / sqrt(n) at n = sqrt(2 * 99,735.6 * 100) = 4,466.
        for n, affordable in ((4_450, True), (4_480, False)):
            terms, memory = asked([0.5, 0.5], [10**9, n], [0.0, 1.0], alpha=0.0, horizon=10**6)
            assert affords(terms, memory, 1, 0) == affordable

    def test_regret_grows_no_faster_than_the_bound_on_the_floor(self) -> None:
        # Arm 1 is exactly on the floor: regret over T^(2/3) stays below 1.3. Measured: some 0.75 with standard errors of 0.06, so
        # nine of them are left.
        for horizon in (2_000, 20_000, 200_000):
            final = simulate(Instance([0.5, 0.45], [1.0, 0.0], 0.1), "cs-balance", horizon=horizon, runs=200, seed=3, checkpoints=1)
            assert final.final()["cs-balance"]["total"]["mean"] < 1.3 * horizon ** (2 / 3)


class TestParts:
    def test_regret_is_the_shortfall_and_the_money_that_a_cheaper_arm_would_save(self) -> None:
        # Arm 0 beside arm 1: z = 0.3 / s, s^2 = 0.16 / 25 + 0.25 / 50 = 0.0114, clear 0.0024789, shortfall s E(z) less the part
        # above mean 1, 0.106771 (2.810497 - 0.042105): 1 - 0.8 over s is 1.87317.
        _terms, memory = asked([0.5, 0.8], [25.0, 50.0], [0.0, 1.0], alpha=0.0, label="cs-balance:exchange=2")
        arms = memory.arms
        assert arms[0].clear == pytest.approx(0.0024789, rel=1e-4)
        assert arms[0].regret == pytest.approx(2 * arms[0].shortfall)
        assert arms[0].shortfall == pytest.approx(0.29873, rel=1e-3)
        assert arms[1].regret == pytest.approx(2 * arms[1].shortfall + 1.0 * arms[0].clear)
        assert arms["strongest"].tolist() == [1, 0]

    def test_the_chance_counts_from_the_cheapest_arm_that_may_be_good_enough(self) -> None:
        _terms, memory = asked([0.5, 0.5, 0.5], [100.0] * 3, [0.0, 0.5, 2.0])
        arms = memory.arms
        clear = arms[0].clear
        assert clear > 0.5
        assert arms["cheaper_clear"].tolist() == [0.0, clear, pytest.approx(max(clear, arms[1].clear))]
        assert arms[2].regret - arms[2].shortfall == pytest.approx(0.25 * clear + 0.75 * max(clear, arms[1].clear))

    def test_several_rivals_that_are_about_as_strong_raise_the_chance_that_one_is_so_by_luck(self) -> None:
        _, one = asked([0.4, 0.5], [100.0] * 2, [0.0, 1.0], alpha=0.0)
        _, three = asked([0.4, 0.5, 0.5, 0.5], [100.0] * 4, [0.0, 1.0, 1.0, 1.0], alpha=0.0)
        _, weak = asked([0.4, 0.5, 0.1, 0.1], [100.0] * 4, [0.0, 1.0, 1.0, 1.0], alpha=0.0)
        assert three.arms[0].clear == pytest.approx(3 * one.arms[0].clear)
        assert weak.arms[0].clear == pytest.approx(one.arms[0].clear)
        _, many = asked([0.49] + [0.5] * 10, [100.0] * 11, [0.0] + [1.0] * 10, alpha=0.0)
        assert many.arms[0].clear == 0.5

    def test_an_arm_far_above_or_below_says_nothing(self) -> None:
        terms, memory = asked([0.9, 0.1], [1000.0, 1000.0], [0.0, 1.0])
        assert memory.arms["information"].tolist() == [0.0, 0.0]
        assert memory.arms["clear"].tolist() == pytest.approx([1.0, 0.0])
        assert plain(weighing.pair_information)(terms, memory, 1, 0) == (0.0, 0.0)

    def test_information_is_the_variance_between_good_enough_and_not(self) -> None:
        # z = 0: phi^2 / (Phi Phi) = 0.159155 / 0.25 = 0.636620. s^2 = 0.25 / 100 + 0.25 / 25 = 0.0125. All of the doubt is made by
        # the one rival, and nothing is cheaper: arm 0 has 0.0025^2 / 0.0125 * 0.63662, arm 1 0.01^2 / 0.0125 * 0.63662.
        terms, memory = asked([0.5, 0.5], [100.0, 25.0], [0.0, 1.0], alpha=0.0)
        own, others = plain(weighing.pair_information)(terms, memory, 0, 1)
        assert own == pytest.approx(0.0003183, rel=1e-3)
        assert others == pytest.approx(0.0050930, rel=1e-3)
        terms, memory = asked([0.25, 0.5], [100.0, 25.0], [0.0, 1.0], alpha=0.5)  # the same of mu_1, not of its half
        own, others = plain(weighing.pair_information)(terms, memory, 0, 1)
        s2 = 0.1875 / 100 + 0.25 * 0.25 / 25
        assert others == pytest.approx((0.0625 / 25) ** 2 / s2 * 0.63662 / 0.25, rel=1e-3)

    def test_the_rival_that_tells_most_for_its_squared_regret_speaks(self) -> None:
        # Arm 0 may be below arm 1 or arm 2. Arm 2 costs three times as much, so arm 1 is looked at first.
        terms, memory = asked([0.5, 0.55, 0.56], [40.0, 40.0, 40.0], [0.0, 0.4, 1.2], alpha=0.0)
        heard = [plain(weighing.pair_information)(terms, memory, 0, rival)[1] for rival in (1, 2)]
        assert heard[1] > heard[0]
        assert memory.arms[1].information > memory.arms[2].information

    def test_an_arm_that_is_cheaper_has_its_own_budget(self) -> None:
        # The best arm is 1. Arm 0 has cost 25 looks * 0.2987 = 7.468, and may save 1 * 0.0024789 a decision: as much at T = 3,013.
        for horizon, affordable in ((3_100, True), (2_950, False)):
            terms, memory = asked([0.5, 0.8], [25.0, 50.0], [0.0, 1.0], alpha=0.0, horizon=horizon)
            assert affords(terms, memory, 0, 1) == affordable

    def test_its_quality_counts_for_as_many_looks_as_the_strongest_rival_had(self) -> None:
        # With 50 looks at the rival, 25,000 looks at the arm have lost no more than 50 would.
        for rival_looks, affordable in ((2.0, True), (20_000.0, False)):
            terms, memory = asked([0.5, 0.8], [25_000.0, rival_looks], [0.0, 1.0], alpha=0.0, horizon=3_100)
            assert affords(terms, memory, 0, 1) == affordable

    def test_looks_at_an_arm_of_the_same_cost_are_not_free(self) -> None:
        # Both have the same shortfall x: 50 x sqrt(50 / N) against 0.5 T x, with N = (T / 0.02)^(2/3). Equal at T = 51.5.
        for horizon, affordable in ((54, True), (49, False)):
            terms, memory = asked([0.5, 0.5], [10**9, 50.0], [1.0, 1.0], alpha=0.0, horizon=horizon)
            assert affords(terms, memory, 1, 0) == affordable

    def test_arms_share_the_horizon_by_what_is_at_stake(self) -> None:
        # Two dear arms that are quite alike: each has half the horizon. One that cannot be above the floor takes nothing away.
        found = {}
        for others in (0.5, 0.05):
            terms, memory = asked([0.5, 0.5, others], [10**9, 400.0, 400.0], [0.0, 1.0, 1.0], alpha=0.0, horizon=20_000)
            danger, saving = plain(cs_balance.stakes)(terms, memory, 0)
            found[others] = danger / plain(cs_balance.worth_beside)(terms, memory, 0, 1)
            assert saving == 0.0
        assert found == {0.5: pytest.approx(2.0), 0.05: pytest.approx(1.0)}
        terms, memory = asked([0.5, 0.5, 0.5], [10.0] * 3, [0.0, 0.25, 1.0], alpha=0.0)
        _, saving = plain(cs_balance.stakes)(terms, memory, 2)
        assert saving == pytest.approx(memory.arms[0].clear + 0.75 * memory.arms[1].clear)

    def test_borrowed_looks_are_not_paid_for(self) -> None:
        terms, memory = asked([0.5, 0.8], [25.0, 50.0], [0.0, 1.0], alpha=0.0, horizon=2_000)
        assert not affords(terms, memory, 0, 1)
        memory.arms["paid"] = 5.0
        assert affords(terms, memory, 0, 1)

    def test_an_arm_without_outcomes_is_looked_at(self) -> None:
        terms, memory = asked([0.5, 0.5], [100.0, 0.0], [0.0, 1.0])
        assert plain(cs_balance.balanced)(terms, memory) == 1

    def test_an_arm_that_one_rival_rejects_stays_rejected(self) -> None:
        terms, memory = asked([0.5, 0.9, 0.1], [2000.0, 2000.0, 2000.0], [0.0, 1.0, 2.0])
        assert plain(cs_balance.balanced)(terms, memory) == 1

    def test_an_unknown_cost_is_its_mean_less_one_part_in_the_root_of_its_outcomes(self) -> None:
        terms = terms_of("cs-balance", costs=None, n_arms=3, alpha=0.1, horizon=100)
        memory, stats = memory_of("cs-balance", terms), statistics([(4, 1.0), (25, 1.0), (1, 1.0)], costs=[40.0, 100.0, 3.0])
        plain(cs_balance.price_arms)(stats, memory)  # 10 * (1 - 1/2) = 5, 4 * (1 - 1/5) = 3.2, and 0 after one outcome
        assert memory.arms["price"].tolist() == pytest.approx([1.0, 0.64, 0.0])
        assert memory.order.tolist() == [2, 1, 0]

    def test_prices_are_in_shares_of_the_range_of_costs(self) -> None:
        for costs, prices in (([2.0, 4.0, 7.0], [0.4, 0.8, 1.4]), ([3.0, 3.0, 3.0], [3.0, 3.0, 3.0])):
            terms = terms_of("cs-balance", costs=costs, alpha=0.1, horizon=100)
            assert memory_of("cs-balance", terms).arms["price"].tolist() == pytest.approx(prices)
        terms = terms_of("cs-balance", costs=None, n_arms=2, alpha=0.1, horizon=100)
        for spent, prices in (([40.0, 100.0], [5 / 1.8, 3.2 / 1.8]), ([40.0, 156.25], [5.0, 5.0])):
            memory = memory_of("cs-balance", terms)
            plain(cs_balance.price_arms)(statistics([(4, 1.0), (25, 1.0)], costs=spent), memory)  # as above; then both at 5
            assert memory.arms["price"].tolist() == pytest.approx(prices)

    def test_the_first_arm_is_due_first(self) -> None:
        for costs, choose in (([0.0, 1.0], cs_balance.choose), (None, cs_balance.choose_unknown_costs)):
            terms = terms_of("cs-balance", costs=costs, n_arms=2, alpha=0.1, horizon=100)
            memory = memory_of("cs-balance", terms)
            memory.plan[:] = [1, 5]
            assert plain(choose)(terms, statistics([(0, 0.0), (3, 3.0)]), memory, None) == 0

    def test_of_many_arms_those_that_are_good_and_those_that_may_be_are_rivals(self) -> None:
        rng = np.random.default_rng(5)
        for looks in (rng.integers(1, 200, 60).astype(float), np.full(60, 50.0)):
            means = rng.uniform(0.1, 0.9, 60)
            _terms, memory = asked(means.tolist(), looks.tolist(), rng.uniform(0, 1, 60).tolist())
            deviations = np.sqrt(np.maximum(means * (1 - means), 0.01) / looks)
            good = np.argsort(deviations - means, kind="stable")[:6]
            others = [arm for arm in np.argsort(-means - 2 * deviations, kind="stable") if arm not in good][:12]
            assert memory.rivals.tolist() == [*good, *others]
            assert np.flatnonzero(memory.arms["is_rival"]).tolist() == sorted([*good, *others])

    def test_an_arm_dearer_than_one_that_is_surely_good_enough_is_not_compared(self) -> None:
        means, looks = [0.9] * 2 + [0.5] * 30, [10_000.0] * 32
        _, memory = asked(means, looks, [0.0, 0.1, *np.linspace(0.2, 1, 30).tolist()])
        ignored = [arm for arm in range(32) if not memory.arms[arm].is_rival]
        assert len(ignored) == 14
        assert all(memory.arms[arm].strongest == -1 and memory.arms[arm].information == 0.0 for arm in ignored)

    def test_a_plan_lasts_while_its_arm_grows_by_a_share(self) -> None:
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=10_000)
        memory, stats = memory_of("cs-balance", terms), statistics([(1000, 900.0), (200, 20.0)])
        stats["sent"][:] = [1000, 200]
        arms = [plain(cs_balance.choose)(terms, stats, memory, None) for _ in range(20)]
        assert arms == [0] * 20
        assert memory.plan.tolist() == [0, 0]  # 2% of 1,000 outcomes: the plan is used up
        plain(cs_balance.choose)(terms, stats, memory, None)
        assert memory.plan.tolist() == [0, 19]
        plain(plans.observe)(terms, stats, memory, Outcome(0, 0.9, math.nan, math.nan))
        assert memory.plan.tolist() == [0, 0]

    def test_an_outcome_leaves_the_plan_and_the_choice_is_certain(self) -> None:
        terms = terms_of("cs-balance", costs=[0.0, 1.0], alpha=0.1, horizon=10_000)
        memory = memory_of("cs-balance", terms)
        memory.plan[:] = [1, 5]
        plain(plans.observe)(terms, None, memory, Outcome(0, 1.0, math.nan, 1.0))
        assert memory.plan.tolist() == [1, 5]
        assert plain(plans.propensity)(terms, None, memory, 1) == 1.0


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

    def test_rewards_of_low_variance_need_fewer_looks(self) -> None:
        # 40 runs: some 40 against 130 with standard errors of 5 and 20, so four of them are left.
        costs = [1.0, 0.3, 0.0]
        narrow = World([ClippedGaussian(mean, 0.05) for mean in (0.7, 0.65, 0.5)], costs, 0.1)
        wide = World([Bernoulli(mean) for mean in (0.7, 0.65, 0.5)], costs, 0.1)
        regrets = [
            simulate(world, "cs-balance", horizon=5000, runs=40, seed=4, checkpoints=1).final()["cs-balance"]["total"]["mean"]
            for world in (narrow, wide)
        ]
        assert regrets[0] < 0.6 * regrets[1]

    def test_a_thousand_arms_are_played(self) -> None:
        rng = np.random.default_rng(3)
        instance = Instance(rng.uniform(0.1, 0.9, 1000), rng.uniform(0, 1, 1000), 0.1)
        pulls = simulate(instance, "cs-balance", horizon=20_000, runs=2, seed=1, checkpoints=1)["cs-balance"].pulls[:, -1]
        good = instance.feasible & (instance.costs <= instance.costs[instance.optimal_arm] + 0.05)
        assert (pulls[:, good].sum(axis=1) > 12_000).all()
