"""CS-TS: score every arm by a draw from its posterior, play the cheapest whose score clears the floor.

[Sinha2021] Algorithm 1 (TS). `prior` names the posterior that is drawn from; a file or a compiled function may be given instead.
Where costs are unknown, they are drawn too (`learnt_costs`): Thompson sampling of both.
Deviations: ties in cost go to the higher score, then to the lower index; the highest score is feasible even when it is negative.
"""

from typing import NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, inlined, kernel
from thrifty.policies.contract import KernelParameter, Number, Policy, Rule
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.learnt_costs import COST_SCALE, draw_cost, settle_cost_scale
from thrifty.policies.posteriors import PENDING, draw_beta, draw_gaussian, draw_shrunk, draw_weighted
from thrifty.policies.selection import cheapest_feasible, highest


class TsMemory(NamedTuple):
    round_robin: Integers
    scores: Floats
    prices: Floats


@builder
def init(terms):
    return TsMemory(start_exploration(), np.empty(terms.costs.size), np.empty(terms.costs.size))


@kernel
def choose(terms, stats, memory, stream):
    return choose_by_draws(listed_cost, terms, stats, memory, stream)


@kernel
def choose_unknown_costs(terms, stats, memory, stream):
    return choose_by_draws(draw_cost, terms, stats, memory, stream)


@inlined
def choose_by_draws(price, terms, stats, memory, stream):
    """The next arm to explore, else the cheapest by `price` whose draw clears the floor."""
    arm = next_due(stats, memory.round_robin, 1)
    if arm >= 0:
        return arm
    scores, prices = memory.scores, memory.prices
    for each in range(scores.size):
        scores[each] = terms.parts.prior(terms, stats, each, stream)
        prices[each] = price(terms, stats, each, stream)
    return cheapest_feasible(scores, prices, (1.0 - terms.alpha) * scores[highest(scores)])


@kernel
def listed_cost(terms, stats, arm, stream):
    """What an arm costs where costs are known."""
    return terms.costs[arm]


POLICY = Policy(
    name="cs-ts",
    summary="the cheapest arm whose posterior draw clears (1 - alpha) times the highest draw",
    rule=Rule(choose, init),
    rule_for_unknown_costs=Rule(choose_unknown_costs, init),
    parameters={
        "prior": KernelParameter(
            {"beta": draw_beta, "gaussian": draw_gaussian, "shrunk": draw_shrunk, "weighted": draw_weighted},
            default="beta",
            meaning="the posterior: beta, gaussian N(mean, 1/n), shrunk (sigma_0, sigma_n), weighted (by the variance of rewards), "
            "or a file of your own",
        ),
        "a": Number(1.0, "first parameter of the Beta prior", low=1e-6),
        "b": Number(1.0, "second parameter of the Beta prior", low=1e-6),
        "sigma_0": Number(1.0, "standard deviation of the shrunk prior", low=1e-6),
        "sigma_n": Number(1.0, "standard deviation of a reward under the shrunk prior", low=1e-6),
        "pending": PENDING,
        "cost_scale": COST_SCALE,
    },
    settle=settle_cost_scale,
)
