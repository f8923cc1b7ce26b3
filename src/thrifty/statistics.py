"""Sufficient statistics: what has come back from every arm, as sums that merge by addition."""

import math
from typing import NamedTuple

import numpy as np

from thrifty.compiled import builder, kernel, record

ArmStatistics = record(
    [
        ("sent", np.int64),  # decisions, for ever
        ("pending", np.int64),  # decisions whose outcome may still come
        ("seen", np.float64),  # outcomes that count: a whole number unless outcomes are forgotten or borrowed
        ("reward_sum", np.float64),
        ("cost_sum", np.float64),  # kept only where costs are unknown
    ]
)
"""What is kept per arm. Statistics are a record array of these, so that one arm's numbers share a cache line."""


class Outcome(NamedTuple):
    """What came back for one decision: the arm, its reward in [0, 1], and what it cost (NaN where costs are known).

    `propensity` is the probability with which the decision took that arm, where the rule says it; NaN where it does not, and
    where there was no new outcome but a correction of old ones.
    """

    arm: int
    reward: float
    cost: float
    propensity: float = math.nan


@builder
def no_statistics(n_arms):
    """(K,) records: the statistics before the first decision."""
    return np.zeros(n_arms, ArmStatistics)


@kernel
def add_to_sums(stats, arm, seen, reward, cost, costs):
    """Add to the sums of one arm. An outcome has seen = 1, the correction of one seen = 0; `costs` is None if costs are known."""
    known = stats[arm]
    known.seen += seen
    known.reward_sum += reward
    if costs is not None:
        known.cost_sum += cost


@kernel
def copy_sums(source, target):
    """Write the statistics of one arm over those of another."""
    target.sent, target.pending, target.seen = source.sent, source.pending, source.seen
    target.reward_sum, target.cost_sum = source.reward_sum, source.cost_sum


@kernel
def mean_reward(stats, arm):
    """The average reward seen from `arm`, which has at least one outcome."""
    return stats[arm].reward_sum / stats[arm].seen


@kernel
def mean_cost(stats, arm):
    """The average cost seen from `arm`, which has at least one outcome."""
    return stats[arm].cost_sum / stats[arm].seen
