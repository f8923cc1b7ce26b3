"""Propensities that cannot be: the sum of 1/p over the rows of an arm should be about the number of requests.

If p is the probability with which the arm of a row was chosen, that sum has the number of requests at which the arm could be chosen
as its expectation. More than that is impossible. Less means that the arm was not always available, that p became very small, or
that p is something else. If it is less for every arm, p is something else, or the column that decides which arms are available is
not in the segment.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thrifty.logs.summing import WW, N, W

if TYPE_CHECKING:
    from thrifty.logs.aggregates import LogSums

TOLERANCE, SIGMAS, FEWEST = 0.1, 6.0, 30
_GROUPS = 8


class _ArmWeight(NamedTuple):
    """One arm: its rows, the sum of 1/p, its error, the requests, and those in stretches of time in which the arm was used."""

    arm: str
    rows: float
    weight: float
    error: float
    requests: float
    reached: float

    @property
    def too_high(self) -> bool:
        return self.weight > (1.0 + TOLERANCE) * self.requests and self.weight - self.requests > SIGMAS * self.error

    @property
    def too_low(self) -> bool:
        return self.weight < (1.0 - TOLERANCE) * self.reached and self.reached - self.weight > SIGMAS * self.error


def check_propensities(segments: Sequence["LogSums"], column: str) -> list[str]:
    """Notes on arms whose propensities look wrong; a ValueError if they cannot be right."""
    weights = [each for each in _arm_weights(segments) if each.rows >= FEWEST]
    remedy = "leave out --propensity, and shares by segment and time are used"
    for each in weights:
        if each.too_high:
            raise ValueError(
                f"the propensities in {column!r} cannot be right: over the {each.rows:,.0f} rows of arm {each.arm!r} the sum of "
                f"1/p is {each.weight:,.0f}, and there are {each.requests:,.0f} requests; is it the probability of the arm in its "
                f"row? Correct it, or {remedy}"
            )
    low = [each for each in weights if each.too_low]
    if len(low) == len(weights) > 1:
        worst = min(low, key=lambda each: each.weight / each.reached)
        raise ValueError(
            f"the propensities in {column!r} are too high for every arm: over the {worst.rows:,.0f} rows of arm {worst.arm!r} the "
            f"sum of 1/p is {worst.weight:,.0f}, and there are {worst.reached:,.0f} requests; is it the probability of the arm in "
            f"its row? If some requests cannot use some arms, name the column that decides this with --segment, or {remedy}"
        )
    return [
        f"the sum of 1/p of arm {each.arm!r} is {each.weight:,.0f}, and there are {each.reached:,.0f} requests: it was not "
        f"available to all of them, its propensities became tiny, or those in {column!r} are wrong"
        for each in low
    ]


def _arm_weights(segments: Sequence["LogSums"]) -> list[_ArmWeight]:
    found: dict[str, np.ndarray] = {}
    for segment in segments:
        if len(segment.arms) == 1:
            continue  # nothing is estimated there
        rows = segment.sums[:, :, N]
        groups = np.array_split(np.arange(rows.shape[1]), min(_GROUPS, rows.shape[1]))
        by_group = np.array([rows[:, blocks].sum(axis=1) for blocks in groups])  # (groups, K)
        reached = ((by_group > 0) * by_group.sum(axis=1, keepdims=True)).sum(axis=0)
        totals = segment.totals
        for place, arm in enumerate(segment.arms):
            weight, square = totals[place, W], totals[place, WW]
            mine = np.array([totals[place, N], weight, max(square - weight, 0.0), segment.rows, reached[place]])
            found[arm] = found.get(arm, np.zeros(5)) + mine
    return [_ArmWeight(arm, rows, w, math.sqrt(var), n, r) for arm, (rows, w, var, n, r) in sorted(found.items())]
