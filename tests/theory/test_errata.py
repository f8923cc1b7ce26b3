"""The entries of docs/errata.md that are algebra, each checked with numbers."""

import math

import numpy as np
import pytest

from thrifty import Instance, simulate
from thrifty.environments.families import (
    HardFamily,
    cost_consistent,
    minimal_delta,
    near_the_floor,
    random_costs,
    theorem_1,
    unseen_arm,
)
from thrifty.theory import consistent_bound, etc_bound, kl, mixture_bound, paper_tau, thompson_floor

P, EPSILON, T, K = 0.4, 0.05, 5000.0, 3


def summand_before(pulls: float) -> float:
    """The last line of Lemma 1's proof before the squares, per dear arm: with E N_a and its square root."""
    return EPSILON * T / K + (1 - EPSILON) * pulls - T * EPSILON / (2 * K) * math.sqrt(8 * EPSILON**2 / P * pulls)


def summand_printed(pulls: float) -> float:
    """The next line as printed: with (E N_a)^2 and E N_a."""
    return EPSILON * T / K + (1 - EPSILON) * pulls**2 - T * pulls * EPSILON**2 * math.sqrt(2) / (K * math.sqrt(P))


def test_the_printed_square_is_not_the_line_before_it_but_with_roots_it_is() -> None:
    assert summand_printed(100.0) != pytest.approx(summand_before(100.0), rel=0.1)
    for pulls in (0.0, 1.0, 100.0, 2500.0):
        assert summand_printed(math.sqrt(pulls)) == pytest.approx(summand_before(pulls))


def test_the_least_value_of_the_corrected_sum_is_the_bound() -> None:
    least = min(summand_before(float(pulls)) for pulls in np.linspace(0, T, 200_001))
    assert K * least / 2 == pytest.approx(mixture_bound(int(T), K, alpha=0.0, p=P, epsilon=EPSILON), rel=1e-6)


def test_cost_regret_in_the_reduction_has_the_other_sign() -> None:
    member = HardFamily(0.0, P, EPSILON, K).member(0)
    printed = member.costs[member.optimal_arm] - member.costs  # c_i* - c_I, as printed
    assert (printed[1:] < 0).all()
    assert (member.cost_gaps == -printed).all()


def test_the_cost_gap_in_the_proof_of_theorem_4_has_the_other_sign() -> None:
    instance = unseen_arm()
    printed = np.maximum(instance.costs[instance.optimal_arm] - instance.costs, 0.0)
    assert (printed == 0.0).all()  # it would make the cost regret of dearer arms zero
    assert (instance.cost_gaps[1:] > 0.0).all()


def test_the_step_of_theorem_4_that_fails_needs_the_optimal_arm_to_be_better() -> None:
    # mu_i* < mu_i + 2 beta gives beta > (mu_i* - mu_i)/2, which bounds T_i only where mu_i* > mu_i; here the second arm is better.
    instance = unseen_arm()
    assert instance.means[1] > instance.means[instance.optimal_arm]
    assert instance.costs[1] > instance.costs[instance.optimal_arm]


def test_the_exponent_of_g_has_the_root_of_k_below() -> None:
    # (7/2)(1/s0^2 + 1/sn^2) T_i (2d / ((1-alpha) sqrt T))^2 at T_i = s T / sqrt(K), as the proof says, with s0 = sn = 1.
    alpha, d, s, n_arms = 0.6, 1.0, 0.1, 16
    at = 3.5 * 2 * (s * T / math.sqrt(n_arms)) * (2 * d / ((1 - alpha) * math.sqrt(T))) ** 2
    assert at == pytest.approx(14 * 2 * s / math.sqrt(n_arms) * d**2 / (1 - alpha) ** 2)
    assert at != pytest.approx(14 * 2 * s * math.sqrt(n_arms) * d**2 / (1 - alpha) ** 2)


def test_pinskers_inequality_bounds_kl_from_below_and_lemma_4_from_above() -> None:
    assert 2 * EPSILON**2 <= kl(P, P + EPSILON) <= 4 * EPSILON**2 / P


def test_negative_gaussian_draws_leave_no_arm_feasible_by_the_papers_definition() -> None:
    draws = np.random.default_rng(1).standard_normal((20_000, 2)) + 0.02  # two arms of Theorem 1 after one pull each
    top = draws.max(axis=1, keepdims=True)
    empty = ~(draws - (1 - 0.6) * top >= 0).any(axis=1)
    assert abs(empty.mean() - 0.25) < 0.02  # Phi(-0.02)^2 = 0.242; the margin is four standard errors and more


