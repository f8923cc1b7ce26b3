"""The ladder: scores of arms in cost order, which finds the cheapest good enough one without looking at all of them.

It answers the question of `selection.cheapest_feasible` in O(log K) when one arm's score changes between two decisions, and
in O(1) while the last answer still holds. Both give the same arm, always. Where costs are unknown, prices change with the
outcomes: a ladder then has no rungs but prices, and looks at every arm. Which of the two it is, is known when it is compiled.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, index, inlined, kernel, rare, record, stay_apart
from thrifty.policies.maxima import Maximum, build_maximum, change, first_leaf_from, join, largest, largest_between, value_of
from thrifty.policies.selection import cheapest_feasible, highest

_Last = record([("rung", np.int64), ("highest_cheaper", np.float64)])


class Ladder(NamedTuple):
    """Arms stand on rungs, cheapest first; `scores` holds one number per rung. With prices: one number per arm, and no rungs."""

    arm_on: Integers | None  # rung -> arm
    rung_of: Integers | None  # arm -> rung
    tie_end: Integers | None  # rung -> one past the last rung of the same cost
    scores: Maximum | Floats
    last: NDArray[np.void] | None  # one record: the rung of the last answer, -1 if it is to be found anew; no score below is higher
    prices: Floats | None  # arm -> what it is taken to cost, where costs are unknown


@builder
def build_ladder(costs, by_cost, score):
    """A ladder on which every arm has the same `score`."""
    n_arms = costs.size
    rung_of = np.empty(n_arms, np.int64)
    tie_end = np.empty(n_arms, np.int64)
    for rung in range(n_arms - 1, -1, -1):
        rung_of[by_cost[rung]] = rung
        tied = rung + 1 < n_arms and costs[by_cost[rung]] == costs[by_cost[rung + 1]]
        tie_end[rung] = tie_end[rung + 1] if tied else rung + 1
    last = np.zeros(1, _Last)
    last[0].rung = -1
    return Ladder(by_cost, rung_of, tie_end, build_maximum(n_arms, score), last, None)


@builder
def build_priced_ladder(n_arms, score):
    """A ladder for unknown costs: every arm has the same `score`, and the price 0 until it is set."""
    return Ladder(None, None, None, np.full(n_arms, score), None, np.zeros(n_arms))


# Numba drops a branch before it compiles only if an argument is None: so what needs rungs asks for rungs, and what needs prices for
# prices, in kernels that get them as arguments.


@inlined
def place(ladder, arm, score):
    """Give `arm` a new score."""
    _place(ladder, ladder.rung_of, ladder.prices, arm, score)


@kernel
def _place(ladder, rung_of, prices, arm, score):
    if prices is not None:
        ladder.scores[arm] = score
    if rung_of is not None:
        rung = index(rung_of[arm])
        last = ladder.last[0]
        if rung < last.rung and score > last.highest_cheaper:
            last.highest_cheaper = score  # a bound: none of the cheaper ones has more
        change(ladder.scores, rung, score)


@inlined
def set_price(ladder, arm, price):
    """Give `arm` a new price, where costs are unknown."""
    ladder.prices[arm] = price


@inlined
def top_score(ladder):
    """The highest score of all arms."""
    return _top_score(ladder.scores, ladder.rung_of, ladder.prices)


@kernel
def _top_score(scores, rung_of, prices):
    top = -np.inf
    if prices is not None:
        top = scores[highest(scores)]
    if rung_of is not None:
        top = largest(scores)
    return top


@inlined
def cheapest_above(ladder, floor):
    """The cheapest arm whose score reaches `floor` (some arm's does); equal costs go to the higher score, then the lower index."""
    return _cheapest_above(ladder, ladder.rung_of, ladder.prices, floor)


@kernel
def _cheapest_above(ladder, rung_of, prices, floor):
    if prices is not None:
        return cheapest_feasible(ladder.scores, prices, floor)
    if rung_of is not None:
        last = ladder.last[0]
        if last.rung >= 0 and last.highest_cheaper < floor and value_of(ladder.scores, last.rung) >= floor:
            return ladder.arm_on[index(last.rung)]
        return _search(ladder, floor)
    return -1


@rare
def _search(ladder, floor):
    stay_apart()
    join(ladder.scores)
    tree = ladder.scores.tree
    rung = first_leaf_from(tree, 0, floor)
    tie_end = ladder.tie_end[rung]
    if tie_end == rung + 1:
        ladder.last[0].rung = rung
        ladder.last[0].highest_cheaper = largest_between(tree, 0, rung)
    else:
        ladder.last[0].rung = -1  # another arm of the same cost may overtake it
        rung = first_leaf_from(tree, rung, largest_between(tree, rung, tie_end))
    return ladder.arm_on[rung]
