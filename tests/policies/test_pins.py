"""Every constant of the policies, pinned by a value worked out by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import oracles
from tests.policies.by_hand import memory_of, plain, statistics, terms_of
from thrifty import list_policies, policy
from thrifty.forgetting import EVERYTHING, NOTHING_ELSE, RESTART
from thrifty.policies import (
    baselines,
    cs_direct,
    cs_etc,
    cs_exp3,
    cs_ids,
    cs_ts,
    cs_ucb,
    exploration,
    information,
    learnt_costs,
    luck,
    one_shot_etc,
    patience,
    posteriors,
)
from thrifty.policies.binding import given_terms
from thrifty.policies.contract import KernelParameter, Number, next_horizon, refresh, refresh_all, unknown_propensity
from thrifty.policies.cs_etc import settle_tau
from thrifty.policies.ladder import top_score
from thrifty.policies.maxima import largest
from thrifty.policies.outlook import settle_outset
from thrifty.policies.step import RuleState, decide, refresh_changed, take_outcome
from thrifty.problem import Terms
from thrifty.statistics import Outcome
from thrifty.streams import beta, make_streams, normal

INFINITE = math.inf
SHARED = {"cost_scale": (None, 1e-300, INFINITE, False), "pending": (1.0, 0.0, 1.0, False)}
BETA_PRIOR = {"a": (1.0, 1e-6, INFINITE, False), "b": (1.0, 1e-6, INFINITE, False)}
TAU = {"tau": (None, 1, INFINITE, True), "cost_scale": SHARED["cost_scale"]}
ELIMINATION: dict[str, tuple[float | None, float, float, bool]] = {
    "kappa": (5, 0, INFINITE, True),
    "limit": (0.0, 0.0, INFINITE, False),
}
NUMBERS: dict[str, dict[str, tuple[float | None, float, float, bool]]] = {
    "cs-ucb": {"cost_scale": SHARED["cost_scale"]},
    "cs-ts": {
        **BETA_PRIOR, "sigma_0": (1.0, 1e-6, INFINITE, False), "sigma_n": (1.0, 1e-6, INFINITE, False), **SHARED,
    },
    "cs-etc": TAU,
    "one-shot-etc": TAU,
    "cs-balance": {
        "exchange": (1.0, 0.0, INFINITE, False), "caution": (0.5, 0.0, INFINITE, False), "patience": (1.0, 0.0, INFINITE, False),
        "plan": (0.02, 0.0, 1.0, False), "outset": (None, 0.0, INFINITE, False), "pending": SHARED["pending"],
    },
    "cs-ids": {
        "exchange": (1.0, 0.0, INFINITE, False), "draws": (60, 2, 10_000, True), "power": (4.0, 1.01, 10.0, False),
        "sobriety": (2.5, 0.0, INFINITE, False), "enough": (0.35, 0.0, INFINITE, False), "patience": (0.2, 0.0, INFINITE, False),
        "debit": (0.5, 0.0, INFINITE, False), "foresight": (0.5, 0.0, INFINITE, False), "plan": (0.02, 0.0, 1.0, False),
        "outset": (None, 0.0, INFINITE, False), "budget": (2.0, 0.0, INFINITE, False),
        **SHARED,
    },
    "cs-direct": {"limit": (1.0, 0.0, INFINITE, False), "cost_scale": SHARED["cost_scale"]},
    "cs-worth": {
        "exchange": (3.0, 0.0, INFINITE, False), "doubt": (0.2, 0.0, 1.0, False), "plan": (0.02, 0.0, 1.0, False),
        "pending": SHARED["pending"], "tau": TAU["tau"],
    },
    "cof": {
        "exchange": (1.0, 0.0, INFINITE, False), "caution": (0.25, 0.0, INFINITE, False), "patience": (1.0, 0.0, INFINITE, False),
        "debit": (0.5, 0.0, INFINITE, False), "plan": (0.02, 0.0, 1.0, False), "outset": (None, 0.0, INFINITE, False),
        **SHARED,
    },
    "cs-exp3": {"explore": (0.5, 0.0, INFINITE, False), "rate": (1.0, 0.0, INFINITE, False)},
    "pe": {"reference": (None, 0, INFINITE, True), **ELIMINATION},
    "pe-cs": ELIMINATION,
    "ts": {**BETA_PRIOR, "pending": SHARED["pending"]},
    "scalarised": {"weight": (1.0, 0.0, INFINITE, False)},
    "best-known": {"tries": (50, 1, INFINITE, True)},
    "oracle": {"optimal_arm": (None, -INFINITE, INFINITE, False)},
}  # fmt: skip
KINDS = {"cs-ucb": "paper", "cs-etc": "paper", "one-shot-etc": "paper", "cs-direct": "kl", "cs-ts": "beta"}


@pytest.mark.parametrize("name", list_policies())
def test_the_parameters_of_a_policy_have_these_defaults_and_ranges(name: str) -> None:
    parameters = policy(name).parameters
    numbers = {key: each for key, each in parameters.items() if isinstance(each, Number)}
    assert {key: (each.default, each.low, each.high, each.whole) for key, each in numbers.items()} == NUMBERS.get(name, {})
    kinds = [each.default for each in parameters.values() if isinstance(each, KernelParameter)]
    assert kinds == ([KINDS[name]] if name in KINDS else [])


def test_only_cs_exp3_weighs_outcomes() -> None:
    assert [name for name, each in list_policies().items() if each.rule.weighs_outcomes] == ["cs-exp3"]
    assert math.isnan(plain(unknown_propensity)(None, None, None, 0))


def stream() -> Any:
    return make_streams(9, np.array([[0, 0]]))[0]


class TestPosteriors:
    def draw(self, prior: Any, label: str, *, n: int, total: float, pending: int = 0) -> float:
        terms = terms_of(label, costs=[0.0], alpha=0.1, horizon=100)
        stats = statistics([(n, total)])
        stats[0].pending = pending
        with np.errstate(over="ignore"):
            return float(plain(prior)(terms, stats, 0, stream()))

    def normal(self) -> float:
        with np.errstate(over="ignore"):
            return float(normal(stream()))

    def beta(self, a: float, b: float) -> float:
        with np.errstate(over="ignore"):
            return float(beta(stream(), a, b))

    def test_the_shrunk_posterior_adds_precisions(self) -> None:
        # sigma_0 = 2 and sigma_n = 1/2, three outcomes that sum to 2: precision 1/4 + 3 * 4 = 12.25 = 3.5^2,
        # mean 2 * 4 / 12.25 = 0.653061.
        shown = self.draw(posteriors.draw_shrunk, "cs-ts:sigma_0=2,sigma_n=0.5", n=3, total=2.0)
        assert shown == pytest.approx(8 / 12.25 + self.normal() / 3.5)
        # Swapped, sigma_0 = 1/2 and sigma_n = 2: precision 4 + 3/4 = 4.75, mean 2 / 4 / 4.75 = 0.105263.
        shown = self.draw(posteriors.draw_shrunk, "cs-ts:sigma_0=0.5,sigma_n=2", n=3, total=2.0)
        assert shown == pytest.approx(0.5 / 4.75 + self.normal() / math.sqrt(4.75))

    def test_the_shrunk_posterior_is_the_prior_before_the_first_outcome(self) -> None:
        shown = self.draw(posteriors.draw_shrunk, "cs-ts:sigma_0=2,sigma_n=0.5", n=0, total=0.0)
        assert shown == pytest.approx(2 * self.normal())

    def test_the_gaussian_posterior_has_the_mean_and_one_over_n(self) -> None:
        assert self.draw(posteriors.draw_gaussian, "cs-ts", n=4, total=1.0) == pytest.approx(0.25 + self.normal() / 2)
        assert self.draw(posteriors.draw_gaussian, "cs-ts", n=1, total=1.0) == pytest.approx(1.0 + self.normal())
        assert self.draw(posteriors.draw_gaussian, "cs-ts", n=0, total=0.0) == pytest.approx(0.5 + self.normal())

    def test_the_beta_posterior_counts_successes_and_failures(self) -> None:
        assert self.draw(posteriors.draw_beta, "cs-ts", n=4, total=1.0) == self.beta(2.0, 4.0)
        assert self.draw(posteriors.draw_beta, "cs-ts:a=2,b=5", n=4, total=1.0) == self.beta(3.0, 8.0)
        assert self.draw(posteriors.draw_beta, "cs-ts", n=1, total=1.5) == self.beta(
            2.5, 1.0
        )  # a correction came before its outcome

    def test_rewards_of_low_variance_count_for_more(self) -> None:
        for rewards in ([0.9], [0.9, 0.8, 0.85, 0.95], [0.0, 1.0, 0.5], [0.3] * 50):
            stats = statistics([(len(rewards), sum(rewards))])
            stats[0].reward_squares = sum(reward**2 for reward in rewards)
            assert plain(posteriors.evidence_weight)(stats, 0) == pytest.approx(oracles.evidence_weight(rewards))
        for won in range(9):  # of eight outcomes: exactly 1, so that nothing changes for successes and failures
            stats = statistics([(8, float(won))])
            stats[0].reward_squares = float(won)
            assert plain(posteriors.evidence_weight)(stats, 0) == 1.0
            stats[0].reward_squares = won + 1e-9  # never less
            assert plain(posteriors.evidence_weight)(stats, 0) == 1.0
        assert plain(posteriors.evidence_weight)(statistics([(3, 0.0)], seen=[0.0]), 0) == 1.0

    def test_the_weighted_posterior_is_the_beta_posterior_of_so_many_outcomes(self) -> None:
        # 0.75 and 0.25: m (1 - m) n = 0.5 against 0.125, with 0.5 added to both: 1.6. Beta(2, 2) becomes Beta(3.2, 3.2).
        terms = terms_of("cs-ts:prior=weighted", costs=[0.0], alpha=0.1, horizon=100)
        stats = statistics([(2, 1.0)])
        stats[0].reward_squares = 0.625
        with np.errstate(over="ignore"):
            assert float(plain(posteriors.draw_weighted)(terms, stats, 0, stream())) == pytest.approx(self.beta(3.2, 3.2))
            stats[0].pending = 2
            assert float(plain(posteriors.draw_weighted)(terms, stats, 0, stream())) == pytest.approx(self.beta(4.8, 4.8))

    def test_cs_ids_draws_from_the_weighted_posterior(self) -> None:
        terms = terms_of("cs-ids:draws=2", costs=[0.0], alpha=0.1, horizon=100)
        memory, stats = memory_of("cs-ids:draws=2", terms), statistics([(2, 1.0)])
        stats[0].reward_squares = 0.625
        with np.errstate(over="ignore"):
            plain(cs_ids.renew_draws)(terms, stats, memory, stream())
        assert float(memory.rewards[0]) == pytest.approx(self.beta(3.2, 3.2))

    def test_pending_decisions_count_as_if_they_had_come_back_at_the_mean(self) -> None:
        # Beta(2, 4) and three pending: the weights grow by 1 + 3 / 6; at pending = 1/3 by 1 + 1 / 6.
        assert self.draw(posteriors.draw_beta, "cs-ts", n=4, total=1.0, pending=3) == self.beta(3.0, 6.0)
        third = self.draw(posteriors.draw_beta, "cs-ts:pending=0.5", n=4, total=1.0, pending=3)
        assert third == self.beta(1.25 * 2, 1.25 * 4)

    def test_the_posterior_of_a_cost_is_on_its_scale(self) -> None:
        terms = terms_of("cs-ts:cost_scale=4", costs=None, n_arms=1, alpha=0.1, horizon=100)
        with np.errstate(over="ignore"):  # costs that sum to 2 of 4 a piece: 1/2 of a success in 3
            shown = plain(learnt_costs.draw_cost)(terms, statistics([(3, 0.0)], costs=[2.0]), 0, stream())
            assert float(shown) == pytest.approx(4 * self.beta(1.5, 3.5))
            more = plain(learnt_costs.draw_cost)(terms, statistics([(1, 0.0)], costs=[6.0]), 0, stream())
            assert float(more) == pytest.approx(4 * self.beta(2.5, 1.0))


# T = 100: the paper's radius after 100 outcomes is sqrt(2 ln 100 / 100) = 0.303485, after 10,000 it is 0.0303485.
PRICES = {"sums": [(100, 50.0), (10_000, 5000.0)], "costs": [50.0, 4000.0]}


class TestUnknownCosts:
    def test_a_cost_is_taken_at_its_lower_bound(self) -> None:
        terms = terms_of("cs-ucb:cost_scale=1", costs=None, n_arms=2, alpha=0.1, horizon=100)
        stats = statistics([(100, 0.0), (0, 0.0)], costs=[80.0, 0.0])
        lowest = plain(learnt_costs.lowest_cost)
        assert lowest(terms, stats, 0) == pytest.approx(0.8 - 0.303485, abs=1e-6)
        assert lowest(terms, stats, 1) == 0.0
        assert lowest(terms, statistics([(100, 0.0)], costs=[10.0]), 0) == 0.0  # 0.1 - 0.3 is below zero
        assert lowest(terms, statistics([(1, 0.0)], costs=[4.0]), 0) == pytest.approx(4 - 3.034854, abs=1e-6)
        half = statistics([(1, 0.0)], seen=[0.5], costs=[3.0])  # outcomes that were borrowed or partly forgotten
        assert lowest(terms, half, 0) == pytest.approx(6 - 3.034854, abs=1e-6)
        scaled = terms_of("cs-ucb:cost_scale=0.5", costs=None, n_arms=1, alpha=0.1, horizon=100)
        assert lowest(scaled, statistics([(100, 0.0)], costs=[40.0]), 0) == pytest.approx(0.4 - 0.5 * 0.303485, abs=1e-6)

    @pytest.mark.parametrize("name", ["cs-ucb", "cs-etc", "one-shot-etc", "cs-direct"])
    def test_the_arm_with_the_lowest_lower_bound_on_its_cost_is_taken(self, name: str) -> None:
        """Algorithm 3: costs 0.5 +- 0.30 and 0.4 +- 0.03. By the lower bounds 0.20 < 0.37; by the upper ones 0.80 > 0.43."""
        terms = terms_of(f"{name}:cost_scale=1", costs=None, n_arms=2, alpha=0.9, horizon=100)
        memory, stats = memory_of(name, terms), statistics(PRICES["sums"], costs=PRICES["costs"])  # type: ignore[arg-type]
        rule = policy(name).rule_for_unknown_costs
        assert rule is not None
        for arm in (0, 1):
            plain(rule.observe)(terms, stats, memory, Outcome(arm, 0.0, 0.0))
        assert int(plain(rule.choose)(terms, stats, memory, None)) == 0

    def test_a_linear_objective_takes_the_mean_of_the_costs(self) -> None:
        terms = terms_of("scalarised:weight=2", costs=None, n_arms=1, alpha=0.1, horizon=100)
        memory = memory_of("scalarised", terms)
        stats = statistics([(100, 40.0)], costs=[30.0])
        plain(baselines.observe_scalarised_unknown_costs)(terms, stats, memory, Outcome(0, 0.0, 0.0))
        assert memory.scores[0] == pytest.approx(0.4 + 0.303485 - 2 * 0.3, abs=1e-6)

    def test_cs_ids_weighs_drawn_costs(self) -> None:
        terms = terms_of("cs-ids:draws=2", costs=None, n_arms=2, alpha=0.5, horizon=100)
        memory = memory_of("cs-ids", terms)
        memory.rewards[:], memory.costs[:] = [0.8, 0.2, 0.6, 0.5], [0.9, 0.1, 0.7, 0.3]
        memory.floors[:] = [0.4, 0.3]
        plain(cs_ids.tally_optima)(memory)
        plain(cs_ids.weigh_arms)(terms, memory, 1.0)
        # Arm 0 is optimal in the first draw, arm 1 in the second.
        # Regrets: arm 0 pays (0 + 0.4) / 2, arm 1 lacks (0.2 + 0) / 2. Its cost is below that of the optimal arm.
        assert memory.regret == pytest.approx([0.2, 0.1])
        # Means 0.8 | 0.6 and 0.9 | 0.7 of arm 0: variances 0.01 and 0.01. Arm 1: 0.2 | 0.5 and 0.1 | 0.3: 0.0225 and 0.01.
        assert memory.information == pytest.approx([0.02, 0.0325])

    def test_cs_ids_weighs_drawn_costs_where_only_the_best_arm_is_good_enough(self) -> None:
        terms = terms_of("cs-ids:draws=2", costs=None, n_arms=2, alpha=0.0, horizon=100)
        memory = memory_of("cs-ids", terms)
        memory.rewards[:], memory.costs[:] = [0.8, 0.2, 0.6, 0.5], [0.5, 0.1, 0.3, 0.7]
        memory.floors[:] = [0.8, 0.6]
        plain(cs_ids.tally_optima)(memory)
        plain(cs_ids.weigh_arms)(terms, memory, 1.0)
        # The floors are the rewards of arm 0. Arm 1 lacks (0.6 + 0.1) / 2 and pays (0 + 0.4) / 2 more.
        assert memory.regret == pytest.approx([0.0, 0.35 + 0.2])

    def test_a_rule_for_unknown_costs_is_used_where_they_are_unknown(self) -> None:
        known, unknown = (Terms(n_arms=2, costs=costs, alpha=0.1, horizon=9) for costs in (np.zeros(2), None))
        chosen = policy("cs-ucb")
        assert chosen.rule is not chosen.rule_for_unknown_costs
        assert chosen.rule_under(known) is chosen.rule
        assert chosen.rule_under(unknown) is chosen.rule_for_unknown_costs
        assert policy("pe").rule_under(known) is policy("pe").rule
        with pytest.raises(ValueError, match="pe needs to know the costs, and they are unknown here"):
            policy("pe").rule_under(unknown)


class TestExploration:
    @pytest.mark.parametrize(
        ("horizon", "n_arms", "tau"), [(5000, 2, 185), (100, 2, 14), (1000, 1, 100), (3, 2, 1), (5, 2, 2), (2, 2, 1)]
    )
    def test_tau_is_the_papers_rounded_up_and_fits(self, horizon: int, n_arms: int, tau: int) -> None:
        terms = Terms(n_arms=n_arms, costs=None, alpha=0.1, horizon=horizon)
        assert settle_tau(terms, {"tau": None}) == {"tau": tau}

    def test_tau_without_a_horizon_grows_unless_it_is_set(self) -> None:
        terms = Terms(n_arms=2, costs=None, alpha=0.1, horizon=None)
        assert settle_tau(terms, {"tau": None}) == {"tau": 0}
        assert settle_tau(terms, {"tau": 9}) == {"tau": 9}

    def test_a_tau_that_just_fits_is_taken(self) -> None:
        assert settle_tau(Terms(n_arms=2, costs=None, alpha=0.1, horizon=10), {"tau": 5}) == {"tau": 5}

    def test_pulls_are_due_by_tau_or_by_the_horizon(self) -> None:
        terms, quota = terms_of("cs-etc:tau=3", costs=[0.0, 1.0], alpha=0.1, horizon=100), plain(exploration.start_quota)()
        pulls_due = plain(exploration.pulls_due)
        assert pulls_due(terms, quota) == 3
        growing = terms._replace(parameters=terms.parameters._replace(tau=0.0))
        assert [pulls_due(growing._replace(horizon=horizon), quota) for horizon in (100, 54, 100)] == [14, 9, 14]
        one = terms._replace(parameters=terms.parameters._replace(tau=1.0))
        assert pulls_due(one, quota) == 1

    def test_arms_are_due_in_turn_until_each_was_sent_so_often(self) -> None:
        stats, position = statistics([(0, 0.0), (3, 0.0), (1, 0.0)]), exploration.start_exploration()
        found = []
        for _ in range(5):
            arm = int(plain(exploration.next_due)(stats, position, 2))
            found.append(arm)
            if arm >= 0:
                stats[arm].sent += 1
        assert found == [0, 2, 0, -1, -1]

    def test_every_arm_is_due_in_its_turn_and_no_more_even_if_nothing_was_sent(self) -> None:
        stats, position = statistics([(0, 0.0)] * 3), exploration.start_exploration()
        assert [int(plain(exploration.next_due)(stats, position, 2)) for _ in range(8)] == [0, 1, 2, 0, 1, 2, -1, -1]

    def test_the_horizon_to_reckon_with_grows_by_an_eighth_and_at_least_by_the_arms(self) -> None:
        assert [int(next_horizon(t, 3)) for t in (0, 3, 24, 32, 800)] == [3, 6, 27, 36, 900]


class TestRefreshing:
    def test_a_rule_is_given_the_means_again(self) -> None:
        given: list[Outcome] = []
        stats = statistics([(4, 1.0), (0, 0.0), (1, 1.0)], seen=[4, 0, 0.5], costs=[2.0, 0.0, 1.0])

        def observe(_terms: object, _stats: object, _memory: object, outcome: Outcome) -> None:
            given.append(outcome)

        plain(refresh)(observe, None, stats, None, 0)
        assert given[0][:3] == (0, 0.25, 0.5)
        assert math.isnan(given[0].propensity)
        given.clear()
        plain(refresh_all)(observe, None, stats, None)
        assert [outcome[:3] for outcome in given] == [(0, 0.25, 0.5), (2, 1.0, 1.0)]

    def test_what_was_forgotten_says_what_to_refresh(self) -> None:
        for changed, arms, again in (
            (0, [0], False),
            (1, [1], False),
            (EVERYTHING, [0, 1], False),
            (RESTART, [], True),
            (NOTHING_ELSE, [], False),
        ):
            given: list[int] = []
            state = RuleState(statistics([(4, 1.0), (2, 2.0)]), None)
            shown = plain(refresh_changed)(lambda *a, given=given: given.append(a[-1].arm), None, state, changed)
            assert (given, shown) == (arms, again)


class TestStep:
    def rule(self, *, probe: int = -1, changed: int = 0) -> Any:
        self.seen: list[int] = []
        return SimpleNamespace(
            probe=lambda _stats, _recollection, _t: probe,
            choose=lambda *_: 1,
            propensity=lambda *_: 0.25,
            take_in=lambda *_: changed,
            observe=lambda _terms, _stats, _memory, outcome: self.seen.append(outcome.arm),
        )

    def test_a_decision_is_the_rules_unless_a_probe_is_due(self) -> None:
        state = RuleState(statistics([(3, 0.0), (5, 0.0)]), None)
        assert plain(decide)(self.rule(), None, state, None, None, 0) == (1, 0.25)
        arm, propensity = plain(decide)(self.rule(probe=0), None, state, None, None, 0)
        assert (arm, math.isnan(propensity)) == (0, True)
        assert [int(each.sent) for each in state.stats] == [4, 6]

    @pytest.mark.parametrize(
        ("recollection", "changed", "seen", "again"),
        [
            (None, RESTART, [1], False),
            (None, 0, [1], False),
            ((), NOTHING_ELSE, [1], False),
            ((), 0, [1, 0], False),
            ((), EVERYTHING, [1, 0, 1], False),
            ((), RESTART, [1], True),
        ],
    )
    def test_an_outcome_is_observed_and_what_was_forgotten_is_refreshed(
        self, recollection: Any, changed: int, seen: list[int], again: bool
    ) -> None:
        state, rule = RuleState(statistics([(3, 1.0), (5, 1.0)]), None), self.rule(changed=changed)
        assert bool(plain(take_outcome)(rule, None, state, recollection, Outcome(1, 1.0, 0.0), None, None)) == again
        assert self.seen == seen


class TestBaselines:
    def test_ucb1_has_the_radius_of_the_outcomes_so_far(self) -> None:
        # 100 outcomes: sqrt(2 ln 100 / 64) = 0.379356 and sqrt(2 ln 100 / 36) = 0.505809.
        terms = terms_of("ucb1", costs=[0.0, 0.0], alpha=0.1, horizon=1000)
        memory = memory_of("ucb1", terms)
        plain(baselines.choose_ucb1)(terms, statistics([(64, 16.0), (36, 9.0)]), memory, None)
        assert memory.scores == pytest.approx([0.25 + 0.379356, 0.25 + 0.505809], abs=1e-6)
        assert int(plain(baselines.choose_ucb1)(terms, statistics([(1, 1.0), (1, 0.0)], seen=[1, 0]), memory, None)) == 1
        assert memory.scores.tolist() == [1.0, INFINITE]
        plain(baselines.choose_ucb1)(terms, statistics([(1, 1.0), (1, 0.0)], seen=[0.25, 0]), memory, None)
        assert memory.scores[0] == 4.0  # ln of less than one outcome is no radius at all

    def test_a_linear_objective_is_an_upper_bound_less_the_weighted_cost(self) -> None:
        terms = terms_of("scalarised:weight=2", costs=[0.3], alpha=0.1, horizon=100)
        memory = memory_of("scalarised", terms)
        plain(baselines.observe_scalarised)(terms, statistics([(100, 40.0)]), memory, Outcome(0, 0.0, 0.0))
        assert memory.scores[0] == pytest.approx(0.4 + 0.303485 - 0.6, abs=1e-6)
        for observe in (baselines.observe_scalarised, baselines.observe_scalarised_unknown_costs):
            plain(observe)(terms, statistics([(1, 0.5)], seen=[0.5], costs=[0.15]), memory, Outcome(0, 0.0, 0.0))
            assert memory.scores[0] == pytest.approx(1.0 + 3.034854 - 0.6, abs=1e-6)  # the radius of one outcome

    def test_without_an_outcome_an_arm_has_done_nothing_and_cost_nothing(self) -> None:
        terms = terms_of("best-known:tries=1", costs=[0.0, 0.0], alpha=0.1, horizon=100)
        memory = memory_of("best-known", terms)
        stats = statistics([(9, 0.25), (1, 0.0)], seen=[0.5, 0], costs=[0.2, 0.0])
        assert int(plain(baselines.choose_best_known)(terms, stats, memory, None)) == 0
        assert memory.scores.tolist() == [0.5, 0.0]
        assert int(plain(baselines.choose_cheapest_known)(terms, stats, memory, None)) == 1
        assert memory.scores.tolist() == [-0.4, 0.0]

    @pytest.mark.parametrize("choose", [baselines.choose_ucb1, baselines.choose_scalarised, baselines.choose_cheapest_known])
    def test_the_first_arm_is_due_once_even_if_what_was_borrowed_speaks_against_it(self, choose: Any) -> None:
        # Four borrowed outcomes of arm 0: mean 0 against 1, cost 1 against 0. It was never sent, so it is due; then arm 1 wins.
        terms = terms_of("ucb1", costs=[0.0, 0.0], alpha=0.1, horizon=1000)
        memory, stats = memory_of("ucb1", terms), statistics([(0, 0.0), (1, 1.0)], seen=[4, 1], costs=[4.0, 0.0])
        memory.scores[:] = [0.0, 1.0]
        assert int(plain(choose)(terms, stats, memory, None)) == 0
        stats[0].sent = 1
        assert int(plain(choose)(terms, stats, memory, None)) == 1

    def test_round_robin_begins_with_the_first_arm(self) -> None:
        terms = terms_of("round-robin", costs=[0.0, 0.0, 0.0], alpha=0.1, horizon=100)
        memory = memory_of("round-robin", terms)
        stats = statistics([(0, 0.0)] * 3)
        assert [int(plain(baselines.choose_round_robin)(terms, stats, memory, None)) for _ in range(5)] == [0, 1, 2, 0, 1]

    def test_the_cheapest_is_the_first_in_the_order_of_costs(self) -> None:
        terms = terms_of("cheapest", costs=[0.5, 0.2, 0.1], alpha=0.1, horizon=100)
        assert int(plain(baselines.choose_cheapest)(terms, None, None, None)) == 2
        assert (
            int(
                plain(baselines.choose_oracle)(
                    terms_of("oracle", costs=[0.5, 0.2], alpha=0.1, horizon=9, optimal_arm=1.0), None, None, None
                )
            )
            == 1
        )


class TestDirect:
    def test_a_rival_is_sampled_up_to_the_exploration_of_cs_etc(self) -> None:
        # T / K = 64: 64^(2/3) = 16 samples of the rival, times limit. The candidate is cheap and in doubt.
        for label, enough in (("cs-direct", 16), ("cs-direct:limit=0.5", 8)):
            terms = terms_of(label, costs=[0.0, 1.0], alpha=0.1, horizon=128)
            memory = memory_of(label, terms)
            memory.upper[:], memory.lower[:] = [0.8, 0.9], [0.3, 0.4]
            choose = plain(cs_direct.choose)
            assert int(choose(terms, statistics([(50, 25.0), (enough - 1, 8.0)]), memory, None)) == 1
            assert int(choose(terms, statistics([(50, 25.0), (enough, 8.0)]), memory, None)) == 0
        assert int(choose(terms, statistics([(5, 2.5), (5, 2.5)]), memory, None)) == 0  # the wider interval is the candidate's
        assert int(choose(terms, statistics([(6, 2.5), (5, 2.5)]), memory, None)) == 1

    def test_a_rival_with_just_enough_samples_is_not_sampled(self) -> None:
        terms = terms_of("cs-direct:limit=16", costs=[0.0, 1.0], alpha=0.1, horizon=2)  # 16 (2 / 2)^(2/3) is exactly 16
        memory = memory_of("cs-direct", terms)
        memory.upper[:], memory.lower[:] = [0.8, 0.9], [0.3, 0.4]
        for sent, chosen in ((15, 1), (16, 0)):
            assert int(plain(cs_direct.choose)(terms, statistics([(50, 25.0), (sent, 8.0)]), memory, None)) == chosen

    def test_an_arm_is_accepted_when_its_lower_bound_reaches_the_share_of_the_highest_upper_bound(self) -> None:
        terms = terms_of("cs-direct", costs=[0.0, 1.0], alpha=0.5, horizon=1000)
        memory = memory_of("cs-direct", terms)
        assert (memory.upper.tolist(), memory.lower.tolist()) == ([1.0, 1.0], [0.0, 0.0])
        memory.upper[:] = [0.7, 0.8]
        stats = statistics([(5, 2.5), (4, 2.0)])
        for lower, chosen in ((0.4, 0), (0.39, 1)):
            memory.lower[:] = [lower, 0.5]
            assert int(plain(cs_direct.choose)(terms, stats, memory, None)) == chosen

    def test_unknown_prices_begin_at_nothing(self) -> None:
        assert memory_of("cs-direct", terms_of("cs-direct", costs=None, n_arms=2, alpha=0.1, horizon=9)).price.tolist() == [
            0.0,
            0.0,
        ]


class TestCommitting:
    """CS-ETC and one-shot ETC, after the exploration. T = 100, 100 outcomes of each arm: the radius is 0.303485."""

    @pytest.mark.parametrize("name", ["cs-etc", "one-shot-etc"])
    def test_the_cheap_arm_is_rejected_below_the_share_of_the_highest_lower_bound(self, name: str) -> None:
        # (1 - 0.1) (0.8 - 0.303485) = 0.446863 is the upper bound of a mean of 0.143378.
        for mean, chosen in ((0.1434, 0), (0.1433, 1)):
            terms = terms_of(f"{name}:tau=50", costs=[0.0, 1.0], alpha=0.1, horizon=100)
            memory, stats = memory_of(name, terms), statistics([(100, 100 * mean), (100, 80.0)])
            for arm in (0, 1):
                plain(policy(name).rule.observe)(terms, stats, memory, Outcome(arm, 0.0, 0.0))
            assert int(plain(policy(name).rule.choose)(terms, stats, memory, None)) == chosen

    def test_arms_without_outcomes_may_be_anything(self) -> None:
        terms = terms_of("cs-etc:tau=1", costs=[0.5, 0.1], alpha=0.1, horizon=100)
        memory, stats = memory_of("cs-etc", terms), statistics([(1, 0.0), (1, 0.0)], seen=[0, 0])
        assert int(plain(cs_etc.choose)(terms, stats, memory, None)) == 1
        once = memory_of("one-shot-etc", terms)
        assert once.committed.tolist() == [-1, -1]
        assert once.upper.tolist() == [1.0, 1.0]

    @pytest.mark.parametrize("costs", [[0.5, 0.1], None])
    def test_bounds_begin_at_0_and_1(self, costs: list[float] | None) -> None:
        for name in ("cs-etc", "cs-ucb"):
            upper = memory_of(name, terms_of(name, costs=costs, n_arms=2, alpha=0.1, horizon=100)).upper
            assert float(plain(top_score)(upper)) == 1.0
        lower = memory_of("cs-etc", terms_of("cs-etc", costs=costs, n_arms=2, alpha=0.1, horizon=100)).lower
        assert float(plain(largest)(lower)) == 0.0

    def test_one_shot_etc_commits_anew_when_the_horizon_grows(self) -> None:
        terms = terms_of("one-shot-etc:tau=1", costs=[0.0, 1.0], alpha=0.0, horizon=100)
        memory, choose = memory_of("one-shot-etc", terms), plain(one_shot_etc.choose)
        bad, good = statistics([(10_000, 0.0), (10_000, 9000.0)]), statistics([(10_000, 9000.0), (10_000, 0.0)])
        assert int(choose(terms, bad, memory, None)) == 1
        assert int(choose(terms, good, memory, None)) == 1
        assert int(choose(terms._replace(horizon=101), good, memory, None)) == 0
        assert memory.committed.tolist() == [0, 101]


class TestUcb:
    def test_the_cheap_arm_is_taken_if_its_upper_bound_clears_the_share_of_the_highest(self) -> None:
        # Upper bounds of 0.5 and 0.05 after 100 outcomes: 0.803485 and 0.353485; 0.353485 / 0.803485 = 0.439940 = 1 - 0.560060.
        for alpha, chosen in ((0.5601, 0), (0.56, 1)):
            terms = terms_of("cs-ucb", costs=[0.0, 1.0], alpha=alpha, horizon=100)
            memory, stats = memory_of("cs-ucb", terms), statistics([(100, 5.0), (100, 50.0)])
            for arm in (0, 1):
                plain(cs_ucb.observe)(terms, stats, memory, Outcome(arm, 0.0, 0.0))
            assert int(plain(cs_ucb.choose)(terms, stats, memory, None)) == chosen

    def test_an_arm_without_outcomes_may_be_the_best(self) -> None:
        terms = terms_of("cs-ucb", costs=[0.5, 0.1], alpha=0.0, horizon=100)
        for costs in ([0.5, 0.1], None):
            given = terms_of("cs-ucb", costs=costs, n_arms=2, alpha=0.0, horizon=100)
            memory, stats = memory_of("cs-ucb", given), statistics([(100, 50.0), (1, 0.0)], seen=[100, 0])
            plain(cs_ucb.observe)(terms, stats, memory, Outcome(0, 0.0, 0.0))
            assert int(plain(cs_ucb.choose)(terms, stats, memory, None)) == 1


class TestExp3:
    def terms(self, label: str = "cs-exp3", horizon: int = 1000) -> Any:
        return terms_of(label, costs=[1.0, 0.0], alpha=0.5, horizon=horizon)

    def test_the_share_explored(self) -> None:
        # 0.5 (2 ln 3 / 1000)^(1/3) = 0.5 * 0.130004 = 0.065002
        share = plain(cs_exp3.share_explored)
        assert share(self.terms()) == pytest.approx(0.065002, abs=1e-6)
        assert share(self.terms("cs-exp3:explore=1")) == pytest.approx(0.130004, abs=1e-6)
        assert share(self.terms("cs-exp3:explore=100")) == 0.5

    def test_the_chances(self) -> None:
        # Gains 100 and 30: the floor is 50, arm 1 lacks 20. gamma / K = 0.032501, so w_1 = exp(-0.650022) = 0.522034.
        terms, memory = self.terms(), memory_of("cs-exp3", self.terms())
        assert (memory.gains.tolist(), memory.chances.tolist()) == ([0.0, 0.0], [1.0, 1.0])
        memory.gains[:] = [100.0, 30.0]
        plain(cs_exp3.weigh)(terms, memory)
        assert memory.chances == pytest.approx([0.032501 + 0.934998 * 0.477966, 0.032501 + 0.934998 * 0.522034], abs=2e-6)
        memory.gains[:] = [100.0, 50.0]  # on the floor: arm 1 takes all but the exploration
        plain(cs_exp3.weigh)(terms, memory)
        assert memory.chances == pytest.approx([0.032501, 0.967499], abs=1e-6)
        twice = self.terms("cs-exp3:rate=2")
        memory.gains[:] = [100.0, 40.0]
        plain(cs_exp3.weigh)(twice, memory)
        assert memory.chances[1] == pytest.approx(0.032501 + 0.934998 * 0.522034, abs=2e-6)

    def test_an_outcome_adds_its_reward_over_its_chance(self) -> None:
        memory = memory_of("cs-exp3", self.terms())
        observe = plain(cs_exp3.observe)
        observe(None, None, memory, Outcome(1, 0.5, math.nan, 0.25))
        observe(None, None, memory, Outcome(1, 0.5, math.nan, math.nan))
        observe(None, None, memory, Outcome(1, 0.5, math.nan, 0.0))
        assert memory.gains.tolist() == [0.0, 2.0]
        assert plain(cs_exp3.propensity)(None, None, memory, 1) == 1.0


class TestInformation:
    def test_information_is_worth_its_foresight(self) -> None:
        # foresight 0.5 and T / K = 64: worth 8. 0.5 - 8 * 0.05 = 0.1 is less than 0.2 - 8 * 0.01 = 0.12.
        terms = terms_of("cs-ids", costs=[0.0, 0.0], alpha=0.1, horizon=128)
        ahead = plain(information.worth_knowing_now)
        regret = np.array([0.2, 0.5])
        assert ahead(terms, regret, np.array([0.01, 0.05])) == 1
        assert ahead(terms, regret, np.array([0.01, 0.047])) == 0
        later = terms._replace(parameters=terms.parameters._replace(outset=128.0))  # T / K = 128: worth 12.699
        assert ahead(later, regret, np.array([0.01, 0.0337])) == 1
        assert ahead(later, regret, np.array([0.01, 0.0335])) == 0
        assert ahead(terms, np.array([0.2, 0.2]), np.array([0.01, 0.01])) == 0  # equal ones go to the lower index

    @pytest.mark.parametrize("known", [True, False])
    def test_a_dearer_arm_is_explored_while_its_budget_lasts(self, known: bool) -> None:
        # T / K = 64, so the budget is 2 * 16 = 32 outcomes. Arm 1 has the least regret; arm 0 is cheaper, arm 2 as dear.
        costs = [0.1, 0.5, 0.5, 0.9]
        terms = terms_of("cs-ids", costs=costs if known else None, n_arms=4, alpha=0.1, horizon=256)
        for seen, pending, left in ((31, 0, 1.0), (32, 0, 0.0), (30, 2, 0.0)):
            memory = memory_of("cs-ids", terms)
            memory.regret[:], memory.information[:] = [0.3, 0.1, 0.2, 0.4], 1.0
            stats = statistics([(99, 1.0)] * 4, seen=[seen] * 4, costs=[seen * each for each in costs])
            stats["pending"] = pending
            plain(cs_ids.price_arms)(terms, stats, memory, 0.8)
            plain(information.keep_budget)(terms, stats, memory)
            assert memory.information.tolist() == [1.0, 1.0, 1.0, left]

    def test_an_unknown_price_is_the_mean_of_what_was_paid_and_nothing_before_that(self) -> None:
        terms = terms_of("cs-ids", costs=None, n_arms=2, alpha=0.1, horizon=256)
        memory, stats = memory_of("cs-ids", terms), statistics([(0, 0.0), (5, 1.0)], costs=[0.0, 2.5])
        plain(cs_ids.price_arms)(terms, stats, memory, 0.25)
        assert memory.prices.tolist() == [0.0, 2.0]

    def mixture(self, regret: Sequence[float], told: Sequence[float], power: float) -> list[float]:
        coin = np.zeros(3)
        plain(information.best_of_two)(np.array(regret), np.array(told), power, coin)
        return coin.tolist()

    def test_the_mixture_of_two_by_hand(self) -> None:
        # r = (0.1, 0.5), v = (0, 0.4), power 3: the share of the second is (0.4 * 0.1 - 0) / (2 * 0.4 * 0.4) = 1/8.
        assert self.mixture([0.1, 0.5], [0.0, 0.4], 3.0) == pytest.approx([0.0, 1.0, 0.125])
        # Power 2: (0.4 * 0.1) / (1 * 0.4 * 0.4) = 1/4.
        assert self.mixture([0.1, 0.5], [0.0, 0.4], 2.0) == pytest.approx([0.0, 1.0, 0.25])
        # v = (0.02, 0.4), power 3: (0.38 * 0.1 - 3 * 0.4 * 0.02) / (2 * 0.4 * 0.38) = 0.014 / 0.304.
        assert self.mixture([0.1, 0.5], [0.02, 0.4], 3.0) == pytest.approx([0.0, 1.0, 0.014 / 0.304])

    def test_one_arm_alone_may_be_the_best_mixture(self) -> None:
        assert self.mixture([0.1, 0.5], [0.1, 0.4], 3.0) == [0.0, 0.0, 0.0]  # 0.01 against 0.3125; the share would be negative
        assert self.mixture([0.4, 0.5], [0.0, 0.9], 1.01) == [1.0, 1.0, 0.0]

    def test_arms_that_tell_the_same_are_not_mixed(self) -> None:
        assert self.mixture([0.1, 0.5], [0.2, 0.2], 3.0) == [0.0, 0.0, 0.0]
        assert self.mixture([0.1, 0.1], [0.1, 0.2], 3.0) == [1.0, 1.0, 0.0]
        assert self.mixture([0.1, 0.1], [0.2, 0.2], 3.0) == [0.0, 0.0, 0.0]  # equal arms go to the lower index

    def test_no_regret_needs_no_information(self) -> None:
        assert self.mixture([0.5, 0.0], [0.3, 0.9], 3.0) == [1.0, 1.0, 0.0]
        assert self.mixture([0.5, 0.0], [0.3, 0.0], 3.0) == [1.0, 1.0, 0.0]

    def test_a_power_is_a_power(self) -> None:
        assert [plain(information._raised)(0.5, power) for power in (2.0, 3.0, 6.0)] == [1 / 4, 1 / 8, 1 / 64]
        assert plain(information._raised)(0.5, 4.0) == 1 / 16

    def test_corners_are_the_arms_with_the_least_regret_for_their_information(self) -> None:
        # From arm 0 the slopes are 2 (arm 1), 1 (arm 2) and 1 (arm 3): the farther of the two. From there 3 (arm 4).
        regret, information_of = np.array([0.1, 0.3, 0.2, 0.3, 0.6, 0.5]), np.array([0.0, 0.1, 0.1, 0.2, 0.3, 0.0])
        first, following = plain(information.first_corner), plain(information.next_corner)
        assert first(regret, information_of) == 0
        assert [following(regret, information_of, arm) for arm in (0, 3, 4)] == [3, 4, -1]
        assert first(np.array([0.2, 0.1, 0.1, 0.1]), np.array([0.9, 0.1, 0.2, 0.2])) == 2  # most information, then the lower index

    def test_equal_regrets_go_to_the_lower_index(self) -> None:
        assert plain(information.least)(np.array([0.3, 0.1, 0.1])) == 1


class TestIds:
    def test_the_outset(self) -> None:
        for horizon, wanted in ((None, 3000.0), (50, 0.0)):
            terms = Terms(n_arms=2, costs=None, alpha=0.1, horizon=horizon)
            assert settle_outset(terms, {"outset": None}) == {"outset": wanted}
            assert settle_outset(terms, {"outset": 7.0}) == {"outset": 7.0}

    def weighed(self, label: str, costs: Sequence[float]) -> Any:
        terms = terms_of(label, costs=costs, alpha=0.5, horizon=100)
        memory = memory_of("cs-ids", terms)
        memory.rewards[:], memory.floors[:] = [0.8, 0.2, 0.6, 0.5], [0.4, 0.3]
        plain(cs_ids.tally_optima)(memory)
        plain(cs_ids.weigh_arms)(terms, memory, 1.0)
        return memory

    def test_regret_and_information_by_hand(self) -> None:
        # Arm 0 is optimal in the first draw, arm 1, which is cheaper by the whole range, in the second.
        memory = self.weighed("cs-ids:draws=2", [5.0, 3.0])
        assert memory.prices.tolist() == [2.5, 1.5]
        assert memory.regret == pytest.approx([0.5, 0.1])
        assert memory.information == pytest.approx([0.01, 0.0225])
        assert self.weighed("cs-ids:draws=2,exchange=3", [5.0, 3.0]).regret == pytest.approx([0.5, 0.3])
        assert self.weighed("cs-ids:draws=2", [4.0, 4.0]).prices.tolist() == [4.0, 4.0]  # no range to divide by

    def test_an_arm_on_the_floor_is_optimal_if_it_is_cheaper(self) -> None:
        terms = terms_of("cs-ids:draws=2", costs=[1.0, 0.5, 0.5], alpha=0.5, horizon=100)
        memory = memory_of("cs-ids", terms)
        memory.rewards[:], memory.floors[:] = [0.8, 0.4, 0.4, 0.9, 0.1, 0.2], [0.4, 0.45]
        plain(cs_ids.tally_optima)(memory)
        assert memory.optimum.tolist()[:2] == [1, 0]  # equal costs go to the lower index
        assert memory.optimum[2] == 2
        assert memory.counts.tolist() == [1, 1]

    def floors(self, label: str, rewards: list[list[float]], seen: list[int]) -> list[float]:
        """The floors at alpha = 0.5 and T / K = 1000."""
        terms = terms_of(label, costs=[0.0] * len(seen), alpha=0.5, horizon=1000 * len(seen))
        room = np.ones(len(rewards))
        memory = memory_of(label, terms)._replace(rewards=np.ravel(rewards), floors=room, tops=room.copy())
        plain(luck.set_floors)(terms, statistics([(n, 0.0) for n in seen]), memory)
        return [float(floor) for floor in memory.floors]

    def test_the_luck_of_tried_arms_is_taken_off_the_floor(self) -> None:
        # The highest draws are 0.8 and 0.6, with a mean of 0.7; the highest mean is 0.6. The luck is 0.1.
        rewards = [[0.8, 0.4], [0.4, 0.6]]
        assert self.floors("cs-ids:sobriety=2", rewards, [60, 60]) == pytest.approx([0.3, 0.2])
        assert self.floors("cs-ids:sobriety=0", rewards, [60, 60]) == pytest.approx([0.4, 0.3])
        assert self.floors("cs-ids:sobriety=2", [[0.8, 0.4]], [60, 60]) == pytest.approx([0.4])  # one draw has no luck

    def test_an_arm_is_tried_after_enough_outcomes_and_60_at_least(self) -> None:
        rewards = [[0.8, 0.4], [0.4, 0.6]]
        for label, tried in (("cs-ids:sobriety=2", 60), ("cs-ids:sobriety=2,enough=0.7", 70)):
            assert self.floors(label, rewards, [tried, tried]) == pytest.approx([0.3, 0.2])
            assert self.floors(label, rewards, [tried - 1, tried - 1]) == pytest.approx([0.4, 0.3])

    def test_the_luck_of_an_arm_that_was_hardly_tried_stays(self) -> None:
        # Arm 0 alone is tried. Its highest draw is its draw.
        assert self.floors("cs-ids", [[0.8, 0.4], [0.4, 0.6]], [60, 1]) == pytest.approx([0.4, 0.3])
        assert self.floors("cs-ids", [[0.2, 0.4], [0.6, 0.8]], [60, 1]) == pytest.approx([0.2, 0.4])

    def test_not_all_of_many_arms_can_be_lucky(self) -> None:
        # Ten arms, each with one draw of 1 and nine of 0.5: the highest draw is always 1. No draw counts for less than the highest
        # mean, 0.55, so one arm alone has (1 + 9 * 0.55) / 10 = 0.595. Half of ten arms are more than a handful.
        rewards = np.full((10, 10), 0.5) + 0.5 * np.eye(10)
        assert self.floors("cs-ids", rewards.tolist(), [1] * 10) == pytest.approx([0.5 * (1 - 0.5 * 0.405)] * 10)
        assert self.floors("cs-ids", rewards[:, :5].tolist(), [1] * 5)[:5] == pytest.approx([0.5] * 5)

    def given_up(self, means: list[float], looks: list[float], prices: list[float], label: str = "cs-ids") -> int:
        terms = terms_of(label, costs=prices, alpha=0.0, horizon=1000)
        memory = memory_of(label, terms)
        memory.means[:], memory.looks[:], memory.trials[:] = means, looks, looks
        return int(plain(patience.given_up_too_soon)(terms, memory, 0))

    def test_an_arm_is_given_up_once_its_looks_have_lost_what_it_may_save(self) -> None:
        # As in test_cof: lost are 10 * 0.6 = 6, and to be saved is patience * 1000 * 0.000645.
        assert self.given_up([0.8, 0.2], [20, 10], [1.0, 0.0], "cs-ids:patience=9.4") == 1
        assert self.given_up([0.8, 0.2], [20, 10], [1.0, 0.0], "cs-ids:patience=9.2") == -1
        assert self.given_up([0.8, 0.2], [20, 10], [1.0, 0.0], "cs-ids:patience=9.4,exchange=1.1") == -1

    def test_only_cheaper_arms_below_the_floor_with_few_looks_are_given_up_too_soon(self) -> None:
        assert self.given_up([0.5, 0.45], [9, 9], [1.0, 0.0]) == 1
        assert self.given_up([0.5, 0.45], [9, 10], [1.0, 0.0]) == -1  # it is the top arm that should be looked at
        assert self.given_up([0.5, 0.5], [9, 9], [1.0, 0.0]) == -1  # it is on the floor: why it is not played is not its mean
        assert self.given_up([0.5, 0.45], [9, 9], [1.0, 1.0]) == -1
        assert self.given_up([0.5, 0.45, 0.45, 0.45], [9, 9, 9, 9], [1.0, 0.5, 0.2, 0.2]) == 2  # the cheapest

    def test_the_probability_is_that_of_the_coin(self) -> None:
        memory = memory_of("cs-ids", terms_of("cs-ids", costs=[0.0, 1.0, 2.0], alpha=0.1, horizon=100))
        memory.coin[:] = [0.0, 2.0, 0.25]
        assert [float(plain(cs_ids.propensity)(None, None, memory, arm)) for arm in range(3)] == [0.75, 0.0, 0.25]

    def test_draws_are_renewed_where_outcomes_came_and_in_turn(self) -> None:
        terms = terms_of("cs-ids:draws=2", costs=[0.0, 0.0, 0.0], alpha=0.1, horizon=100)
        memory, stats = memory_of("cs-ids", terms), statistics([(4, 1.0)] * 3)
        assert memory.stale.all()
        assert (memory.turn[0], memory.slot_of.tolist()) == (0, [-1, -1, -1])
        stats[0].pending = 3
        memory.stale[:] = False
        plain(cs_ids.observe)(terms, stats, memory, Outcome(0, 0.0, 0.0))
        own = stream()
        with np.errstate(over="ignore"):
            plain(cs_ids.renew_draws)(terms, stats, memory, own)
            wanted = stream()
            first = [float(beta(wanted, 3.0, 6.0)) for _ in range(2)]  # Beta(2, 4), and 3 pending of 6
            second = [float(beta(wanted, 2.0, 4.0)) for _ in range(2)]
        assert memory.rewards.reshape(2, 3)[:, 0].tolist() == first
        assert memory.rewards.reshape(2, 3)[:, 1].tolist() == second
        assert memory.rewards.reshape(2, 3)[:, 2].tolist() == [0.0, 0.0]
        assert not memory.stale.any()
        assert memory.turn[0] == 1

    def test_an_arm_is_never_counted_with_fewer_failures_than_none(self) -> None:
        terms = terms_of("cs-ids:draws=2", costs=[0.0], alpha=0.1, horizon=100)
        memory, own = memory_of("cs-ids", terms), stream()
        with np.errstate(over="ignore"):
            plain(cs_ids.renew_draws)(terms, statistics([(1, 1.5)]), memory, stream())
            assert memory.rewards[0] == float(beta(own, 2.5, 1.0))


def test_terms_as_a_driver_takes_them() -> None:
    given = given_terms(Terms(n_arms=3, costs=np.array([0.5, 0.1, 0.5]), alpha=0.1, horizon=7), {"a": 2.0})
    assert (given.numbers, given.by_cost.tolist(), given.horizon) == ((2.0,), [1, 0, 2], 7)
    assert given_terms(Terms(n_arms=2, costs=None, alpha=0.1, horizon=None), {}).horizon == 0
    assert np.isnan(given_terms(Terms(n_arms=2, costs=None, alpha=0.1, horizon=None), {}).costs).all()


def test_a_number_is_read_within_its_range() -> None:
    number = Number(1.0, "", low=0.0, high=2.0)
    assert [number.read("x", value) for value in (0, "2", 1.5)] == [0.0, 2.0, 1.5]
    for wrong in (-0.1, 2.1, "x", None, math.nan):
        with pytest.raises(ValueError, match=r"x must be a number in \[0, 2\], got"):
            number.read("x", wrong)
    with pytest.raises(ValueError, match="x must be a number, got inf"):
        Number(1.0, "").read("x", INFINITE)
    with pytest.raises(ValueError, match=r"x must be a whole number of at least 1, got 1\.5"):
        Number(1.0, "", low=1, whole=True).read("x", 1.5)


def test_cs_ts_reads_the_price_list() -> None:
    terms = terms_of("cs-ts", costs=[0.5, 0.1], alpha=0.1, horizon=100)
    assert plain(cs_ts.listed_cost)(terms, None, 1, None) == 0.1


def test_a_plus_names_a_forgetting_method_unless_it_is_part_of_a_number() -> None:
    assert policy("cs-etc:tau=100+window=500").label == "cs-etc:tau=100+window=500"
    assert policy("cs-etc:tau=1e+3").forgetting.label == ""
    assert policy("cs-etc:tau=1e+3").settings == {"tau": "1e+3"}


def test_every_pair_of_parameters_must_be_whole() -> None:
    with pytest.raises(ValueError, match="cannot read the parameters of 'cs-ts:a=2,b'"):
        policy("cs-ts:a=2,b")


def test_a_file_gives_its_policy(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from thrifty.policies import list_policies\nPOLICY = list_policies()['cheapest']")
    assert policy(str(path)).name == "cheapest"
    assert policy(str(path)).sources == (path.read_text(),)
