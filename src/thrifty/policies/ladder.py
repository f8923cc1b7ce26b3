"""The ladder: scores of arms in cost order, which finds the cheapest good enough one without looking at all of them.

It answers the question of `selection.cheapest_feasible` in O(log K) when one arm's score changes between two decisions, and
in O(1) while the last answer still holds. Both give the same arm, always. Where
costs are unknown, prices change with the outcomes, and it looks at every arm.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, index, kernel, rare, record, stay_apart
from thrifty.policies.maxima import Maximum, build_maximum, change, first_leaf_from, join, largest, largest_between, value_of

_Last = record([("rung", np.int64), ("highest_cheaper", np.float64)])


class Ladder(NamedTuple):
    """Arms stand on rungs, cheapest first; `scores` holds one number per rung."""

    arm_on: Integers  # rung -> arm
    rung_of: Integers  # arm -> rung
    tie_end: Integers  # rung -> one past the last rung of the same cost
    scores: Maximum
    last: NDArray[np.void]  # one record: the rung of the last answer, -1 when it has to be found anew; no score below it is higher
    prices: Floats  # (K,) arm -> what it is taken to cost, where costs are unknown; (0,) where they are known


@builder
def build_ladder(costs, by_cost, score):
    """A ladder on which every arm has the same `score`. If costs are unknown (NaN), all prices are 0 until they are set."""
    n_arms = costs.size
    rung_of = np.empty(n_arms, np.int64)
    tie_end = np.empty(n_arms, np.int64)
    for rung in range(n_arms - 1, -1, -1):
        rung_of[by_cost[rung]] = rung
        tied = rung + 1 < n_arms and costs[by_cost[rung]] == costs[by_cost[rung + 1]]
        tie_end[rung] = tie_end[rung + 1] if tied else rung + 1
    last = np.zeros(1, _Last)
    last[0].rung = -1
    prices = np.zeros(n_arms if np.isnan(costs[0]) else 0)
    return Ladder(by_cost, rung_of, tie_end, build_maximum(n_arms, score), last, prices)


@kernel
def place(ladder, arm, score):
    """Give `arm` a new score."""
    rung = index(ladder.rung_of[arm])
    last = ladder.last[0]
    if rung < last.rung and score > last.highest_cheaper:
        last.highest_cheaper = score  # a bound: none of the cheaper ones has more
    change(ladder.scores, rung, score)


@kernel
def set_price(ladder, arm, price):
    """Give `arm` a new price; costs must be unknown."""
    ladder.prices[arm] = price


@kernel
def top_score(ladder):
    """The highest score of all arms."""
    return largest(ladder.scores)


@kernel
def cheapest_above(ladder, floor):
    """The cheapest arm whose score reaches `floor` (some arm's does); equal costs go to the higher score, then the lower index."""
    if ladder.prices.size > 0:
        return _scan(ladder, floor)
    last = ladder.last[0]
    if last.rung >= 0 and last.highest_cheaper < floor and value_of(ladder.scores, last.rung) >= floor:
        return ladder.arm_on[index(last.rung)]
    return _search(ladder, floor)


@rare
def _scan(ladder, floor):
    """The same where prices change between decisions: every arm is looked at, and the arm with the highest score is feasible."""
    stay_apart()
    bar = min(floor, top_score(ladder))
    chosen, lowest, highest = -1, np.inf, -np.inf
    for arm in range(ladder.prices.size):
        score, price = value_of(ladder.scores, index(ladder.rung_of[arm])), ladder.prices[arm]
        if score >= bar and (chosen < 0 or price < lowest or (price == lowest and score > highest)):
            chosen, lowest, highest = arm, price, score
    return chosen


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
