"""CS-Direct: test every arm against the floor itself, in order of cost, and stop as soon as the answer is known.

An arm j is accepted when LCB_j >= (1 - alpha) max UCB, rejected when UCB_j < (1 - alpha) max LCB. The candidate is the cheapest arm
not rejected. While it is neither accepted nor rejected, the wider of the two intervals that decide is sampled: the candidate's, or
that of the arm with the highest upper bound. The latter is sampled at most limit (T/K)^(2/3) times for this; then the candidate
gets the benefit of the doubt, as in CS-ETC.
"""

from typing import NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel
from thrifty.intervals import INTERVALS
from thrifty.policies.contract import KernelParameter, Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.learnt_costs import COST_SCALE, lowest_cost, settle_cost_scale
from thrifty.policies.selection import cheapest_feasible, highest


class DirectMemory(NamedTuple):
    round_robin: Integers
    upper: Floats
    lower: Floats
    price: Floats


@builder
def init(terms):
    n_arms = terms.costs.size
    price = np.where(np.isnan(terms.costs), 0.0, terms.costs)
    return DirectMemory(start_exploration(), np.ones(n_arms), np.zeros(n_arms), price)


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    upper, lower = memory.upper, memory.lower
    candidate = cheapest_feasible(upper, memory.price, (1.0 - terms.alpha) * lower[highest(lower)])
    rival = highest(upper)
    accepted = lower[candidate] >= (1.0 - terms.alpha) * upper[rival]
    enough = terms.parameters.limit * (terms.horizon / stats.size) ** (2.0 / 3.0)
    if accepted or stats[rival].sent >= enough or stats[rival].sent >= stats[candidate].sent:
        return candidate
    return rival


@kernel
def observe(terms, stats, memory, outcome):
    arm = outcome.arm
    memory.upper[arm] = terms.parts.interval(terms, stats, arm, 1.0)
    memory.lower[arm] = terms.parts.interval(terms, stats, arm, -1.0)


@kernel
def observe_unknown_costs(terms, stats, memory, outcome):
    observe(terms, stats, memory, outcome)
    memory.price[outcome.arm] = lowest_cost(terms, stats, outcome.arm)


POLICY = Policy(
    name="cs-direct",
    summary="accept or reject every arm against the floor, cheapest first, with no more exploration than the answer needs",
    rule=Rule(choose, init, observe),
    rule_for_unknown_costs=Rule(choose, init, observe_unknown_costs),
    parameters={
        "interval": KernelParameter(
            INTERVALS,
            default="kl",
            meaning="the confidence bounds: paper, hoeffding, kl, bernstein, mixture, or a file of your own",
        ),
        "limit": Number(1.0, "most pulls of a dearer arm for the test, in units of (T/K)^(2/3)", low=0.0),
        "cost_scale": COST_SCALE,
    },
    settle=settle_cost_scale,
)
