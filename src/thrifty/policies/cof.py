"""COF, cost-ordered feasibility: the cheapest arm that the evidence does not call infeasible, unless a look at a dearer one pays.

After the idea of [Juneja2026], of which only the abstract is known to us: take the arms in the order of their costs, and ask of
each how unlikely the data are if it is feasible. The candidate is the cheapest arm whose infeasibility evidence R_i is below a
threshold; R_i adds up over equally good arms instead of being blocked by them. All else is ours: the thresholds, the debit,
acceptance, what is sampled meanwhile, and the case of unknown costs. `thrifty.policies.evidence` has the evidence.

Let m be the means, each shrunk by one outcome of 1/2, and n the outcomes. Rewards of low variance, such as scores, count in all
evidence for the successes and failures that they are worth (`posteriors.evidence_weight`). `tail(E)` is the chance of error that
evidence E leaves, at most exp(-E) / 2. `top` has the highest mean, e is the cheapest arm with m_e >= (1 - alpha) m_top, and T is
the horizon.

1. i, cheaper than e, is given up for e once the looks at it have lost what it may save: see `thrifty.policies.patience`.
2. The candidate is the cheapest arm not given up. It is *accepted* if no rival j, an arm that costs no less, is worth a look.
   With A_ij the evidence that i is good enough beside j, P = tail(A_ij) is the chance that it is not (1 - tail(R_ij) if that is
   what the means say). A look is worth it while caution (T / rivals) P shortfall > n_j (1 - P) (c_j - c_i), where the shortfall
   is (1 - alpha) m_j - m_i, or its standard deviation if that is more. As it falls like 1 / sqrt(n_j), j gets no more than some
   (T / rivals)^(2/3) looks: that is the budget, and the candidate then gets the benefit of the doubt. Looks at a bad rival cost the
   quality that they lose, where that is more.
3. While the candidate is neither given up nor accepted, it is played, or the rival of which a look is worth most: whichever
   shrinks the variance of their difference more for the regret that it may cost.

A choice is kept for as many decisions as change the evidence on its arm by a share of `plan`. Where costs are unknown, an arm costs
its lower confidence bound: see `thrifty.policies.learnt_costs`. Quality regret counts `exchange` times as much as cost regret, in
shares of the range of costs.

References
----------
[Juneja2026] Juneja, Joe-Wong, Yagan, arXiv 2605.07171, 2026. We know its abstract.

"""

import math
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel, rare, stay_apart
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.evidence import meeting_point, pair_evidence, tail
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.learnt_costs import COST_SCALE, cost_unit, lowest_cost, settle_cost_scale
from thrifty.policies.outlook import OUTSET, settle_outset
from thrifty.policies.patience import DEBIT, count_evidence, is_given_up
from thrifty.policies.plans import PLAN, follow, make_plan, no_plan, observe, propensity
from thrifty.policies.posteriors import PENDING
from thrifty.policies.selection import cheapest_feasible, highest, sort_by_price
from thrifty.problem import Terms

_LEAST_GAP = 0.02
"""The least that a look at a rival is taken to cost, as a share of the range of costs: looks at equal costs are not free."""

_LEAST_VARIANCE = 0.01
"""Of one outcome: means close to 0 or 1 would leave no room for an error."""

_ANYHOW = 0.5
"""How much a look at the candidate counts beside one at a rival: it is what would be played anyhow if nobody were asked."""


class CofMemory(NamedTuple):
    round_robin: Integers
    order: Integers  # (K,) arms from the cheapest to the dearest
    prices: Floats  # (K,) costs divided by their range
    looks: Floats  # (K,) outcomes that have come or will
    trials: Floats  # (K,) the successes and failures that these are worth as evidence
    means: Floats  # (K,) means, shrunk by one outcome of 1/2
    plan: Integers  # (2,) the arm to play, and for how many decisions more


@builder
def init(terms):
    memory = _remember(terms.by_cost.copy())
    spread = terms.costs.max() - terms.costs.min()
    memory.prices[:] = terms.costs / (spread if spread > 0.0 else 1.0)
    return memory


@builder
def init_unknown_costs(terms):
    return _remember(np.arange(terms.costs.size))


@builder
def _remember(order):
    n_arms = order.size
    prices, looks, trials, means = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
    return CofMemory(start_exploration(), order, prices, looks, trials, means, no_plan())


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
        price_arms(terms, stats, memory)
    return choose(terms, stats, memory, stream)


@kernel
def price_arms(terms, stats, memory):
    """Unknown costs: their lower confidence bounds, in shares of the range of mean costs, and the order of the arms by them."""
    unit = cost_unit(terms, stats)
    for arm in range(stats.size):
        memory.prices[arm] = lowest_cost(terms, stats, arm) / unit
    sort_by_price(memory.order, memory.prices)


@rare
def _plan(terms, stats, memory):
    stay_apart()
    count_evidence(terms, stats, memory)
    arm = decide(terms, memory)
    make_plan(terms, memory.plan, arm, memory.looks[arm])


