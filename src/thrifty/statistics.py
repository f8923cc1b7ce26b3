"""Sufficient statistics: what has come back from every arm, as sums that merge by addition."""

from typing import NamedTuple

import numpy as np

from thrifty.compiled import builder, kernel, record

ArmStatistics = record(
    [
        ("sent", np.int64),  # decisions
        ("seen", np.int64),  # outcomes; sent - seen are still pending
        ("reward_sum", np.float64),
        ("cost_sum", np.float64),  # kept only where costs are unknown
    ]
)
"""What is kept per arm. Statistics are a record array of these, so that one arm's numbers share a cache line."""


class Outcome(NamedTuple):
    """What came back for one decision: the arm, its reward in [0, 1], and what it cost (NaN where costs are known)."""

    arm: int
    reward: float
    cost: float


@builder
def no_statistics(n_arms):
    """(K,) records: the statistics before the first decision."""
    return np.zeros(n_arms, ArmStatistics)


@kernel
def record_reward(stats, outcome):
    """Fold the reward of one outcome into the statistics."""
    arm = stats[outcome.arm]
    arm.seen += 1
    arm.reward_sum += outcome.reward


@kernel
def record_cost(stats, outcome):
    """Fold the cost of one outcome into the statistics."""
    arm = stats[outcome.arm]
    arm.cost_sum += outcome.cost


@kernel
def mean_reward(stats, arm):
    """The average reward seen from `arm`, which has at least one outcome."""
    return stats[arm].reward_sum / stats[arm].seen


@kernel
def mean_cost(stats, arm):
    """The average cost seen from `arm`, which has at least one outcome."""
    return stats[arm].cost_sum / stats[arm].seen
