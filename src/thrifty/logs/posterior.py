"""The posterior of rewards: by how much a choice flatters an arm, and the probability that the arm holds the floor.

An arm that was chosen because it looked good is probably worse than it looked. A posterior accounts for that if its prior is right,
so the prior is learnt from the arms of the log: in a segment, rewards lie around a line over the rank of the arm's cost (dearer
arms are mostly better), with a deviation tau. The level of the line is each segment's own; the slope and tau are common to all.
Levels and slope have flat priors and are integrated out, tau is flat and drawn from a grid.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.compiled import kept
from thrifty.logs.aggregates import RR, N, R
from thrifty.logs.estimators import SegmentEstimates
from thrifty.policies.selection import cheapest_feasible

DRAWS = 2000
_TAUS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 6.0, 9.0, 14.0, 20.0])  # in standard errors


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
    """The prior that was learnt from all segments: (DRAWS,) draws of tau and of the slope.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> rows = {"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500}
    >>> estimates = examine(Log(polars.DataFrame(rows))).estimates
    >>> RewardPosterior.learn(estimates, seed=1).of(estimates[0]).draws.mean(axis=0).round(2).tolist()
    [1.0, 0.5]
    """

    taus: Floats
    slopes: Floats
    seed: int

    @classmethod
    def learn(cls, estimates: Sequence[SegmentEstimates], *, seed: int) -> "RewardPosterior":
        """Learn the prior from segments, in each of which at least two arms have an estimate."""
        rng = np.random.default_rng([seed, 2])
        segments = [_normal(each) for each in estimates]
        taus = _TAUS * float(np.sqrt(np.mean(np.concatenate([variance for _, variance, _ in segments]))))
        fits = [_line_fit(segments, tau) for tau in taus]
        weights = np.array([likelihood for likelihood, _, _ in fits]) + np.log(taus)
        weights = np.exp(weights - weights.max())
        of_draw = rng.choice(taus.size, DRAWS, p=weights / weights.sum())
        slopes, spreads = (np.array([fit[place] for fit in fits])[of_draw] for place in (1, 2))
        return cls(taus[of_draw], slopes + spreads * rng.standard_normal(DRAWS), seed)

    def of(self, each: SegmentEstimates) -> SegmentPosterior:
        """The posterior of one segment. Its random numbers depend on the seed and the segment's name."""
        rng = np.random.default_rng([self.seed, 3, zlib.crc32(each.sums.name.encode())])
        draws = np.full((DRAWS, len(each.sums.arms)), np.nan)
        draws[:, each.usable] = _draw(*_normal(each), self.taus, self.slopes, rng)
        return SegmentPosterior(draws)


def _normal(each: SegmentEstimates) -> tuple[Floats, Floats, Floats]:
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


def _line_fit(segments: list[tuple[Floats, Floats, Floats]], tau: float) -> tuple[float, float, float]:
    """The log likelihood of tau, and the mean and standard deviation of the slope given tau."""
    likelihood, across, along, squares = 0.0, 0.0, 0.0, 1e-9
    for rewards, variance, rank in segments:
        weight = 1.0 / (variance + tau * tau)
        total = weight.sum()
        reward, place = rewards - weight @ rewards / total, rank - weight @ rank / total
        likelihood += 0.5 * float(np.log(weight).sum()) - 0.5 * float(np.log(total))
        across, along, squares = across + weight @ reward**2, along + weight @ (reward * place), squares + weight @ place**2
    likelihood -= 0.5 * float(np.log(squares)) + 0.5 * float(across - along**2 / squares)
    return likelihood, float(along / squares), float(squares**-0.5)


def _draw(rewards: Floats, variance: Floats, rank: Floats, taus: Floats, slopes: Floats, rng: np.random.Generator) -> Floats:
    """(DRAWS, K) draws of the rewards of one segment, given tau and slope of each draw."""
    weight = 1.0 / (variance + taus[:, np.newaxis] ** 2)
    total = weight.sum(axis=1, keepdims=True)
    line = slopes[:, np.newaxis] * rank
    level = (weight * (rewards - line)).sum(axis=1, keepdims=True) / total
    shrunk = variance * weight
    means = shrunk * (level + line) + (1.0 - shrunk) * rewards
    noise = shrunk * rng.standard_normal((taus.size, 1)) / np.sqrt(total)
    noise = noise + np.sqrt(variance * (1.0 - shrunk)) * rng.standard_normal(means.shape)
    return np.asarray(means + noise)