@kernel
def decide(terms, memory):
    """The arm to play, by the rule that stands at the top of this module."""
    order, prices, top = memory.order, memory.prices, highest(memory.means)
    fallback = cheapest_feasible(memory.means, prices, (1.0 - terms.alpha) * memory.means[top])
    cheaper = 0
    while prices[order[cheaper]] < prices[fallback]:
        cheaper += 1
    for place in range(cheaper):
        if not is_given_up(terms, memory, order[place], top, fallback, cheaper):
            return settle_doubts(terms, memory, order[place], place + 1, fallback, top)
    return settle_doubts(terms, memory, fallback, cheaper, fallback, top)


@kernel
def settle_doubts(terms, memory, arm, first, fallback, top):
    """Rules 2 and 3: the arm, or a rival of which a look is worth it. Rivals are the other arms from place `first` on."""
    order, prices = memory.order, memory.prices
    n_arms, doubted, most = order.size, -1, 1.0
    rivals = n_arms - first - (arm == fallback)
    for place in range(first, n_arms):
        rival = order[place]
        if rival != arm and terms.alpha < 1.0:
            failing = failure_chance(terms, memory, arm, rival)
            gap = max(prices[rival] - prices[arm], _LEAST_GAP)
            spent = memory.looks[rival] * max(gap * (1.0 - failing), quality_cost(terms, memory, rival, top))
            ahead = (terms.horizon + terms.parameters.outset) / rivals
            worth = terms.parameters.caution * ahead * expected_loss(terms, memory, arm, rival)
            ratio = worth / spent if spent > 0.0 else np.inf
            if ratio > most:
                doubted, most = rival, ratio
    if doubted < 0:
        return arm
    return _better_look(terms, memory, arm, doubted, fallback, top)


@kernel
def failure_chance(terms, memory, arm, rival):
    """The chance that an arm is not good enough beside a rival."""
    trials, means = memory.trials, memory.means
    evidence = pair_evidence(1.0 - terms.alpha, trials[arm], means[arm], trials[rival], means[rival])
    return tail(evidence) if evidence >= 0.0 else 1.0 - tail(-evidence)


@kernel
def expected_loss(terms, memory, arm, rival):
    """The quality that a look at an arm is expected to lose beside a rival, in units of cost: chance times shortfall."""
    own, other = variances(terms, memory, arm, rival)
    gap = (1.0 - terms.alpha) * memory.means[rival] - memory.means[arm]
    return terms.parameters.exchange * failure_chance(terms, memory, arm, rival) * max(gap, math.sqrt(own + other))


@kernel
def quality_cost(terms, memory, arm, top):
    """The same beside the arm with the highest mean, which loses nothing."""
    return expected_loss(terms, memory, arm, top) if arm != top else 0.0


@kernel
def variances(terms, memory, arm, rival):
    """Of an arm's mean, and of the floor that a rival sets, if the arm were on it."""
    keep, trials, means = 1.0 - terms.alpha, memory.trials, memory.means
    x = meeting_point(keep, trials[arm], means[arm], trials[rival], means[rival])
    own, other = max(x * (1.0 - x), _LEAST_VARIANCE), max(x * (keep - x), keep * keep * _LEAST_VARIANCE)
    return own / trials[arm], other / trials[rival]


@kernel
def _better_look(terms, memory, arm, rival, fallback, top):
    """Which of two shrinks the variance of their difference more for the regret that it is expected to cost."""
    prices, failing = memory.prices, failure_chance(terms, memory, arm, rival)
    own, other = variances(terms, memory, arm, rival)
    dearer = max(prices[rival] - prices[fallback], 0.0)
    cost_of_rival = max(prices[rival] - prices[arm], _LEAST_GAP) * (1.0 - failing) + dearer * failing
    cost_of_rival = max(cost_of_rival, quality_cost(terms, memory, rival, top))
    cost_of_arm = _ANYHOW * expected_loss(terms, memory, arm, rival)
    return arm if own / memory.looks[arm] * cost_of_rival >= other / memory.looks[rival] * cost_of_arm else rival


def settle(terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in `outset` and `cost_scale`."""
    return settle_cost_scale(terms, settle_outset(terms, numbers))


POLICY = Policy(
    name="cof",
    summary="the cheapest arm that the evidence of all others does not call infeasible, unless a look at a dearer one pays",
    rule=Rule(choose, init, observe, propensity),
    rule_for_unknown_costs=Rule(choose_unknown_costs, init_unknown_costs, observe, propensity),
    parameters={
        "exchange": Number(
            1.0, "how much cost regret (in shares of the range of costs) one unit of quality regret is worth", low=0.0
        ),
        "caution": Number(0.25, "how much is spent on dearer arms before a cheaper one is accepted", low=0.0),
        "patience": Number(1.0, "how much is lost on a cheaper arm before it is given up", low=0.0),
        "debit": DEBIT,
        "plan": PLAN,
        "outset": OUTSET,
        "pending": PENDING,
        "cost_scale": COST_SCALE,
    },
    settle=settle,
)
