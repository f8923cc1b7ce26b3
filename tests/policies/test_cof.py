"""COF: its evidence, its parts by hand, and how it behaves."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import oracles
from tests.policies.by_hand import memory_of, plain, statistics, terms_of
from thrifty import Bernoulli, Instance, World, simulate
from thrifty.environments import scaled
from thrifty.policies import cof, evidence, plans
from thrifty.policies.cof import CofMemory
from thrifty.policies.patience import is_given_up
from thrifty.statistics import Outcome

MEAN = st.floats(0.01, 0.99)
LOOKS = st.floats(0.5, 1e5)
KEEP = st.floats(0.05, 1.0)
ARMS = st.lists(st.tuples(LOOKS, MEAN), min_size=2, max_size=6)
EXACT = 1.0
"""Odds at which `infeasibility` never stops early."""


def weigh(arms: Sequence[tuple[float, float]], keep: float, debit: float = 0.0, arm: int = 0) -> float:
    """R_i of an arm; 0 for one that is not below the floor, as the rule never asks for it."""
    looks, means = (np.array(values, dtype=float) for values in zip(*arms, strict=True))
    top = int(np.argmax(means))
    if means[arm] >= keep * means[top]:
        return 0.0
    return float(plain(evidence.infeasibility)(keep, looks, means, arm, top, debit, EXACT))


class TestEvidence:
    @given(arms=ARMS, keep=KEEP, debit=st.sampled_from([0.0, 0.7, 5.0]))
    def test_infeasibility_is_the_minimum_of_its_formula(self, arms: list[tuple[float, float]], keep: float, debit: float) -> None:
        looks, means = zip(*arms, strict=True)
        expected = oracles.infeasibility(looks, means, 0, keep, debit)
        assert weigh(arms, keep, debit) == pytest.approx(expected, rel=1e-6, abs=1e-7)

    @given(arms=ARMS, keep=KEEP)
    def test_it_is_zero_only_if_the_mean_reaches_the_floor(self, arms: list[tuple[float, float]], keep: float) -> None:
        floor = keep * max(mean for _, mean in arms)
        assume(abs(arms[0][1] - floor) > 1e-3)
        assert (weigh(arms, keep) > 0) == (arms[0][1] < floor)

    @given(arms=ARMS, keep=KEEP)
    def test_tied_tops_add_to_it(self, arms: list[tuple[float, float]], keep: float) -> None:
        top = max(arms, key=lambda arm: arm[1])
        assume(keep * top[1] - arms[0][1] > 1e-2)
        assert weigh([*arms, top], keep) > weigh(arms, keep)

    @given(arms=ARMS, keep=KEEP, more=st.floats(1.1, 10))
    def test_it_grows_with_the_outcomes_and_falls_with_the_mean(
        self, arms: list[tuple[float, float]], keep: float, more: float
    ) -> None:
        (looks, mean), *rest = arms
        now = weigh(arms, keep)
        assert weigh([(more * looks, mean), *rest], keep) >= now * (1 - 1e-6) - 1e-9
        assert weigh([(looks, mean), *((more * n, m) for n, m in rest)], keep) >= now * (1 - 1e-6) - 1e-9
        assert weigh([(looks, 0.5 * (mean + 1)), *rest], keep) <= now * (1 + 1e-6) + 1e-9

    @given(pair=st.tuples(LOOKS, MEAN, LOOKS, MEAN), keep=KEEP)
    def test_the_evidence_of_a_pair_is_the_minimum_of_its_formula(self, pair: tuple[float, ...], keep: float) -> None:
        n_i, m_i, n_j, m_j = pair
        x = plain(evidence.meeting_point)(keep, n_i, m_i, n_j, m_j)
        low, high = sorted((m_i, keep * m_j))
        assert low * (1 - 1e-9) <= x <= high * (1 + 1e-9)
        signed = plain(evidence.pair_evidence)(keep, n_i, m_i, n_j, m_j)
        assert signed >= -1e-7 if m_i >= keep * m_j else signed <= 1e-7

        def unlikely(x: float) -> float:
            return n_i * oracles._kl(m_i, x) + n_j * oracles._kl(m_j, x / keep) if x < keep else math.inf

        assert abs(signed) == pytest.approx(oracles._least_on(unlikely, low, high)[1], rel=1e-5, abs=1e-6)

    def test_a_pair_by_hand(self) -> None:
        # alpha = 0: both have the pooled mean 0.5. 10 (0.4 ln 0.8 + 0.6 ln 1.2) + 10 (0.6 ln 1.2 + 0.4 ln 0.8) = 0.40271
        assert plain(evidence.meeting_point)(1.0, 10.0, 0.4, 10.0, 0.6) == pytest.approx(0.5)
        assert plain(evidence.pair_evidence)(1.0, 10.0, 0.4, 10.0, 0.6) == pytest.approx(-0.402710, rel=1e-5)
        assert plain(evidence.pair_evidence)(1.0, 10.0, 0.6, 10.0, 0.4) == pytest.approx(0.402710, rel=1e-5)
        assert weigh([(10.0, 0.4), (10.0, 0.6)], 1.0) == pytest.approx(0.402710, rel=1e-5)

    def test_it_stops_where_the_tail_is_above_the_odds(self) -> None:
        looks, means = np.array([10.0, 30.0]), np.array([0.4, 0.8])
        weighed = [float(plain(evidence.infeasibility)(1.0, looks, means, 0, 1, 0.0, odds)) for odds in (EXACT, 0.0, 0.01)]
        tails = [float(plain(evidence.tail)(each)) for each in weighed]
        assert weighed[1] == pytest.approx(float(plain(evidence._evidence_at)(1.0, looks, means, 0, 0.6, 0.0)[0]))  # at once
        assert weighed[0] < weighed[1]
        assert tails[0] > tails[1]
        assert weighed[2] == weighed[0] if tails[0] <= 0.01 else tails[2] > 0.01

    def test_the_tail_is_that_of_the_normal_law(self) -> None:
        assert plain(evidence.tail)(0.5) == pytest.approx(0.158655, rel=1e-5)
        assert plain(evidence.tail)(0.0) == plain(evidence.tail)(-1e-18) == 0.5


def asked(
    means: Sequence[float],
    looks: Sequence[float],
    prices: Sequence[float],
    *,
    alpha: float = 0.0,
    horizon: int = 1000,
    label: str = "cof",
) -> tuple[Any, CofMemory]:
    """Terms and memory, as they are when the rule plans."""
    terms = terms_of(label, costs=prices, alpha=alpha, horizon=horizon)
    memory = memory_of("cof", terms)
    memory.prices[:], memory.looks[:], memory.trials[:], memory.means[:] = prices, looks, looks, means
    return terms, memory


class TestParts:
    def test_the_chance_of_failure_is_the_tail_on_the_side_of_the_means(self) -> None:
        terms, memory = asked([0.4, 0.6], [10.0, 10.0], [0.0, 1.0])
        # sqrt(2 * 0.402710) = 0.897452: Phi(0.897452) = 0.815262
        assert plain(cof.failure_chance)(terms, memory, 0, 1) == pytest.approx(0.815262, rel=1e-4)
        assert plain(cof.failure_chance)(terms, memory, 1, 0) == pytest.approx(0.184738, rel=1e-4)

    def test_variances_are_those_at_the_meeting_point(self) -> None:
        terms, memory = asked([0.4, 0.6], [10.0, 40.0], [0.0, 1.0])
        assert plain(cof.variances)(terms, memory, 0, 1) == pytest.approx((0.0246400, 0.0061600), rel=1e-4)  # x = 0.56
        terms, memory = asked([0.36, 0.4], [10.0, 40.0], [0.0, 1.0], alpha=0.1)
        assert plain(cof.variances)(terms, memory, 0, 1) == pytest.approx((0.02304, 0.00486), rel=1e-4)  # x = 0.36, y = 0.4

    def test_variances_have_a_least_value(self) -> None:
        terms, memory = asked([0.0005, 0.001], [10.0, 40.0], [0.0, 1.0], alpha=0.5)
        assert plain(cof.variances)(terms, memory, 0, 1) == pytest.approx((0.001, 0.25 * 0.01 / 40))

    def test_a_loss_is_the_chance_times_the_gap_or_its_deviation(self) -> None:
        terms, memory = asked([0.4, 0.6], [10.0, 10.0], [0.0, 1.0], label="cof:exchange=2")
        deviation = math.sqrt(0.025 + 0.025)
        assert plain(cof.expected_loss)(terms, memory, 0, 1) == pytest.approx(2 * 0.815262 * deviation, rel=1e-4)
        terms, memory = asked([0.2, 0.8], [10.0, 10.0], [0.0, 1.0])
        # 20 (0.2 ln 0.4 + 0.8 ln 1.6) = 3.854896: Phi(2.776651) = 0.997254
        assert plain(cof.expected_loss)(terms, memory, 0, 1) == pytest.approx(0.997254 * 0.6, rel=1e-4)
        assert plain(cof.quality_cost)(terms, memory, 0, 1) == pytest.approx(0.997254 * 0.6, rel=1e-4)
        assert plain(cof.quality_cost)(terms, memory, 1, 1) == 0.0

    @pytest.mark.parametrize(("patience", "rejected"), [(9.2, True), (9.4, False)])
    def test_an_arm_is_rejected_when_its_looks_have_lost_what_it_may_save(self, patience: float, rejected: bool) -> None:
        # Lost: 10 * 0.6 = 6. To be saved: patience * 1000 / 1 * 1 * 0.000645, which is 6 at a patience of 9.30.
        terms, memory = asked([0.2, 0.8], [10.0, 20.0], [0.0, 1.0], label=f"cof:patience={patience}")
        tail = plain(evidence.tail)(weigh([(10.0, 0.2), (20.0, 0.8)], 1.0))
        assert tail == pytest.approx(0.000645, rel=1e-3)
        assert plain(is_given_up)(terms, memory, 0, 1, 1, 1) == rejected

    def test_two_tied_tops_reject_what_one_does_not(self) -> None:
        label = "cof:debit=0,patience=0.3"
        one = asked([0.3, 0.6, 0.1], [20.0, 20.0, 1.0], [0.0, 1.0, 1.0], label=label)
        two = asked([0.3, 0.6, 0.6], [20.0, 20.0, 20.0], [0.0, 1.0, 1.0], label=label)
        debited = asked([0.3, 0.6, 0.6], [20.0, 20.0, 20.0], [0.0, 1.0, 1.0], label="cof:debit=2,patience=0.3")
        found = [bool(plain(is_given_up)(*each, 0, 1, 1, 1)) for each in (one, two, debited)]
        assert found == [False, True, False]

    def test_nothing_is_saved_at_equal_prices(self) -> None:
        terms, memory = asked([0.59, 0.6], [10.0, 10.0], [1.0, 1.0])
        assert plain(is_given_up)(terms, memory, 0, 1, 1, 1)

    def test_a_rival_gets_looks_until_they_have_cost_what_they_may_save(self) -> None:
        # Both means 1/2: the chance is 1/2 and the deviation 1 / (2 sqrt(n)). A look is worth it while
        # caution T / 2 / (2 sqrt(n)) > n / 2, that is n < (caution T / 2)^(2/3) = 2500 at caution = 1/4 and T = 10^6.
        chosen = {
            n: plain(cof.settle_doubts)(*asked([0.5, 0.5], [10**9, n], [0.0, 1.0], horizon=10**6), 0, 0, 0, 1) for n in (2490, 2510)
        }
        assert chosen == {2490: 1, 2510: 0}

    @given(
        rivals=st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1e-3, 0.1]), st.floats(1, 20)), min_size=1, max_size=5),
        own=st.tuples(st.floats(0.01, 0.8), st.floats(0.5, 1e8)),
        horizon=st.integers(10, 10**7),
        alpha=st.floats(0, 0.19),
        exchange=st.sampled_from([0.2, 1.0, 5.0]),
    )
    def test_no_dearer_arm_is_looked_at_beyond_its_budget(
        self, rivals: list[tuple[float, float, float]], own: tuple[float, float], horizon: int, alpha: float, exchange: float
    ) -> None:
        # The lemma of docs/theory/cof.md: the mean of the candidate is on the floor that a rival sets, or above it.
        rivals.sort()
        gaps = [max(price, 0.02) for price, _, _ in rivals]
        share = 0.25 * exchange * horizon / len(rivals)
        budgets = [max((share / (math.sqrt(2) * gap)) ** (2 / 3), 0.5 * (exchange / (2 * gap)) ** 2) for gap in gaps]
        mean, looks = own
        means = [mean, *(mean / (1 - alpha) * (1 - below) for _, below, _ in rivals)]
        terms, memory = asked(
            means,
            [looks, *(1.0001 * budget for budget in budgets)],
            [0.0, *(price for price, _, _ in rivals)],
            alpha=alpha,
            horizon=horizon,
            label=f"cof:exchange={exchange}",
        )
        memory.trials[1:] = memory.looks[1:] * [worth for _, _, worth in rivals]
        assert plain(cof.settle_doubts)(terms, memory, 0, 0, 0, int(np.argmax(means))) == 0

    def test_a_look_that_costs_nothing_is_worth_it(self) -> None:
        terms, memory = asked([0.1, 0.9], [10**6, 10**6], [0.0, 1.0])  # the arm fails for certain, and the rival is the best
        assert plain(cof.failure_chance)(terms, memory, 0, 1) == 1.0
        assert plain(cof.settle_doubts)(terms, memory, 0, 1, 1, 1) == 1

    def test_nobody_is_asked_where_every_arm_is_good_enough(self) -> None:
        terms, memory = asked([0.1, 0.9], [5.0, 5.0], [0.0, 1.0], alpha=1.0)
        assert plain(cof.settle_doubts)(terms, memory, 0, 0, 0, 1) == 0
        assert plain(cof.decide)(terms, memory) == 0

    def test_looks_at_equal_costs_are_not_free(self) -> None:
        # As above with T = 10^4 and a gap of 0.02: n < (caution T / 2 / 0.02)^(2/3) = 1575.
        chosen = {
            n: plain(cof.settle_doubts)(*asked([0.5, 0.5], [10**9, n], [1.0, 1.0], horizon=10**4), 0, 0, 0, 1) for n in (1570, 1580)
        }
        assert chosen == {1570: 1, 1580: 0}

    @pytest.mark.parametrize(("looks", "better"), [(59.0, 0), (62.0, 1)])
    def test_the_look_that_shrinks_the_variance_more_for_its_regret_is_taken(self, looks: float, better: int) -> None:
        # Means 1/2, alpha = 0: gains 1 / n^2. The rival costs 1/2, the arm half of (1/2) (1/2) sqrt(1/n + 1/16), which is
        # 0.0351 at n = 60: there 0.5 / n^2 = 0.000139 and 0.0351 / 16^2 = 0.000137.
        terms, memory = asked([0.5, 0.5], [looks, 16.0], [0.0, 1.0])
        assert plain(cof._better_look)(terms, memory, 0, 1, 1, 1) == better

    def test_a_rival_dearer_than_the_fallback_costs_that_much_if_the_arm_fails(self) -> None:
        terms, memory = asked([0.5, 0.5, 0.1], [70.0, 16.0, 5.0], [0.0, 1.0, 0.2])  # as above; the rival costs 0.5 or 0.9
        assert plain(cof._better_look)(terms, memory, 0, 1, 1, 1) == 1  # the rival itself is the fallback
        assert plain(cof._better_look)(terms, memory, 0, 1, 2, 1) == 0  # a cheaper one is

    def test_estimates_count_pending_decisions_and_are_shrunk_by_one_outcome(self) -> None:
        terms = terms_of("cof", costs=[0.0, 1.0, 2.0], alpha=0.1, horizon=100)
        memory, stats = memory_of("cof", terms), statistics([(9, 4.0), (5, -1e-12), (1, 1.5)], seen=[9.0, 0.0, 1.0])
        stats["pending"][:] = [3, 0, 0]
        plain(cof._plan)(terms, stats, memory)
        assert memory.looks.tolist() == [12.0, 0.5, 1.0]
        assert memory.means.tolist() == [0.45, 0.5, 0.75]

    def test_rewards_of_low_variance_are_stronger_evidence_and_cost_the_same(self) -> None:
        # Variance of 0.01 where 0s and 1s have 0.25: an outcome is worth (25 + 0.5) / (1 + 0.5) = 17 of them.
        terms = terms_of("cof", costs=[0.0, 1.0], alpha=0.1, horizon=100)
        memory, stats = memory_of("cof", terms), statistics([(100, 50.0), (100, 50.0)])
        stats[0].reward_squares = 26.0
        plain(cof._plan)(terms, stats, memory)
        assert memory.looks.tolist() == [100.0, 100.0]
        assert memory.trials.tolist() == pytest.approx([1700.0, 100.0])
        own, other = plain(cof.variances)(terms, memory, 0, 1)
        assert 10 * own < other

    def test_prices_are_shares_of_the_range_of_costs(self) -> None:
        for costs, prices in (([2.0, 6.0, 4.0], [0.5, 1.5, 1.0]), ([3.0, 3.0], [3.0, 3.0])):
            assert memory_of("cof", terms_of("cof", costs=costs, alpha=0.1, horizon=9)).prices.tolist() == prices
        terms = terms_of("cof", costs=None, n_arms=2, alpha=0.1, horizon=100)
        memory, stats = memory_of("cof", terms), statistics([(4, 1.0), (25, 1.0)], costs=[40.0, 100.0])
        plain(cof.choose_unknown_costs)(terms, stats, memory, None)
        # Means 10 and 4, a range of 6. 10 / (1 + 5/10 sqrt(100^(2/5) - 1)) = 4.647, 4 / (1 + 0.8/4 sqrt(100^(2/26) - 1)) = 3.539.
        assert memory.prices.tolist() == pytest.approx([4.647 / 6, 3.539 / 6], rel=1e-3)
        assert memory.order.tolist() == [1, 0]

    @pytest.mark.parametrize("costs", [[0.0, 1.0], None])
    def test_every_arm_is_sent_once_first(self, costs: list[float] | None) -> None:
        terms = terms_of("cof", costs=costs, n_arms=2, alpha=0.1, horizon=100)
        memory, stats = memory_of("cof", terms), statistics([(0, 0.0), (0, 0.0)])
        choose = plain(cof.choose if costs else cof.choose_unknown_costs)
        assert [choose(terms, stats, memory, None) for _ in range(2)] == [0, 1]
        assert memory.plan.tolist() == [0, 0]

    def test_a_plan_lasts_while_its_arm_grows_by_a_share(self) -> None:
        for costs in ([0.0, 1.0], None):
            terms = terms_of("cof", costs=costs, n_arms=2, alpha=0.1, horizon=10_000)
            memory, stats = memory_of("cof", terms), statistics([(1000, 900.0), (200, 20.0)], costs=[0.0, 200.0])
            choose = plain(cof.choose if costs else cof.choose_unknown_costs)
            assert [choose(terms, stats, memory, None) for _ in range(20)] == [0] * 20
            assert memory.plan.tolist() == [0, 0]  # 2% of 1,000 outcomes: the plan is used up
            choose(terms, stats, memory, None)
            assert memory.plan.tolist() == [0, 19]
            plain(plans.observe)(terms, stats, memory, Outcome(0, 0.9, math.nan, 1.0))
            assert memory.plan.tolist() == [0, 19]  # an outcome is expected
            plain(plans.observe)(terms, stats, memory, Outcome(0, 0.9, math.nan, math.nan))
            assert memory.plan.tolist() == [0, 0]  # a correction, a price or a late outcome is answered at once
            assert plain(plans.propensity)(terms, stats, memory, 1) == 1.0


class TestBehaviour:
    @pytest.mark.parametrize("horizon", [2000, 20_000])
    def test_regret_on_the_floor_grows_like_the_budget(self, horizon: int) -> None:
        # The free arm is on the floor. 100 runs; means 0.6 T^(2/3) with standard errors below 0.08 T^(2/3): five of them.
        final = simulate(Instance([0.5, 0.45], [1.0, 0.0], 0.1), "cof", horizon=horizon, runs=100, seed=3, checkpoints=1).final()
        assert final["cof"]["total"]["mean"] < 1.1 * horizon ** (2 / 3)

    def test_many_tied_tops_do_not_reject_a_free_one(self) -> None:
        # 40 runs: a mean of some 400 with a standard error of 60; without the debit it is four times that.
        instance = Instance([0.5] * 30, np.linspace(0, 1, 30), 0.05)
        final = simulate(instance, "cof", horizon=10_000, runs=40, seed=1, checkpoints=1).final()
        assert final["cof"]["total"]["mean"] < 800

    @pytest.mark.parametrize("known", [True, False])
    def test_the_unit_of_cost_does_not_matter(self, known: bool) -> None:
        worlds = [
            World([0.5, 0.46, 0.2], [unit * cost if known else scaled(Bernoulli(cost), unit) for cost in (1.0, 0.5, 0.25)], 0.1)
            for unit in (1.0, 2.0**-12)
        ]
        traces = [simulate(each, "cof", horizon=2000, runs=2, seed=3, trace=True)["cof"].trace for each in worlds]
        assert traces[0] is not None
        assert (traces[0] == traces[1]).all()

    def test_exchange_trades_quality_for_cost(self) -> None:
        instance = Instance([0.5, 0.42], [1.0, 0.0], 0.1)
        careful, thrifty = "cof:exchange=8", "cof:exchange=0.3"
        final = simulate(instance, [careful, thrifty], horizon=5000, runs=60, seed=1, checkpoints=1).final()
        assert final[careful]["quality"]["mean"] < 0.8 * final[thrifty]["quality"]["mean"]
