import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thrifty.policies import cheapest_feasible
from thrifty.policies.ladder import build_ladder, build_priced_ladder, cheapest_above, place, set_price, top_score
from thrifty.policies.maxima import (
    build_maximum,
    build_tree,
    change,
    first_leaf_from,
    join,
    largest,
    largest_between,
    set_leaf,
    value_of,
)

values = st.one_of(st.sampled_from([0.0, 0.45, 0.5, 1.0]), st.floats(0.0, 1.0))


@settings(max_examples=300)
@given(st.data())
def test_the_ladder_always_gives_the_arm_of_the_full_scan(data: st.DataObject) -> None:
    costs = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 0.5, 0.7, 1.0]), min_size=1, max_size=12)))
    ladder = build_ladder(costs, np.argsort(costs, kind="stable"), 1.0)
    scores = np.ones(costs.size)
    for _ in range(data.draw(st.integers(1, 30))):
        for _ in range(data.draw(st.integers(0, 3))):  # outcomes may come in bursts, or not at all
            arm, score = data.draw(st.integers(0, costs.size - 1)), data.draw(values)
            scores[arm] = score
            place(ladder, arm, score)
        assert top_score(ladder) == scores.max()
        floor = data.draw(st.floats(0.0, 1.0)) * scores.max()
        assert cheapest_above(ladder, floor) == cheapest_feasible(scores, costs, floor)


@settings(max_examples=200)
@given(st.data())
def test_the_ladder_gives_the_arm_of_the_full_scan_when_prices_change_too(data: st.DataObject) -> None:
    n_arms = data.draw(st.integers(1, 8))
    ladder = build_priced_ladder(n_arms, 1.0)
    scores, prices = np.ones(n_arms), np.zeros(n_arms)
    for _ in range(data.draw(st.integers(1, 20))):
        arm, score, price = data.draw(st.integers(0, n_arms - 1)), data.draw(values), data.draw(values)
        scores[arm], prices[arm] = score, price
        place(ladder, arm, score)
        set_price(ladder, arm, price)
        floor = data.draw(st.floats(0.0, 1.1)) * scores.max()
        assert cheapest_above(ladder, floor) == cheapest_feasible(scores, prices, floor)


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), values), max_size=40))
def test_the_maximum_is_the_maximum(n: int, changes: list[tuple[int, float]]) -> None:
    numbers, plain = build_maximum(n, 0.25), np.full(n, 0.25)
    for which, value in changes:
        change(numbers, which % n, value)
        plain[which % n] = value
        assert largest(numbers) == plain.max()
        assert [value_of(numbers, i) for i in range(n)] == plain.tolist()


@given(st.lists(values, min_size=1, max_size=20), st.data())
def test_the_tree_answers_questions_about_ranges(leaves: list[float], data: st.DataObject) -> None:
    tree = build_tree(len(leaves), 0.0)
    for leaf, value in enumerate(leaves):
        set_leaf(tree, leaf, value)
    start = data.draw(st.integers(0, len(leaves) - 1))
    stop = data.draw(st.integers(start, len(leaves)))
    assert largest_between(tree, start, stop) == max(leaves[start:stop], default=-np.inf)
    bar = data.draw(st.sampled_from(leaves[start:]))
    assert first_leaf_from(tree, start, bar) == next(i for i in range(start, len(leaves)) if leaves[i] >= bar)


# The same without hypothesis: few values, so that ties are common, and fast without a compiler, for `make mutate`.


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
