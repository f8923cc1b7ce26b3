"""Compiled code for counting outcomes and corrections, in a segment and all above it. (Decisions: `SegmentSums.count_pending`.)

None of it depends on the policy; `count_outcome` and `probe_arm` depend on how statistics forget.
"""

from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import count_segment
from thrifty.compiled import driver, kernel
from thrifty.forgetting import RESTART
from thrifty.statistics import SumsChange


class ForgettingKernels(NamedTuple):
    """The compiled functions of a forgetting: what `count_outcome` and `probe_arm` are bound to."""

    take_in: Any
    probe: Any
    unpack: Any  # makes a recollection of bytes


class Remembered(NamedTuple):
    """Statistics of all segments as far as they are not forgotten; see `SegmentSums`."""

    recent: Any
    recollections: Any
    restarts: Any


class Difference(NamedTuple):
    """What is added to the sums of an arm.

    A first outcome has seen = 1, its withdrawal seen = -1 and the old numbers negated, a correction seen = 0 and the differences
    (of squares: new^2 - old^2).
    """

    sent: Any
    seen: Any
    reward: Any
    cost: Any
    reward_square: Any
    cost_square: Any
    priced: Any


@driver
def probe_arm(forgetting, sums, recent, recollections, segment):
    """The arm of a segment that is to be looked at now because it may have changed, whatever the rule would choose; -1 for none."""
    decisions = 0
    for arm in range(sums.shape[1]):
        decisions += sums[segment, arm].sent
    return forgetting.probe(recent[segment], forgetting.unpack(recollections[segment]), decisions)


@driver
def count_outcome(forgetting, records, slot, arm, value, cost, sums, recent, parents, recollections, restarts):
    """Make an outcome the last one of a decision, and count what that changes in its segment and all above.

    `value` is NaN for an outcome that says nothing about the arm, `cost` NaN where it is unknown.
    """
    entry = records[slot]
    remembered = None if recollections is None else Remembered(recent, recollections, restarts)
    before, old = entry.arm, counts_of(entry)
    entry.arm, entry.waiting, entry.outcome_value, entry.outcome_cost = arm, 0, value, cost
    counts = 1 - (np.isnan(value) or entry.forgotten != 0)
    entry.sent = entry.seen = counts
    entry.reward = value if counts else 0.0
    entry.priced = counts * (1 - np.isnan(cost))
    entry.cost = cost if entry.priced else 0.0
    now, nothing = counts_of(entry), Difference(0, 0, 0.0, 0.0, 0.0, 0.0, 0)
    if arm == before:
        add_outcome(forgetting, sums, parents, remembered, entry.segment, arm, difference(now, old))
        return
    add_outcome(forgetting, sums, parents, remembered, entry.segment, before, difference(nothing, old))
    add_outcome(forgetting, sums, parents, remembered, entry.segment, arm, difference(now, nothing))


@kernel
def counts_of(entry):
    """What a decision adds to the sums of its arm now."""
    reward, cost = entry.reward, entry.cost
    return Difference(entry.sent, entry.seen, reward, cost, reward * reward, cost * cost, entry.priced)


@kernel
def difference(now, old):
    """What is added to the sums where `now` takes the place of `old`."""
    return Difference(
        now.sent - old.sent,
        now.seen - old.seen,
        now.reward - old.reward,
        now.cost - old.cost,
        now.reward_square - old.reward_square,
        now.cost_square - old.cost_square,
        now.priced - old.priced,
    )


@driver
def add_outcome(forgetting, sums, parents, remembered, segment, arm, change):
    """Add to the sums of an arm in a segment and all above. `remembered` is None where nothing is forgotten."""
    outcome = change.seen != 0 or change.reward != 0.0
    child_seen, child_reward, child_had_seen, child_had_reward = 0.0, 0.0, 0.0, 0.0
    while segment >= 0:
        known = sums[segment, arm]
        had_seen, had_reward = known.seen, known.reward_sum
        if remembered is None and outcome:
            count_segment(known, -1.0, child_had_seen, child_had_reward)
            count_segment(known, 1.0, child_seen, child_reward)
        known.sent += change.sent
        known.pending += change.sent - change.seen
        known.seen += change.seen
        known.reward_sum += change.reward
        known.cost_sum += change.cost
        known.reward_squares += change.reward_square
        known.cost_squares += change.cost_square
        known.priced += change.priced
        if remembered is not None:
            remember_outcome(forgetting, remembered, segment, arm, change)
        child_seen, child_reward, child_had_seen, child_had_reward = known.seen, known.reward_sum, had_seen, had_reward
        segment = parents[segment]


@driver
def remember_outcome(forgetting, remembered, segment, arm, change):
    """Add to what is remembered of an arm. Less than nothing cannot be: what is taken back may be forgotten already."""
    known = remembered.recent[segment, arm]
    known.sent += change.sent
    known.pending += change.sent - change.seen
    seen = at_least(1.0 * change.seen, known.seen)
    cost, cost_square = at_least(change.cost, known.cost_sum), at_least(change.cost_square, known.cost_squares)
    if change.seen == 1 and change.priced == 0 and known.seen > 0.0:  # an outcome of unknown cost changes no average
        cost, cost_square = known.cost_sum / known.seen, known.cost_squares / known.seen
    if change.seen != 0 or change.reward != 0.0 or change.cost != 0.0:
        recollection = forgetting.unpack(remembered.recollections[segment])
        reward, reward_square = at_least(change.reward, known.reward_sum), at_least(change.reward_square, known.reward_squares)
        taken = SumsChange(seen, reward, cost, reward_square, cost_square)
        if forgetting.take_in(remembered.recent[segment], recollection, arm, taken, True) == RESTART:
            remembered.restarts[segment] += 1


@kernel
def at_least(change, known):
    """`change`, or as much of it as leaves nothing of what is known."""
    return max(change, -max(known, 0.0))
