import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import Instance, simulate
from thrifty.environments import Bernoulli, Beta, World, families
from thrifty.environments.families import HardFamily, minimal_delta
from thrifty.theory import consistent_bound, weight_range


@given(
    theta=st.floats(0.0, 0.95),
    share=st.floats(0.01, 1.0),
    slack=st.floats(0.001, 0.999),
    n_dear=st.integers(1, 9),
)
def test_the_free_arm_is_optimal_in_the_first_member_and_misses_the_floor_by_epsilon_in_the_others(
    theta: float, share: float, slack: float, n_dear: int
) -> None:
    p = share * (1.0 - theta) / 2.0
    family = HardFamily(theta, p, slack * (1.0 - theta - p), n_dear)
    first = family.member(0)
    assert first.optimal_arm == 0
    assert first.quality_gaps.max() == 0.0  # whatever rounding does to p / (1 - theta)
    for a in range(1, n_dear + 1):
        member = family.member(a)
        assert member.optimal_arm == member.best_arm == a
        assert member.quality_gaps[0] == pytest.approx(family.epsilon)
        assert member.cost_gaps.max() == 0.0


@pytest.mark.parametrize("theta", [twentieths / 20 for twentieths in range(19)])
def test_the_free_arm_of_a_round_family_is_on_the_floor_whoever_asks(theta: float) -> None:
    family = HardFamily(theta, (1 - theta) / 3, (1 - theta) / 30, 2)
    first = family.member(0)
    assert first.optimal_arm == 0
    assert first.means.tolist() == [family.p, family.p / (1 - theta), family.p / (1 - theta)]  # no mean is bent to make it so
    assert weight_range(first)[0] >= 0.0
    assert simulate(first, "oracle", horizon=10, runs=1, seed=1, checkpoints=1).samples("oracle")["total"].tolist() == [[0.0]]


def test_a_world_decides_on_the_floor_as_its_instance_does() -> None:
    world = World([Bernoulli(0.1), Beta(9, 91)], [1.0, 0.0], 0.1)  # 9 / 100 is on the floor (1 - 0.1) * 0.1
    assert world.instance.optimal_arm == 1
    assert simulate(world, "oracle", horizon=10, runs=1, seed=1, checkpoints=1).samples("oracle")["total"].tolist() == [[0.0]]


def test_the_mixture_draws_the_first_member_half_the_time() -> None:
    family = HardFamily(0.1, 0.4, 0.05, 4)
    rng = np.random.default_rng(1)
    first = sum(family.draw(rng) == family.member(0) for _ in range(2000))
    assert family.weights.sum() == pytest.approx(1.0)
    assert abs(first - 1000) < 130  # 5.8 standard deviations: fails by chance less than once in 10^8 seeds


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"theta": 1.0}, "theta must be in"),
        ({"p": 0.6}, "p must be in"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"epsilon": 0.6}, "must be below 1"),
        ({"epsilon": 1e-14}, "epsilon must be larger than rounding, got 1e-14"),
        ({"n_dear": 0}, "n_dear must be a whole number"),
    ],
)
def test_invalid_hard_families_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HardFamily(**{"theta": 0.1, "p": 0.4, "epsilon": 0.1, "n_dear": 2, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0.1, 0.4, 0.6])
def test_theorem_1_has_its_best_dear_arm_only_for_alpha_above_one_half(alpha: float) -> None:
    instance = families.theorem_1(alpha, 4, horizon=10_000).instance
    assert instance.optimal_arm == 0  # so that linear cost regret survives at every alpha
    assert (instance.best_arm != 0) == (alpha > 0.5)
    assert (instance.quality_gaps.max() == 0.0) == (alpha >= 1 - 0.5**0.5)


def test_the_published_instances_are_what_the_paper_prints() -> None:
    assert families.figure_1().floor == pytest.approx(0.45)
    assert families.figure_1().means[0] == pytest.approx(0.46)
    assert families.table_1(0.55).floor == pytest.approx(0.495)


@given(means=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6, unique=True), delta=st.floats(0.1, 3.0))
def test_consistent_costs_satisfy_the_hypothesis_of_theorem_4(means: list[float], delta: float) -> None:
    instance = families.cost_consistent(means, delta, alpha=0.0)
    found = minimal_delta(instance)
    assert found <= delta * (1 + 1e-6) or np.min(np.diff(np.sort(means))) < 1e-9  # differences of nearly equal numbers round


@pytest.mark.parametrize("name", ["unseen_arm", "near_the_floor"])
def test_both_counterexamples_satisfy_theorem_4_and_break_its_bound(name: str) -> None:
    horizon = 1_000_000
    instance = families.unseen_arm() if name == "unseen_arm" else families.near_the_floor(horizon)
    delta = minimal_delta(instance)
    assert delta == pytest.approx(1.0)
    regret = simulate(instance, "cs-ucb", horizon=horizon, runs=4, seed=1, checkpoints=1).samples("cs-ucb")
    # Three and four times the bound; the mean of four runs has a standard error of an eighth: one seed in 10^4 fails by chance.
    assert regret["cost"].mean() > 1.5 * consistent_bound(horizon, instance.n_arms, delta=delta)


def test_no_single_lambda_fits_all_regions() -> None:
    ranges = [weight_range(region) for region in families.sms_regions().values()]
    possible = [(low, high) for low, high in ranges if low <= high]
    assert len(possible) < len(ranges)  # in one region no lambda at all makes the optimal arm best
    assert max(low for low, _ in possible) > min(high for _, high in possible)  # and the others have none in common


def test_audiences_are_many_with_small_click_rates() -> None:
    audiences = families.ad_audiences(60, seed=1)
    assert audiences.n_arms == 60
    assert audiences.means.max() < 0.1
    assert audiences.optimal_arm != audiences.best_arm
    assert audiences == families.ad_audiences(60, seed=1)


def test_random_costs_have_the_means_of_the_known_ones() -> None:
    world = families.random_costs(Instance([0.5, 0.4], [0.7, 0.2], 0.1))
    assert world.instance.costs.tolist() == [0.7, 0.2]
    with pytest.raises(ValueError, match="divide costs by the largest"):
        families.random_costs(Instance([0.5, 0.4], [7.0, 0.2], 0.1))


def test_horizons_that_spoil_an_instance_are_refused() -> None:
    with pytest.raises(ValueError, match="horizon must be at least 8"):
        families.near_the_floor(4)
    with pytest.raises(ValueError, match="d must be between 0 and"):
        families.theorem_1(0.6, 2, horizon=100, d=10.0)
