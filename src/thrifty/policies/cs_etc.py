"""CS-ETC: explore every arm tau times, then play the cheapest arm that may still be good enough.

[Sinha2021] Algorithm 2, and Algorithm 3 where costs are unknown. After the exploration an arm is feasible when its upper
confidence bound reaches (1 - alpha) times the highest lower bound. tau = (T/K)^(2/3), rounded up, gives the regret of Theorem 3.
Without a horizon it grows with the decisions.
Deviations: Algorithm 3 prints a strict inequality, which can leave no arm at alpha = 0; here feasible means >= everywhere.
Ties in cost go to the higher upper bound, then to the lower index.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Integers
from thrifty.compiled import builder, kernel
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.cs_ucb import INTERVAL
from thrifty.policies.exploration import next_due, pulls_due, start_exploration, start_quota
from thrifty.policies.ladder import Ladder, build_ladder, build_priced_ladder, cheapest_above, place, set_price
from thrifty.policies.learnt_costs import COST_SCALE, lowest_cost, settle_cost_scale
from thrifty.policies.maxima import Maximum, build_maximum, change, largest
from thrifty.problem import Terms


class EtcMemory(NamedTuple):
    round_robin: Integers
    quota: NDArray[np.void]
    upper: Ladder
    lower: Maximum


@builder
def init(terms):
    upper = build_ladder(terms.costs, terms.by_cost, 1.0)
    return EtcMemory(start_exploration(), start_quota(), upper, build_maximum(terms.costs.size, 0.0))


@builder
def init_unknown_costs(terms):
    n_arms = terms.costs.size
    upper = build_priced_ladder(n_arms, 1.0)
    return EtcMemory(start_exploration(), start_quota(), upper, build_maximum(n_arms, 0.0))


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, pulls_due(terms, memory.quota))
    if arm >= 0:
        return arm
    floor = (1.0 - terms.alpha) * largest(memory.lower)
    return cheapest_above(memory.upper, floor)


@kernel
def observe(terms, stats, memory, outcome):
    arm = outcome.arm
    place(memory.upper, arm, terms.parts.interval(terms, stats, arm, 1.0))
    change(memory.lower, arm, terms.parts.interval(terms, stats, arm, -1.0))


@kernel
def observe_unknown_costs(terms, stats, memory, outcome):
    observe(terms, stats, memory, outcome)
    set_price(memory.upper, outcome.arm, lowest_cost(terms, stats, outcome.arm))


def settle_tau(terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in tau = (T/K)^(2/3), rounded up and at most T/K; reject a tau that does not fit into the horizon.

    Without a horizon, 0 says that it grows with the decisions.
    """
    tau = numbers["tau"]
    if terms.horizon is None:
        return {**numbers, "tau": tau or 0}
    longest = terms.horizon // terms.n_arms
    if tau is None:
        tau = min(math.ceil((terms.horizon / terms.n_arms) ** (2 / 3)), longest)
    if tau > longest:
        raise ValueError(
            f"tau must be at most horizon / arms = {longest}, got {tau:g}: "
            f"{tau:g} pulls of {terms.n_arms} arms do not fit into {terms.horizon} rounds"
        )
    return {**numbers, "tau": tau}


def settle_both(terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in tau and cost_scale."""
    return settle_cost_scale(terms, settle_tau(terms, numbers))


TAU = Number(None, "exploration pulls per arm; by default (T/K)^(2/3), rounded up", low=1, whole=True)

POLICY = Policy(
    name="cs-etc",
    summary="explore every arm tau times, then the cheapest arm that may still be good enough",
    rule=Rule(choose, init, observe),
    rule_for_unknown_costs=Rule(choose, init_unknown_costs, observe_unknown_costs),
    parameters={"tau": TAU, "interval": INTERVAL, "cost_scale": COST_SCALE},
    settle=settle_both,
)
