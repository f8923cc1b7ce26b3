"""CS-TS: score every arm by a draw from its posterior, play the cheapest whose score clears the floor.

[Sinha2021] Algorithm 1 (TS). `prior` names the posterior that is drawn from; a file or a compiled function may be given instead.
Where costs are unknown, they are drawn too, from Beta posteriors of cost / cost_scale: Thompson sampling of both.
Deviations: ties in cost go to the higher score, then to the lower index; the highest score is feasible even when it is negative.
"""

from typing import NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel
from thrifty.policies.contract import KernelParameter, Number, Policy, Rule
from thrifty.policies.cs_ucb import COST_SCALE
from thrifty.policies.exploration import next_due, start_exploration
from thrifty.policies.posteriors import PENDING, draw_beta, draw_cost, draw_gaussian, draw_shrunk
from thrifty.policies.selection import cheapest_feasible, highest


class TsMemory(NamedTuple):
    round_robin: Integers
    scores: Floats
    prices: Floats | None  # drawn where costs are unknown


@builder
def init(terms):
    return TsMemory(start_exploration(), np.empty(terms.costs.size), None)


@builder
def init_unknown_costs(terms):
    return TsMemory(start_exploration(), np.empty(terms.costs.size), np.empty(terms.costs.size))


@kernel
def choose(terms, stats, memory, stream):
    arm = next_due(stats, memory.round_robin, 1)
    return arm if arm >= 0 else choose_by_draws(terms, stats, memory.scores, memory.prices, stream)


@kernel
def choose_by_draws(terms, stats, scores, prices, stream):
    """The cheapest arm whose draw clears the floor. `prices` is None if costs are known."""
    for arm in range(scores.size):
        scores[arm] = terms.parts.prior(terms, stats, arm, stream)
        if prices is not None:
            prices[arm] = draw_cost(terms, stats, arm, stream)
    floor = (1.0 - terms.alpha) * scores[highest(scores)]
    if prices is None:
        return cheapest_feasible(scores, terms.costs, floor)
    return cheapest_feasible(scores, prices, floor)


POLICY = Policy(
    name="cs-ts",
    summary="the cheapest arm whose posterior draw clears (1 - alpha) times the highest draw",
    rule=Rule(choose, init),
    rule_for_unknown_costs=Rule(choose, init_unknown_costs),
    parameters={
        "prior": KernelParameter(
            {"beta": draw_beta, "gaussian": draw_gaussian, "shrunk": draw_shrunk},
            default="beta",
            meaning="the posterior: beta, gaussian N(mean, 1/n), shrunk (sigma_0, sigma_n), or a file of your own",
        ),
        "a": Number(1.0, "first parameter of the Beta prior", low=1e-6),
        "b": Number(1.0, "second parameter of the Beta prior", low=1e-6),
        "sigma_0": Number(1.0, "standard deviation of the shrunk prior", low=1e-6),
        "sigma_n": Number(1.0, "standard deviation of a reward under the shrunk prior", low=1e-6),
        "pending": PENDING,
        "cost_scale": COST_SCALE,
    },
)
