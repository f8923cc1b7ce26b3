"""Cost per success: what the chosen arms cost over the successes that they bring, beside the cost per request."""

from collections.abc import Sequence

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.bootstrap import interval
from thrifty.logs.selective import ChosenArm, Target, selective, with_ends

NO_SUCCESS = np.full(3, np.nan)


def cost_per_success(chosen: Sequence[ChosenArm], n_blocks: int, *, reward: float | None = None, estimator: str = "dr") -> Floats:
    """(3,) cost per success of the chosen arms with its interval, given that they were chosen; NaN if they never succeed.

    `reward` is the mean reward to divide by, if another than the estimate is shown.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> from thrifty.logs.selective import choose_arm
    >>> rows = {"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500}
    >>> evidence = examine(Log(polars.DataFrame(rows)))
    >>> cost_per_success([choose_arm(evidence.estimates[0], 0.6)], evidence.weights.shape[1])[0].round(3)
    np.float64(0.2)

    """
    costs, rewards = (
        [each.estimates.traffic * each.estimates.replicates[estimator][metric][:, each.arm] for each in chosen] for metric in (1, 0)
    )
    cost, success = np.add.reduce(costs), np.add.reduce(rewards)
    if success.min() <= 0.0:
        return NO_SUCCESS
    if cost.min() <= 0.0:
        return np.zeros(3) if cost[0] == 0.0 else NO_SUCCESS
    pairs = zip(costs, rewards, strict=True)
    parts = np.array([(one / cost[0] - other / success[0])[1:].std() for one, other in pairs])
    ends = np.exp(selective(Target(np.log(cost / success), parts), chosen, n_blocks))
    traffic = float(sum(each.estimates.traffic[0] for each in chosen))
    shown = float(success[0]) / traffic if reward is None else reward
    return with_ends(float(cost[0]) / traffic / shown, ends) if shown > 0.0 else NO_SUCCESS


def logged_cost_per_success(reward: Floats, cost: Floats, n_blocks: int) -> Floats:
    """(3,) cost per success of what the log did, from its mean rewards and costs with replicates; NaN if nothing succeeded."""
    if reward.min() <= 0.0:
        return NO_SUCCESS
    ratio = cost / reward
    low, high = interval(ratio[:, np.newaxis], n_blocks)
    return np.array([ratio[0], max(float(low[0]), 0.0), high[0]])
