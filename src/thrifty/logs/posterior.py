"""The posterior of rewards: by how much a choice flatters an arm, and the probability that the arm holds the floor.

An arm that was chosen because it looked good is probably worse than it looked. A posterior accounts for that if its prior is right,
so the prior is learnt from the arms of the log. A segment is of one of two kinds:

- *along a line*: rewards are normal around a line over the rank of the arm's cost;
- *in order*: every dearer arm is better, and nothing else is known of the gaps (`price_order`).

The level of a segment is its own. The spread of rewards (their standard deviation), the correlation of rewards and ranks along a
line, and the share of segments in order are common to all segments. They are drawn from their posterior on a grid. Spread and
correlation have flat priors. Half of the prior says that no segment is in order.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.compiled import kept
from thrifty.logs.aggregates import RR, N, R
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.price_order import SortedRewards, has_order
from thrifty.policies.selection import cheapest_feasible

DRAWS = 2000
_SPREADS = np.array([0.1, 0.25, 0.5, 0.75, 1.0, 1.4, 2.0, 2.8, 4.0, 6.0, 9.0, 14.0, 20.0])  # in standard errors
_CORRELATIONS = np.linspace(-0.96, 0.96, 17)
_SHARES = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])  # of segments in order
_SHARES_PRIOR = np.array([6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]) / 12.0

Segment = tuple[Floats, Floats, Floats]
"""Estimates of the usable arms, their variances, and the ranks of their costs around 0."""


@dataclass(frozen=True, eq=False)
class SegmentPosterior:
    """The posterior of the arms of one segment: (DRAWS, K) draws of their rewards; NaN for arms without an estimate."""

    draws: Floats

    @cached_property
    def _best(self) -> Floats:
        return np.asarray(np.nanmax(self.draws, axis=1))

    def floor_held(self, arm: int, alpha: float) -> float:
        """The probability that the arm reaches (1 - alpha) times the best reward.

        >>> SegmentPosterior(np.array([[0.9, 1.0], [0.8, 1.0]])).floor_held(0, 0.1)
        0.5
        """
        return float((self.draws[:, arm] >= (1.0 - alpha) * self._best - 1e-12).mean())

    def flattery(self, each: SegmentEstimates, alpha: float) -> float:
        """By how much the chosen arm is overrated on average, when logs like this one are drawn from the posterior."""
        arms = np.flatnonzero(each.usable)
        rewards, costs = (replicates[:, arms] for replicates in each.replicates["dr"])
        noise = rewards[1:] - rewards[0]
        truth = self.draws[np.arange(noise.shape[0]) % self.draws.shape[0]][:, arms]
        return float(_mean_error(np.ascontiguousarray(truth), np.ascontiguousarray(noise), np.ascontiguousarray(costs[1:]), alpha))


@kept
def _mean_error(truth: Any, noise: Any, costs: Any, alpha: float) -> float:
    """The mean of the noise of the arm that is chosen by truth and noise."""
    total = 0.0
    for row in range(truth.shape[0]):
        seen = truth[row] + noise[row]
        total += noise[row, cheapest_feasible(seen, costs[row], (1.0 - alpha) * seen.max())]
    return total / truth.shape[0]  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class RewardPosterior:
    """What was learnt from all segments: (DRAWS,) draws of the share in order, of the number of the spread, and of the correlation.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> rows = {"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500}
    >>> estimates = examine(Log(polars.DataFrame(rows))).estimates
    >>> RewardPosterior.learn(estimates, seed=1).of(estimates[0]).draws.mean(axis=0).round(2).tolist()
    [1.0, 0.5]
    """

    shares: Floats
    spread: NDArray[np.int64]
    correlations: Floats
    spreads: Floats
    seed: int

    @classmethod
    def learn(cls, estimates: Sequence[SegmentEstimates], *, seed: int) -> "RewardPosterior":
        """Learn the prior from segments, in each of which at least two arms have an estimate."""
        rng = np.random.default_rng([seed, 2])
        segments = [_normal(each) for each in estimates]
        spreads = _SPREADS * float(np.sqrt(np.mean(np.concatenate([variance for _, variance, _ in segments]))))
        shape = (_SHARES.size, _SPREADS.size, _CORRELATIONS.size)
        total = np.broadcast_to(np.log(_SHARES_PRIOR[:, np.newaxis, np.newaxis] * spreads[:, np.newaxis]), shape)
        for each in segments:
            in_order, along_line = _in_order(each, spreads), _along_line(each, spreads[:, np.newaxis], _CORRELATIONS)
            if in_order is None:
                total = total + along_line
            else:
                shares, evidence = _SHARES[:, np.newaxis, np.newaxis], in_order.of_spread()[:, np.newaxis]
                total = total + _either(shares, evidence, along_line)
        weights = np.exp(total - total.max()).ravel()
        share, spread, correlation = np.unravel_index(rng.choice(weights.size, DRAWS, p=weights / weights.sum()), shape)
        return cls(_SHARES[share], spread, _CORRELATIONS[correlation], spreads, seed)

    def of(self, each: SegmentEstimates) -> SegmentPosterior:
        """The posterior of one segment. Its random numbers depend on the seed and the segment's name."""
        rng = np.random.default_rng([self.seed, 3, zlib.crc32(each.sums.name.encode())])
        segment, spread = _normal(each), self.spreads[self.spread]
        found = _draw(segment, spread, self.correlations, rng)
        in_order = _in_order(segment, self.spreads)
        if in_order is not None:
            evidence = in_order.of_spread()[self.spread]
            either = _either(self.shares, evidence, _along_line(segment, spread, self.correlations))
            with np.errstate(divide="ignore"):
                chance = np.exp(np.log(self.shares) + evidence - either)
            chosen = np.flatnonzero(rng.random(DRAWS) < chance)
            found[chosen[:, np.newaxis], np.argsort(segment[2])] = in_order.draw(self.spread[chosen], rng)
        draws = np.full((DRAWS, len(each.sums.arms)), np.nan)
        draws[:, each.usable] = found
        return SegmentPosterior(draws)


def _normal(each: SegmentEstimates) -> Segment:
    """Rewards of the usable arms, their variances, and the ranks of their costs around 0."""
    arms = np.flatnonzero(each.usable)
    rewards, costs = each.reward()[arms], each.cost()[arms]
    variance = each.replicates["dr"][0][1:, arms].var(axis=0, ddof=1)
    totals, effective = each.sums.totals[arms], np.maximum(each.effective[arms], 1.0)
    mean = (effective * np.clip(rewards, 0.0, 1.0) + 2.0) / (effective + 4.0)
    flat = totals[:, RR] * totals[:, N] - totals[:, R] ** 2 <= 1e-12 * totals[:, N] ** 2
    variance = np.where(flat, mean * (1.0 - mean) / (effective + 4.0), np.maximum(variance, 1e-12))
    rank = np.array([((costs < cost).sum() + 0.5 * (costs == cost).sum()) / costs.size - 0.5 for cost in costs])
    return rewards, variance, rank


def _either(share: Floats, in_order: Floats, along_line: Floats) -> Floats:
    """The log likelihood of a segment that is in order with the chance `share`, and along a line otherwise."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(np.log(share) + in_order, np.log(1.0 - share) + along_line))


def _in_order(segment: Segment, spreads: Floats) -> SortedRewards | None:
    """The posterior in order of the cost. None if there is no order."""
    rewards, variance, rank = segment
    by_cost = np.argsort(rank)
    return SortedRewards.of(rewards[by_cost], variance[by_cost], spreads) if has_order(rank) else None


def _line(spread: Floats, correlation: Floats) -> tuple[Floats, Floats]:
    """The variance around a line over ranks, and the slope; ranks have the variance 1/12."""
    return spread**2 * (1.0 - correlation**2), np.sqrt(12.0) * spread * correlation


def _along_line(segment: Segment, spread: Floats, correlation: Floats) -> Floats:
    """The log likelihood of spreads and correlations, whatever the level."""
    rewards, variance, rank = segment
    around, slope = (np.asarray(value)[..., np.newaxis] for value in _line(spread, correlation))
    weight = 1.0 / (variance + around)
    total = weight.sum(axis=-1)
    above = rewards - slope * rank
    level = (weight * above).sum(axis=-1) / total
    squares = (weight * (above - level[..., np.newaxis]) ** 2).sum(axis=-1)
    scale = np.log(weight).sum(axis=-1) - np.log(total) - (rewards.size - 1) * np.log(2.0 * np.pi)
    return np.asarray(0.5 * (scale - squares))


def _draw(segment: Segment, spread: Floats, correlation: Floats, rng: np.random.Generator) -> Floats:
    """(DRAWS, K) draws of the rewards of a segment along a line, given spread and correlation of each draw."""
    rewards, variance, rank = segment
    around, slope = (value[:, np.newaxis] for value in _line(spread, correlation))
    weight = 1.0 / (variance + around)
    total = weight.sum(axis=1, keepdims=True)
    level = (weight * (rewards - slope * rank)).sum(axis=1, keepdims=True) / total
    shrunk = variance * weight
    means = shrunk * (level + slope * rank) + (1.0 - shrunk) * rewards
    noise = shrunk * rng.standard_normal((spread.size, 1)) / np.sqrt(total)
    noise = noise + np.sqrt(variance * (1.0 - shrunk)) * rng.standard_normal(means.shape)
    return np.asarray(means + noise)
