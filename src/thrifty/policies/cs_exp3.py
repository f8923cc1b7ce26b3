"""CS-EXP3: the subsidy rule for rewards that an adversary may have chosen.

Keep importance-weighted sums G_a of the rewards: an outcome r of arm a, which was chosen with probability p_a, adds r / p_a. With
eta the rate, arm a is good enough with weight

    w_a = exp(-eta max((1 - alpha) max_b G_b - G_a, 0)),

which is 1 for arms at the estimated floor or above it. Arms are offered in the order of their cost; each is taken with
probability w_a, so a cheaper arm goes first as far as it is good enough, and the best arm (w = 1) takes what is left. A share
gamma of the decisions is uniform. After EXP3 [Auer2002b], with its exponential weights on the shortfall from the floor instead
of on the reward.

What is guaranteed, for any rewards in [0, 1] fixed beforehand: every arm has probability at least gamma / K in every round, so
G_a is unbiased for the sum of all rewards of arm a, and with gamma = (K ln K / T)^(1/3) each average G_a / T is within
O((K / T)^(1/3)) of the truth in expectation: which arms were good enough over the whole past is known, whatever the adversary did.
At most gamma T decisions are spent on that. What is only observed, and not proved: that quality and cost regret against the
cheapest arm that is good enough over all rounds stay small, since the floor itself moves with the adversary.

Outcomes are weighed by the probability at the time of their decision, however late they come. An outcome without one (the
correction of an earlier one, a probe) is ignored.

References
----------
[Auer2002b] Auer, Cesa-Bianchi, Freund, Schapire, "The nonstochastic multiarmed bandit problem", SIAM Journal on Computing 32.

"""

import math
from typing import NamedTuple

import numpy as np

from thrifty.arrays import Floats
from thrifty.compiled import builder, kernel
from thrifty.policies.contract import Number, Policy, Rule
from thrifty.policies.selection import highest
from thrifty.streams import uniform


class Exp3Memory(NamedTuple):
    gains: Floats  # (K,) G
    chances: Floats  # (K,) p, of the last choice


@builder
def init(terms):
    return Exp3Memory(np.zeros(terms.costs.size), np.ones(terms.costs.size))


@kernel
def choose(terms, stats, memory, stream):
    weigh(terms, memory)
    ticket = uniform(stream)
    for arm in terms.by_cost:
        ticket -= memory.chances[arm]
        if ticket < 0.0:
            return arm
    return terms.by_cost[stats.size - 1]


@kernel
def weigh(terms, memory):
    """The probability of every arm."""
    gains, chances = memory.gains, memory.chances
    n_arms = gains.size
    explored = share_explored(terms)
    rate = terms.parameters.rate * explored / n_arms
    best = highest(gains)
    floor = (1.0 - terms.alpha) * gains[best]
    left = 1.0
    for arm in terms.by_cost:
        taken = left * math.exp(-rate * max(floor - gains[arm], 0.0))
        chances[arm] = explored / n_arms + (1.0 - explored) * taken
        left -= taken
    chances[best] += (1.0 - explored) * left  # nothing, but for rounding


@kernel
def share_explored(terms):
    """gamma: (K ln K / T)^(1/3) times `explore`, at most 1/2; it falls with the decisions where the horizon is unknown."""
    n_arms = terms.costs.size
    return min(terms.parameters.explore * (n_arms * math.log(n_arms + 1.0) / terms.horizon) ** (1.0 / 3.0), 0.5)


@kernel
def propensity(terms, stats, memory, arm):
    return memory.chances[arm]


@kernel
def observe(terms, stats, memory, outcome):
    if outcome.propensity > 0.0:  # false for NaN
        memory.gains[outcome.arm] += outcome.reward / outcome.propensity


POLICY = Policy(
    name="cs-exp3",
    summary="the cheapest arm that is good enough by importance-weighted sums: for rewards that an adversary may have chosen",
    rule=Rule(choose, init, observe, propensity, weighs_outcomes=True),
    parameters={
        "explore": Number(0.5, "share of uniform decisions, in units of (K ln(K+1) / T)^(1/3)", low=0.0),
        "rate": Number(1.0, "how fast an arm below the floor is given up, in units of gamma / K", low=0.0),
    },
)
