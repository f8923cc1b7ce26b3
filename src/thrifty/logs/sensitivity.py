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
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from thrifty.arrays import Booleans, Floats, Integers
from thrifty.logs.aggregates import N
from thrifty.logs.selective import ChosenArm

MOST = 1000.0

Number = TypeVar("Number", float, Floats)


def mean_bounds(mean: Number, share: Number, odds: float) -> tuple[Number, Number]:
    """The lowest and highest mean reward of an arm, or of many, if a hidden cause changed its odds at most `odds` times.

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
    arms = _Arms.of(chosen)
    if arms.margin(MOST) > 0.0:
        return math.inf
    low, high = 1.0, MOST
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if arms.margin(middle) > 0.0 else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class _Arms:
    """The arms with an estimate, segment after segment; `starts` are the places at which segments begin."""

    rewards: Floats
    shares: Floats  # of the rows of their segment
    is_chosen: Booleans
    starts: Integers
    traffic: Floats  # by segment
    keeps: Floats  # 1 - alpha, by segment

    @classmethod
    def of(cls, chosen: Sequence[ChosenArm]) -> "_Arms":
        usable = [np.flatnonzero(each.estimates.usable) for each in chosen]
        pairs = list(zip(chosen, usable, strict=True))
        return cls(
            np.clip(np.concatenate([each.estimates.reward()[arms] for each, arms in pairs]), 0.0, 1.0),
            np.concatenate([each.estimates.sums.totals[arms, N] / each.estimates.sums.rows for each, arms in pairs]),
            np.concatenate([arms == each.arm for each, arms in pairs]),
            np.cumsum([0, *(arms.size for arms in usable[:-1])]),
            np.array([float(each.estimates.traffic[0]) for each in chosen]),
            np.array([1.0 - each.alpha for each in chosen]),
        )

    def margin(self, odds: float) -> float:
        """By how much, over all segments, the lowest mean of the chosen arms is above the floor by the highest of the others."""
        low, high = mean_bounds(self.rewards, self.shares, odds)
        highest = np.maximum.reduceat(np.where(self.is_chosen, -np.inf, high), self.starts)
        return float(self.traffic @ (low[self.is_chosen] - self.keeps * highest))
