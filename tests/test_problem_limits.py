"""The limits of an instance, of terms and of counts: the smallest and largest that are taken, and the first that are not."""

import numpy as np
import pytest

from thrifty import Instance, Terms
from thrifty.problem import checked_count


def test_the_smallest_terms_are_one_arm_and_as_many_rounds_as_arms() -> None:
    assert Terms(n_arms=1, costs=None, alpha=0.0, horizon=1).n_arms == 1
    assert Terms(n_arms=3, costs=None, alpha=1.0, horizon=3).horizon == 3


def test_a_count_is_a_whole_number_in_its_range() -> None:
    assert [checked_count("n", value, low=2, high=5) for value in (2, 3.0, np.int64(5))] == [2, 3, 5]
    assert checked_count("n", 1) == 1
    for wrong in (1, 2.5, True, "3", None):
        with pytest.raises(ValueError, match="n must be a whole number of at least 2"):
            checked_count("n", wrong, low=2, high=5)
    with pytest.raises(ValueError, match="n must be a whole number of at most 5, got 6"):
        checked_count("n", 6, low=2, high=5)


def test_an_instance_shows_at_most_six_arms() -> None:
    assert "means=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], costs" in repr(Instance([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.0] * 6, 0.1))
    assert "means=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, ... 7 arms]" in repr(Instance([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.0] * 7, 0.1))


def test_means_of_0_and_1_and_costs_of_nothing_are_taken() -> None:
    sure = Instance([0.0, 1.0], [0.0, 0.0], 0.0)
    assert (sure.best_arm, sure.floor, sure.optimal_arm) == (1, 1.0, 1)
