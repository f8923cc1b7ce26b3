"""The ladder and its maxima as plain Python: fast without a compiler, for `make mutate`."""

import numpy as np
import pytest

from tests.policies.by_hand import plain as interpret
from thrifty.policies import ladder as ladders
from thrifty.policies import maxima, selection

cheapest_feasible = interpret(selection.cheapest_feasible)
build_ladder = interpret(ladders.build_ladder)
build_priced_ladder = interpret(ladders.build_priced_ladder)
cheapest_above = interpret(ladders.cheapest_above)
place = interpret(ladders.place)
set_price = interpret(ladders.set_price)
top_score = interpret(ladders.top_score)
build_maximum = interpret(maxima.build_maximum)
build_tree = interpret(maxima.build_tree)
change = interpret(maxima.change)
first_leaf_from = interpret(maxima.first_leaf_from)
join = interpret(maxima.join)
largest = interpret(maxima.largest)
largest_between = interpret(maxima.largest_between)
set_leaf = interpret(maxima.set_leaf)
value_of = interpret(maxima.value_of)


@pytest.mark.parametrize("n_arms", [1, 2, 3, 5, 8])
def test_a_seeded_ladder_gives_the_arm_of_the_full_scan(n_arms: int) -> None:
    rng = np.random.default_rng(n_arms)
    for _ in range(6):
        costs = rng.choice([0.0, 0.5, 0.7, 1.0], n_arms)
        ladder, priced = build_ladder(costs, np.argsort(costs, kind="stable"), 1.0), build_priced_ladder(n_arms, 1.0)
        scores, prices = np.ones(n_arms), np.zeros(n_arms)
        arm = 0
        for _ in range(60):
            for _ in range(rng.integers(0, 3)):
                arm = int(rng.choice([arm, int(rng.integers(n_arms))]))  # often the same arm again
                scores[arm], prices[arm] = rng.choice([0.0, 0.2, 0.45, 0.5, 0.9, 1.0]), rng.choice([0.0, 0.3, 0.6])
                place(ladder, arm, scores[arm])
                place(priced, arm, scores[arm])
                set_price(priced, arm, prices[arm])
            floor = scores.max() * rng.choice([0.0, 0.5, 0.9, 1.0])
            assert top_score(ladder) == top_score(priced) == scores.max()
            assert cheapest_above(ladder, floor) == cheapest_feasible(scores, costs, floor)
            assert cheapest_above(priced, floor) == cheapest_feasible(scores, prices, floor)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_a_seeded_tree_answers_questions_about_ranges(n: int) -> None:
    rng = np.random.default_rng(n)
    tree, numbers, plain = build_tree(n, 0.25), build_maximum(n, 0.25), np.full(n, 0.25)
    which = 0
    for _ in range(80):
        which = int(rng.choice([which, int(rng.integers(n))]))
        plain[which] = rng.choice([-1.0, 0.0, 0.25, 0.5])
        set_leaf(tree, which, plain[which])
        change(numbers, which, plain[which])
        assert largest(numbers) == plain.max()
        assert [value_of(numbers, i) for i in range(n)] == plain.tolist()
        for start in range(n):
            for stop in range(start, n + 1):
                assert largest_between(tree, start, stop) == max(plain[start:stop], default=-np.inf)
            for bar in plain[start:]:
                assert first_leaf_from(tree, start, bar) == next(i for i in range(start, n) if plain[i] >= bar)


def test_a_tree_has_a_power_of_two_of_leaves() -> None:
    assert [build_tree(n, 0.5).tolist() for n in (1, 2, 3)] == [
        [-np.inf, 0.5],
        [-np.inf, 0.5, 0.5, 0.5],
        [-np.inf, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -np.inf],
    ]


def test_a_number_that_changes_twice_in_a_row_stands_apart() -> None:
    numbers = build_maximum(3, 0.5)
    assert numbers.apart[0].tolist() == (-1, -np.inf, -1)
    change(numbers, 1, 0.7)
    assert numbers.apart[0].tolist() == (-1, -np.inf, 1)
    change(numbers, 1, 0.6)
    assert numbers.apart[0].tolist() == (1, 0.6, 1)
    assert numbers.tree[1] == 0.5  # the tree holds the others
    join(numbers)
    assert numbers.apart[0].tolist() == (-1, -np.inf, 1)
    assert numbers.tree[1] == 0.6


def test_a_ladder_remembers_its_last_answer_while_no_arm_of_that_cost_can_overtake_it() -> None:
    costs = np.array([0.5, 0.1, 0.5])
    ladder = build_ladder(costs, np.argsort(costs, kind="stable"), 1.0)
    assert (ladder.rung_of.tolist(), ladder.tie_end.tolist()) == ([1, 0, 2], [1, 3, 3])
    assert ladder.last[0].rung == -1
    assert cheapest_above(ladder, 0.9) == 1
    assert ladder.last[0].tolist() == (0, -np.inf)
    place(ladder, 1, 0.2)
    assert cheapest_above(ladder, 0.9) == 0
    assert ladder.last[0].rung == -1  # two arms share this cost
    single = build_ladder(np.array([0.1, 0.2]), np.array([0, 1]), 1.0)
    place(single, 0, 0.3)
    assert cheapest_above(single, 0.9) == 1
    assert single.last[0].tolist() == (1, 0.3)
    place(single, 0, 0.4)
    assert single.last[0].tolist() == (1, 0.4)
    place(single, 0, 0.1)
    assert single.last[0].tolist() == (1, 0.4)  # a bound, which need not be reached
    place(single, 1, 0.95)
    assert single.last[0].tolist() == (1, 0.4)  # of the cheaper ones, so not of the answer itself
