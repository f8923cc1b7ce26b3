"""The problem: what is true (`Instance`), what the decider knows (`Terms`), and how regret is counted.

An arm i has an expected reward mu_i in [0, 1] and a cost c_i. With mu* the best expected reward, the smallest tolerated reward
is the floor (1 - alpha) mu*; arms that reach it are feasible, and the optimal arm is the cheapest feasible one [Sinha2021] s. 1.1.
`reaches_floor` decides what reaches it, with `FLOOR_TOLERANCE`: an arm on the floor is feasible however decimals round.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thrifty.arrays import Booleans, Floats

FLOOR_TOLERANCE = 1e-12
"""An arm is feasible when it misses the floor by at most this share of the best mean reward. Rounding makes errors of 1e-16."""


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """The truth about a set of arms.

    Parameters
    ----------
    means : (K,) expected rewards, each in [0, 1]
    costs : (K,) expected costs, each from 0 to 1e15
    alpha : the subsidy factor in [0, 1]: the share of the best reward one is willing to give up

    >>> world = Instance(means=[0.5, 0.46], costs=[1.0, 0.0], alpha=0.1)
    >>> world.best_arm, world.optimal_arm, round(world.floor, 3)
    (0, 1, 0.45)

    """

    means: Floats
    costs: Floats
    alpha: float

    def __init__(self, means: ArrayLike, costs: ArrayLike, alpha: float) -> None:
        object.__setattr__(self, "means", _numbers("means", means, high=1.0))
        object.__setattr__(self, "costs", checked_costs(costs))
        object.__setattr__(self, "alpha", checked_alpha(alpha))
        if self.means.size != self.costs.size:
            raise ValueError(
                f"means and costs must have the same length, got {self.means.size} means and {self.costs.size} costs: "
                "give every arm one of each"
            )

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return int(self.means.size)

    @cached_property
    def best_arm(self) -> int:
        """m*: the arm with the highest expected reward; equal rewards go to the lower index."""
        return int(np.argmax(self.means))

    @property
    def floor(self) -> float:
        """(1 - alpha) mu*: the smallest tolerated reward."""
        return float((1.0 - self.alpha) * self.means[self.best_arm])

    @property
    def feasible(self) -> Booleans:
        """Which arms reach the floor, up to `FLOOR_TOLERANCE`."""
        return reaches_floor(self.means, float(self.means[self.best_arm]), self.alpha)

    @cached_property
    def optimal_arm(self) -> int:
        """i*: the cheapest feasible arm; equal costs go to the higher expected reward, then to the lower index.

        Regret does not depend on which of several equally cheap feasible arms is named.
        """
        arms = np.flatnonzero(self.feasible)
        return int(min(arms, key=lambda arm: (self.costs[arm], -self.means[arm], arm)))

    @property
    def quality_gaps(self) -> Floats:
        """Quality regret of one pull of every arm: max((1 - alpha) mu* - mu_i, 0), exactly 0 for every feasible arm."""
        return np.where(self.feasible, 0.0, self.floor - self.means)

    @property
    def cost_gaps(self) -> Floats:
        """Cost regret of one pull of every arm: max(c_i - c_i*, 0)."""
        return np.asarray(np.maximum(self.costs - self.costs[self.optimal_arm], 0.0))

    def quality_regret(self, pulls: ArrayLike) -> Floats:
        """Expected quality regret of pull counts (..., K): the sum of pulls times gaps over the last axis.

        >>> float(Instance([0.5, 0.3], [1.0, 0.0], 0.1).quality_regret([10, 4]).round(3))
        0.6
        """
        return np.asarray(np.asarray(pulls) @ self.quality_gaps)

    def cost_regret(self, pulls: ArrayLike) -> Floats:
        """Expected cost regret of pull counts (..., K).

        >>> float(Instance([0.5, 0.46], [1.0, 0.0], 0.1).cost_regret([10, 4]))
        10.0
        """
        return np.asarray(np.asarray(pulls) @ self.cost_gaps)

    def to_dict(self) -> dict[str, Any]:
        """Means, costs and alpha as plain numbers."""
        return {"means": self.means.tolist(), "costs": self.costs.tolist(), "alpha": self.alpha}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.means.tobytes(), self.costs.tobytes(), self.alpha))

    def __repr__(self) -> str:
        shown = f"means={_shown(self.means)}, costs={_shown(self.costs)}, alpha={self.alpha:g}"
        return f"Instance({shown}: best arm {self.best_arm}, optimal arm {self.optimal_arm}, floor {self.floor:g})"


@dataclass(frozen=True, eq=False)
class Terms:
    """What the decider knows before the first decision.

    Parameters
    ----------
    n_arms : the number of arms, K
    costs : (K,) what every arm costs, or None where costs are unknown and come back with each outcome
    alpha : the subsidy factor in [0, 1]
    horizon : the number of decisions to come, T >= K; None where nobody knows it

    >>> Terms(n_arms=2, costs=np.array([1.0, 0.0]), alpha=0.1, horizon=100).horizon
    100

    """

    n_arms: int
    costs: Floats | None
    alpha: float
    horizon: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_arms", checked_count("n_arms", self.n_arms))
        if self.costs is not None:
            object.__setattr__(self, "costs", checked_costs(self.costs))
            if self.costs.size != self.n_arms:
                raise ValueError(f"costs must name one price per arm, got {self.costs.size} costs for {self.n_arms} arms")
        object.__setattr__(self, "alpha", checked_alpha(self.alpha))
        if self.horizon is None:
            return
        object.__setattr__(self, "horizon", checked_count("horizon", self.horizon))
        if self.horizon < self.n_arms:
            raise ValueError(
                f"horizon must be at least the number of arms, got {self.horizon} rounds for {self.n_arms} arms: "
                "every arm is tried once"
            )


def reaches_floor(means: ArrayLike, best: float, alpha: float) -> Booleans:
    """Whether mean rewards reach the floor (1 - alpha) `best`: the one rule for truths, with `FLOOR_TOLERANCE`.

    It is for exact means only. A rule that decides on estimates compares them as they are.

    >>> reaches_floor([0.09, 0.0899], 0.1, 0.1).tolist(), 0.09 >= (1 - 0.1) * 0.1
    ([True, False], False)
    """
    return np.asarray(np.asarray(means) >= (1.0 - alpha - FLOOR_TOLERANCE) * best)


def checked_alpha(alpha: float) -> float:
    """`alpha` as a float, or a ValueError when it is not a number in [0, 1].

    >>> checked_alpha("0.1")
    Traceback (most recent call last):
    ValueError: alpha must be in [0, 1], got '0.1': 0.1 tolerates a tenth less than the best reward
    """
    try:
        value = math.nan if isinstance(alpha, (str, bytes, bool)) else float(alpha)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"alpha must be in [0, 1], got {alpha!r:.80}: 0.1 tolerates a tenth less than the best reward")
    return value


def checked_alphas(alphas: object) -> list[float]:
    """Subsidy factors in growing order, each once: from a list of numbers, or from one number.

    >>> checked_alphas([0.1, 0.02, 0.1]), checked_alphas(0.05)
    ([0.02, 0.1], [0.05])
    >>> checked_alphas("0.05")
    Traceback (most recent call last):
    ValueError: alphas must be numbers in [0, 1] such as [0.02, 0.05], got '0.05'
    """
    if isinstance(alphas, (int, float, np.number)):
        return [checked_alpha(float(alphas))]
    given = list(alphas) if isinstance(alphas, Iterable) and not isinstance(alphas, (str, bytes, Mapping)) else []
    if not given:
        raise ValueError(f"alphas must be numbers in [0, 1] such as [0.02, 0.05], got {alphas!r:.80}")
    return sorted({checked_alpha(alpha) for alpha in given})


MOST_COST = 1e15
"""Sums and squares of larger costs are not exact any more, or no numbers at all."""


def checked_costs(costs: ArrayLike) -> Floats:
    """`costs` as a read-only array, or a ValueError when one is not a number from 0 to `MOST_COST`."""
    return _numbers("costs", costs, high=MOST_COST)


def checked_count(name: str, value: object, *, low: int = 1, high: float = math.inf) -> int:
    """`value` as an int from `low` to `high`, or a ValueError that names it.

    >>> checked_count("runs", 0)
    Traceback (most recent call last):
    ValueError: runs must be a whole number of at least 1, got 0
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.integer, np.floating))
        or value != value // 1
        or value < low
    ):
        raise ValueError(f"{name} must be a whole number of at least {low}, got {value!r:.80}")
    if value > high:
        raise ValueError(f"{name} must be a whole number of at most {high}, got {value!r:.80}")
    return int(value)


def _numbers(name: str, values: ArrayLike, *, high: float) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}") from None
    if array.size == 0:
        raise ValueError(f"{name} must be a list of one number per arm, got no arms")
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of one number per arm, got {values!r}")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0) & (array <= high)))
    if wrong.size:
        raise ValueError(f"{name} must be in [0, {high:g}], got {array[wrong[0]]:g} for arm {wrong[0]}")
    array.setflags(write=False)
    return array


def _shown(values: Sequence[float] | Floats) -> str:
    few = ", ".join(f"{value:g}" for value in values[:6])
    return f"[{few}]" if len(values) <= 6 else f"[{few}, ... {len(values)} arms]"
