from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thrifty import Instance, Terms
from thrifty.problem import FLOOR_TOLERANCE, reaches_floor

unit = st.floats(0.0, 1.0)


def test_figure_1_has_the_cheap_arm_as_its_optimum() -> None:
    world = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
    assert (world.best_arm, world.optimal_arm) == (0, 1)
    assert world.floor == pytest.approx(0.45)
    assert world.feasible.tolist() == [True, True]


def test_an_arm_on_the_floor_is_feasible() -> None:
    assert Instance([0.5, 0.45], [1.0, 0.0], 0.1).optimal_arm == 1


def test_equal_costs_go_to_the_higher_mean_then_the_lower_index() -> None:
    assert Instance([0.5, 0.49, 0.49], [1.0, 0.0, 0.0], 0.1).optimal_arm == 1
    assert Instance([0.5, 0.48, 0.49], [1.0, 0.0, 0.0], 0.1).optimal_arm == 2


def test_regret_is_the_sum_of_pulls_times_gaps() -> None:
    world = Instance([0.5, 0.3, 0.48], [1.0, 0.0, 0.4], 0.1)
    assert world.optimal_arm == 2
    assert world.quality_gaps == pytest.approx([0.0, 0.15, 0.0])
    assert world.cost_gaps == pytest.approx([0.6, 0.0, 0.0])
    assert world.quality_regret([[1, 2, 3], [0, 10, 0]]) == pytest.approx([0.3, 1.5])
    assert world.cost_regret([5, 2, 3]) == pytest.approx(3.0)


@given(st.lists(st.tuples(unit, st.floats(0.0, 10.0)), min_size=1, max_size=8), unit)
def test_the_optimal_arm_is_feasible_and_no_feasible_arm_is_cheaper(arms: list[tuple[float, float]], alpha: float) -> None:
    world = Instance([mean for mean, _ in arms], [cost for _, cost in arms], alpha)
    assert world.feasible[world.optimal_arm]
    assert world.costs[world.optimal_arm] == world.costs[world.feasible].min()
    assert world.quality_gaps[world.optimal_arm] == 0.0
    assert world.cost_gaps[world.optimal_arm] == 0.0


def test_instances_are_equal_by_content_and_cannot_be_changed() -> None:
    world = Instance([0.5], [1.0], 0.1)
    assert world == Instance([0.5], [1.0], 0.1)
    assert hash(world) == hash(Instance(**world.to_dict()))
    assert world != Instance([0.5], [1.0], 0.2)
    with pytest.raises(ValueError, match="read-only"):
        world.means[0] = 1.0


@pytest.mark.parametrize(
    ("means", "costs", "alpha", "message"),
    [
        ([0.5], [1.0], 1.2, r"alpha must be in \[0, 1\], got 1.2"),
        ([0.5], [1.0], -0.1, r"alpha must be in \[0, 1\], got -0.1"),
        ([0.5], [1.0], float("nan"), "alpha must be"),
        ([0.5], [1.0], "x", r"alpha must be in \[0, 1\], got 'x'"),
        ([0.5, 1.5], [1.0, 0.0], 0.1, r"means must be in \[0, 1\], got 1.5 for arm 1"),
        ([0.5, -0.5], [1.0, 0.0], 0.1, "got -0.5 for arm 1"),
        ([float("nan")], [1.0], 0.1, "got nan for arm 0"),
        ([0.5], [-1.0], 0.1, r"costs must be in \[0, 1e\+15\], got -1 for arm 0"),
        ([0.5], [float("inf")], 0.1, r"costs must be in \[0, 1e\+15\], got inf"),
        ([0.5, 0.4], [1.0], 0.1, "same length, got 2 means and 1 costs"),
        ([], [], 0.1, "got no arms"),
        ([[0.5]], [1.0], 0.1, "means must be a list of one number per arm"),
        (["a"], [1.0], 0.1, "means must be a list of numbers"),
    ],
)
def test_wrong_instances_are_refused_with_the_value(means: list[float], costs: list[float], alpha: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Instance(means, costs, alpha)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"horizon": 1}, "horizon must be at least the number of arms, got 1 rounds for 2 arms"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 10.5}, "horizon must be a whole number"),
        ({"costs": np.array([1.0])}, "got 1 costs for 2 arms"),
        ({"n_arms": 0, "costs": None}, "n_arms must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_terms_are_refused(fields: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"n_arms": 2, "costs": np.array([1.0, 0.0]), "alpha": 0.1, "horizon": 10}
    with pytest.raises(ValueError, match=message):
        Terms(**{**good, **fields})  # type: ignore[arg-type]


def _on_the_floor() -> list[tuple[Fraction, Fraction]]:
    """(best mean, alpha) in round decimals: ten means with sixteen alphas."""
    means = [Fraction(tenths, 10) for tenths in range(1, 11)]
    return [(mean, Fraction(twentieths, 20)) for mean in means for twentieths in range(1, 17)]


@pytest.mark.parametrize(("best", "alpha"), _on_the_floor())
def test_a_round_decimal_on_the_floor_is_feasible_and_one_just_below_is_not(best: Fraction, alpha: Fraction) -> None:
    floor = (1 - alpha) * best  # exact
    on = Instance([float(best), float(floor)], [1.0, 0.0], float(alpha))
    assert on.optimal_arm == 1
    assert on.quality_gaps.tolist() == [0.0, 0.0]
    assert on.cost_gaps.tolist() == [1.0, 0.0]
    below = Instance([float(best), float(floor) - 1e-9], [1.0, 0.0], float(alpha))
    assert below.optimal_arm == 0
    assert below.quality_gaps[1] == pytest.approx(1e-9, rel=1e-3)


def test_the_tolerance_of_the_floor_is_a_share_of_the_best_mean() -> None:
    for best in (1.0, 0.5, 1e-6):
        floor = 0.9 * best
        assert reaches_floor([floor - 0.9e-12 * best, floor - 1.1e-12 * best], best, 0.1).tolist() == [True, False]
    assert FLOOR_TOLERANCE == 1e-12
    assert Instance([0.0, 0.0], [1.0, 0.0], 0.1).optimal_arm == 1
    assert Instance([1.0, 0.0], [1.0, 0.0], 1.0).optimal_arm == 1


def test_the_example_of_an_arm_on_the_floor() -> None:
    assert 0.09 < (1 - 0.1) * 0.1  # what an exact comparison of rounded numbers says
    assert Instance([0.1, 0.09], [1, 0], 0.1).optimal_arm == 1
