"""The sliding window: only the last outcomes count [Garivier2011b].

[Garivier2011b] Garivier, Moulines, "On upper-confidence bound policies for switching bandit problems", ALT 2011.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Integers
from thrifty.compiled import builder, index, kernel, record
from thrifty.forgetting.contract import NOTHING_ELSE, Forgetting, probe_nothing
from thrifty.problem import checked_count
from thrifty.statistics import SumsChange, add_to_sums

_Kept = record(
    [
        ("arm", np.int64),
        ("seen", np.float64),
        ("reward", np.float64),
        ("cost", np.float64),
        ("reward_square", np.float64),
        ("cost_square", np.float64),
    ]
)

_RECALLED = {"reward_sum": "reward", "cost_sum": "cost", "reward_squares": "reward_square", "cost_squares": "cost_square"}
"""Sums of an arm, and what the window keeps of one outcome."""


class Ring(NamedTuple):
    kept: NDArray[np.void]  # (W,) what was taken in, oldest at `next` once it is full
    next: Integers  # where the next one goes, and how many there are


def window(length: int) -> Forgetting:
    """Only the last `length` outcomes count, of all arms together [Garivier2011b].

    >>> window(500).label
    'window=500'
    """
    whole = checked_count("window", length)
    return Forgetting(
        f"window={whole}",
        begin=begin_ring,
        take_in=take_in_last,
        probe=probe_nothing,
        numbers=(float(whole),),
        span=whole,
        most_arms=whole,
        kept=whole,
        recall=recall_ring,
    )


def recall_ring(statistics: Any, ring: Ring) -> None:
    """Fill the window with outcomes that amount to earlier statistics: every arm's share, each at its means, mixed evenly."""
    seen = np.array(statistics["seen"])
    share = min(1.0, ring.kept.size / max(float(seen.sum()), 1.0))
    counts = np.floor(seen * share).astype(np.int64)
    divisor = np.maximum(seen, 1.0)
    means = {field: statistics[field] / divisor for field in _RECALLED}
    arms = np.repeat(np.arange(seen.size), counts)
    turns = np.concatenate([(np.arange(count) + 0.5) / count for count in counts if count] or [np.zeros(0)])
    arms = arms[np.argsort(turns, kind="stable")]
    kept = ring.kept[: arms.size]
    kept["arm"], kept["seen"] = arms, 1.0
    ring.next[:] = arms.size % ring.kept.size, arms.size
    statistics["seen"] = counts
    for field, one in _RECALLED.items():
        kept[one] = means[field][arms]
        statistics[field] = counts * means[field]


@builder
def begin_ring(n_arms, numbers):
    return Ring(np.zeros(int(numbers[0]), _Kept), np.zeros(2, np.int64))


@kernel
def take_in_last(stats, ring, arm, change, costs):
    place = index(ring.next[0])
    slot = ring.kept[place]
    ring.next[0] = place + 1 if place + 1 < ring.kept.size else 0
    other = NOTHING_ELSE
    if ring.next[1] < ring.kept.size:
        ring.next[1] += 1
        add_to_sums(stats, arm, change, costs)
    elif slot.arm == arm:  # one sum, not two that wait for each other; and the rule hears of this arm anyway
        add_to_sums(stats, arm, _without(change, slot), costs)
    else:
        add_to_sums(stats, arm, change, costs)
        other = index(slot.arm)
        add_to_sums(stats, other, _without(SumsChange(0.0, 0.0, 0.0, 0.0, 0.0), slot), costs)
        if stats[other].seen <= 0.0:  # rounding leaves nothing behind
            stats[other].reward_sum = stats[other].reward_squares = 0.0
            stats[other].cost_sum = stats[other].cost_squares = 0.0
    slot.arm, slot.seen, slot.reward, slot.cost = arm, change.seen, change.reward, change.cost
    slot.reward_square, slot.cost_square = change.reward_square, change.cost_square
    return other


@kernel
def _without(change, slot):
    return SumsChange(
        change.seen - slot.seen,
        change.reward - slot.reward,
        change.cost - slot.cost,
        change.reward_square - slot.reward_square,
        change.cost_square - slot.cost_square,
    )
