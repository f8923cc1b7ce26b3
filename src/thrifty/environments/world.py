"""A world: the laws of every arm's rewards and costs. A simulation draws from it; no decider sees it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thrifty.environments.distribution import is_number
from thrifty.environments.law_reading import law_from_dict
from thrifty.environments.laws import Bernoulli, Law
from thrifty.problem import Instance, Terms, checked_alpha, checked_costs


@dataclass(frozen=True)
class World:
    """Arms with their reward laws and either known costs (numbers) or unknown ones (laws).

    Parameters
    ----------
    rewards : (K,) a law on [0, 1] per arm; a number p stands for Bernoulli(p)
    costs : (K,) a number per arm: known beforehand; or a law per arm: random, and seen only with each outcome. `Fees` are laws
        that depend on the reward
    alpha : the subsidy factor in [0, 1]

    >>> from thrifty.environments import Beta, scaled
    >>> World(rewards=[0.5, Beta(2, 3)], costs=[1.0, 0.0], alpha=0.1).instance.means.tolist()
    [0.5, 0.4]
    >>> World(rewards=[0.5, 0.4], costs=[scaled(Beta(1, 1), 0.02), Beta(1, 9)], alpha=0.1).costs_known
    False

    """

    rewards: tuple[Law, ...]
    costs: tuple[float, ...] | tuple[Law, ...]
    alpha: float

    def __init__(self, rewards: Sequence[Law | float], costs: Sequence[Law | float], alpha: float) -> None:
        laws = [law if isinstance(law, Law) else Bernoulli(float(law)) for law in _checked_arms("rewards", rewards)]
        object.__setattr__(self, "rewards", tuple(laws))
        object.__setattr__(self, "costs", _all_numbers_or_all_laws(_checked_arms("costs", costs)))
        object.__setattr__(self, "alpha", checked_alpha(alpha))
        fees = [law for law in self.rewards if law.depends_on_outcome]
        if fees:
            raise ValueError(f"rewards are what fees depend on, got the law {fees[0]}: give fees as costs")
        too_large = [law for law in self.rewards if law.scale > 1.0]
        if too_large:
            raise ValueError(f"rewards must be in [0, 1], got the law {too_large[0]}: divide them by their largest value")
        self.instance  # noqa: B018  the lengths and ranges are checked there

    @classmethod
    def of(cls, instance: Instance) -> "World":
        """The world of Bernoulli rewards and known costs with these means."""
        return cls(instance.means.tolist(), instance.costs.tolist(), instance.alpha)

    @property
    def costs_known(self) -> bool:
        """Whether the decider knows the costs beforehand."""
        return not isinstance(self.costs[0], Law)

    @cached_property
    def instance(self) -> Instance:
        """The expected rewards and costs: what regret is counted against."""
        means = [law.mean for law in self.rewards]
        pairs = itertools.zip_longest(
            self.costs, means, fillvalue=0.0
        )  # an instance says so if there are more of one than of the other
        costs: list[Any] = [cost.mean_at(mean) if isinstance(cost, Law) else cost for cost, mean in pairs]
        return Instance(means, costs[: len(self.costs)], self.alpha)

    @property
    def pieces(self) -> tuple[tuple[int, "World"], ...]:
        """(first round, world): this world does not change, so there is one."""
        return ((0, self),)

    def terms(self, horizon: int | None) -> Terms:
        """What a decider knows about this world."""
        costs = self.instance.costs if self.costs_known else None
        return Terms(n_arms=self.instance.n_arms, costs=costs, alpha=self.alpha, horizon=horizon)

    def to_dict(self) -> dict[str, Any]:
        """The laws and numbers of this world, ready for JSON."""
        costs = list(self.costs) if self.costs_known else [law.to_dict() for law in self.costs]  # type: ignore[union-attr]
        return {"rewards": [law.to_dict() for law in self.rewards], "costs": costs, "alpha": self.alpha}

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> "World":
        """The world that `to_dict` described; "means" may stand in place of "rewards" for Bernoulli arms.

        >>> World.from_dict({"means": [0.5, 0.46], "costs": [1, 0], "alpha": 0.1}).instance.optimal_arm
        1
        """
        if not isinstance(described, dict):
            raise ValueError(f"an instance is read from a dict with means (or rewards), costs and alpha, got {described!r:.80}")
        rewards = described.get("rewards", described.get("means"))
        missing = [name for name in ("costs", "alpha") if name not in described] + (["means"] if rewards is None else [])
        if missing:
            raise ValueError(f"an instance needs means (or rewards), costs and alpha, and {missing[0]} is missing")
        unknown = sorted(set(described) - {"means", "rewards", "costs", "alpha"})
        if unknown:
            raise ValueError(f"an instance has means (or rewards), costs and alpha; it does not know {unknown[0]}")
        return cls(_read_laws("rewards", rewards), _read_laws("costs", described["costs"]), described["alpha"])


def _checked_arms(name: str, items: Any) -> list[Law | float]:
    """One number or law per arm."""
    values = items.tolist() if isinstance(items, np.ndarray) else items
    if not isinstance(values, (list, tuple)) or not all(isinstance(item, Law) or is_number(item) for item in values):
        raise ValueError(f"{name} must be a list of one number or law per arm, got {items!r:.80}")
    return list(values)


def _read_laws(name: str, items: Any) -> list[Law | float]:
    if not isinstance(items, list) or not all(isinstance(item, (dict, int, float)) for item in items):
        raise ValueError(f"{name} must be a list of numbers or laws, got {items!r}")
    return [law_from_dict(item) if isinstance(item, dict) else item for item in items]


def _all_numbers_or_all_laws(costs: Sequence[Law | float]) -> tuple[float, ...] | tuple[Law, ...]:
    laws = tuple(cost for cost in costs if isinstance(cost, Law))
    if not laws:
        return tuple(checked_costs(np.asarray(costs)).tolist())
    if len(laws) < len(costs):
        number = next(cost for cost in costs if not isinstance(cost, Law))
        raise ValueError(
            f"costs must be all numbers (known) or all laws (unknown), got both: write {number} as a Deterministic law"
        )
    return laws
