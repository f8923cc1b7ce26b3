import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import simulate
from thrifty.environments.families import HardFamily, cost_consistent, table_1
from thrifty.theory import (
    consistent_bound,
    consistent_quality_bound,
    direct_lower_bound,
    etc_bound,
    first_rejection,
    mixture_bound,
    optimal_tau,
    paper_lower_bound,
    paper_tau,
    sharp_lower_bound,
    unknown_costs_bound,
)

sizes = {"horizon": st.integers(10, 10**8), "n_dear": st.integers(1, 10), "alpha": st.floats(0.0, 0.99)}


@given(**sizes)
def test_the_direct_bound_is_at_least_its_closed_form_and_beats_the_papers(horizon: int, n_dear: int, alpha: float) -> None:
    direct = direct_lower_bound(horizon, n_dear, alpha=alpha)
    shape = n_dear ** (1 / 3) * horizon ** (2 / 3)
    assert direct >= 47 / 384 * (1 - alpha) * shape
    assert direct <= (1 - alpha) / 8 * shape
    assert direct > paper_lower_bound(horizon, n_dear, alpha=alpha) > 0


@given(**sizes)
def test_no_epsilon_within_the_lemma_makes_the_mixture_bound_exceed_its_first_term(horizon: int, n_dear: int, alpha: float) -> None:
    p = (1 - alpha) / 2
    for epsilon in np.geomspace(p / 1000, p / 2, 5):
        assert mixture_bound(horizon, n_dear, alpha=alpha, p=p, epsilon=float(epsilon)) < epsilon * horizon / 2


@given(horizon=st.integers(10, 10**8), n_arms=st.integers(2, 10), factor=st.floats(0.2, 5.0))
def test_the_optimal_tau_minimises_the_bound(horizon: int, n_arms: int, factor: float) -> None:
    best = optimal_tau(horizon, n_arms)
    assert etc_bound(horizon, n_arms, tau=best) <= etc_bound(horizon, n_arms, tau=factor * best) * (1 + 1e-12)


@given(horizon=st.integers(10, 10**8), n_arms=st.integers(2, 10), factor=st.floats(0.2, 5.0))
def test_the_quality_half_alone_is_smallest_at_the_reading_notes_tau(horizon: int, n_arms: int, factor: float) -> None:
    def quality(tau: float) -> float:
        return n_arms * tau + 4 * horizon * math.sqrt(2 * math.log(horizon) / tau)

    best = 2 * math.log(horizon) ** (1 / 3) * paper_tau(horizon, n_arms)
    assert quality(best) <= quality(factor * best) * (1 + 1e-12)


def test_measured_regret_lies_between_both_bounds() -> None:
    family = HardFamily.hardest(0.1, 3, horizon=20_000)
    means = []
    for member in range(4):
        runs = simulate(family.member(member), "cs-etc", horizon=20_000, runs=4, seed=1, checkpoints=1)
        means.append(runs.final()["cs-etc"]["total"]["mean"])
    mixed = float(family.weights @ means)
    # Regret on Phi^0 is the exploration, on the others epsilon T: both are constants up to a fraction of a percent.
    assert sharp_lower_bound(20_000, 3, alpha=0.1) <= mixed <= etc_bound(20_000, 4, tau=paper_tau(20_000, 4))


def test_the_sharp_bound_is_the_largest_mixture_bound_of_brute_force_on_a_hundred_draws() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        n_dear, alpha = int(rng.integers(1, 20)), float(rng.uniform(0.0, 0.99))
        horizon = int(n_dear * 10 ** rng.uniform(0.0, 8.0)) + 1
        low, high = 1e-9, (1 - alpha) / 4
        for _ in range(4):  # a grid, and finer ones around its best point
            epsilons = np.linspace(low, high, 201)
            values = [mixture_bound(horizon, n_dear, alpha=alpha, p=(1 - alpha) / 2, epsilon=float(e)) for e in epsilons]
            at = int(np.argmax(values))
            low, high = epsilons[max(at - 1, 0)], epsilons[min(at + 1, 200)]
        sharp = sharp_lower_bound(horizon, n_dear, alpha=alpha)
        assert sharp == pytest.approx(max(values), rel=1e-6)
        for share in (0.3, 0.9, 1.0):  # a smaller p, and any epsilon that it allows, gives less
            p = share * (1 - alpha) / 2
            for epsilon in np.geomspace(p / 1e4, p / 2, 20):
                assert mixture_bound(horizon, n_dear, alpha=alpha, p=p, epsilon=float(epsilon)) <= sharp * (1 + 1e-12)


