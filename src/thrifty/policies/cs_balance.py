"""CS-Balance: look at an arm while what the looks have cost is less than what knowing it may save.

For an arm i and a rival j, let D = (1 - alpha) mu_j - mu_i, which is positive if j shows that i is not good enough. Take D as
normal, with the mean d that the estimates give and the variance s^2 that they would have if i were just on the floor, as in a score
test [Wilson1927]: an arm that failed five times out of five may be a good one. With z = d / s and the standard normal phi and Phi,

    clear     = P(D <= 0)    = Phi(-z)                          the chance that i is good enough beside j, and
    shortfall = E[max(D, 0)] = s (phi(z) + z Phi(z))            the quality that every decision for i is expected to lose.

Let e be the cheapest arm that is good enough by the estimates alone, n the outcomes of an arm and T the horizon. Arms are asked
from the cheapest to e.

1. i is *rejected* if some j has patience (T / cheaper) (c_e - c_i) clear <= min(n_i, n_j) shortfall: what the looks at i have lost
   is more than what i may save. `cheaper` is the number of arms that cost less than e.
2. i is *doubted* if some j that costs no less has n_j (c_j - c_i) clear < caution (T / rivals) shortfall: what the looks at j have
   cost is less than what they may save. `rivals` is the number of such arms. Where that is more, a look at j costs the quality that
   it is expected to lose beside the best arm. Then i or j is played, whichever shrinks s^2 more for the regret that it may cost.
3. Otherwise i is *accepted*, and played.

The two sides of rule 2 are equal after some (T / rivals / (c_j - c_i))^(2/3) looks at j. It gets more where it looks dangerous,
fewer where it does not: docs/theory/balance.md derives K^(1/3) T^(2/3) from that.

Estimates are shrunk to the mean of all arms, more where the arms look alike. The highest of several equally good arms would put the
floor too high otherwise. A choice is kept for as many decisions as change the evidence on its arm by a share of `plan`.

Costs may be unknown. An arm then costs its mean cost so far, less one part in sqrt(n): no scale is assumed. Quality regret counts
`exchange` times as much as cost regret, which is in shares of the range of costs.

References
----------
[Wilson1927] Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American Statistical
Association 22.

"""

import math
from typing import NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel, rare, stay_apart
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.outlook import OUTSET, settle_outset
from thrifty.policies.posteriors import PENDING, expected
from thrifty.statistics import mean_cost

_SURE = 5.0
"""A rival that is this many standard deviations below is not looked at."""

_LEAST_GAP = 0.02
"""The least that a look at a rival is taken to cost, as a share of the range of costs: looks at equal costs are not free."""

_LEAST_VARIANCE = 0.01
"""Of one outcome: a floor close to 0 or 1 would leave no room for an error."""

_NEUTRAL = 100.0
"""Outcomes of mean 1/2 that are added where the mean of all arms is estimated; also the most that an arm is shrunk by."""


class BalanceMemory(NamedTuple):
    round_robin: Integers
    order: Integers  # (K,) arms from the cheapest to the dearest
    prices: Floats  # (K,) costs divided by their range
    looks: Floats  # (K,) outcomes that have come or will
    means: Floats  # (K,) estimates
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
    prices, looks, means = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
    return BalanceMemory(start_exploration(), order, prices, looks, means, np.zeros(2, np.int64))


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    if memory.plan[1] == 0:
        _plan(terms, stats, memory)
    memory.plan[1] -= 1
    return memory.plan[0]


