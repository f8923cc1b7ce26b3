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
        ("cost_sum", np.float64),  # kept only where costs are unknown, and so is their sum of squares
        ("reward_squares", np.float64),  # the sum of the squares of rewards
        ("cost_squares", np.float64),
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


class SumsChange(NamedTuple):
    """What is added to the sums of an arm.

    An outcome has seen = 1, its reward and cost, and their squares. The correction of one has seen = 0 and the differences: of the
    squares, new^2 - old^2, which is not the square of the difference.
    """

    seen: float
    reward: float
    cost: float
    reward_square: float
    cost_square: float


@kernel
def counted(outcome):
    """The change of the sums that a whole outcome makes.

    >>> counted(Outcome(0, 0.5, 3.0))
    SumsChange(seen=1.0, reward=0.5, cost=3.0, reward_square=0.25, cost_square=9.0)
    """
    return SumsChange(1.0, outcome.reward, outcome.cost, outcome.reward * outcome.reward, outcome.cost * outcome.cost)


@builder
def no_statistics(n_arms):
    """(K,) records: the statistics before the first decision."""
    return np.zeros(n_arms, ArmStatistics)


@kernel
def add_to_sums(stats, arm, change, costs):
    """Add a `SumsChange` to the sums of one arm; `costs` is None if costs are known."""
    known = stats[arm]
    known.seen += change.seen
    known.reward_sum += change.reward
    known.reward_squares += change.reward_square
    if costs is not None:
        known.cost_sum += change.cost
        known.cost_squares += change.cost_square


@kernel
def copy_sums(source, target):
    """Write the statistics of one arm over those of another."""
    target.sent, target.pending, target.seen = source.sent, source.pending, source.seen
    target.reward_sum, target.cost_sum = source.reward_sum, source.cost_sum
    target.reward_squares, target.cost_squares = source.reward_squares, source.cost_squares


@kernel
def mean_reward(stats, arm):
    """The average reward seen from `arm`, which has at least one outcome."""
    return stats[arm].reward_sum / stats[arm].seen


@kernel
def mean_cost(stats, arm):
    """The average cost seen from `arm`, which has at least one outcome."""
    return stats[arm].cost_sum / stats[arm].seen


@kernel
def reward_variance(stats, arm):
    """The sample variance of the rewards seen from `arm`: never negative, and 0 before the second outcome.

    >>> stats = no_statistics(1)
    >>> for reward in (0.0, 0.5, 1.0):
    ...     add_to_sums(stats, 0, counted(Outcome(0, reward, np.nan)), None)
    >>> float(reward_variance(stats, 0))
    0.25
    """
    return sample_variance(stats[arm].seen, stats[arm].reward_sum, stats[arm].reward_squares)


@kernel
def cost_variance(stats, arm):
    """The sample variance of the costs seen from `arm`: never negative, and 0 before the second outcome.

    >>> stats, unknown = no_statistics(1), np.full(1, np.nan)
    >>> for cost in (0.001, 0.003):
    ...     add_to_sums(stats, 0, counted(Outcome(0, 1.0, cost)), unknown)
    >>> round(float(cost_variance(stats, 0)), 9)
    2e-06
    """
    return sample_variance(stats[arm].seen, stats[arm].cost_sum, stats[arm].cost_squares)


@kernel
def sample_variance(seen, total, squares):
    """(Q - S^2 / n) / (n - 1) of n numbers with sum S and sum of squares Q.

    Rounding, and corrections of outcomes that are forgotten, could leave less than nothing: that is 0. Outcomes that are forgotten
    little by little leave fractions of them: below two outcomes the divisor is 1.

    >>> sample_variance(4.0, 2.0, 2.0), sample_variance(1.0, 0.3, 0.09), sample_variance(0.0, 0.0, 0.0)
    (0.3333333333333333, 0.0, 0.0)
    """
    if seen <= 1.0:
        return 0.0
    excess = squares - total * (total / seen)
    return excess / max(seen - 1.0, 1.0) if excess > 0.0 else 0.0
