"""The information ratio: which arm, or mixture of two, costs little regret for what it tells [Russo2018], [Lattimore2021].

`regret` and `information` are (K,), the r and v of `thrifty.policies.cs_ids`. `coin` is (3,): the two arms that a choice is
between, and the probability of the second.
"""

import numpy as np

from thrifty.compiled import kernel
from thrifty.policies.posteriors import expected


@kernel
def certainly(arm, coin):
    """`arm`, with probability one."""
    coin[0], coin[1], coin[2] = arm, arm, 0.0
    return arm


@kernel
def keep_budget(terms, stats, memory):
    """Forget the information of arms that have had their share of exploration.

    These are arms that cost more than the one with the least regret, and have budget (T/K)^(2/3) outcomes, pending ones included.
    So in every run in which no outcome is lost or forgotten, all exploration of dearer arms costs at most budget K^(1/3) T^(2/3),
    in shares of the range of costs, and a few decisions more for each arm: a coin is kept for up to eight.
    """
    best = least(memory.regret)
    ahead = terms.horizon + terms.parameters.outset
    enough = terms.parameters.budget * (ahead / stats.size) ** (2.0 / 3.0)
    for arm in range(stats.size):
        if stats[arm].seen + expected(terms, stats, arm) >= enough and memory.prices[arm] > memory.prices[best]:
            memory.information[arm] = 0.0


@kernel
def worth_knowing_now(terms, regret, information):
    """The arm with the least regret when information is worth foresight (T/K)^(2/3)."""
    ahead = terms.horizon + terms.parameters.outset
    worth = terms.parameters.foresight * (ahead / regret.size) ** (2.0 / 3.0)
    chosen = 0
    for arm in range(1, regret.size):
        if regret[arm] - worth * information[arm] < regret[chosen] - worth * information[chosen]:
            chosen = arm
    return chosen


@kernel
def best_of_two(regret, information, power, coin):
    """Write down the mixture of two arms that minimises (expected regret)^power / (expected information); returns the first.

    Between arms a and b with r_a < r_b and v_a < v_b, the weight of b that makes the derivative vanish is
    (dv r_a - power dr v_a) / ((power - 1) dr dv), clipped to [0, 1]. Only neighbours on a convex hull take part: see `next_corner`.
    """
    first = second = least(regret)
    if regret[first] <= 0.0:
        return certainly(first, coin)
    lowest, weight = np.inf, 0.0
    for arm in range(regret.size):
        if information[arm] > 0.0 and _raised(regret[arm], power) / information[arm] < lowest:
            lowest, first, second = _raised(regret[arm], power) / information[arm], arm, arm
    a = first_corner(regret, information)
    b = next_corner(regret, information, a)
    while b >= 0:
        dr, dv = regret[b] - regret[a], information[b] - information[a]
        share = (dv * regret[a] - power * dr * information[a]) / ((power - 1.0) * dr * dv)
        share = min(max(share, 0.0), 1.0)
        expected_information = information[a] + share * dv
        if expected_information > 0.0:
            ratio = _raised(regret[a] + share * dr, power) / expected_information
            if ratio < lowest:
                lowest, first, second, weight = ratio, a, b, share
        a, b = b, next_corner(regret, information, b)
    coin[0], coin[1], coin[2] = first, second, weight
    return first


@kernel
def _raised(regret, power):
    """regret^power; products in the usual case, which are faster."""
    return (regret * regret) * (regret * regret) if power == 4.0 else regret**power


@kernel
def least(regret):
    """The arm with the least regret; the lowest index of equal ones."""
    chosen = 0
    for arm in range(1, regret.size):
        if regret[arm] < regret[chosen]:
            chosen = arm
    return chosen


@kernel
def first_corner(regret, information):
    """The arm with the least regret; of equal ones the one with the most information, then the lowest index."""
    chosen = 0
    for arm in range(1, regret.size):
        if regret[arm] < regret[chosen] or (regret[arm] == regret[chosen] and information[arm] > information[chosen]):
            chosen = arm
    return chosen


@kernel
def next_corner(regret, information, corner):
    """The arm that adds information to that of `corner` for the least regret a piece; -1 if none has more.

    Corners are those of the convex hull of all arms, where regret is least for its information. The best mixture is between two
    neighbours, and there are few of them, however many arms there are.
    """
    chosen, slope = -1, np.inf
    for arm in range(regret.size):
        dv = information[arm] - information[corner]
        if dv > 0.0:
            steepness = (regret[arm] - regret[corner]) / dv
            if steepness < slope or (steepness == slope and information[arm] > information[chosen]):
                chosen, slope = arm, steepness
    return chosen
