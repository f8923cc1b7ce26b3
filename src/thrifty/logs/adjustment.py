"""Adjustment: estimates within values of the columns that the choice follows.

With n_av rows of arm a and value v in a segment, and w_v the share of the segment's requests with value v, the adjusted mean reward
of a is the sum of w_v m_av, where m_av is the mean in that cell. Its variance is the sum of w_v^2 s_av^2 / n_av, s_av^2 being the
variance within the cell, and of w_v (m_av - m_a)^2 / N for the shares. Where arm a has no rows, m_av is predicted as the sum of an
effect of the arm and one of the value, which are fitted to the cells that have rows. The replicates of the bootstrap are moved and
scaled to the new mean and variance, so that all that follows uses adjusted values. Costs likewise.
"""

import math
from dataclasses import replace

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.bounds import COST, REWARD, bound_assumed
from thrifty.logs.context import ContextSums, SegmentContext
from thrifty.logs.estimators import FEWEST_EFFECTIVE, MOST_UNSEEN, SegmentEstimates

_LEAN = 2.0  # degrees of freedom that the variance of a cell takes from others
_ROUNDS = 30  # of fitting; the error falls by a constant factor in each
_PLACES = ((1, 2), (3, 4))  # of the sums and sums of squares of rewards and of costs


def adjust_segment(estimates: SegmentEstimates, context: ContextSums) -> SegmentEstimates:
    """The estimates of one segment, adjusted for the joint values of some columns."""
    cells = _in_order(estimates, context.segments[estimates.sums.name])  # (K, V, CONTEXT_SUMS)
    rows = cells[:, :, 0]
    share = rows.sum(axis=0) / rows.sum()
    unseen = np.asarray((share * (rows == 0)).sum(axis=1))
    spread = np.asarray((share**2 / np.where(rows > 0, rows, np.inf)).sum(axis=1))
    effective = 1.0 / np.maximum(spread, 1e-300)
    pairs = []
    for metric, (plain, squares) in enumerate(_PLACES):
        mean, error = _adjusted(rows, cells[:, :, plain], cells[:, :, squares], share)
        pairs.append(_moved(estimates.replicates["dr"][metric], mean, error))
    bound = np.array(
        [
            [bound_assumed(float(pair[0, arm]), spread[arm], unseen[arm], scale[arm], columns) for arm in range(rows.shape[0])]
            for pair, columns, scale in ((pairs[0], REWARD, np.ones_like(spread)), (pairs[1], COST, estimates.sums.cost_max))
        ]
    ).transpose(0, 2, 1)
    return replace(
        estimates,
        replicates=dict.fromkeys(estimates.replicates, (pairs[0], pairs[1])),
        bound=bound,
        spread=spread,
        effective=effective,
        unseen=np.maximum(unseen, estimates.unseen),
        refusals=_refusals(estimates, unseen, effective, ", ".join(context.columns)),
    )


def _in_order(estimates: SegmentEstimates, context: SegmentContext) -> Floats:
    """The sums of the context, arms in the order of the estimates."""
    return np.array([context.sums[context.arms.index(arm)] for arm in estimates.sums.arms])


def _adjusted(rows: Floats, sums: Floats, squares: Floats, share: Floats) -> tuple[Floats, Floats]:
    """(K,) the adjusted means and their standard errors."""
    means = np.where(rows > 0, sums / np.maximum(rows, 1.0), _predicted(rows, sums))
    adjusted = (share * means).sum(axis=1)
    weight = np.where(rows > 0, rows, np.maximum(rows.sum(axis=0), 1.0))  # a predicted mean rests on the rows of other arms
    variance = (share**2 / weight * _variances(rows, sums, squares)).sum(axis=1)
    variance += (share * (means - adjusted[:, np.newaxis]) ** 2).sum(axis=1) / rows.sum()
    return adjusted, np.sqrt(variance)


def _variances(rows: Floats, sums: Floats, squares: Floats) -> Floats:
    """(K, V) variances within cells; those of thin cells lean on the other arms with the same value.

    Arms may differ in scale, so variances are taken relative to the mean square of the arm.
    """
    scale = squares.sum(axis=1, keepdims=True) / np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    spread = np.maximum(squares - sums**2 / np.maximum(rows, 1.0), 0.0) / np.where(scale > 0.0, scale, 1.0)
    freedom = np.maximum(rows - 1.0, 0.0)
    usual = spread.sum() / max(freedom.sum(), 1.0)
    of_value = (spread.sum(axis=0) + _LEAN * usual) / (freedom.sum(axis=0) + _LEAN)
    return np.asarray((spread + _LEAN * of_value) / (freedom + _LEAN) * scale)


def _predicted(rows: Floats, sums: Floats) -> Floats:
    """(K, V) means that are the sum of an effect of the arm and one of the value, by least squares."""
    of_arm, of_value = rows.sum(axis=1, keepdims=True), rows.sum(axis=0)
    arms, values = sums.sum(axis=1, keepdims=True) / np.maximum(of_arm, 1.0), np.zeros(rows.shape[1])
    for _ in range(_ROUNDS):
        values = (sums - rows * arms).sum(axis=0) / np.maximum(of_value, 1.0)
        arms = (sums - rows * values).sum(axis=1, keepdims=True) / np.maximum(of_arm, 1.0)
    seen = sums[rows > 0] / rows[rows > 0]
    return np.asarray(np.clip(arms + values, seen.min(initial=math.inf), seen.max(initial=-math.inf)))


def _moved(replicates: Floats, mean: Floats, error: Floats) -> Floats:
    """(1 + B, K) replicates around the adjusted means, with their standard errors."""
    noise = replicates - replicates[0]
    spread = noise[1:].std(axis=0, ddof=1)
    scale = np.where(spread > 1e-12 * np.maximum(np.abs(replicates[0]), 1e-300), error / np.maximum(spread, 1e-300), 1.0)
    return np.asarray(mean + noise * scale)


def _refusals(estimates: SegmentEstimates, unseen: Floats, effective: Floats, columns: str) -> tuple[str, ...]:
    reasons = []
    for place, reason in enumerate(estimates.refusals):
        if reason:
            reasons.append(reason)
        elif unseen[place] > MOST_UNSEEN:
            reasons.append(f"never chosen for {unseen[place]:.0%} of the requests by {columns}, {MOST_UNSEEN:.0%} can be bridged")
        elif effective[place] < FEWEST_EFFECTIVE:
            reasons.append(f"by {columns} its rows weigh as much as {effective[place]:.0f}, {FEWEST_EFFECTIVE:.0f} are needed")
        else:
            reasons.append("")
    return tuple(reasons)
