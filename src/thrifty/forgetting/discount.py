"""Discounting: the older an outcome, the less it counts [Garivier2011b].

[Garivier2011b] Garivier, Moulines, "On upper-confidence bound policies for switching bandit problems", ALT 2011.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel
from thrifty.forgetting.contract import EVERYTHING, KEEP_ALL, NOTHING_ELSE, Forgetting, probe_nothing
from thrifty.statistics import add_to_sums

_BLOCK = 0.02  # the share of all weight that is let go of at once


class Fading(NamedTuple):
    weight: Floats  # what a block's end leaves of every sum
    block: Integers  # outcomes in a block, outcomes of this block so far


def discount(factor: float) -> Forgetting:
    """An outcome counts `factor` times what the next one does; every arm forgets, pulled or not [Garivier2011b].

    Sums are discounted a block at a time, 0.02 / (1 - factor) outcomes, so that a round costs hardly more than without.

    >>> discount(0.999).span
    1000.0
    """
    try:
        value = float(factor)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value <= 1.0:
        raise ValueError(f"discount must be in (0, 1], got {factor}: 0.999 remembers about a thousand outcomes")
    if value == 1.0:
        return replace(KEEP_ALL, label="discount=1")
    span = 1.0 / (1.0 - value)
    block = max(1.0, float(round(_BLOCK * span)))
    return Forgetting(
        f"discount={value:g}",
        begin=begin_fading,
        take_in=take_in_fading,
        probe=probe_nothing,
        numbers=(value**block, block),
        span=round(span, 6),
        recall=partial(_recall_faded, span),
    )


def _recall_faded(span: float, statistics: Any, _fading: Fading) -> None:
    """Statistics from before weigh as much as everything that is remembered at most."""
    share = min(1.0, span / max(float(statistics["seen"].sum()), 1.0))
    for field in ("seen", "reward_sum", "cost_sum", "reward_squares", "cost_squares"):
        statistics[field] *= share


@builder
def begin_fading(n_arms, numbers):
    return Fading(np.full(1, numbers[0]), np.array([int(numbers[1]), 0]))


@kernel
def take_in_fading(stats, fading, arm, change, costs):
    add_to_sums(stats, arm, change, costs)
    fading.block[1] += 1
    if fading.block[1] < fading.block[0]:
        return NOTHING_ELSE
    fading.block[1] = 0
    for each in range(stats.size):
        stats[each].seen *= fading.weight[0]
        stats[each].reward_sum *= fading.weight[0]
        stats[each].cost_sum *= fading.weight[0]
        stats[each].reward_squares *= fading.weight[0]
        stats[each].cost_squares *= fading.weight[0]
    return EVERYTHING
