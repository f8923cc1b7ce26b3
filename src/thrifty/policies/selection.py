"""Feasible, then cheapest: the one decision every rule of this package ends with."""

from thrifty.compiled import kernel


@kernel
def cheapest_feasible(scores, costs, floor):
    """The cheapest arm whose score reaches the floor; equal costs go to the higher score, then to the lower index.

    The arm with the highest score always counts as feasible: a floor of (1 - alpha) times a negative score would otherwise
    leave no arm at all.

    Parameters
    ----------
    scores : (K,) how good every arm is taken to be
    costs : (K,) what every arm is taken to cost
    floor : the smallest score that is good enough

    """
    top = scores[highest(scores)]
    bar = floor if floor < top else top
    chosen = -1
    for arm in range(scores.size):
        if scores[arm] >= bar and (
            chosen < 0 or costs[arm] < costs[chosen] or (costs[arm] == costs[chosen] and scores[arm] > scores[chosen])
        ):
            chosen = arm
    return chosen


@kernel
def highest(scores):
    """The arm with the highest score; equal scores go to the lower index."""
    best = 0
    for arm in range(1, scores.size):
        if scores[arm] > scores[best]:
            best = arm
    return best


@kernel
def sort_by_price(order, prices):
    """Put the arms in order of their prices, equal ones by number. Fast where the order has hardly changed since the last time.

    >>> import numpy as np
    >>> order = np.arange(3)
    >>> sort_by_price(order, np.array([0.5, 0.1, 0.5]))
    >>> order.tolist()
    [1, 0, 2]
    """
    for place in range(1, order.size):
        arm, at = order[place], place
        while at > 0 and (prices[order[at - 1]] > prices[arm] or (prices[order[at - 1]] == prices[arm] and order[at - 1] > arm)):
            order[at] = order[at - 1]
            at -= 1
        order[at] = arm
