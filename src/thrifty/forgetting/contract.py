"""The contract of forgetting: three compiled functions over the statistics and a *recollection*, whatever it keeps.

    begin(n_arms, numbers) -> recollection                                  the only place that allocates
    take_in(stats, recollection, arm, seen, reward, cost, costs) -> code    fold an outcome (seen = 1) or a correction (seen = 0)
    probe(stats, recollection, round) -> arm or -1                          an arm to look at now, whatever the rule says

`take_in` returns NOTHING_ELSE, the other arm whose statistics changed, EVERYTHING when all did, or RESTART when the rule should
begin again from what the statistics hold now. `costs` is None where costs are known.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thrifty.compiled import builder, interpreted, kernel
from thrifty.statistics import fold

NOTHING_ELSE, EVERYTHING, RESTART = -1, -2, -3
"""What `take_in` says changed besides the arm of the outcome."""


@dataclass(frozen=True)
class Forgetting:
    """How statistics forget, as the drivers see it.

    Parameters
    ----------
    label : as one types it after the policy: "window=500"
    numbers : the arguments of `begin`
    span : how many outcomes it remembers, about; a rule reckons with no longer horizon than that
    most_arms : the largest number of arms it makes sense for
    kept : outcomes that are kept one by one
    recall : (statistics, recollection), both changed in place: begin from statistics that were there before

    """

    label: str
    begin: Callable[..., Any]
    take_in: Callable[..., Any]
    probe: Callable[..., Any]
    numbers: tuple[float, ...] = ()
    span: float = math.inf
    most_arms: float = math.inf
    kept: int = 0
    recall: Callable[[Any, Any], None] = lambda _statistics, _recollection: None

    @property
    def forgets(self) -> bool:
        """Whether anything is ever forgotten."""
        return self.take_in is not take_in_all

    @property
    def probes(self) -> bool:
        """Whether arms are looked at now and then whatever the rule says."""
        return self.probe is not probe_nothing

    def begin_plain(self, n_arms: int) -> Any:
        """`begin`, without the compiler."""
        return interpreted(self.begin)(n_arms, self.numbers)

    def check(self, n_arms: int) -> None:
        """A ValueError where this cannot work with so many arms."""
        if n_arms > self.most_arms:
            raise ValueError(
                f"a window must hold at least one outcome of every arm, got {self.label} for {n_arms} arms: "
                f"take one of {10 * n_arms} or more"
            )

    def horizon(self, horizon: int | None, n_arms: int) -> int | None:
        """The horizon to reckon with: what is remembered bounds what can be planned for."""
        if horizon is None or math.isinf(self.span):
            return horizon
        return max(min(horizon, int(self.span)), n_arms)


@builder
def begin_nothing(n_arms, numbers):
    """The recollection of statistics that keep everything: there is none."""


@kernel
def take_in_all(stats, recollection, arm, seen, reward, cost, costs):
    """Keep everything."""
    fold(stats, arm, seen, reward, cost, costs)
    return NOTHING_ELSE


@kernel
def probe_nothing(stats, recollection, t):
    """The rule decides alone."""
    return -1


KEEP_ALL = Forgetting("", begin_nothing, take_in_all, probe_nothing)
"""Statistics of a world that does not change."""
