import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from thrifty.policies import cheapest_feasible
from thrifty.policies.ladder import build_ladder, build_priced_ladder, cheapest_above, place, set_price, top_score
from thrifty.policies.maxima import (
    build_maximum,
    build_tree,
    change,
    first_leaf_from,
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
