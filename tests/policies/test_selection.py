from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import oracles
from thrifty.policies import cheapest_feasible, highest
from thrifty.policies.selection import sort_by_price

# Few distinct values, so that ties in cost and in score are common.
costs = st.sampled_from([0.0, 0.25, 0.5, 1.0])
scores = st.one_of(st.sampled_from([0.2, 0.45, 0.5, 1.0]), st.floats(-1.0, 1.0))


def test_cheaper_arm_wins_when_both_clear_the_floor() -> None:
    assert cheapest_feasible(np.array([0.9, 0.8]), np.array([1.0, 0.5]), 0.7) == 1


def test_an_arm_below_the_floor_is_not_taken_however_cheap() -> None:
    assert cheapest_feasible(np.array([0.9, 0.6]), np.array([1.0, 0.0]), 0.7) == 0


def test_an_arm_exactly_on_the_floor_is_taken() -> None:
    assert cheapest_feasible(np.array([0.9, 0.7]), np.array([1.0, 0.0]), 0.7) == 1


def test_equal_costs_go_to_the_higher_score_then_the_lower_index() -> None:
    assert cheapest_feasible(np.array([0.8, 0.9, 0.9]), np.array([0.5, 0.5, 0.5]), 0.7) == 1


def test_a_later_arm_wins_only_if_it_is_cheaper_or_as_cheap_and_better() -> None:
    assert cheapest_feasible(np.array([0.9, 0.8]), np.array([0.5, 0.5]), 0.7) == 0
    assert cheapest_feasible(np.array([0.8, 0.9]), np.array([0.1, 0.5]), 0.7) == 0
    assert cheapest_feasible(np.array([0.1, 0.9, 0.8]), np.array([0.0, 0.1, 0.5]), 0.7) == 1


def test_equal_scores_go_to_the_lower_index() -> None:
    assert highest(np.array([0.2, 0.5, 0.5])) == 1


def test_the_top_arm_is_feasible_even_when_every_score_is_negative() -> None:
    assert cheapest_feasible(np.array([-0.5, -0.2]), np.array([0.0, 1.0]), 0.9 * -0.2) == 1


@given(st.lists(st.tuples(scores, costs), min_size=1, max_size=10), st.floats(0.0, 1.0))
def test_the_choice_is_that_of_the_obvious_twin(arms: list[tuple[float, float]], alpha: float) -> None:
    score, cost = (np.array(column) for column in zip(*arms, strict=True))
    floor = (1 - alpha) * score.max()
    assert cheapest_feasible(score, cost, floor) == oracles.cheapest_feasible(score.tolist(), cost.tolist(), floor)


@given(st.lists(costs, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_arms_are_sorted_by_price_then_number_whatever_their_order_was(prices: list[float], shuffled: Random) -> None:
    order = list(range(len(prices)))
    shuffled.shuffle(order)
    found = np.array(order)
    sort_by_price(found, np.array(prices))
    assert found.tolist() == sorted(range(len(prices)), key=lambda arm: (prices[arm], arm))
