"""Unknown costs: what an arm is taken to cost, from what was paid.

After n outcomes whose costs sum to S, and their squares to Q, an arm has the mean cost m = S / n. If no `cost_scale` is given,
scale and spread are learnt. One outcome more, whose deviation is the mean itself, is counted into the variance, so that the first
outcomes do not make an arm look exactly known:

    s^2 = (Q - n m^2 + m^2) / n,    with n degrees of freedom.

- Rules with confidence bounds take the lower bound m / (1 + (s / m) w), w^2 = exp(2 ln T / (n + 1)) - 1. That is where the
  likelihood of Student's t falls to 1 / T of its maximum; w is the paper's radius sqrt(2 ln T / n) for large n. The spread of costs
  is taken to be proportional to their mean, so the bound is positive, and arms that were seen little keep their order.
- Rules that draw from posteriors draw m + (s / sqrt(n)) t, with Student's t of n degrees of freedom, anew while it is negative.

Both are multiplied by x if all costs are: dollars or cents make no difference. With a `cost_scale`, an upper bound on costs, rules
use what is known of costs in [0, cost_scale]: the paper's radius times the scale, or a Beta posterior [Sinha2021].
"""

import math
from typing import Any

from thrifty.compiled import kernel
from thrifty.intervals import paper_level, radius
from thrifty.policies.contract import Number
from thrifty.problem import Terms
from thrifty.statistics import mean_cost
from thrifty.streams import beta, gamma, normal

COST_SCALE = Number(
    None, "the largest cost an outcome can have, where costs are unknown; by default scale and spread are learnt", low=1e-300
)


def settle_cost_scale(_terms: Terms, numbers: dict[str, Any]) -> dict[str, Any]:
    """Fill in `cost_scale`: 0 says that none is given.

    >>> settle_cost_scale(Terms(n_arms=2, costs=None, alpha=0.1, horizon=None), {"cost_scale": None})
    {'cost_scale': 0.0}
    """
    return {**numbers, "cost_scale": numbers["cost_scale"] or 0.0}


@kernel
def lowest_cost(terms, stats, arm):
    """The lower confidence bound on an unknown mean cost; 0 before the first outcome."""
    if stats[arm].seen <= 0.0:
        return 0.0
    if terms.parameters.cost_scale > 0.0:
        width = terms.parameters.cost_scale * radius(paper_level(terms.horizon), max(stats[arm].seen, 1.0))
        return max(mean_cost(stats, arm) - width, 0.0)
    return _lowest_learnt(terms, stats, arm)


@kernel
def _lowest_learnt(terms, stats, arm):
    mean = mean_cost(stats, arm)
    if mean <= 0.0:
        return 0.0
    width = math.sqrt(math.exp(paper_level(terms.horizon) / (stats[arm].seen + 1.0)) - 1.0)
    return mean / (1.0 + cost_deviation(stats, arm) / mean * width)


@kernel
def cost_deviation(stats, arm):
    """The standard deviation of the costs of an arm that has outcomes, with one more whose deviation is the mean itself.

    >>> from thrifty.statistics import Outcome, add_to_sums, counted, no_statistics
    >>> import numpy as np
    >>> stats = no_statistics(1)
    >>> add_to_sums(stats, 0, counted(Outcome(0, 1.0, 0.002)), np.full(1, np.nan))
    >>> float(cost_deviation(stats, 0))
    0.002
    """
    n, mean = max(stats[arm].seen, 1.0), mean_cost(stats, arm)
    excess = stats[arm].cost_squares - stats[arm].cost_sum * mean
    return math.sqrt(((excess if excess > 0.0 else 0.0) + mean * mean) / n)


@kernel
def draw_cost(terms, stats, arm, stream):
    """An unknown mean cost, drawn from its posterior.

    With a `cost_scale`: the scale times a draw from Beta(1 + C, 1 + n - C), where C is the sum of costs divided by the scale.
    """
    scale = terms.parameters.cost_scale
    if scale > 0.0:
        spent = stats[arm].cost_sum / scale
        return scale * beta(stream, 1.0 + spent, 1.0 + max(stats[arm].seen - spent, 0.0))
    return _draw_learnt(stats, arm, stream)


@kernel
def _draw_learnt(stats, arm, stream):
    if stats[arm].seen <= 0.0:
        return 0.0
    mean = mean_cost(stats, arm)
    if mean <= 0.0:
        return 0.0
    n = max(stats[arm].seen, 1.0)
    spread, half = cost_deviation(stats, arm) / math.sqrt(n), 0.5 * n
    drawn = -1.0
    while drawn < 0.0:  # the mean is positive: more than every second draw is
        drawn = mean + spread * normal(stream) * math.sqrt(half / gamma(stream, half))
    return drawn


@kernel
def cost_unit(terms, stats):
    """What drawn costs are divided by: `cost_scale`, or else the range of the mean costs of all arms that have outcomes.

    Where all of them cost the same, it is that cost; 1 where nothing was paid.
    """
    if terms.parameters.cost_scale > 0.0:
        return terms.parameters.cost_scale
    lowest, highest = math.inf, 0.0
    for arm in range(stats.size):
        if stats[arm].seen > 0.0:
            mean = max(mean_cost(stats, arm), 0.0)
            lowest, highest = min(lowest, mean), max(highest, mean)
    if highest > lowest:
        return highest - lowest
    return highest if highest > 0.0 else 1.0
