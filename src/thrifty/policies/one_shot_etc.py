"""One-shot ETC: explore every arm tau times, then commit for good to the cheapest arm that may be good enough.

[Sinha2021] section 4: the variant that estimates the optimal arm once. Feasible as in CS-ETC. It commits at its first choice after
the exploration, with the outcomes it has seen by then. Without a horizon it commits anew whenever the
horizon it reckons with grows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel
from thrifty.policies.contract import Policy, Rule
from thrifty.policies.cs_etc import TAU, settle_both
from thrifty.policies.cs_ucb import INTERVAL
from thrifty.policies.exploration import next_due, pulls_due, start_exploration, start_quota
from thrifty.policies.learnt_costs import COST_SCALE, lowest_cost
from thrifty.policies.selection import cheapest_feasible


class OneShotMemory(NamedTuple):
    round_robin: Integers
    quota: NDArray[np.void]
    committed: Integers  # the arm, and the horizon for which it was chosen
    upper: Floats
    price: Floats


@builder
def init(terms):
    price = np.where(np.isnan(terms.costs), 0.0, terms.costs)
    return OneShotMemory(start_exploration(), start_quota(), np.full(2, -1), np.ones(terms.costs.size), price)


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, pulls_due(terms, memory.quota))
    if arm >= 0:
        return arm
    if memory.committed[1] != terms.horizon:
        memory.committed[0] = _commit(terms, stats, memory)
        memory.committed[1] = terms.horizon
    return memory.committed[0]


@kernel
def _commit(terms, stats, memory):
    top = 0.0
    for arm in range(stats.size):
        memory.upper[arm] = terms.parts.interval(terms, stats, arm, 1.0)
        top = max(top, terms.parts.interval(terms, stats, arm, -1.0))
    return cheapest_feasible(memory.upper, memory.price, (1.0 - terms.alpha) * top)


@kernel
def observe_unknown_costs(terms, stats, memory, outcome):
    memory.price[outcome.arm] = lowest_cost(terms, stats, outcome.arm)


POLICY = Policy(
    name="one-shot-etc",
    summary="explore every arm tau times, then commit once to the cheapest arm that may be good enough",
    rule=Rule(choose, init),
    rule_for_unknown_costs=Rule(choose, init, observe_unknown_costs),
    parameters={"tau": TAU, "interval": INTERVAL, "cost_scale": COST_SCALE},
    settle=settle_both,
)
