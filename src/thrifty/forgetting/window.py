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
from thrifty.statistics import add_to_sums

_Kept = record([("arm", np.int64), ("seen", np.float64), ("reward", np.float64), ("cost", np.float64)])


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
    """Fill the window with outcomes that amount to earlier statistics: every arm's share, each at its mean, mixed evenly."""
    seen = np.array(statistics["seen"])
    share = min(1.0, ring.kept.size / max(float(seen.sum()), 1.0))
    counts = np.floor(seen * share).astype(np.int64)
    divisor = np.maximum(seen, 1.0)
    rewards, costs = statistics["reward_sum"] / divisor, statistics["cost_sum"] / divisor
    arms = np.repeat(np.arange(seen.size), counts)
    turns = np.concatenate([(np.arange(count) + 0.5) / count for count in counts if count] or [np.zeros(0)])
    arms = arms[np.argsort(turns, kind="stable")]
    kept = ring.kept[: arms.size]
    kept["arm"], kept["seen"], kept["reward"], kept["cost"] = arms, 1.0, rewards[arms], costs[arms]
    ring.next[:] = arms.size % ring.kept.size, arms.size
    statistics["seen"], statistics["reward_sum"], statistics["cost_sum"] = counts, counts * rewards, counts * costs


@builder
def begin_ring(n_arms, numbers):
    return Ring(np.zeros(int(numbers[0]), _Kept), np.zeros(2, np.int64))


@kernel
def take_in_last(stats, ring, arm, seen, reward, cost, costs):
    place = index(ring.next[0])
    slot = ring.kept[place]
    ring.next[0] = place + 1 if place + 1 < ring.kept.size else 0
    other = NOTHING_ELSE
    if ring.next[1] < ring.kept.size:
        ring.next[1] += 1
        add_to_sums(stats, arm, seen, reward, cost, costs)
    elif slot.arm == arm:  # one sum, not two that wait for each other; and the rule hears of this arm anyway
        add_to_sums(stats, arm, seen - slot.seen, reward - slot.reward, cost - slot.cost, costs)
    else:
        add_to_sums(stats, arm, seen, reward, cost, costs)
        other = index(slot.arm)
        add_to_sums(stats, other, -slot.seen, -slot.reward, -slot.cost, costs)
        if stats[other].seen <= 0.0:
            stats[other].reward_sum = 0.0  # rounding leaves nothing behind
    slot.arm, slot.seen, slot.reward, slot.cost = arm, seen, reward, cost
    return other
