"""The contract of a forgetting method: three compiled functions over the statistics and a *recollection*.

    begin(n_arms, numbers) -> recollection                     before the first outcome; only here memory is allocated
    take_in(stats, recollection, arm, change, costs) -> code   add an outcome or a correction: `thrifty.statistics.SumsChange`
    probe(stats, recollection, round) -> arm or -1             an arm to sample now, whatever the rule would choose

A recollection is what the method keeps beside the statistics; None if nothing is forgotten. `take_in` returns NOTHING_ELSE, the
other arm whose statistics changed, EVERYTHING if those of all arms did, or RESTART if the rule should begin again from what the
statistics hold now. `costs` is None if costs are known.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thrifty.compiled import builder, interpreted, kernel
from thrifty.statistics import add_to_sums

NOTHING_ELSE, EVERYTHING, RESTART = -1, -2, -3
"""What changed besides the arm of the outcome, as `take_in` returns it."""


@dataclass(frozen=True)
class Forgetting:
    """A forgetting method.

    Parameters
    ----------
    label : as one types it after the policy: "window=500"
    numbers : the arguments of `begin`
    span : about how many outcomes are remembered; a rule plans for no longer horizon
    most_arms : the largest number of arms for which it works
    kept : outcomes that are kept one by one
    recall : (statistics, recollection) -> None; begins from earlier statistics, and changes both in place

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
        """Whether what is remembered may differ from all outcomes. Where it does not, the recollection is None."""
        return self.take_in is not take_in_all

    @property
    def probes(self) -> bool:
        """Whether arms are sampled now and then whatever the rule would choose."""
        return self.probe is not probe_nothing

    def begin_plain(self, n_arms: int) -> Any:
        """`begin`, interpreted."""
        return interpreted(self.begin)(n_arms, self.numbers)

    def check(self, n_arms: int) -> None:
        """A ValueError if this cannot work with so many arms."""
        if n_arms > self.most_arms:
            raise ValueError(
                f"a window must hold at least one outcome of every arm, got {self.label} for {n_arms} arms: "
                f"take one of {10 * n_arms} or more"
            )

    def horizon(self, horizon: int | None, n_arms: int) -> int | None:
        """The horizon that a rule plans for: no more than what is remembered."""
        if horizon is None or math.isinf(self.span):
            return horizon
        return max(min(horizon, int(self.span)), n_arms)


@builder
def begin_nothing(n_arms, numbers):
    """Keep no recollection."""


@kernel
def take_in_all(stats, recollection, arm, change, costs):
    """Keep everything."""
    add_to_sums(stats, arm, change, costs)
    return NOTHING_ELSE


@kernel
def probe_nothing(stats, recollection, t):
    """Probe no arm."""
    return -1


class Nothing(NamedTuple):
    """The recollection of statistics that forget nothing, and are kept apart from the sums of a router's own outcomes."""

    nothing: Any


@builder
def begin_apart(n_arms, numbers):
    """Keep a recollection in which there is nothing."""
    return Nothing(np.zeros(1))


@kernel
def take_in_apart(stats, recollection, arm, change, costs):
    """Keep everything, apart."""
    add_to_sums(stats, arm, change, costs)
    return NOTHING_ELSE


KEEP_APART = Forgetting("apart", begin_apart, take_in_apart, probe_nothing)
"""As `KEEP_ALL`, in a table of its own: where a router starts with known outcomes, which are none of its own."""

KEEP_ALL = Forgetting("", begin_nothing, take_in_all, probe_nothing)
"""Statistics of a world that does not change."""
