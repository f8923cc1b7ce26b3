"""CS-Worth: of the arms that may be good enough, play the one that is worth the most.

Let j be the arm with the highest estimate, c the costs and m the estimates. The worth of an arm i is what it saves against j, less
`exchange` times the quality that it gives up, both as shares:

    w_i = (c_j - c_i) / c_j - exchange (m_j - m_i) / m_j,    w_j = 0.

An arm is out while the chance that it is good enough, P(mu_i >= (1 - alpha) mu_j), is below `doubt`. Of the others the one with the
highest worth is played. The cheapest arm that is good enough, which all other policies look for, is worth less than a better one
where the last share of quality costs more than it is worth.

Every arm is played tau times first, as in CS-ETC: (T/K)^(2/3), which grows with the decisions where nobody knows T. Beyond that
nothing is explored. So it is a policy for those who know their arms already: see docs/decisions/028-warm-advice.md.

A choice is kept for as many decisions as change the evidence on its arm by a share of `plan`. Estimates and chances are those of
`thrifty.policies.pairs`. Unknown costs are mean costs so far. Where j is free, costs are in shares of the mean cost of the arms.
Ties go to j, then to the lower index.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel, rare, stay_apart
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.cs_etc import TAU, settle_tau
from thrifty.policies.exploration import next_due, pulls_due, start_exploration, start_quota
from thrifty.policies.pairs import ArmView, clear_chance, difference, estimate
from thrifty.policies.plans import PLAN, follow, make_plan, no_plan, observe, propensity
from thrifty.policies.posteriors import PENDING
from thrifty.statistics import mean_cost


class WorthMemory(NamedTuple):
    round_robin: Integers
    quota: NDArray[np.void]
    arms: NDArray[np.void]  # (K,) records, see `thrifty.policies.pairs.ArmView`
    dispersion: Floats  # (1,) variance of the rewards, in shares of that of successes and failures
    plan: Integers  # (2,) the arm to play, and for how many decisions more


@builder
def init(terms):
    arms = np.zeros(terms.costs.size, ArmView)
    for arm in range(terms.costs.size):
        arms[arm].price = terms.costs[arm]
    return WorthMemory(start_exploration(), start_quota(), arms, np.ones(1), no_plan())


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, pulls_due(terms, memory.quota))
    if arm >= 0:
        return arm
    if memory.plan[1] == 0:
        _plan(terms, stats, memory)
    return follow(memory.plan)


@kernel
def choose_unknown_costs(terms, stats, memory, stream):
    if memory.plan[1] == 0:
        for arm in range(stats.size):
            memory.arms[arm].price = mean_cost(stats, arm) if stats[arm].seen > 0.0 else 0.0
    return choose(terms, stats, memory, stream)


@rare
def _plan(terms, stats, memory):
    stay_apart()
    memory.dispersion[0] = estimate(terms, stats, memory.arms)
    arm = worthiest(terms, memory)
    make_plan(terms, memory.plan, arm, memory.arms[arm].looks)


@kernel
def worthiest(terms, memory):
    """The arm to play, by the rules that stand at the top of this module."""
    arms, top, average = memory.arms, 0, 0.0
    for arm in range(arms.size):
        average += arms[arm].price / arms.size
        if arms[arm].estimate > arms[top].estimate:
            top = arm
    unit = arms[top].price if arms[top].price > 0.0 else average
    chosen, most = top, 0.0
    for arm in range(arms.size):
        if arm != top and unit > 0.0:
            saved = (arms[top].price - arms[arm].price) / unit
            worth = saved - terms.parameters.exchange * (1.0 - arms[arm].estimate / arms[top].estimate)
            if worth > most and clear_chance(difference(terms, memory, arm, top)[0]) >= terms.parameters.doubt:
                chosen, most = arm, worth
    return chosen


POLICY = Policy(
    name="cs-worth",
    summary="of the arms that may be good enough, the one that is worth the most: cost saved, less a price of the quality given up",
    rule=Rule(choose, init, observe, propensity),
    rule_for_unknown_costs=Rule(choose_unknown_costs, init, observe, propensity),
    parameters={
        "exchange": Number(3.0, "how many per cent of cost one per cent of quality is worth", low=0.0),
        "doubt": Number(0.2, "an arm whose chance to be good enough is smaller is out", low=0.0, high=1.0),
        "tau": TAU,
        "plan": PLAN,
        "pending": PENDING,
    },
    settle=settle_tau,
)
