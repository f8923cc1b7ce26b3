"""Sensitivity: how strong a hidden cause would have to be to refute a choice.

A hidden cause may change the odds with which an arm is chosen, for requests that look alike, by a factor of at most L in either
direction [Tan2006]. An arm with the share p in its segment then has inverse propensities between 1 + (1/p - 1)/L and
1 + (1/p - 1) L in place of 1/p. With mean reward m, the lowest mean that this allows gives all successes the small weight u and all
failures the large weight v: m u / (m u + (1 - m) v); the highest mean has them the other way round. For rewards between 0 and 1 the
ends are no farther apart than that. A choice is refuted by the smallest L at which the lowest mean of the chosen arm is below
(1 - alpha) times the highest of another arm.

References
----------
[Tan2006] Tan, "A distributional approach for causal inference using propensity scores", JASA 101.

"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from thrifty.compiled import builder, kept
from thrifty.logs.aggregates import N
from thrifty.logs.selective import ChosenArm

MOST = 1000.0


@builder
def mean_bounds(mean: float, share: float, odds: float) -> tuple[float, float]:
    """The lowest and highest mean reward of an arm, if a hidden cause changed its odds at most `odds` times.

    >>> tuple(round(end, 3) for end in mean_bounds(0.8, 0.5, 2.0))
    (0.667, 0.889)
    >>> mean_bounds(0.8, 0.5, 1.0)
    (0.8, 0.8)
    """
    small, large = 1.0 + (1.0 / share - 1.0) / odds, 1.0 + (1.0 / share - 1.0) * odds
    low = mean * small / (mean * small + (1.0 - mean) * large)
    high = mean * large / (mean * large + (1.0 - mean) * small)
    return low, high


def hidden_odds(chosen: Sequence[ChosenArm]) -> float:
    """How many times a hidden cause would have to change the odds of choices, so that the chosen arms may miss the floor.

    Infinite if changing them `MOST` times would not do.
    """
    segments = [(each, each.estimates, np.flatnonzero(each.estimates.usable)) for each in chosen]
    rewards = np.concatenate([found.reward()[arms] for _, found, arms in segments])
    shares = np.concatenate([found.sums.totals[arms, N] / found.sums.rows for _, found, arms in segments])
    is_chosen = np.concatenate([arms == each.arm for each, _, arms in segments])
    ends = np.cumsum([arms.size for _, _, arms in segments])
    traffic = np.array([found.traffic[0] for _, found, _ in segments], np.float64)
    keeps = np.array([1.0 - each.alpha for each in chosen])
    return _refuting_odds(np.clip(rewards, 0.0, 1.0), shares, is_chosen, ends, traffic, keeps)


@kept
def _refuting_odds(rewards: Any, shares: Any, is_chosen: Any, ends: Any, traffic: Any, keeps: Any) -> float:
    """The smallest odds that leave no margin; infinite if `MOST` do not."""
    if _margin(rewards, shares, is_chosen, ends, traffic, keeps, MOST) > 0.0:
        return math.inf
    low, high = 1.0, MOST
    for _ in range(40):
        middle = math.sqrt(low * high)
        if _margin(rewards, shares, is_chosen, ends, traffic, keeps, middle) > 0.0:
            low = middle
        else:
            high = middle
    return low


@builder
def _margin(rewards: Any, shares: Any, is_chosen: Any, ends: Any, traffic: Any, keeps: Any, odds: float) -> float:
    """By how much, over all segments, the lowest mean of the chosen arms is above the floor by the highest of the other arms.

    Arms stand segment after segment; `ends` are the places after the last arm of each.
    """
    margin, place = 0.0, 0
    for segment in range(ends.size):
        lowest, highest = 0.0, 0.0
        while place < ends[segment]:
            low, high = mean_bounds(rewards[place], shares[place], odds)
            if is_chosen[place]:
                lowest = low
            else:
                highest = max(highest, high)
            place += 1
        margin += traffic[segment] * (lowest - keeps[segment] * highest)
    return margin
