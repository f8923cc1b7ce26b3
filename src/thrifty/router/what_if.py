"""What if alpha were another: quality and cost at a grid of alphas, from the sums of a router."""

from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.compiled import interpreted
from thrifty.policies.selection import cheapest_feasible
from thrifty.router.outlook import Looker
from thrifty.router.preview import Plan, busiest, expected

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

GRID = tuple(round(0.01 * step, 2) for step in range(31))
"""The alphas that are looked at: 0 to 0.3."""

_cheapest = interpreted(cheapest_feasible)


def what_if(router: "RouterView", *, segment: str = "", max_age_s: float = 0.0) -> list[dict[str, Any]]:
    """A row per alpha: the arm that would be chosen, its quality with an interval, its cost, and the share saved against alpha 0.

    Over the busiest segments at and below `segment`, as previews have them. Empty if nothing is known. Costs are prices, or means
    without an interval.
    """
    copied = router.outlook.copy(router, max_age_s=max_age_s)
    plan = Plan(copied.arms, copied.settings)
    choice = plan.choice(copied.sums.shape[1])
    if not choice[0]:
        return []
    numbers, weights, _ = busiest(copied, segment)
    looker = Looker(copied, copied.settings, choice)
    looks = [looker.at(number) for number in numbers]
    if any(look.best is None for look in looks):
        return []
    free = plan._replace(arms=_unpinned(plan))
    rows = []
    for alpha in GRID:
        at_alpha = [look._replace(chosen=_chosen(look, alpha)) for look in looks]
        rows.append((alpha, expected(free, list(at_alpha), weights)))
    always = rows[0][1].cost
    return [
        {
            "alpha": alpha,
            "arm": each.arm,
            "quality": each.quality,
            "quality_low": each.low,
            "quality_high": each.high,
            "cost": each.cost,
            "cost_low": None,
            "cost_high": None,
            "saving": 1.0 - each.cost / always if always and each.cost is not None else None,
        }
        for alpha, each in rows
    ]


def _chosen(look: Any, alpha: float) -> int:
    means, costs = np.array(look.means), np.array(look.costs)
    return int(_cheapest(means, costs, (1.0 - alpha) * max(means[look.best], 0.0)))


def _unpinned(plan: Plan) -> Any:
    """The arms without a pin: the question is what the rule would take."""
    arms = plan.arms.copy()
    arms.pinned = None
    return arms
