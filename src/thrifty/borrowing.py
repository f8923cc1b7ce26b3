"""Borrowing: what a young segment may take over from the others below the same parent, and how much of it.

Rewards of an arm differ from segment to segment. If the means of an arm over segments have mean m and variance tau^2, then
rho = tau^2 / (m (1 - m)) says how unlike the segments are, and the Beta prior with these two moments is worth 1 / rho - 1 outcomes
of mean m. A rule begins with a uniform prior of its own, worth two, so that 1 / rho - 3 are borrowed: none where means are uniform.
rho is estimated from the sums themselves (analysis of variance, pooled over the arms), so similar segments lend each other
hundreds of outcomes, and unrelated ones next to none.

Effective statistics are the segment's own sums plus what is borrowed. A rule reads only these.

References
----------
[Kleinman1973] Kleinman, "Proportions with extraneous variance: single and independent samples", JASA 68.

"""

import numpy as np

from thrifty.compiled import kernel, record
from thrifty.statistics import Outcome, add_to_sums, copy_sums, counted

SPREAD_FIELDS: list[tuple[str, type]] = [
    ("segments", np.float64),  # with outcomes of this arm
    ("their_seen", np.float64),  # their outcomes; the parent may have some of its own
    ("their_rewards", np.float64),
    ("squares", np.float64),  # sum of (reward sum)^2 / outcomes over them
    ("seen_squares", np.float64),  # sum of outcomes^2 over them
]

Spread = record(SPREAD_FIELDS)
"""What a parent keeps per arm about how the segments below it differ. Any record with these fields will do."""

_USUAL, _WEIGHT = 0.1, 20.0  # rho before anything is known, and how many outcomes that is worth
_LEAST, _MOST = 0.002, 0.6
_OWN, _LITTLE = 3.0, 0.01  # what a rule has already in its uniform prior, and the least that is borrowed


@kernel
def count_segment(spread, sign, seen, reward_sum):
    """Take the sums of one segment for one arm into the account (sign = 1), or out of it (sign = -1) before they change."""
    if seen > 0.0:
        spread.segments += sign
        spread.their_seen += sign * seen
        spread.their_rewards += sign * reward_sum
        spread.squares += sign * reward_sum * reward_sum / seen
        spread.seen_squares += sign * seen * seen


@kernel
def unlikeness(spread):
    """How unlike the segments below a parent are, rho: between almost 0 (the same) and 1 (as different as can be)."""
    excess, weight = _WEIGHT * _USUAL, _WEIGHT
    for arm in range(spread.size):
        seen, segments = spread[arm].their_seen, spread[arm].segments
        if segments < 2.0:
            continue
        mean = spread[arm].their_rewards / seen
        variance = mean * (1.0 - mean)
        if variance > 0.0:
            between = spread[arm].squares - spread[arm].their_rewards * mean
            excess += between / variance - (segments - 1.0)
            weight += seen - spread[arm].seen_squares / seen - (segments - 1.0)
    return min(max(excess / max(weight, _WEIGHT), _LEAST), _MOST)


@kernel
def distance(spread):
    """How far the segments below a parent are apart: one over the outcomes that all the others together are worth to one of them.

    Distances add up along a path: what a country is to an operator, and all countries to that country.
    """
    return 1.0 / max(1.0 / unlikeness(spread) - _OWN, _LITTLE)


@kernel
def borrow(below, above, apart, effective):
    """Add to the effective statistics of one arm the outcomes of the level `above` that are not in the level `below`.

    Parameters
    ----------
    below : the arm's statistics in the segment, or in the level above it that was borrowed from last
    above : those of the next level, `below` included
    apart : how far the segment is from the others there: the sum of `distance` up to that level
    effective : statistics, added to; they begin as those of the segment itself

    """
    others = above.seen - below.seen
    if others > 0.0:
        taken = others / (1.0 + apart * others)  # no more than 1 / apart: what is borrowed is itself uncertain
        share = taken / others
        won = min(max(above.reward_sum - below.reward_sum, 0.0), others)  # levels that forget may differ in what they remember
        effective.sent += int(taken)
        effective.seen += taken
        effective.reward_sum += share * won
        effective.cost_sum += share * max(above.cost_sum - below.cost_sum, 0.0)
        effective.reward_squares += share * min(max(above.reward_squares - below.reward_squares, 0.0), won)
        effective.cost_squares += share * max(above.cost_squares - below.cost_squares, 0.0)


@kernel
def write_effective(sums, spread, parents, segment, effective):
    """Write the effective statistics of a segment: its own sums, and what it borrows from every level above it.

    Parameters
    ----------
    sums : (nodes, K) statistics of every node and all below it
    spread : (nodes, K) how the nodes directly below a node differ
    parents : (nodes,) the node above; -1 for the root
    segment : the node
    effective : (K,) statistics, written over

    """
    for arm in range(effective.size):
        copy_sums(sums[segment, arm], effective[arm])
    apart, level = 0.0, segment
    while parents[level] >= 0:
        above = parents[level]
        apart += distance(spread[above])
        for arm in range(effective.size):
            borrow(sums[level, arm], sums[above, arm], apart, effective[arm])
        level = above


@kernel
def count_with_parents(sums, spread, parents, segment, arm, reward):
    """Count one decision and its outcome in a segment and in every level above it; see `write_effective`."""
    level = segment
    while level >= 0:
        mine, above = sums[level], parents[level]
        before, won_before = mine[arm].seen, mine[arm].reward_sum
        mine[arm].sent += 1
        add_to_sums(mine, arm, counted(Outcome(arm, reward, np.nan)), None)
        if above >= 0:
            count_segment(spread[above, arm], -1.0, before, won_before)
            count_segment(spread[above, arm], 1.0, mine[arm].seen, mine[arm].reward_sum)
        level = above
