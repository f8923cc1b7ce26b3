"""Borrowing: what a young segment may take over from the others below the same parent, and how much of it.

Rewards of an arm differ from segment to segment. If the means of an arm over segments have mean m and variance tau^2, then
rho = tau^2 / (m (1 - m)) says how unlike the segments are, and to one of them the others are worth 1 / rho - 1 outcomes of mean m:
that is the Beta prior with these two moments. rho is estimated from the sums themselves (analysis of variance, pooled over the
arms), so similar segments lend each other hundreds of outcomes, and unrelated ones about two, which are soon outweighed.

A rule sees the segment's own sums plus what is borrowed; it does not know the difference.

References
----------
[Kleinman1973] Kleinman, "Proportions with extraneous variance: single and independent samples", JASA 68.

"""

import numpy as np

from thrifty.compiled import kernel, record

Kin = record(
    [
        ("segments", np.float64),  # with outcomes of this arm
        ("squares", np.float64),  # sum of reward_sum^2 / seen over them
        ("seen_squares", np.float64),  # sum of seen^2 over them
    ]
)
"""What a parent keeps per arm about how its segments differ, beside the sums themselves."""

_USUAL, _WEIGHT = 0.1, 20.0  # rho before anything is known, and how many outcomes that is worth
_LEAST, _MOST = 0.002, 0.6


@kernel
def count_kin(kin, sign, seen, reward_sum):
    """Take the sums of one segment for one arm into the account (sign = 1), or out of it (sign = -1) before they change."""
    if seen > 0.0:
        kin.segments += sign
        kin.squares += sign * reward_sum * reward_sum / seen
        kin.seen_squares += sign * seen * seen


@kernel
def unlikeness(parent, kin):
    """How unlike the segments below `parent` are, rho: between almost 0 (the same) and 1 (as different as can be)."""
    excess, weight = _WEIGHT * _USUAL, _WEIGHT
    for arm in range(parent.size):
        seen, segments = parent[arm].seen, kin[arm].segments
        if segments < 2.0:
            continue
        mean = parent[arm].reward_sum / seen
        variance = mean * (1.0 - mean)
        if variance > 0.0:
            between = kin[arm].squares - parent[arm].reward_sum * mean
            excess += between / variance - (segments - 1.0)
            weight += seen - kin[arm].seen_squares / seen - (segments - 1.0)
    return min(max(excess / max(weight, _WEIGHT), _LEAST), _MOST)


@kernel
def borrow(own, parent, rho, eyes):
    """Write into `eyes` what a rule for this segment should see: its own sums, and the others' as far as they are alike.

    Parameters
    ----------
    own : (K,) statistics of the segment
    parent : (K,) statistics of all segments, this one included
    rho : how unlike they are
    eyes : (K,) statistics, written

    """
    worth = 1.0 / rho - 1.0
    for arm in range(own.size):
        mine, all_of_us, seen_by_rule = own[arm], parent[arm], eyes[arm]
        others = all_of_us.seen - mine.seen
        taken = worth * others / (worth + others) if others > 0.0 else 0.0  # what is borrowed is itself uncertain
        share = taken / others if others > 0.0 else 0.0
        seen_by_rule.sent = mine.sent + int(taken)
        seen_by_rule.pending = mine.pending
        seen_by_rule.seen = mine.seen + taken
        seen_by_rule.reward_sum = mine.reward_sum + share * (all_of_us.reward_sum - mine.reward_sum)
        seen_by_rule.cost_sum = mine.cost_sum + share * (all_of_us.cost_sum - mine.cost_sum)