@given(**sizes)
def test_the_sharp_bound_lies_between_its_closed_forms_and_beats_the_direct_one(horizon: int, n_dear: int, alpha: float) -> None:
    sharp = sharp_lower_bound(horizon, n_dear, alpha=alpha)
    assert sharp >= direct_lower_bound(horizon, n_dear, alpha=alpha)
    shape = 4 ** (-1 / 3) * (1 - alpha) ** (2 / 3) * n_dear ** (1 / 3) * horizon ** (2 / 3)
    assert sharp <= 3 / 8 * shape
    if horizon >= 16 * n_dear / (1 - alpha):
        assert sharp >= shape / 3
        family = HardFamily.hardest(alpha, n_dear, horizon=horizon)
        leading = ((1 - alpha) ** 2 * n_dear / (4 * horizon)) ** (1 / 3)
        assert 0.88 * leading <= family.epsilon <= leading * (1 + 1e-12)  # (4 / 5.78)^(1/3) = 0.884 at epsilon = 1/4


def test_the_sharp_bound_comes_close_to_three_eighths_of_its_order() -> None:
    shape = 4 ** (-1 / 3) * 0.9 ** (2 / 3) * 2 ** (1 / 3) * 1e12 ** (2 / 3)
    assert sharp_lower_bound(10**12, 2, alpha=0.1) / shape == pytest.approx(3 / 8, rel=1e-4)
    gains = [sharp_lower_bound(10**6, k, alpha=a) / direct_lower_bound(10**6, k, alpha=a) for a, k in ((0.0, 1), (0.9, 4))]
    assert [round(gain, 1) for gain in gains] == [1.9, 4.1]  # the figures of docs/theory/bounds.md


def test_the_hardest_family_solves_its_equation_and_keeps_within_the_lemma() -> None:
    # epsilon = 0.1 solves it where (1-alpha)^2 K / T = 0.001 * 3.7 / 0.81 = 37/8100: alpha = 0, K = 37, T = 8100.
    assert HardFamily.hardest(0.0, 37, horizon=8100).epsilon == pytest.approx(0.1, rel=1e-14)
    # At T = K = 1, alpha = 0 the zero is above 1/4: 1/64 * 3.25 * 16/9 = 0.09 < 1.
    family = HardFamily.hardest(0.0, 1, horizon=1)
    assert (family.p, family.epsilon) == (0.5, 0.25)


def test_every_constant_of_the_lower_bounds_is_what_it_is_by_hand() -> None:
    # 0.1 * 100 / 2 = 5; 0.1^4 * 100^2 = 1; 4 * 0.5 * 0.2 * 2 * 0.9 = 0.72: 5 - 1 / 0.72.
    assert mixture_bound(100, 2, alpha=0.5, p=0.2, epsilon=0.1) == pytest.approx(5 - 1 / 0.72, rel=1e-12)
    # p = 0.25, (8/1000)^(1/3) = 0.2, epsilon = 0.025: 12.5 - 0.390625 / (4 * 0.5 * 0.25 * 8 * 0.975) = 12.5 - 0.390625 / 3.9.
    assert direct_lower_bound(1000, 8, alpha=0.5) == pytest.approx(12.5 - 0.390625 / 3.9, rel=1e-12)
    # p = 0.3, epsilon = 0.03: (0.9 / 19) (15 - 0.81 / (4 * 0.3 * 8 * 0.97)) = (0.9 / 19) (15 - 0.81 / 9.312).
    assert paper_lower_bound(1000, 8, alpha=0.1) == pytest.approx(0.9 / 19 * (15 - 0.81 / 9.312), rel=1e-12)
    # epsilon = 0.1 as above: 0.1 * 8100 / 2 = 405; 0.0001 * 8100^2 = 6561; 4 * 0.5 * 37 * 0.9 = 66.6.
    assert sharp_lower_bound(8100, 37, alpha=0.0) == pytest.approx(405 - 6561 / 66.6, rel=1e-12)


def test_every_constant_of_the_upper_bounds_is_what_it_is_by_hand() -> None:
    # With tau = 2 ln 4 the root is 1. T = 4, K = 2: 2 * 2 tau + 4 * 4 * 1 + 4/4, and with unknown costs 4 tau + 6 * 4 * 1 + 8/4.
    tau = 2 * math.log(4)
    assert etc_bound(4, 2, tau=tau) == pytest.approx(4 * tau + 16 + 1, rel=1e-12)
    assert unknown_costs_bound(4, 2, tau=tau) == pytest.approx(4 * tau + 24 + 2, rel=1e-12)
    # A quarter of that tau doubles the root, and K = 3 makes 6 of the 4: 6 tau/4 + 32 + 1, and 6 tau/4 + 48 + 2.
    assert etc_bound(4, 3, tau=tau / 4) == pytest.approx(1.5 * tau + 32 + 1, rel=1e-12)
    assert unknown_costs_bound(4, 3, tau=tau / 4) == pytest.approx(1.5 * tau + 48 + 2, rel=1e-12)
    # sqrt(8 * 2 * 4 ln 4) = 8 sqrt(ln 4), and 2/4; with delta = 3 it is 1 + 3 times the root, and 4/4.
    assert consistent_quality_bound(4, 2) == pytest.approx(8 * math.sqrt(math.log(4)) + 0.5, rel=1e-12)
    assert consistent_bound(4, 2, delta=3.0) == pytest.approx(32 * math.sqrt(math.log(4)) + 1.0, rel=1e-12)


