"""CS-IDS: information-directed sampling for cost subsidy. Play what costs little regret for what it tells about the optimum.

Keep M posterior draws of every arm's mean reward. In each draw there is a floor and an optimal arm i*, so the draws give, for every
arm a,

    r_a = E[exchange * max(floor - mu_a, 0) + max(c_a - c_i*, 0) / (range of costs)]     the regret of one pull, and
    v_a = Var over i* of E[mu_a | i*]                                                    how much a pull tells about i*.

The floor is (1 - alpha) times the highest draw, less the luck of the highest draw: see `thrifty.policies.luck`.

Play the mixture of at most two arms, a coin, that minimises (expected r)^power / (expected v). After [Russo2018], who use power 2;
a higher power explores less. Powers other than 2 are those of the generalised information ratio of [Lattimore2021].

The ratio spreads its exploration over time. With a horizon one can do better: information that will pay is best bought first. So
before the ratio is asked, the arm with the least r_a - foresight (T/K)^(2/3) v_a is looked at, and played if it is an exploration.
Where nobody knows T, t + outset stands in for it after t decisions.

Where costs are unknown, they are drawn from posteriors as well (`learnt_costs`), in shares of the range of the arms' mean costs,
or of `cost_scale` if it is given, and v_a counts what a pull tells through its cost too.

Draws do not see what is unlikely, so an arm that would pay could be left for ever after an early run of failures. So before the
ratio is asked, too, the arm with the least r gives way to a cheaper one that it would take the place of too soon: see
`thrifty.policies.patience`.

Exploration has a budget: an arm that costs more than the one with the least r is not explored once it has budget (T/K)^(2/3)
outcomes. So exploring dearer arms costs at most about budget K^(1/3) T^(2/3) in any run. Forgetting renews the budget.

A coin is kept until the outcomes of one of its arms have grown by a share of `plan`, but for eight decisions at most: new draws see
an unlikely optimum that the old ones did not see. Kept for a whole share, it left one run in thirty on the wrong arm to the end.

Rewards that vary less than successes and failures would, such as scores, say more about their mean: an outcome then counts for
several (`posteriors.evidence_weight`).

The parameter `exchange` is for the product owner: how much cost regret, in shares of the range of costs, one unit of quality
regret is worth. 1 is the paper's plain sum. At 5, losing 1% of deliveries hurts as much as paying 5% of the price range more, so
it explores less on arms that may be bad; at 0.2 it saves money sooner.

References
----------
[Russo2018] Russo, Van Roy, "Learning to optimize via information-directed sampling", Operations Research 66.
[Lattimore2021] Lattimore, Gyorgy, "Mirror descent and the information ratio", COLT 2021.

"""

import math
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Booleans, Floats, Integers
from thrifty.compiled import builder, kernel, rare, stay_apart
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.information import best_of_two, certainly, keep_budget, least, worth_knowing_now
from thrifty.policies.learnt_costs import COST_SCALE, cost_unit, draw_cost, settle_cost_scale
from thrifty.policies.luck import set_floors
from thrifty.policies.outlook import OUTSET, settle_outset
from thrifty.policies.patience import DEBIT, count_evidence, given_up_too_soon
from thrifty.policies.plans import PLAN
from thrifty.policies.posteriors import PENDING, evidence_weight, expected
from thrifty.problem import Terms
from thrifty.statistics import mean_cost
from thrifty.streams import beta, uniform

_MOST_KEPT = 8
"""For how many decisions a coin is kept at most."""


class IdsMemory(NamedTuple):
    round_robin: Integers
    stale: Booleans  # arms whose draws are older than their statistics
    turn: Integers  # the arm whose draws were last renewed in turn
    # Tables are laid out row by row in arrays of one dimension, which a router hands over fastest.
    rewards: Floats  # (M * K,) draws of mean rewards
    costs: Floats  # (M * K,) draws of mean costs; (0,) where they are known
    tried: Booleans  # (K,) see `thrifty.policies.luck`
    tops: Floats  # (M,) the highest draw of an arm that is not tried
    floors: Floats  # (M,)
    # An arm that is optimal in some draw has a slot: S is the smaller one of M and K.
    slot_of: Integers  # (K,) the slot of an arm, or -1
    optimum: Integers  # (S + 1,) slot -> arm; the last entry is the number of slots in use
    counts: Integers  # (S,) in how many draws the arm of a slot is optimal
    reward_sums: Floats  # (S * K,) sums of the draws of every arm over those draws, a row per slot
    cost_sums: Floats  # (S * K,) the same of costs; (0,) where they are known
    regret: Floats  # (K,) r
    information: Floats  # (K,) v
    prices: Floats  # (K,) costs, or the means of what was paid, divided by the range of costs
    looks: Floats  # (K,) outcomes that have come or will
    trials: Floats  # (K,) the successes and failures that these are worth as evidence
    means: Floats  # (K,) means, shrunk by one outcome of 1/2
    coin: Floats  # (3,) the arms that the last choice was between, and the probability of the second
    kept: Integers  # (1,) for how many decisions more the coin is kept


