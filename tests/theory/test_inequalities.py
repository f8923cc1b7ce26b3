import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import Instance, simulate
from thrifty.environments.families import theorem_1
from thrifty.theory import flip_bound, kl, kl_bound, log_slack, thompson_floor, weight_range


@given(p=st.floats(0.001, 0.5), share=st.floats(0.001, 1.0))
def test_the_kl_lemma_holds(p: float, share: float) -> None:
    epsilon = share * p / 2
    assert -1e-12 <= kl(p, p + epsilon) <= kl_bound(p, epsilon)


@pytest.mark.parametrize(("p", "epsilon"), [(0.4, 0.3), (0.4, 0.0), (0.6, 0.1), (0.0, 0.1)])
def test_the_kl_lemma_refuses_what_it_does_not_cover(p: float, epsilon: float) -> None:
    with pytest.raises(ValueError, match="the bound needs"):
        kl_bound(p, epsilon)


def test_the_kl_lemma_covers_its_edges() -> None:
    assert kl_bound(0.5, 0.25) == 0.5  # 4 * 0.0625 / 0.5, at the largest p and the largest epsilon


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0),
        (0.5, 0.0, math.inf),
        (0.5, 1.0, math.inf),
        (0.0, 0.5, math.log(2)),
        (1.0, 0.25, math.log(4)),
    ],
)
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


def test_the_logarithm_lemmas_have_no_meaning_at_1() -> None:
    assert [math.isnan(slack) for slack in log_slack(1.0)] == [True, True]


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


def test_every_constant_of_the_inequalities_is_what_it_is_by_hand() -> None:
    assert kl_bound(0.4, 0.1) == pytest.approx(0.1, rel=1e-12)  # 4 * 0.01 / 0.4
    assert flip_bound(4.0, 0.5) == pytest.approx(76.0, rel=1e-12)  # 9.5 * 4 / 0.5
    # ln 1.5 - (0.5 - 0.25 / 0.75) = ln 1.5 - 1/6, and ln 0.5 + 0.5 + 0.25 / 0.5 = 1 - ln 2.
    assert log_slack(0.5) == pytest.approx((math.log(1.5) - 1 / 6, 1 - math.log(2)), rel=1e-12)


@pytest.mark.parametrize(
    ("n_arms", "alpha", "sigma_0", "sigma_n"), [(2, 0.0, 1.0, 1.0), (2, 0.5, 2.0, 3.0), (3, 0.6, 0.5, 1.0), (10, 0.2, 1.0, 2.0)]
)
def test_the_floor_of_thompson_sampling_is_what_it_is_by_hand(n_arms: int, alpha: float, sigma_0: float, sigma_n: float) -> None:
    # u/2 grows with u and g/4 falls, so the largest minimum is where u/2 = g/4. Let that be at u = 0.03: then g = 0.06, and
    # 1 - (1 - q)^(K-1) = 0.06 for q = 1 - 0.94^(1/(K-1)). With q = exp(-14 v u d^2 / (1-alpha)^2) / (8 sqrt(pi)) and
    # v = 1/sigma_0^2 + 1/sigma_n^2 this is d^2 = -ln(8 sqrt(pi) q) (1-alpha)^2 / (14 v 0.03).
    # 8 sqrt(pi) = 14.179631, 14 * 0.03 = 0.42. The function looks at u in steps of 1e-4.
    q = 1 - 0.94 ** (1 / (n_arms - 1))
    v = 1 / sigma_0**2 + 1 / sigma_n**2
    d = math.sqrt(-math.log(14.179631 * q) * (1 - alpha) ** 2 / (0.42 * v))
    assert thompson_floor(n_arms, alpha, d=d, sigma_0=sigma_0, sigma_n=sigma_n) == pytest.approx(0.015, abs=6e-5)


def test_the_floor_of_thompson_sampling_has_unit_noise_unless_it_is_named_and_is_exact_on_its_grid() -> None:
    # K = 2 and d = sigma_0 = sigma_n = 1: g = exp(-28 u / (1-alpha)^2) / (8 sqrt(pi)). It is 2 u at u = 0.01, the hundredth step of
    # the grid, where (1-alpha)^2 = 0.28 / -ln(0.02 * 8 sqrt(pi)) = 0.28 / 1.26022 = 0.222184. The floor is then u/2.
    alpha = 1 - math.sqrt(0.28 / -math.log(0.16 * math.sqrt(math.pi)))
    assert alpha == pytest.approx(0.52864, abs=1e-5)
    assert thompson_floor(2, alpha) == pytest.approx(0.005, rel=1e-9)


@given(x=st.floats(0.01, 0.99), step=st.floats(1e-12, 1e-4))
def test_kl_of_close_means_does_not_cancel(x: float, step: float) -> None:
    y = x + step
    near = (y - x) ** 2 / (2 * x * (1 - x))  # its leading term; the next one is smaller by a factor of step / (x (1 - x))
    assert kl(x, y) == pytest.approx(near, rel=1e-6 + 2 * step / (x * (1 - x)))
    assert kl(x, x) == 0.0


@given(x=st.floats(0.0, 1.0), y=st.floats(0.01, 0.99))
def test_kl_is_its_definition(x: float, y: float) -> None:
    first = x * math.log(x / y) if x > 0 else 0.0
    second = (1 - x) * math.log((1 - x) / (1 - y)) if x < 1 else 0.0
    assert kl(x, y) == pytest.approx(first + second, rel=1e-12, abs=1e-14)


def test_kl_of_extreme_means() -> None:
    assert kl(0.5, 1e-20) == pytest.approx(0.5 * math.log(0.5 / 1e-20) + 0.5 * math.log(0.5), rel=1e-12)
    assert kl(1e-20, 2e-20) == pytest.approx(1e-20 * (1 - math.log(2)), rel=1e-12, abs=0.0)
    assert kl(5e-324, 0.5) == pytest.approx(math.log(2), rel=1e-12)


def test_the_range_of_lambda_is_what_it_is_by_hand() -> None:
    # The optimal arm is the second, floor 0.72: the dearer asks for lambda >= (0.8 - 0.75) / (1 - 0.5) = 0.1, the cheaper one for
    # lambda <= (0.75 - 0.6) / (0.5 - 0.25) = 0.6.
    assert weight_range(Instance([0.8, 0.75, 0.6], [1.0, 0.5, 0.25], 0.1)) == pytest.approx((0.1, 0.6))


@pytest.mark.parametrize(("x", "y"), [(1.5, 0.5), (-0.5, 0.5), (0.5, 1.5), (0.5, -0.5), (math.nan, 0.5), (0.5, math.nan)])
def test_kl_takes_means_only(x: float, y: float) -> None:
    with pytest.raises(ValueError, match=r"means must be in \[0, 1\], got"):
        kl(x, y)


# t = (b - a) / a = 1e-3 at most, where the last term is 3e-13 of the first. From 1/2 on, 1 - x is exact, so the second is too.
@pytest.mark.parametrize(("x", "y", "error"), [(0.3, 0.30029, 1e-11), (0.75, 0.749751, 5e-15)])
def test_every_term_of_the_series_of_kl_counts(x: float, y: float, error: float) -> None:
    with localcontext(prec=50):  # the difference itself, in 50 digits, is the judge
        a, b = Decimal(x), Decimal(y)
        exact = (b - a - a * (b / a).ln()) + ((1 - b) - (1 - a) - (1 - a) * ((1 - b) / (1 - a)).ln())
    assert kl(x, y) == pytest.approx(float(exact), rel=error, abs=0.0)
