"""Fixed arms: always taking one arm of the log is a candidate too.

It learns nothing, and so pays nothing for learning. What the log knows about its arms is in the worlds, while a policy begins from
nothing: in a segment with few rows to come, learning again what the log knows costs more than it brings. An arm does not depend on
alpha, so it is judged by the largest alpha that is allowed.
"""

from collections.abc import Sequence

import numpy as np

from thrifty.advice.fit import SegmentFit, SegmentTruth
from thrifty.advice.play import Score, worth
from thrifty.arrays import Floats
from thrifty.problem import Instance

FIXED = "fixed"
"""The name of this kind of candidate, beside the names of policies."""

_ALWAYS = "always "


def fixed_label(arm: str) -> str:
    """How the choice of one arm is called.

    >>> fixed_label("Elm"), fixed_arm("always Elm"), fixed_arm("cs-ids")
    ('always Elm', 'Elm', None)
    """
    return f"{_ALWAYS}{arm}"


def fixed_arm(label: str) -> str | None:
    """The arm that a choice always takes; None for a policy. No policy has a space in its name."""
    return label.removeprefix(_ALWAYS) if label.startswith(_ALWAYS) else None


def score_arms(fit: SegmentFit, truths: Sequence[SegmentTruth], alpha: float, exchange: float) -> dict[str, list[Score]]:
    """The score of every arm in every world, by its label: exact, nothing is played."""
    found: dict[str, list[Score]] = {fixed_label(arm): [] for arm in fit.arms}
    for truth in truths:
        means, costs = truth.overall
        values, best = worth(means, costs, truth, exchange), int(np.argmax(means))
        lost, paid = _regrets(truth, alpha)
        for place, scores in enumerate(found.values()):
            own = (means[place], costs[place], lost[place], paid[place], values[place], values.max() - values[place])
            scores.append(Score(*map(float, (*own, means[best], costs[best]))))
    return found


def _regrets(truth: SegmentTruth, alpha: float) -> tuple[Floats, Floats]:
    """(K,) quality and cost regret of one decision for each arm, over all stretches of time."""
    moments = [Instance(means, costs, alpha) for means, costs in zip(truth.means, truth.costs, strict=True)]
    return truth.shares @ [each.quality_gaps for each in moments], truth.shares @ [each.cost_gaps for each in moments]
