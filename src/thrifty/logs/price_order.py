"""The posterior of rewards in a segment where every dearer arm is better.

The rewards of K arms are K draws from a uniform law, sorted by cost. The law has a known spread (its standard deviation); its level
has a flat prior. Sorted uniform draws have gaps of every size: two neighbours may be nearly tied.

Rewards lie on a grid. From the cheapest arm up, the weight of a cell is the likelihood of the arm there, times the probability of
the cell, times the weight of all cells of the arm before that lie below it. The sum of the last weights is the evidence for the
law. From the dearest arm down, each draw is limited by the one before.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats

_POINTS, _REACH = 33, 6.0  # grid points of each arm, as far as so many standard errors
_LEVELS = np.linspace(-1.0, 1.0, 21)
_TINY, _LOWEST = 1e-290, -1e290
_MOST_ARMS = 12  # the time and the memory grow with the square


def has_order(rank: Floats) -> bool:
    """True if all costs differ, so that there is an order, and the arms are few enough for the grid.

    >>> has_order(np.array([-0.5, 0.0])), has_order(np.array([0.0, 0.0]))
    (True, False)
    """
    return rank.size <= _MOST_ARMS and np.unique(rank).size == rank.size


@dataclass(frozen=True, eq=False)
class SortedRewards:
    """The posterior of the rewards of one segment by spread (S of them) and level (L of them) of the uniform law.

    `edges` are (G + 1,) borders of the grid's cells, `below` (K, S, L, G) the weight of each arm in all cells up to and with each
    one, and `log_evidence` (S, L).

    >>> found = SortedRewards.of(np.array([0.8, 0.7]), np.full(2, 0.05**2), np.array([0.1]))
    >>> draws = found.draw(np.zeros(1000, dtype=np.int64), np.random.default_rng(1))
    >>> draws.mean(axis=0).round(2).tolist()
    [0.74, 0.76]
    """

    edges: Floats
    below: Floats
    log_evidence: Floats

    @classmethod
    def of(cls, rewards: Floats, variance: Floats, spreads: Floats) -> "SortedRewards":
        """The posterior given estimates in the order of their costs, with their variances, for every spread of the law."""
        edges = _cells(rewards, np.sqrt(variance))
        likelihoods = _likelihoods(edges, rewards, variance)
        step = 2.0 * (spreads + math.sqrt(variance.mean()))[:, np.newaxis]
        levels = 0.5 * (rewards.max() + rewards.min()) + step * _LEVELS
        law = _uniform(edges, levels[:, :, np.newaxis], math.sqrt(3.0) * spreads[:, np.newaxis, np.newaxis])
        log_evidence = np.log(step * (_LEVELS[1] - _LEVELS[0])) + np.zeros(_LEVELS.size)
        below, reached = np.zeros((rewards.size, *law.shape)), np.ones_like(law)
        for place, likelihood in enumerate(likelihoods):
            weight = law * likelihood * reached * (place + 1)  # K! orders in all
            total = weight.sum(axis=2)
            weight /= np.maximum(total, _TINY)[:, :, np.newaxis]
            below[place] = weight.cumsum(axis=2)
            reached = below[place] - 0.5 * weight
            with np.errstate(divide="ignore"):
                log_evidence = log_evidence + np.log(total)
        return cls(edges, below, log_evidence)

    def of_spread(self) -> Floats:
        """(S,) the logarithm of the evidence for every spread, whatever the level."""
        return np.asarray(np.logaddexp.reduce(self.log_evidence, axis=1))

    def draw(self, spread: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """(n, K) draws; `spread` are (n,) numbers of spreads."""
        n_arms, _, n_levels, n_cells = self.below.shape
        highest = np.maximum(self.log_evidence.max(axis=1, keepdims=True), _LOWEST)
        chances = np.exp(self.log_evidence - highest).cumsum(axis=1)
        law = spread * n_levels + _place_in(chances, spread, chances[spread, -1] * rng.random(spread.size))
        draws, cell = np.empty((spread.size, n_arms)), np.full(spread.size, n_cells - 1)
        limit = np.ones(spread.size)
        for arm in range(n_arms - 1, -1, -1):
            below = self.below[arm].reshape(-1, n_cells)
            if arm < n_arms - 1:  # of two in one cell each is the higher half the time
                limit = 0.5 * (below[law, cell] + np.where(cell > 0, below[law, cell - 1], 0.0))
            cell = _place_in(below, law, limit * rng.random(spread.size))
            draws[:, arm] = self.edges[cell] + rng.random(spread.size) * np.diff(self.edges)[cell]
        return draws


def _cells(rewards: Floats, errors: Floats) -> Floats:
    """The borders of cells that are fine around every estimate."""
    points = np.unique(rewards[:, np.newaxis] + errors[:, np.newaxis] * np.linspace(-_REACH, _REACH, _POINTS))
    middles = 0.5 * (points[1:] + points[:-1])
    return np.concatenate([points[:1], middles, points[-1:]])


def _likelihoods(edges: Floats, rewards: Floats, variance: Floats) -> Floats:
    """(K, G) the likelihood of each arm in each cell."""
    away = 0.5 * (edges[1:] + edges[:-1]) - rewards[:, np.newaxis]
    return np.asarray(np.exp(-0.5 * away**2 / variance[:, np.newaxis]) / np.sqrt(2.0 * math.pi * variance)[:, np.newaxis])


def _uniform(edges: Floats, level: Floats, half_width: Floats) -> Floats:
    """The probability of each cell."""
    inside = np.minimum(edges[1:], level + half_width) - np.maximum(edges[:-1], level - half_width)
    return np.asarray(np.maximum(inside, 0.0) / (2.0 * half_width))


def _place_in(cumulative: Floats, rows: NDArray[np.int64], levels: Floats) -> NDArray[np.int64]:
    """In each of these rows the first place whose cumulative weight is above the level. All rows are searched as one long one."""
    tops = np.concatenate([[0.0], cumulative[:, -1].cumsum()])
    found = np.searchsorted((cumulative + tops[:-1, np.newaxis]).ravel(), tops[rows] + levels, side="right")
    return np.asarray(np.clip(found - rows * cumulative.shape[1], 0, cumulative.shape[1] - 1))