@builder
def init(terms):
    memory = _remember(terms.costs.size, int(terms.parameters.draws), 0)
    spread = terms.costs.max() - terms.costs.min()
    memory.prices[:] = terms.costs / (spread if spread > 0.0 else 1.0)
    return memory


@builder
def init_unknown_costs(terms):
    return _remember(terms.costs.size, int(terms.parameters.draws), 1)


@builder
def _remember(n_arms, n_draws, draws_costs):
    n_slots = min(n_draws, n_arms)
    return IdsMemory(
        start_exploration(),
        np.ones(n_arms, np.bool_),
        np.zeros(1, np.int64),
        np.zeros(n_draws * n_arms),
        np.zeros(draws_costs * n_draws * n_arms),
        np.zeros(n_arms, np.bool_),
        np.zeros(n_draws),
        np.zeros(n_draws),
        np.full(n_arms, -1),
        np.zeros(n_slots + 1, np.int64),
        np.zeros(n_slots, np.int64),
        np.zeros(n_slots * n_arms),
        np.zeros(draws_costs * n_slots * n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(3),
        np.zeros(1, np.int64),
    )


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return certainly(arm, memory.coin)
    if memory.kept[0] == 0:
        _make_coin(terms, stats, memory, stream)
    memory.kept[0] -= 1
    return toss(memory.coin, stream)


@kernel
def toss(coin, stream):
    """One of the coin's arms; nothing is drawn where it is certain which."""
    takes_second = uniform(stream) < coin[2] if 0.0 < coin[2] < 1.0 else coin[2] >= 1.0
    return int(coin[1] if takes_second else coin[0])


@rare
def _make_coin(terms, stats, memory, stream):
    stay_apart()
    renew_draws(terms, stats, memory, stream)
    set_floors(terms, stats, memory)
    unit = cost_unit(terms, stats) if memory.costs.size > 0 else 1.0
    tally_optima(memory)
    weigh_arms(terms, memory, unit)
    price_arms(terms, stats, memory, unit)
    keep_budget(terms, stats, memory)
    weigh_coin(terms, stats, memory)
    memory.kept[0] = kept_for(terms, stats, memory.coin)


@kernel
def price_arms(terms, stats, memory, unit):
    """Unknown costs: the means of what was paid, and nothing before the first outcome."""
    if memory.costs.size > 0:
        for arm in range(stats.size):
            memory.prices[arm] = mean_cost(stats, arm) / unit if stats[arm].seen > 0.0 else 0.0


@kernel
def weigh_coin(terms, stats, memory):
    """Write the coin, given the regret and the information of every arm."""
    best = least(memory.regret)
    arm = worth_knowing_now(terms, memory.regret, memory.information)
    if memory.regret[arm] <= memory.regret[best]:
        count_evidence(terms, stats, memory)
        arm = given_up_too_soon(terms, memory, best)
    if arm >= 0:
        certainly(arm, memory.coin)
    else:
        best_of_two(memory.regret, memory.information, terms.parameters.power, memory.coin)


@kernel
def kept_for(terms, stats, coin):
    """Decisions until the outcomes of one of the coin's arms have grown by a share of `plan`: from one to eight."""
    first, second, weight = int(coin[0]), int(coin[1]), coin[2]
    decisions = stats[first].seen / max(1.0 - weight, 1e-9)
    if weight > 0.0:
        decisions = min(decisions, stats[second].seen / weight)
    return max(1, int(min(terms.parameters.plan * decisions, _MOST_KEPT)))


@kernel
def propensity(terms, stats, memory, arm):
    """The probability given the draws."""
    weight = memory.coin[2]
    return (1.0 - weight) * (arm == memory.coin[0]) + weight * (arm == memory.coin[1])


@kernel
def observe(terms, stats, memory, outcome):
    """An outcome makes the draws of its arm old. A correction, or a change of the terms, ends the coin too."""
    memory.stale[outcome.arm] = True
    if math.isnan(outcome.propensity):
        memory.kept[0] = 0


@kernel
def renew_draws(terms, stats, memory, stream):
    """Draw anew for the arms whose statistics changed and, in turn, for one more."""
    memory.turn[0] = (memory.turn[0] + 1) % stats.size
    memory.stale[memory.turn[0]] = True
    for arm in range(stats.size):
        if memory.stale[arm]:
            memory.stale[arm] = False
            won = stats[arm].reward_sum
            a, b = 1.0 + won, 1.0 + max(stats[arm].seen - won, 0.0)
            weight = (1.0 + expected(terms, stats, arm) / (a + b)) * evidence_weight(stats, arm)
            for cell in range(arm, memory.rewards.size, stats.size):
                memory.rewards[cell] = beta(stream, weight * a, weight * b)
            if memory.costs.size > 0:
                for cell in range(arm, memory.costs.size, stats.size):
                    memory.costs[cell] = draw_cost(terms, stats, arm, stream)


@kernel
def tally_optima(memory):
    """For every draw: which arm is optimal, and the sums that belong to that arm."""
    n_arms, n_slots = memory.regret.size, memory.counts.size
    for slot in range(memory.optimum[n_slots]):
        memory.slot_of[memory.optimum[slot]] = -1
    memory.optimum[n_slots] = 0
    for draw in range(memory.floors.size):
        row = draw * n_arms
        rewards = memory.rewards[row : row + n_arms]
        costs = memory.costs[row : row + n_arms] if memory.costs.size > 0 else memory.prices
        floor = memory.floors[draw]
        optimal = -1
        for arm in range(n_arms):
            if rewards[arm] >= floor and (optimal < 0 or costs[arm] < costs[optimal]):
                optimal = arm
        slot = _slot(memory, optimal)
        memory.counts[slot] += 1
        for arm in range(n_arms):
            memory.reward_sums[slot * n_arms + arm] += rewards[arm]
        if memory.costs.size > 0:
            for arm in range(n_arms):
                memory.cost_sums[slot * n_arms + arm] += costs[arm]


@kernel
def _slot(memory, optimal):
    """The slot of an optimal arm; a new one starts from zero."""
    slot = memory.slot_of[optimal]
    if slot < 0:
        n_arms, n_slots = memory.regret.size, memory.counts.size
        slot = memory.optimum[n_slots]
        memory.optimum[n_slots] += 1
        memory.slot_of[optimal] = slot
        memory.optimum[slot] = optimal
        memory.counts[slot] = 0
        for cell in range(slot * n_arms, (slot + 1) * n_arms):
            memory.reward_sums[cell] = 0.0
            if memory.costs.size > 0:
                memory.cost_sums[cell] = 0.0
    return slot


@kernel
def weigh_arms(terms, memory, unit):
    """Write r and v of every arm, from the draws. Drawn costs are divided by `unit`."""
    n_draws, n_arms = memory.floors.size, memory.regret.size
    memory.regret[:] = 0.0
    for draw in range(n_draws):
        for arm in range(n_arms):
            memory.regret[arm] += terms.parameters.exchange * max(memory.floors[draw] - memory.rewards[draw * n_arms + arm], 0.0)
    if memory.costs.size > 0:
        _add_drawn_cost_gaps(terms, memory, unit)
    else:
        for slot in range(memory.optimum[memory.counts.size]):
            for arm in range(n_arms):
                gap = memory.prices[arm] - memory.prices[memory.optimum[slot]]
                memory.regret[arm] += memory.counts[slot] * max(gap, 0.0)
    for arm in range(n_arms):
        memory.regret[arm] /= n_draws
        memory.information[arm] = _spread(memory, memory.reward_sums, arm)
        if memory.costs.size > 0:
            memory.information[arm] += _spread(memory, memory.cost_sums, arm) / (unit * unit)


@kernel
def _add_drawn_cost_gaps(terms, memory, unit):
    n_draws, n_arms = memory.floors.size, memory.regret.size
    for draw in range(n_draws):
        row = draw * n_arms
        lowest = np.inf
        for cell in range(row, row + n_arms):
            if memory.rewards[cell] >= memory.floors[draw]:
                lowest = min(lowest, memory.costs[cell])
        for arm in range(n_arms):
            memory.regret[arm] += max(memory.costs[row + arm] - lowest, 0.0) / unit


@kernel
def _spread(memory, sums, arm):
    """Variance, over which arm is optimal, of the conditional mean of `arm`."""
    n_arms, n_used = memory.regret.size, memory.optimum[memory.counts.size]
    mean = 0.0
    for slot in range(n_used):
        mean += sums[slot * n_arms + arm]
    mean /= memory.floors.size
    variance = 0.0
    for slot in range(n_used):
        shift = sums[slot * n_arms + arm] / memory.counts[slot] - mean
        variance += memory.counts[slot] * shift * shift
    return variance / memory.floors.size


def settle(terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in outset and cost_scale."""
    return settle_cost_scale(terms, settle_outset(terms, numbers))


POLICY = Policy(
    name="cs-ids",
    summary="what costs little regret for what it tells about the optimal arm: good whether arms are close or far apart",
    rule=Rule(choose, init, observe, propensity),
    rule_for_unknown_costs=Rule(choose, init_unknown_costs, observe, propensity),
    parameters={
        "exchange": Number(
            1.0, "how much cost regret (in shares of the range of costs) one unit of quality regret is worth", low=0.0
        ),
        "draws": Number(60, "posterior draws per arm", low=2, high=10_000, whole=True),
        "power": Number(4.0, "of the regret in the ratio; a lower one explores more", low=1.01, high=10.0),
        "sobriety": Number(2.5, "how many times the luck of the highest draw is taken off the floor", low=0.0),
        "enough": Number(0.35, "(T/K)^(2/3) times this many outcomes, 60 at least, and an arm counts as tried", low=0.0),
        "patience": Number(0.2, "how much is lost on a cheaper arm before it is given up", low=0.0),
        "debit": DEBIT,
        "foresight": Number(0.5, "how much of the exploration that a horizon of T would need is done at once", low=0.0),
        "budget": Number(2.0, "(T/K)^(2/3) times this many outcomes, and an arm dearer than the best is no more explored", low=0.0),
        "plan": PLAN,
        "outset": OUTSET,
        "pending": PENDING,
        "cost_scale": COST_SCALE,
    },
    settle=settle,
)