def test_every_constant_of_tau_is_what_it_is_by_hand() -> None:
    assert paper_tau(16, 2) == pytest.approx(4.0, rel=1e-12)  # 8^(2/3)
    assert optimal_tau(16, 2) == pytest.approx(8 * math.log(2) ** (1 / 3), rel=1e-12)  # (2 ln 16)^(1/3) * 4 = (8 ln 2)^(1/3) * 4


def test_the_first_rejection_is_what_it_is_by_hand() -> None:
    # T = 66,884: (T/2)^(2/3) = 1037.994, so tau = 1038; 2 ln T = 22.22143.
    # The cheap arm's upper bound 0.3 + sqrt(22.22143 / 65846) = 0.318371; the floor 0.9 (0.5 - sqrt(22.22143 / 1038)) = 0.318317.
    # T = 66,885: (T/2)^(2/3) = 1038.004, so tau = 1039, and the floor 0.9 (0.5 - sqrt(22.22146 / 1039)) = 0.318380 is above it.
    assert 0.3 + math.sqrt(22.22143 / 65846) > 0.9 * (0.5 - math.sqrt(22.22143 / 1038))
    assert 0.3 + math.sqrt(22.22146 / 65846) < 0.9 * (0.5 - math.sqrt(22.22146 / 1039))
    assert first_rejection(0.30, 0.5, alpha=0.1) == 66_885
    # Three arms: T = 967 has (967/3)^(2/3) = 47.01, tau = 48, n_cheap = 967 - 96 = 871, 2 ln 967 = 13.74840; T = 966 has tau = 47.
    assert 0.2 + math.sqrt(13.74840 / 871) < 0.9 * (0.9 - math.sqrt(13.74840 / 48))
    assert 0.2 + math.sqrt(13.74633 / 872) > 0.9 * (0.9 - math.sqrt(13.74633 / 47))
    assert first_rejection(0.2, 0.9, alpha=0.1, n_arms=3) == 967
    # Means 0 and 1 at alpha = 0: T = 158 has 79^(2/3) = 18.41, tau = 19, n_cheap = 139, 2 ln 158 = 10.12519; T = 157 the same tau.
    assert math.sqrt(10.12519 / 139) < 1 - math.sqrt(10.12519 / 19)
    assert math.sqrt(10.11249 / 138) > 1 - math.sqrt(10.11249 / 19)
    assert first_rejection(0.0, 1.0, alpha=0.0) == 158


def test_cs_ucb_keeps_theorem_4_at_alpha_0() -> None:
    instance = cost_consistent([0.3, 0.5, 0.7], 1.0, alpha=0.0)
    final = simulate(instance, "cs-ucb", horizon=100_000, runs=4, seed=1, checkpoints=1).final()["cs-ucb"]
    assert final["total"]["mean"] < consistent_bound(100_000, 3, delta=1.0) / 5
    assert final["quality"]["mean"] < consistent_quality_bound(100_000, 3) / 5


@pytest.mark.parametrize("cheap", [0.30, 0.35])
def test_noisy_runs_first_reject_the_cheap_arm_where_the_noise_free_horizon_says(cheap: float) -> None:
    horizon = first_rejection(cheap, 0.5, alpha=0.1)
    shares = []
    for factor in (0.1, 4.0):
        at = round(factor * horizon)
        dear = simulate(table_1(cheap), "cs-etc", horizon=at, runs=8, seed=1, checkpoints=1)["cs-etc"].pulls[:, -1, 0]
        shares.append(float(np.mean(dear > math.ceil(paper_tau(at, 2)))))
    # The bounds are then five standard deviations of the dear arm's mean apart, or past each other: one seed in 10^5 fails by
    # chance.
    assert shares == [0.0, 1.0]


def test_first_rejection_is_the_first() -> None:
    with pytest.raises(ValueError, match="below the floor"):
        first_rejection(0.46, 0.5, alpha=0.1)
    with pytest.raises(ValueError, match="below the floor"):
        first_rejection(0.25, 0.5, alpha=0.5)  # on the floor: feasible, so it is never rejected
    values = [first_rejection(cheap, 0.5, alpha=0.1) for cheap in (0.1, 0.2, 0.3)]
    assert values == sorted(values)


def test_bounds_refuse_what_they_do_not_cover() -> None:
    with pytest.raises(ValueError, match="horizon must be at least the number of arms"):
        etc_bound(3, 4, tau=1)
    with pytest.raises(ValueError, match="the bound needs 0 < epsilon"):
        mixture_bound(100, 1, alpha=0.0, p=0.4, epsilon=0.3)
    with pytest.raises(ValueError, match="the bound needs 0 < epsilon"):
        mixture_bound(100, 1, alpha=0.0, p=0.4, epsilon=0.0)
    with pytest.raises(ValueError, match=r"got epsilon = 0.01, p = 0.46"):  # (1 - alpha)/2 = 0.45
        mixture_bound(100, 1, alpha=0.1, p=0.46, epsilon=0.01)
    with pytest.raises(ValueError, match="alpha must be below 1 here"):
        direct_lower_bound(100, 1, alpha=1.0)
