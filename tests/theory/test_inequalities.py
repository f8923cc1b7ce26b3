import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import Instance, simulate
from thrifty.environments.families import theorem_1
from thrifty.theory import kl, kl_bound, log_slack, thompson_floor, weight_range


@given(p=st.floats(0.001, 0.5), share=st.floats(0.001, 1.0))
def test_the_kl_lemma_holds(p: float, share: float) -> None:
    epsilon = share * p / 2
    assert -1e-12 <= kl(p, p + epsilon) <= kl_bound(p, epsilon)


def test_the_kl_lemma_refuses_an_epsilon_it_does_not_cover() -> None:
    with pytest.raises(ValueError, match="the bound needs"):
        kl_bound(0.4, 0.3)


@pytest.mark.parametrize(("x", "y", "expected"), [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.5, 0.0, math.inf), (0.0, 0.5, math.log(2))])
def test_kl_at_the_edges(x: float, y: float, expected: float) -> None:
    assert kl(x, y) == pytest.approx(expected)


@given(st.floats(0.001, 0.99))
def test_the_logarithm_lemmas_hold_between_0_and_1(x: float) -> None:
    assert min(log_slack(x)) >= 0


@given(st.floats(1.2, 100.0))
def test_the_logarithm_lemmas_fail_above_1(x: float) -> None:
    first, second = log_slack(x)
    assert first < 0
    assert math.isnan(second)


def test_gaussian_thompson_sampling_has_at_least_the_cost_regret_of_theorem_1() -> None:
    for n_arms in (2, 5):
        world = theorem_1(0.6, n_arms, horizon=5000)
        regret = simulate(world, "cs-ts:prior=shrunk", horizon=5000, runs=10, seed=1, checkpoints=1)
        shown = regret.samples("cs-ts:prior=shrunk")["cost"]
        assert shown.min() > thompson_floor(n_arms, 0.6) * 5000  # by more than an order of magnitude


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=2, max_size=5), st.floats(0.0, 1.0))
def test_a_lambda_inside_its_range_makes_the_optimal_arm_best(arms: list[tuple[float, float]], alpha: float) -> None:
    means, costs = zip(*arms, strict=True)
    instance = Instance(means, costs, alpha)
    low, high = weight_range(instance)
    if low > high or low > 1e6:
        return
    weight = low if math.isinf(high) else (low + high) / 2
    value = instance.means - weight * instance.costs
    assert value[instance.optimal_arm] >= np.max(value[instance.costs != instance.costs[instance.optimal_arm]], initial=-1e9) - 1e-6