@kernel
def choose_unknown_costs(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    if memory.plan[1] == 0:
        price_arms(stats, memory)
        _plan(terms, stats, memory)
    memory.plan[1] -= 1
    return memory.plan[0]


@kernel
def observe(terms, stats, memory, outcome):
    if math.isnan(outcome.propensity):  # the statistics or terms have changed otherwise
        memory.plan[1] = 0


@kernel
def propensity(terms, stats, memory, arm):
    """The rule draws nothing."""
    return 1.0


@rare
def _plan(terms, stats, memory):
    stay_apart()
    estimate(terms, stats, memory)
    arm = balanced(terms, memory)
    memory.plan[0] = arm
    memory.plan[1] = max(1, int(terms.parameters.plan * memory.looks[arm]))


@kernel
def price_arms(stats, memory):
    """Unknown costs: the mean cost of an arm less one part in sqrt(n), and the order of the arms by it."""
    n_arms = stats.size
    for arm in range(n_arms):
        seen = stats[arm].seen
        memory.prices[arm] = mean_cost(stats, arm) * max(1.0 - 1.0 / math.sqrt(seen), 0.0) if seen > 1.0 else 0.0
    lowest, highest = memory.prices[0], memory.prices[0]
    for arm in range(1, n_arms):
        lowest, highest = min(lowest, memory.prices[arm]), max(highest, memory.prices[arm])
    for arm in range(n_arms):
        memory.prices[arm] /= highest - lowest if highest > lowest else 1.0
    sort_by_price(memory)


@kernel
def sort_by_price(memory):
    """Put the arms in order of their prices, equal ones by number. The order has hardly changed since the last time."""
    order, prices = memory.order, memory.prices
    for place in range(1, order.size):
        arm, at = order[place], place
        while at > 0 and (prices[order[at - 1]] > prices[arm] or (prices[order[at - 1]] == prices[arm] and order[at - 1] > arm)):
            order[at] = order[at - 1]
            at -= 1
        order[at] = arm


@kernel
def estimate(terms, stats, memory):
    """Write the estimate of every arm: its mean, shrunk to the centre of all means by `strength` outcomes."""
    n_arms = stats.size
    total = sent = 0.0
    for arm in range(n_arms):
        seen = max(stats[arm].seen, 0.0)
        memory.looks[arm] = seen + expected(terms, stats, arm)
        memory.means[arm] = (stats[arm].reward_sum + 0.5) / (seen + 1.0)
        total += memory.means[arm]
        sent += memory.looks[arm]
    average = total / n_arms
    beyond_chance = 0.0  # squared distances from the average, less what chance alone makes of them
    for arm in range(n_arms):
        mean = memory.means[arm]
        chance = mean * (1.0 - mean) / (max(stats[arm].seen, 0.0) + 1.0)
        beyond_chance += (mean - average) * (mean - average) - chance * (1.0 - 1.0 / n_arms)
    between = (1.0 / 12.0 + max(beyond_chance, 0.0)) / n_arms  # the variance between arms, from a uniform one
    centre = (average * sent + 0.5 * _NEUTRAL) / (sent + _NEUTRAL)
    strength = min(max(centre * (1.0 - centre) / between, 2.0), _NEUTRAL)
    for arm in range(n_arms):
        memory.means[arm] = (stats[arm].reward_sum + strength * centre) / (max(stats[arm].seen, 0.0) + strength)


@kernel
def balanced(terms, memory):
    """The arm to play, by the rule that stands at the top of this module."""
    n_arms, order = memory.order.size, memory.order
    top = 0
    for arm in range(1, n_arms):
        if memory.means[arm] > memory.means[top]:
            top = arm
    fallback = cheapest_by_estimates(memory, (1.0 - terms.alpha) * memory.means[top])
    cheaper = 0
    while memory.prices[order[cheaper]] < memory.prices[fallback]:
        cheaper += 1
    for place in range(cheaper):
        arm = order[place]
        rejected = is_rejected(terms, memory, arm, top, fallback, cheaper)  # the best arm rejects most of the others
        for rival in range(n_arms):
            if not rejected and rival != arm:
                rejected = is_rejected(terms, memory, arm, rival, fallback, cheaper)
        if not rejected:
            return settle_doubts(terms, memory, arm, place + 1, fallback, top)
    return settle_doubts(terms, memory, fallback, cheaper, fallback, top)


@kernel
def cheapest_by_estimates(memory, floor):
    """The cheapest arm whose estimate reaches the floor; of equal costs the one with the best estimate."""
    order, means = memory.order, memory.means
    place = 0
    while means[order[place]] < floor:
        place += 1
    chosen = order[place]
    while place + 1 < order.size and memory.prices[order[place + 1]] == memory.prices[chosen]:
        place += 1
        if means[order[place]] > means[chosen]:
            chosen = order[place]
    return chosen


@kernel
def difference(terms, memory, arm, rival):
    """The mean, over its standard deviation, of how far the floor that a rival sets is above an arm; and that deviation."""
    keep = 1.0 - terms.alpha
    s = math.sqrt(own_part(terms, memory, arm, rival) + rival_part(terms, memory, arm, rival))
    return (keep * memory.means[rival] - memory.means[arm]) / s, s


@kernel
def own_part(terms, memory, arm, rival):
    """The variance that the estimate of an arm would have if the arm were on the floor that a rival sets."""
    at_floor = (1.0 - terms.alpha) * memory.means[rival]
    return max(at_floor * (1.0 - at_floor), _LEAST_VARIANCE) / max(memory.looks[arm], 0.5)


@kernel
def rival_part(terms, memory, arm, rival):
    """The variance that the estimate of a rival's floor would have if the arm were on it."""
    keep = 1.0 - terms.alpha
    at_floor = memory.means[arm] / keep if keep > memory.means[arm] else 1.0
    return keep * keep * max(at_floor * (1.0 - at_floor), _LEAST_VARIANCE) / max(memory.looks[rival], 0.5)


@kernel
def clear_chance(z):
    """Phi(-z)."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


@kernel
def excess(z):
    """E[max(Z + z, 0)] of a standard normal Z: phi(z) + z Phi(z)."""
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) + z * clear_chance(-z)


@kernel
def is_rejected(terms, memory, arm, rival, fallback, cheaper):
    """Rule 1: the looks at an arm that a rival shows to be too bad have lost more than the arm may save."""
    z, s = difference(terms, memory, arm, rival)
    if z <= 0.0:
        return False
    saving = (memory.prices[fallback] - memory.prices[arm]) * clear_chance(z)
    ahead = (terms.horizon + terms.parameters.outset) / cheaper
    lost = min(memory.looks[arm], memory.looks[rival]) * s * excess(z)
    return terms.parameters.patience * ahead * saving <= terms.parameters.exchange * lost


@kernel
def settle_doubts(terms, memory, arm, first, fallback, top):
    """Rules 2 and 3: the arm, or a rival that it is worth looking at. Rivals are the other arms from place `first` on."""
    order, prices = memory.order, memory.prices
    n_arms, doubted, most = order.size, -1, 1.0
    rivals = n_arms - first - (arm == fallback)
    for place in range(first, n_arms):
        rival = order[place]
        z, s = difference(terms, memory, arm, rival)
        if rival != arm and z > -_SURE:
            gap = max(prices[rival] - prices[arm], _LEAST_GAP)
            highest = ((1.0 - terms.alpha) - memory.means[arm]) / s  # no mean is above 1
            shortfall = s * (excess(z) - excess(z - highest))
            ahead = (terms.horizon + terms.parameters.outset) / rivals
            worth = terms.parameters.caution * terms.parameters.exchange * ahead * shortfall
            spent = memory.looks[rival] * max(gap * clear_chance(z), quality_cost(terms, memory, rival, top))
            ratio = worth / spent if spent > 0.0 else np.inf
            if ratio > most:
                doubted, most = rival, ratio
    if doubted < 0:
        return arm
    return _better_look(terms, memory, arm, doubted, fallback, top)


@kernel
def quality_cost(terms, memory, arm, top):
    """The quality that a look at an arm is expected to lose, beside the arm with the best estimate."""
    if arm == top:
        return 0.0
    z, s = difference(terms, memory, arm, top)
    return terms.parameters.exchange * s * excess(z)


@kernel
def _better_look(terms, memory, arm, rival, fallback, top):
    """Which of two shrinks the variance of their difference more for the regret that it is expected to cost."""
    prices = memory.prices
    z, s = difference(terms, memory, arm, rival)
    clear = clear_chance(z)
    dearer = max(prices[rival] - prices[fallback], 0.0)
    cost_of_arm = terms.parameters.exchange * s * excess(z)
    cost_of_rival = max((prices[rival] - prices[arm]) * clear + dearer * (1.0 - clear), quality_cost(terms, memory, rival, top))
    gain_of_arm = own_part(terms, memory, arm, rival) / max(memory.looks[arm], 0.5)
    gain_of_rival = rival_part(terms, memory, arm, rival) / max(memory.looks[rival], 0.5)
    return arm if gain_of_arm * cost_of_rival >= gain_of_rival * cost_of_arm else rival


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
        "patience": Number(2.0, "how much is lost on a cheaper arm before it is rejected", low=0.0),
        "plan": Number(0.02, "for which share of the outcomes of an arm a choice is kept", low=0.0, high=1.0),
        "outset": OUTSET,
        "pending": PENDING,
    },
    settle=settle_outset,
)
