"""CS-Balance: look at an arm while what the looks have cost is less than what knowing it may save.

Arms are compared two by two (`thrifty.policies.pairs`). That gives the chance `clear` that an arm is good enough beside a rival,
and the `shortfall` in quality that a decision for it is expected to have. From that follow, for every arm a,

    r_a = exchange (largest shortfall_a beside a rival) + sum over cheaper arms b of (step in cost after b) (largest clear up to b),
    v_a = sum over the pairs of a that are in doubt of the variance of E[mu_a | good enough or not].

r_a is the regret that one decision for a is expected to cost: the quality that it loses, and the money that a cheaper arm would
save. v_a is the information that an outcome of a is expected to give about which arm is optimal, as in [Russo2018]. The *best* arm
is the one with the least r. With T the horizon, and n the outcomes of an arm that were paid for (none that were borrowed),

1. an arm that costs no less than the best one is *affordable* while n r sqrt(n / N) < caution T' x, where x is the shortfall of the
   best arm beside it, T' = T x / (the sum of x over all such arms) its share of the horizon, and N = (T' / gap in cost)^(2/3): what
   the looks at it have cost is less than what they may save. The root makes the first looks cheaper and the last ones dearer;
2. an arm that costs less is affordable while n r < patience T' y, where y is what it may save (or x, if that is more), and T' its
   share of T by what all cheaper arms may save. Its quality is counted only for as many looks as its strongest rival had;
3. of the best arm and the affordable ones, the one with the most information for its regret, v / r, is played.

The two sides of rule 1 are equal after some N looks. An arm gets more where it looks dangerous, fewer where it does not:
docs/theory/balance.md derives K^(1/3) T^(2/3) from that.

A choice is kept for as many decisions as change the evidence on its arm by a share of `plan`.

Costs may be unknown. An arm then costs its mean cost so far, less one part in sqrt(n): no scale is assumed. Quality regret counts
`exchange` times as much as cost regret, which is in shares of the range of costs.

References
----------
[Russo2018] Russo, Van Roy, "Learning to optimize via information-directed sampling", Operations Research 66.

"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel, rare, stay_apart
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.outlook import OUTSET, settle_outset
from thrifty.policies.pairs import ArmView, difference, estimate, shortfall_beside
from thrifty.policies.plans import PLAN, follow, make_plan, no_plan, observe, propensity
from thrifty.policies.posteriors import PENDING
from thrifty.policies.selection import sort_by_price
from thrifty.policies.weighing import LEAST_REGRET, MOST_RIVALS, list_rivals, weigh_information, weigh_regret
from thrifty.statistics import mean_cost

_LEAST_GAP = 0.02
"""The least gap in cost, as a share of the range of costs, that N is reckoned with."""


class BalanceMemory(NamedTuple):
    round_robin: Integers
    order: Integers  # (K,) arms from the cheapest to the dearest
    arms: NDArray[np.void]  # (K,) records, see `thrifty.policies.pairs.ArmView`
    rivals: Integers  # arms that others are compared with
    dispersion: Floats  # (1,) variance of the rewards, in shares of that of successes and failures
    plan: Integers  # (2,) the arm to play, and for how many decisions more


@builder
def init(terms):
    memory = _remember(terms.by_cost.copy())
    spread = terms.costs.max() - terms.costs.min()
    for arm in range(terms.costs.size):
        memory.arms[arm].price = terms.costs[arm] / (spread if spread > 0.0 else 1.0)
    return memory


@builder
def init_unknown_costs(terms):
    return _remember(np.arange(terms.costs.size))


@builder
def _remember(order):
    rivals = np.arange(min(order.size, MOST_RIVALS))
    arms = np.zeros(order.size, ArmView)
    for arm in rivals:
        arms[arm].is_rival = 1
    return BalanceMemory(start_exploration(), order, arms, rivals, np.ones(1), no_plan())


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    if memory.plan[1] == 0:
        _plan(terms, stats, memory)
    return follow(memory.plan)


@kernel
def choose_unknown_costs(terms, stats, memory, stream):
    if memory.plan[1] == 0:
        price_arms(stats, memory)
    return choose(terms, stats, memory, stream)


@rare
def _plan(terms, stats, memory):
    stay_apart()
    memory.dispersion[0] = estimate(terms, stats, memory.arms)
    list_rivals(memory)
    weigh_regret(terms, memory)
    weigh_information(terms, memory)
    arm = balanced(terms, memory)
    make_plan(terms, memory.plan, arm, memory.arms[arm].looks)


@kernel
def price_arms(stats, memory):
    """Unknown costs: the mean cost of an arm less one part in sqrt(n), and the order of the arms by it."""
    arms = memory.arms
    for arm in range(stats.size):
        seen = stats[arm].seen
        arms[arm].price = mean_cost(stats, arm) * max(1.0 - 1.0 / math.sqrt(seen), 0.0) if seen > 1.0 else 0.0
    lowest, highest = arms[0].price, arms[0].price
    for arm in range(1, stats.size):
        lowest, highest = min(lowest, arms[arm].price), max(highest, arms[arm].price)
    for arm in range(stats.size):
        arms[arm].price /= highest - lowest if highest > lowest else 1.0
    sort_by_price(memory.order, arms["price"])


@kernel
def balanced(terms, memory):
    """The arm to play, by the rules that stand at the top of this module."""
    arms, order = memory.arms, memory.order
    best = order[0]
    for place in range(1, order.size):
        if arms[order[place]].regret < arms[best].regret:
            best = order[place]
    danger, saving = stakes(terms, memory, best)
    chosen, most = best, arms[best].information / max(arms[best].regret, LEAST_REGRET)
    for place in range(order.size):
        arm = order[place]
        if arm != best and arms[arm].information > 0.0:
            value = arms[arm].information / max(arms[arm].regret, LEAST_REGRET)
            if value > most and is_affordable(terms, memory, arm, best, danger, saving):
                chosen, most = arm, value
    return chosen


@kernel
def stakes(terms, memory, best):
    """What all dearer arms together may show to be lost by the best arm, and what all cheaper arms together may save."""
    arms, danger, saving = memory.arms, 0.0, 0.0
    for rival in memory.rivals:
        if rival != best and arms[rival].price >= arms[best].price:
            danger += worth_beside(terms, memory, best, rival)
    place = 0
    while arms[memory.order[place]].price < arms[best].price:
        arm = memory.order[place]
        saving += (arms[best].price - arms[arm].price) * arms[arm].clear
        place += 1
    return danger, saving


@kernel
def worth_beside(terms, memory, best, arm):
    """The quality, in units of regret, that the best arm is expected to lose beside another."""
    z, s = difference(terms, memory, best, arm)
    return terms.parameters.exchange * shortfall_beside(terms, memory, best, z, s)


@kernel
def is_affordable(terms, memory, arm, best, danger, saving):
    """Rules 1 and 2: what the looks at an arm have cost is less than what they may save."""
    view, price = memory.arms[arm], memory.arms[best].price
    ahead = float(terms.horizon + terms.parameters.outset)
    worth = worth_beside(terms, memory, best, arm)
    quality = terms.parameters.exchange * view.shortfall
    strongest = memory.arms[view.strongest].looks if view.strongest >= 0 else view.paid
    spent = view.paid * (view.regret - quality) + min(view.paid, strongest) * quality
    if view.price < price:
        own = (price - view.price) * view.clear
        return spent < terms.parameters.patience * ahead * (own / saving if saving > 0.0 else 1.0) * max(worth, own)
    ahead *= worth / danger if danger > worth else 1.0
    pace = (ahead / max(view.price - price, _LEAST_GAP)) ** (2.0 / 3.0)
    return spent * math.sqrt(view.paid / pace) < terms.parameters.caution * ahead * worth


POLICY = Policy(
    name="cs-balance",
    summary="looks at an arm while the looks have cost less than knowing it may save: good whether arms are close or far apart",
    rule=Rule(choose, init, observe, propensity),
    rule_for_unknown_costs=Rule(choose_unknown_costs, init_unknown_costs, observe, propensity),
    parameters={
        "exchange": Number(
            1.0, "how much cost regret (in shares of the range of costs) one unit of quality regret is worth", low=0.0
        ),
        "caution": Number(0.5, "how much is spent on dearer arms before a cheaper one is accepted", low=0.0),
        "patience": Number(1.0, "how much is lost on a cheaper arm before it is rejected", low=0.0),
        "plan": PLAN,
        "outset": OUTSET,
        "pending": PENDING,
    },
    settle=settle_outset,
)
