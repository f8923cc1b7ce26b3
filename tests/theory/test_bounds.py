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
    assert direct_lower_bound(20_000, 3, alpha=0.1) <= mixed <= etc_bound(20_000, 4, tau=paper_tau(20_000, 4))


def test_cs_ucb_keeps_theorem_4_at_alpha_0() -> None:
    instance = cost_consistent([0.3, 0.5, 0.7], 1.0, alpha=0.0)
    final = simulate(instance, "cs-ucb", horizon=100_000, runs=4, seed=1, checkpoints=1).final()["cs-ucb"]
    assert final["total"]["mean"] < consistent_bound(100_000, 3, delta=1.0) / 5
    assert final["quality"]["mean"] < consistent_quality_bound(100_000, 3) / 5


def test_unknown_costs_cost_more() -> None:
    assert unknown_costs_bound(10_000, 2, tau=300) > etc_bound(10_000, 2, tau=300)


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
    values = [first_rejection(cheap, 0.5, alpha=0.1) for cheap in (0.1, 0.2, 0.3)]
    assert values == sorted(values)


def test_bounds_refuse_what_they_do_not_cover() -> None:
    with pytest.raises(ValueError, match="horizon must be at least the number of arms"):
        etc_bound(3, 4, tau=1)
    with pytest.raises(ValueError, match="the bound needs 0 < epsilon"):
        mixture_bound(100, 1, alpha=0.0, p=0.4, epsilon=0.3)
    with pytest.raises(ValueError, match="alpha must be below 1 here"):
        direct_lower_bound(100, 1, alpha=1.0)