def test_a_strict_inequality_in_algorithm_3_is_harmless_while_intervals_have_a_width() -> None:
    # The best arm's own upper bound exceeds its lower bound, at alpha = 0 as well, unless the width is zero.
    for mean in (0.0, 0.3, 1.0):
        for width in (1e-9, 0.2, 3.0):
            assert min(mean + width, 1.0) > max(mean - width, 0.0)


def test_theorem_4_with_unknown_costs_fails_for_alpha_above_0_and_holds_at_0() -> None:
    horizon = 1_000_000
    world = random_costs(near_the_floor(horizon))
    assert minimal_delta(world.instance) == pytest.approx(1.0)
    cost = simulate(world, "cs-ucb", horizon=horizon, runs=8, seed=1, checkpoints=1).samples("cs-ucb")["cost"]
    # The mean is 2.6 times the bound, with a standard error of a sixteenth of the mean: one seed in 10^6 fails by chance.
    assert cost.mean() > 1.7 * consistent_bound(horizon, 2, delta=1.0)
    consistent = cost_consistent([0.7, 0.5, 0.3], 1.0, alpha=0.0)
    falling = random_costs(Instance(consistent.means, consistent.costs[::-1], 0.0))  # the best arm is the cheapest
    total = simulate(falling, "cs-ucb", horizon=100_000, runs=4, seed=1, checkpoints=1).samples("cs-ucb")["total"]
    # About 1/25 of the bound, with a standard error of a tenth of that.
    assert total.mean() < consistent_bound(100_000, 3, delta=1.0) / 5


def test_a_regret_of_the_root_of_k_times_t_is_impossible_in_theorem_1() -> None:
    horizon, n_arms, s = 10_000, 9, 0.5
    instance = theorem_1(0.6, n_arms, horizon=horizon).instance
    largest = float(instance.cost_regret([0, horizon, *[0] * (n_arms - 2)]))
    assert largest == horizon < s * horizon * math.sqrt(n_arms)  # so A_{t-1} cannot fail
    assert 0.0 < thompson_floor(n_arms, 0.6) <= 0.5  # what is left is linear in T


def test_theorem_3_needs_costs_up_to_1() -> None:
    horizon, tau = 5000, math.ceil(paper_tau(5000, 2))
    for dear, kept in ((1.0, True), (1000.0, False)):
        runs = simulate(Instance([0.5, 0.46], [dear, 0.0], 0.1), "cs-etc", horizon=horizon, runs=4, seed=1, checkpoints=1)
        regret = runs.samples("cs-etc")["cost"].ravel()
        assert regret.tolist() == [dear * tau] * 4  # the exploration of the dear arm
        assert (regret.mean() <= etc_bound(horizon, 2, tau=tau)) == kept


def test_the_modified_regret_in_the_reduction_can_be_less_than_the_quality_regret() -> None:
    alpha, p, epsilon = 0.1, 0.3, 0.1
    gaps = HardFamily(alpha, p, epsilon, 2).member(1).quality_gaps
    assert gaps[0] == pytest.approx(epsilon)  # all that the line before the last counts
    assert gaps[2] == pytest.approx(p + epsilon - p / (1 - alpha))
    assert gaps[2] > 0.05


@pytest.mark.parametrize("horizon", [100, 10_000, 10**6])
def test_one_pull_more_in_the_proof_of_theorem_4_changes_little(horizon: int) -> None:
    # T_i <= 8 ln T / Delta_i^2 + 1 and Delta_i <= 1 give sum T_i Delta_i^2 <= (K-1) (8 ln T + 1), and Jensen's inequality the rest.
    level = 8 * math.log(horizon)
    for n_arms in (2, 10, int(1 + level), int(2 + level), horizon):
        printed, correct = math.sqrt(n_arms * horizon * level), math.sqrt((n_arms - 1) * horizon * (level + 1))
        assert (correct <= printed) == (n_arms <= 1 + level)
        assert correct <= printed + n_arms - 1


@pytest.mark.parametrize("pulls", [1, 5, 100])
def test_the_posterior_of_the_appendix_is_that_of_section_2_only_for_a_flat_prior(pulls: int) -> None:
    def posterior(sigma_0: float, sigma_n: float) -> tuple[float, float]:
        """The factor of the average, and the variance, as the appendix prints them."""
        return pulls / (sigma_n**2 / sigma_0**2 + pulls), 1 / (1 / sigma_0**2 + pulls / sigma_n**2)

    assert posterior(1e6, 1.0) == pytest.approx((1.0, 1 / pulls), rel=1e-9)
    for sigmas in ((1.0, 1.0), (1e6, 2.0)):
        assert posterior(*sigmas) != pytest.approx((1.0, 1 / pulls), rel=1e-3)
