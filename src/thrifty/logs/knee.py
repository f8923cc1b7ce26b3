"""The knee: the alpha after which a further saving costs the most quality. It is found among all alphas, not on a grid."""

import math
from collections.abc import Sequence

import numpy as np

from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.selective import floor_choice

LARGEST = 0.3
"""The largest alpha that is looked at."""

_DIGITS = 3
_NEAREST, _FARTHEST = 0.005, 0.02  # how far above the change the knee lies


def choice_steps(estimates: SegmentEstimates) -> list[tuple[float, int, int]]:
    """(alpha, arm before, arm from there on) wherever the choice changes as alpha grows from 0 to 1.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> rows = {"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500}
    >>> choice_steps(examine(Log(polars.DataFrame(rows))).estimates[0])
    [(0.5, 0, 1)]
    """
    rewards, costs = estimates.reward(), estimates.cost()
    arms = np.flatnonzero(estimates.usable)
    top = max(float(rewards[arms].max()), 1e-300)
    arm, steps = floor_choice(estimates, 0.0), []
    for other in sorted(arms.tolist(), key=lambda other: (-rewards[other], costs[other])):
        if costs[other] < costs[arm]:
            steps.append((float(1.0 - rewards[other] / top), arm, other))
            arm = other
    return steps


def knee(segments: Sequence[SegmentEstimates]) -> float:
    """The alpha in [0, `LARGEST`] at which the saving is farthest above the straight line from no saving to the largest one.

    The line runs over the share of quality given up. The result lies a little above the alpha at which the choice changes, halfway
    to the next change if that is near: just at the change, the arm would be on the floor. Ties go to the smallest alpha; 0 where
    nothing is saved.
    """
    best = [(each, floor_choice(each, 0.0)) for each in segments]
    quality, cost = (sum(float(each.traffic[0] * each.replicates["dr"][metric][0, arm]) for each, arm in best) for metric in (0, 1))
    steps = [(alpha, each, before, after) for each in segments for alpha, before, after in choice_steps(each) if alpha <= LARGEST]
    if not steps or cost <= 0.0 or quality <= 0.0:
        return 0.0
    steps.sort(key=lambda step: step[0])
    given_up, saving = (
        np.cumsum([_lost(each, metric, before, after) for _, each, before, after in steps]) / whole
        for metric, whole in ((0, quality), (1, cost))
    )
    above = saving / saving[-1] - np.maximum(given_up, 0.0) / max(float(given_up.max()), 1e-300)
    place = int(np.argmax(above.round(9)))
    if above[place] < 0.0:
        return 0.0
    start = steps[place][0]
    after: float = next((step[0] for step in steps[place + 1 :] if step[0] > start), LARGEST)
    alpha = start + min(max((after - start) / 2.0, _NEAREST), _FARTHEST)
    return float(math.ceil(alpha * 10**_DIGITS - 1e-9) / 10**_DIGITS)


def _lost(each: SegmentEstimates, metric: int, before: int, after: int) -> float:
    values = each.replicates["dr"][metric][0]
    return float(each.traffic[0] * (values[before] - values[after]))
