"""Selective intervals: the value of arms that were chosen by the same rows that value them.

The rows that make an arm look best also overrate it. So its interval is conditional on its being chosen. The estimates are taken
as normal around the truth. When the value of the chosen arms moves, the other estimates move with it as far as they are
correlated; the choice stays the same between two points of this line. Between them the value has a truncated normal law, and the
ends of the interval are the means for which the estimate is at its 97.5% and 2.5% quantiles: the interval covers with 95%, whatever
the truth. It can be very wide where the choice was close. The *hybrid* interval of [Andrews2024] also cuts the law at the ends of
a simultaneous band of 99.5% for all possible choices: it is never wider than that band, and covers with 95.0 to 95.5%.

References
----------
[Andrews2024] Andrews, Kitagawa, McCloskey, "Inference on winners", Quarterly Journal of Economics 139.

"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.compiled import builder, kept
from thrifty.logs.bootstrap import freedom, student
from thrifty.logs.estimators import SegmentEstimates
from thrifty.policies.selection import cheapest_feasible

MISSES, BAND_MISSES = 0.05, 0.005
"""How often an interval, and the simultaneous band that limits it, may miss the truth."""

_Z = 1.959963985
_FIRST, _GROWTH = 0.02, 1.15  # steps of the search for the ends of the line, in standard errors
_HALVINGS = 14
_TIE, _EXACT = 0.05, 1e-5  # rewards are often counts, and an arm may lie on the floor exactly: as if it were half a count away


@dataclass(frozen=True, eq=False)
class ChosenArm:
    """The cheapest arm above the floor of `alpha` in one segment, and the reference: the arm chosen at alpha 0."""

    estimates: SegmentEstimates
    alpha: float
    arm: int
    best: int

    @property
    def name(self) -> str:
        """The name of the arm."""
        return self.estimates.sums.arms[self.arm]

    @property
    def arm_now(self) -> str:
        """The arm that would be chosen at the latest prices."""
        return self.estimates.sums.arms[floor_choice(self.estimates, self.alpha, self.estimates.prices_now)]


def choose_arm(estimates: SegmentEstimates, alpha: float) -> ChosenArm:
    """The arm that the whole log chooses at this alpha.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> rows = {"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500}
    >>> choose_arm(examine(Log(polars.DataFrame(rows))).estimates[0], 0.6).name
    'b'
    """
    return ChosenArm(estimates, alpha, floor_choice(estimates, alpha), floor_choice(estimates, 0.0))


def floor_choice(estimates: SegmentEstimates, alpha: float, costs: Floats | None = None) -> int:
    """The cheapest arm whose estimated reward reaches (1 - alpha) times the best, among the arms that have an estimate.

    `costs` are (K,) prices to choose by; without them the costs of the log count.
    """
    arms = np.flatnonzero(estimates.usable)
    rewards = estimates.reward()[arms]
    prices = (estimates.cost() if costs is None else costs)[arms]
    return int(arms[cheapest_feasible(rewards, prices, (1.0 - alpha) * rewards.max())])


@dataclass(frozen=True, eq=False)
class Target:
    """A value of chosen arms: (1 + B,) its estimate and replicates, and the standard error of each segment's part in it.

    `slope` is how much the variance of the estimate grows with the true value. A success rate near 1 varies less than one further
    down, so an interval with the variance of the estimate itself would be too short below. With the slope it is Wilson's.
    """

    replicates: Floats
    parts: Floats
    slope: float = 0.0


def mean_target(chosen: Sequence[ChosenArm], metric: int, estimator: str = "dr") -> Target:
    """The mean reward (metric 0) or cost (1) if in every segment its chosen arm takes every request."""
    traffic = np.add.reduce([each.estimates.traffic for each in chosen])
    parts = [_part(each, each.arm, metric, estimator) for each in chosen]
    spreads = np.array([part[1:].std() for part in parts]) / traffic[0]
    return Target(np.add.reduce(parts) / traffic, spreads, _slope(chosen) if metric == 0 else 0.0)


def _slope(chosen: Sequence[ChosenArm]) -> float:
    """The derivative of sum w^2 m (1 - m) / n by the mean sum w m, when the means m move in proportion to their part in it.

    w is the share of a segment's traffic, and n the number of successes and failures whose mean varies as much as the estimate.
    """
    shares = np.array([each.estimates.traffic[0] for each in chosen])
    shares = shares / shares.sum()
    means = np.clip([each.estimates.reward()[each.arm] for each in chosen], 0.0, 1.0)
    variances = np.array([each.estimates.replicates["dr"][0][1:, each.arm].var(ddof=1) for each in chosen])
    rows = np.array([max(float(each.estimates.effective[each.arm]), 1.0) for each in chosen])
    varies = variances > 1e-3 * np.maximum(means * (1.0 - means), 1e-9) / rows
    rows = np.where(varies, means * (1.0 - means) / np.where(varies, variances, 1.0), rows)
    moved = shares * np.where(varies, variances, 1.0 / rows**2)
    return float((shares**2 * (1.0 - 2.0 * means) / rows * moved).sum() / (shares * moved).sum())


def ratio_target(chosen: Sequence[ChosenArm], metric: int, estimator: str = "dr") -> Target | None:
    """The logarithm of the mean reward or cost of the chosen arms over that of the best arms. None if either is not positive."""
    tops = [_part(each, each.arm, metric, estimator) for each in chosen]
    bottoms = [_part(each, each.best, metric, estimator) for each in chosen]
    top, bottom = np.add.reduce(tops), np.add.reduce(bottoms)
    if min(top.min(), bottom.min()) <= 0.0:
        return None
    pairs = zip(tops, bottoms, strict=True)
    parts = np.array([(one / top[0] - other / bottom[0])[1:].std() for one, other in pairs])
    return Target(np.log(top / bottom), parts)


def _part(each: ChosenArm, arm: int, metric: int, estimator: str) -> Floats:
    return np.asarray(each.estimates.traffic * each.estimates.replicates[estimator][metric][:, arm])


def selective(target: Target, chosen: Sequence[ChosenArm], n_blocks: int, *, with_best: bool = False) -> Floats:
    """(2,) low and high of a value of chosen arms, given that they were chosen.

    `with_best` is True if the value depends on the choice of the best arms too.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> rng = np.random.default_rng(1)
    >>> rows = {"arm": [f"r{arm}" for arm in rng.integers(0, 8, 1600)], "reward": 1.0 * (rng.random(1600) < 0.7), "cost": 1.0}
    >>> evidence = examine(Log(polars.DataFrame(rows)))
    >>> best = [choose_arm(evidence.estimates[0], 0.0)]
    >>> target = mean_target(best, 0)
    >>> target.replicates[0].round(2), selective(target, best, evidence.weights.shape[1]).round(2).tolist()  # the truth is 0.7
    (np.float64(0.77), [0.64, 0.78])

    """
    value = float(target.replicates[0]) + _Z**2 / 2.0 * target.slope
    error = math.hypot(float(target.replicates[1:].std(ddof=1)), _Z / 2.0 * target.slope)
    unit = error * student(freedom(n_blocks)) / _Z
    if not unit > 1e-12 * abs(value):
        return np.full(2, value)
    n_arms = max(int(each.estimates.usable.sum()) for each in chosen)
    limit = _expected_highest(n_arms) * (2 if with_best else 1) * float(target.parts.sum()) / error
    limit += NormalDist().inv_cdf(1.0 - BAND_MISSES / 2.0)
    low, high = -2.0 * limit, 2.0 * limit
    deviations = (target.replicates[1:] - target.replicates[1:].mean()) * unit / error**2
    for each in chosen:
        for alpha in {each.alpha, 0.0} if with_best else {each.alpha}:
            ends = _line(each, alpha, deviations, limit)
            low, high = max(low, ends[0]), min(high, ends[1])
    low, high = low if low < -_EXACT else -_TIE, high if high > _EXACT else _TIE
    share = (MISSES - BAND_MISSES) / (1.0 - BAND_MISSES) / 2.0
    return value + unit * np.array([_mean_at(level, low, high, limit) for level in (1.0 - share, share)])


def with_ends(value: float, ends: Floats) -> Floats:
    """(3,) the value with its interval, widened to hold the value if need be.

    Where the choice was very close, the interval given the choice may lie beside the estimate. To move the value there would show a
    quality that no rows have, and a quality given up below zero.

    >>> with_ends(3.0, np.array([1.0, 2.0])).tolist()
    [3.0, 1.0, 3.0]
    """
    return np.array([value, min(value, ends[0]), max(value, ends[1])])


def _expected_highest(count: int) -> float:
    """About the mean of the highest of `count` standard normal numbers."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def _line(each: ChosenArm, alpha: float, deviations: Floats, limit: float) -> tuple[float, float]:
    """How far the value can move down and up, in standard errors, before another arm is chosen in this segment."""
    arms = np.flatnonzero(each.estimates.usable)
    rewards, costs = (replicates[:, arms] for replicates in each.estimates.replicates["dr"])
    slopes = [deviations @ (values[1:] - values[1:].mean(axis=0)) / (deviations.size - 1) for values in (rewards, costs)]
    now = np.ascontiguousarray(rewards[0]), np.ascontiguousarray(costs[0])
    low, high = (_reach(*now, slopes[0], slopes[1], alpha, sign * 2.0 * limit) for sign in (-1.0, 1.0))
    return float(low), float(high)


@kept
def _reach(rewards: Any, costs: Any, reward_slopes: Any, cost_slopes: Any, alpha: float, end: float) -> float:
    """How far one can go towards `end` before the choice changes; `end` if it never does."""
    chosen = _chosen_at(0.0, rewards, costs, reward_slopes, cost_slopes, alpha)
    sign = 1.0 if end > 0.0 else -1.0
    near, step = 0.0, _FIRST
    while near < abs(end):
        far = min(near + step, abs(end))
        if _chosen_at(sign * far, rewards, costs, reward_slopes, cost_slopes, alpha) != chosen:
            for _ in range(_HALVINGS):
                middle = 0.5 * (near + far)
                if _chosen_at(sign * middle, rewards, costs, reward_slopes, cost_slopes, alpha) == chosen:
                    near = middle
                else:
                    far = middle
            return sign * near
        near, step = far, step * _GROWTH
    return end


@builder
def _chosen_at(place: float, rewards: Any, costs: Any, reward_slopes: Any, cost_slopes: Any, alpha: float) -> int:
    moved = rewards + place * reward_slopes
    return cheapest_feasible(moved, costs + place * cost_slopes, (1.0 - alpha) * moved.max())  # type: ignore[no-any-return]


@kept
def _mean_at(level: float, low: float, high: float, limit: float) -> float:
    """The mean m in [-limit, limit] for which P(Y <= 0) = level; Y is normal around m, given that it is in [low, high] and within
    `limit` of m.
    """
    left, right = -limit, limit
    for _ in range(60):
        mean = 0.5 * (left + right)
        start, end = max(low, mean - limit) - mean, min(high, mean + limit) - mean
        if start > 0.0:  # both differences of upper tails, so that small ones keep their digits
            whole, part = _tail(start) - _tail(end), _tail(start) - _tail(-mean)
        else:
            whole, part = _tail(-end) - _tail(-start), _tail(mean) - _tail(-start)
        if whole > 0.0 and part > level * whole:
            left = mean
        else:
            right = mean
    return 0.5 * (left + right)


@builder
def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))
