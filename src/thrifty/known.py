"""Known outcomes: what is known about arms before the first decision, as sums of outcomes that others have paid for.

A run or a router that starts with known outcomes learns from them as from its own, and counts none of them as a decision of its
own: they cost it nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thrifty.problem import MOST_COST
from thrifty.statistics import ArmStatistics

MOST_OUTCOMES = 100_000
"""Known outcomes of one arm, at most: what weighs more would hardly ever be learnt anew in a world that has changed."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class KnownOutcomes:
    """Outcomes of one arm that are known beforehand.

    Parameters
    ----------
    outcomes : how many, at least 1
    rewards : the sum of their rewards, each in [0, 1]
    costs : the sum of their costs; None where costs are prices: in a router each then costs what its arm costs at the start
    reward_squares : the sum of the squares of the rewards; by default that of successes and failures, which is `rewards`
    cost_squares : the sum of the squares of the costs; by default that of equal costs

    >>> KnownOutcomes(400, 360)
    KnownOutcomes(outcomes=400, rewards=360.0, costs=None, reward_squares=360.0, cost_squares=None)
    >>> KnownOutcomes(400, 401)
    Traceback (most recent call last):
    ValueError: rewards must be a number from 0 to 400, got 401: the sum of the rewards of 400 outcomes, each in [0, 1]

    """

    outcomes: int
    rewards: float
    costs: float | None = None
    reward_squares: float | None = None
    cost_squares: float | None = None

    def __post_init__(self) -> None:
        n = self.outcomes
        if isinstance(n, bool) or not isinstance(n, (int, float)) or not 1 <= n <= MOST_OUTCOMES or n != int(n):
            raise ValueError(
                f"outcomes must be a whole number from 1 to {MOST_OUTCOMES}, got {n!r:.80}: scale all sums of the arm down "
                "if there are more, and leave an arm out of which nothing is known"
            )
        about = f"the sum of the rewards of {int(n)} outcomes, each in [0, 1]"
        won = _checked("rewards", self.rewards, 0.0, float(n), about)
        squares = won if self.reward_squares is None else self.reward_squares
        about = f"the sum of the squares of {int(n)} rewards that sum to {won:g}"
        given: dict[str, Any] = {
            "outcomes": int(n),
            "rewards": won,
            "reward_squares": _checked("reward_squares", squares, won * won / n, won, about),
        }
        if self.costs is not None:
            paid = _checked("costs", self.costs, 0.0, n * MOST_COST, f"the sum of the costs of {int(n)} outcomes")
            least = paid * (paid / n)
            about = f"the sum of the squares of {int(n)} costs that sum to {paid:g}"
            squares = least if self.cost_squares is None else self.cost_squares
            given |= {"costs": paid, "cost_squares": _checked("cost_squares", squares, least, max(least, paid * paid), about)}
        elif self.cost_squares is not None:
            raise ValueError(f"cost_squares goes with costs, got {self.cost_squares!r:.80} alone: give the sum of the costs too")
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def scaled_to(self, most: int) -> "KnownOutcomes":
        """The same means, with at most so many outcomes.

        >>> KnownOutcomes(400, 360).scaled_to(100)
        KnownOutcomes(outcomes=100, rewards=90.0, costs=None, reward_squares=90.0, cost_squares=None)
        """
        if self.outcomes <= most:
            return self
        share = most / self.outcomes
        sums = (self.rewards, self.costs, self.reward_squares, self.cost_squares)
        return KnownOutcomes(most, *(None if each is None else share * each for each in sums))  # type: ignore[arg-type]

    def plus(self, other: "KnownOutcomes") -> "KnownOutcomes":
        """Both together; each has costs, or none has.

        >>> KnownOutcomes(400, 360).plus(KnownOutcomes(100, 40))
        KnownOutcomes(outcomes=500, rewards=400.0, costs=None, reward_squares=400.0, cost_squares=None)
        """
        pairs = zip(self.to_dict().values(), other.to_dict().values(), strict=True)
        return KnownOutcomes(*(None if one is None or two is None else one + two for one, two in pairs))  # type: ignore[arg-type]

    def at_price(self, price: float | None) -> "KnownOutcomes":
        """The same, each at this price if no costs are given.

        >>> KnownOutcomes(400, 360).at_price(0.5).costs
        200.0
        """
        return self if self.costs is not None or price is None else replace(self, costs=self.outcomes * price)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _checked(name: str, value: Any, low: float, high: float, about: str) -> float:
    """A sum within its limits, but for rounding; a ValueError otherwise."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not low - _ROUNDING * max(low, 1.0) <= value <= high + _ROUNDING * max(high, 1.0):
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r:.80}: {about}")
    return float(min(max(value, low), high))


def known_statistics(known: Sequence[KnownOutcomes | None] | None, n_arms: int, *, costs_known: bool) -> Any:
    """(K,) statistics of known outcomes, one entry per arm, None where nothing is known; each counts as a decision.

    >>> known_statistics([None, KnownOutcomes(4, 3)], 2, costs_known=True)["seen"].tolist()
    [0.0, 4.0]
    >>> known_statistics([KnownOutcomes(4, 3)], 2, costs_known=True)
    Traceback (most recent call last):
    ValueError: known must have one entry per arm, None where nothing is known; got 1 for 2 arms
    """
    found = np.zeros(n_arms, ArmStatistics)
    entries = [None] * n_arms if known is None else list(known)
    if len(entries) != n_arms:
        raise ValueError(f"known must have one entry per arm, None where nothing is known; got {len(entries)} for {n_arms} arms")
    for arm, each in enumerate(entries):
        if each is None:
            continue
        if not isinstance(each, KnownOutcomes):
            raise ValueError(f"known must have KnownOutcomes or None for every arm, got {each!r:.80} for arm {arm}")
        if each.costs is None and not costs_known:
            raise ValueError(f"costs are unknown here, so known outcomes need the sum of their costs: arm {arm} has none")
        found[arm]["sent"] = found[arm]["seen"] = each.outcomes
        found[arm]["reward_sum"], found[arm]["reward_squares"] = each.rewards, each.reward_squares
        if not costs_known:
            found[arm]["cost_sum"], found[arm]["cost_squares"] = each.costs, each.cost_squares
    return found
