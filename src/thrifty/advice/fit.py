"""The fit: the posterior of each segment's arms given a log, from which worlds are drawn.

Mean rewards have Beta posteriors with the spread of the bootstrap. Rates change over time as far as the log shows it: the rate of a
stretch of time deviates from the arm's mean by the deviation in the log, shrunk by tau^2 / (tau^2 + s^2). Here s^2 is the sampling
variance of the stretch, and tau^2 is the variance between stretches less the mean of s^2. Prices are those of the log at that time.
Random costs and scores in [0, 1] get Beta laws with the moments of the log.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.environments import Bernoulli, Beta, Changing, Deterministic, Exponential, Feedback, Law, World, scaled
from thrifty.known import KnownOutcomes
from thrifty.logs import Evidence
from thrifty.logs.aggregates import CC, RR, C, N, R
from thrifty.logs.confounding import FREE, UNTESTED
from thrifty.logs.estimators import SegmentEstimates, strata_of
from thrifty.logs.price_course import latest_price, prices_are_listed
from thrifty.logs.profile import median_delay_s

MOST_STRETCHES = 24

MOST_KNOWN = 1000
"""Outcomes of an arm that a warm start knows at most: so many tell the arms apart, and a world that changed is learnt anew."""


@dataclass(frozen=True, eq=False)
class SegmentTruth:
    """The truth in one world of a segment.

    `means` and `costs` are (P, K) mean rewards and costs in each stretch of time, `shares` (P,) the shares of the requests.
    """

    means: Floats
    costs: Floats
    shares: Floats

    @property
    def overall(self) -> tuple[Floats, Floats]:
        """(K,) mean reward and cost of each arm over all stretches."""
        return self.shares @ self.means, self.shares @ self.costs


@dataclass(frozen=True, eq=False)
class SegmentFit:
    """The fit of one segment.

    `quality` and `error` are (K,), `deviations` and `deviation_errors` (P, K), `prices` (P, K) mean costs, `listed` whether
    they are known beforehand. `concentration` is 0 for success or failure, `cost_ratio` the ratio of standard deviation to mean
    of random costs. `delay` is the mean number of decisions until an outcome is back. `today` is the quality and cost of the
    log. `known` are outcomes that tell about each arm what the log does, for a warm start.
    """

    name: str
    arms: tuple[str, ...]
    rows: int
    shares: Floats
    quality: Floats
    error: Floats
    deviations: Floats
    deviation_errors: Floats
    prices: Floats
    latest: Floats
    listed: bool
    cost_ratio: Floats
    cost_max: Floats
    concentration: Floats
    delay: float
    today: tuple[float, float]
    known: tuple[KnownOutcomes, ...]

    def draw(self, rng: np.random.Generator) -> SegmentTruth:
        """Draw a world from the posterior."""
        spread = np.maximum(self.quality * (1.0 - self.quality), 1e-6)
        weight = np.clip(spread / np.maximum(self.error, 1e-6) ** 2, 1.0, 1e9)
        level = rng.beta(1.0 + weight * self.quality, 1.0 + weight * (1.0 - self.quality))
        path = level + self.deviations + self.deviation_errors * rng.standard_normal(self.deviations.shape)
        return SegmentTruth(np.clip(path, 0.0, 1.0), self.prices, self.shares)

    def world(self, truth: SegmentTruth, alpha: float, rounds: int) -> World | Changing:
        """The world to simulate `rounds` decisions in."""
        starts = np.round(np.r_[0.0, np.cumsum(truth.shares)[:-1]] * rounds).astype(int)
        pieces = [
            (int(start), World(self._rewards(means), self._costs(costs), alpha))
            for start, means, costs, last in zip(starts, truth.means, truth.costs, np.r_[starts[1:], rounds], strict=True)
            if last > start
        ]
        return pieces[0][1] if len(pieces) == 1 else Changing(pieces)

    @property
    def feedback(self) -> Feedback | None:
        """When outcomes come back; None for at once."""
        return Feedback(Exponential(self.delay)) if self.delay >= 1.0 else None

    def _rewards(self, means: Floats) -> list[Law]:
        return [_score_law(float(mean), float(c)) for mean, c in zip(means, self.concentration, strict=True)]

    def _costs(self, costs: Floats) -> Sequence[Law | float]:
        if self.listed:
            return [float(cost) for cost in costs]
        return [_cost_law(*map(float, about)) for about in zip(costs, self.cost_ratio, self.cost_max, strict=True)]


def fit_segments(evidence: Evidence) -> list[SegmentFit]:
    """Fit every segment in which at least two arms have an estimate.

    >>> import polars
    >>> from thrifty.logs import Log, examine
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> fit_segments(examine(Log(frame)))[0].quality.round(2).tolist()
    [0.5, 1.0]
    """
    return [_fit(evidence, each) for each in evidence.estimates if each.usable.sum() > 1]


def _fit(evidence: Evidence, estimates: SegmentEstimates) -> SegmentFit:
    sums, arms = estimates.sums, _by_cost(estimates)
    cells = _stretches(estimates)[:, arms]  # (P, K, SUMS)
    rows = np.maximum(cells[:, :, N], 1.0)
    traffic = np.array([part.sum() for part in _stretches(estimates)[:, :, N]])
    shares = traffic / traffic.sum()
    quality = np.clip(estimates.reward()[arms], 0.0, 1.0)
    error = estimates.replicates["dr"][0][1:, arms].std(axis=0, ddof=1)
    means = np.where(cells[:, :, N] > 0, cells[:, :, R] / rows, quality)
    variance = np.maximum(
        cells[:, :, RR].sum(axis=0) / rows.sum(axis=0) - (cells[:, :, R].sum(axis=0) / rows.sum(axis=0)) ** 2, 1e-6
    )
    usual = shares @ means  # not the quality, which may be adjusted for how arms were chosen
    sampling = np.where(cells[:, :, N] > 0, variance / rows, np.inf)
    seen = np.isfinite(sampling)
    tau2 = np.maximum(
        np.average((means - usual) ** 2, axis=0) - np.where(seen, sampling, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1),
        0.0,
    )
    shrink = np.where(seen, tau2 / (tau2 + np.where(seen, sampling, 1.0) + 1e-300), 0.0)
    deviations = shrink * (means - usual)
    deviations -= shares @ deviations
    totals = sums.totals[arms]
    mean_cost = totals[:, C] / totals[:, N]
    ratio = np.sqrt(np.maximum(totals[:, CC] / totals[:, N] - mean_cost**2, 0.0)) / np.maximum(mean_cost, 1e-300)
    listed = prices_are_listed(sums)
    today = sums.totals.sum(axis=0)
    plain = evidence.confounding.kind in (FREE, UNTESTED)  # arms were chosen whatever the request was like, as far as is known
    return SegmentFit(
        name=sums.name,
        arms=tuple(sums.arms[arm] for arm in arms),
        rows=sums.rows,
        shares=shares,
        quality=quality,
        error=error,
        deviations=deviations,
        deviation_errors=np.sqrt(tau2 * (1.0 - shrink)),
        prices=_prices(cells, mean_cost, listed=listed),
        latest=latest_price(sums)[arms],
        listed=listed,
        cost_ratio=ratio,
        cost_max=sums.cost_max[arms],
        concentration=_concentration(totals, variance),
        delay=_delay(evidence, sums, arms),
        today=(float(today[R] / today[N]), float(today[C] / today[N])),
        known=tuple(_known(*about, plain=plain) for about in zip(totals, quality, error, mean_cost, strict=True)),
    )


def _known(totals: Floats, quality: float, error: float, mean_cost: float, *, plain: bool) -> KnownOutcomes:
    """Outcomes of the estimated quality: as many as the arm has rows, or, unless the estimate is `plain`, as its error is worth."""
    rows, mean = float(totals[N]), float(totals[R] / totals[N])
    variance = max(float(totals[RR]) / rows - mean**2, 1e-6)
    worth = rows if plain else min(rows, variance / max(float(error), 1e-9) ** 2)
    n = int(min(max(worth, 1.0), MOST_KNOWN))
    squares = min(max(variance + quality**2, quality**2), quality)
    costs = min(max(float(totals[CC]) / rows, mean_cost**2), n * mean_cost**2)  # n costs cannot vary more than that
    return KnownOutcomes(n, n * float(quality), n * float(mean_cost), n * float(squares), n * costs)


def _by_cost(estimates: SegmentEstimates) -> NDArray[np.int64]:
    """The arms that have an estimate, the cheapest first: what is simulated does not depend on their names."""
    arms = np.flatnonzero(estimates.usable)
    return np.asarray(arms[np.lexsort((-estimates.reward()[arms], estimates.cost()[arms]))], dtype=np.int64)


def _stretches(estimates: SegmentEstimates) -> Floats:
    """(P, K, SUMS): the strata of the estimators, joined until there are at most `MOST_STRETCHES`."""
    sums = estimates.sums
    strata = strata_of(sums, sums.sums.shape[1])
    count = min(len(strata), MOST_STRETCHES)
    joined = [np.concatenate(strata[i * len(strata) // count : (i + 1) * len(strata) // count]) for i in range(count)]
    return np.array([sums.sums[:, blocks].sum(axis=1) for blocks in joined])


def _prices(cells: Floats, mean_cost: Floats, *, listed: bool) -> Floats:
    """(P, K) mean costs; where an arm was not used, those of the stretch before.

    They are rounded, so that a price that did not change is the same number in every stretch.
    """
    if not listed:
        return np.tile(mean_cost, (cells.shape[0], 1))
    prices = np.where(cells[:, :, N] > 0, cells[:, :, C] / np.maximum(cells[:, :, N], 1.0), np.nan)
    for stretch in range(prices.shape[0]):
        before = prices[stretch - 1] if stretch else mean_cost
        prices[stretch] = np.where(np.isnan(prices[stretch]), before, prices[stretch])
    return np.array([[float(f"{price:.6g}") for price in row] for row in prices])


def _concentration(totals: Floats, variance: Floats) -> Floats:
    """(K,) a + b of the Beta law of scores; 0 where rewards are all 0 or 1."""
    mean = totals[:, R] / totals[:, N]
    scores = np.abs(totals[:, RR] - totals[:, R]) > 1e-9 * totals[:, N]
    return np.where(scores, np.clip(mean * (1.0 - mean) / variance - 1.0, 0.05, 1e6), 0.0)


def _delay(evidence: Evidence, sums: object, arms: NDArray[np.int64]) -> float:
    """The mean number of decisions of the segment until an outcome is back, if delays are exponential with the log's median."""
    segment = next(each for each in evidence.aggregates.segments if each is sums)
    median = median_delay_s(segment)[arms]
    span = evidence.aggregates.last - evidence.aggregates.first
    if not evidence.aggregates.timed or span <= 0.0 or np.isnan(median).all():
        return 0.0
    return float(np.nanmean(median)) / math.log(2.0) * segment.rows / span


def _score_law(mean: float, concentration: float) -> Law:
    if concentration == 0.0:
        return Bernoulli(mean)
    if not 1e-6 < mean < 1.0 - 1e-6:
        return Deterministic(round(mean))
    return Beta(mean * concentration, (1.0 - mean) * concentration)


def _cost_law(mean: float, ratio: float, largest: float) -> Law:
    """A Beta law on [0, largest] with this mean and ratio of standard deviation to mean."""
    if mean <= 0.0 or ratio < 1e-6 or largest <= mean:
        return scaled(Deterministic(1.0), mean) if mean > 0.0 else Deterministic(0.0)
    share = mean / largest
    concentration = max(share * (1.0 - share) / (ratio * share) ** 2 - 1.0, 0.05)
    return scaled(Beta(share * concentration, (1.0 - share) * concentration), largest)
