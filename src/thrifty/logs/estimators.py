"""Estimators: the mean reward and cost of each arm, if it had taken every request of its segment.

With N rows of a segment, w = 1/p on rows of arm a, and strata h of neighbouring blocks of time:

    IPS    sum of w r / N                                            unbiased when the logged propensities are true
    SNIPS  sum of w r / sum of w                                     less noisy, a little biased
    DM     sum over h of N_h q_h / N, q_h the mean reward of a in h  right when arms were chosen at random within a stratum
    DR     DM + sum of w (r - q_h) / N                               right when either is; the one that is shown first

Without logged propensities, shares by segment and stratum stand in for them: p = n_ah / N_h, an assumption that every output
repeats. IPS and DR then equal DM wherever the arm was used. Costs are estimated likewise. See [Dudik2011].

References
----------
[Dudik2011] Dudik, Langford, Li, "Doubly robust policy evaluation and learning", ICML 2011.

"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.logs.aggregates import RR, WC, WR, WW, C, LogSums, N, R, W
from thrifty.logs.bootstrap import block_groups, interval
from thrifty.logs.bounds import COST, REWARD, bound_assumed, bound_logged
from thrifty.logs.price_course import latest_price

ESTIMATORS = ("dr", "ips", "snips", "dm")
ROWS_PER_STRATUM = 50  # of an average arm
FEWEST_ROWS, FEWEST_EFFECTIVE, MOST_UNSEEN = 30, 30.0, 0.1
"""An arm has no estimate if it has fewer rows or effective rows than this, or if it was not in use during a larger share of the
traffic."""


@dataclass(frozen=True, eq=False)
class SegmentEstimates:
    """What is estimated for the arms of one segment.

    `replicates` holds, by estimator, (1 + B, K) rewards and costs, the estimates themselves in row 0. `bound` is (2, 2, K): low
    and high of the distribution-free bounds of reward and cost, `spread` the sum of squared weights behind those without
    propensities. `effective` is the effective sample size, `unseen` the share of the traffic at times when the arm was not
    used, `refusals` the reason why an arm has no estimate (empty where it has one).
    """

    sums: LogSums
    traffic: Floats
    replicates: dict[str, tuple[Floats, Floats]]
    bound: Floats
    spread: Floats
    effective: Floats
    unseen: Floats
    refusals: tuple[str, ...]

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(K,) the arms that have an estimate."""
        return np.array([not reason for reason in self.refusals])

    @cached_property
    def prices_now(self) -> Floats:
        """(K,) what every arm costs now: see `latest_price`."""
        return latest_price(self.sums)

    def reward(self, estimator: str = "dr") -> Floats:
        """(K,) estimated rewards."""
        return np.asarray(self.replicates[estimator][0][0])

    def cost(self, estimator: str = "dr") -> Floats:
        """(K,) estimated costs."""
        return np.asarray(self.replicates[estimator][1][0])


def strata_of(sums: LogSums, n_blocks: int) -> list[NDArray[np.int64]]:
    """Blocks of a segment in strata of whole groups, so coarse that an average arm has `ROWS_PER_STRATUM` rows in each."""
    groups = block_groups(n_blocks)
    count = min(max(sums.rows // (ROWS_PER_STRATUM * len(sums.arms)), 1), len(groups))
    return [
        np.concatenate(part) for part in (groups[i * len(groups) // count : (i + 1) * len(groups) // count] for i in range(count))
    ]


def estimate_segment(sums: LogSums, weights: Floats, *, weighted: bool) -> SegmentEstimates:
    """All estimates of one segment, from its sums and the bootstrap's weights (1 + B, blocks).

    >>> import polars
    >>> from thrifty.logs import Log, aggregate
    >>> from thrifty.logs.bootstrap import block_weights
    >>> rows = {"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500}
    >>> sums = aggregate(Log(polars.DataFrame(rows)))
    >>> one = estimate_segment(sums.segments[0], block_weights(sums.starts.size, 50, seed=1), weighted=False)
    >>> one.reward().round(3).tolist(), one.cost().round(3).tolist()
    ([1.0, 0.5], [0.2, 0.1])

    """
    strata = strata_of(sums, weights.shape[1])
    strata_sums = [_weigh(weights[:, blocks], sums.sums[:, blocks]) for blocks in strata]
    traffic = sum((part[:, :, _N].sum(axis=1) for part in strata_sums), start=np.zeros(weights.shape[0]))
    replicates = _replicates(strata_sums, traffic, weighted=weighted)
    counts = np.array([part[0, :, _N] for part in strata_sums])  # (H, K)
    shares = counts.sum(axis=1) / max(counts.sum(), 1.0)
    unseen = (shares[:, np.newaxis] * (counts == 0)).sum(axis=0)
    if weighted:
        totals = sums.totals
        effective = totals[:, W] ** 2 / np.maximum(totals[:, WW], 1e-300)
        spread = np.zeros_like(unseen)
        bound = np.array([[bound_logged([(sums, arm)], columns) for arm in range(len(sums.arms))] for columns in (REWARD, COST)])
    else:
        spread = (shares[:, np.newaxis] ** 2 / np.where(counts > 0, counts, np.inf)).sum(axis=0)
        effective = 1.0 / np.maximum(spread, 1e-300)
        bound = np.array(
            [
                [
                    bound_assumed(float(replicates["dm"][metric][0, arm]), spread[arm], unseen[arm], scale[arm], columns)
                    for arm in range(len(sums.arms))
                ]
                for metric, columns, scale in ((0, REWARD, np.ones_like(spread)), (1, COST, sums.cost_max))
            ]
        )
    bound = bound.transpose(0, 2, 1)
    refusals = _refusals(sums, effective, unseen)
    return SegmentEstimates(sums, traffic, replicates, bound, spread, effective, unseen, refusals)


_COLUMNS = [N, R, C, W, WR, WC]
_N, _R, _C, _W, _WR, _WC = range(6)  # their places in the sums of a stratum


def _weigh(weights: Floats, sums: Floats) -> Floats:
    """(1 + B, K, 6) sums of one stratum under the bootstrap's weights, in the order of `_COLUMNS`."""
    return np.asarray(np.tensordot(weights, sums[:, :, _COLUMNS], axes=(1, 1)))


def _replicates(strata_sums: list[Floats], traffic: Floats, *, weighted: bool) -> dict[str, tuple[Floats, Floats]]:
    everything = np.add.reduce(strata_sums)
    rows = traffic[:, np.newaxis]
    found: dict[str, list[Floats]] = {name: [] for name in ESTIMATORS}
    for plain, heavy in ((_R, _WR), (_C, _WC)):
        usual = _ratio(everything[:, :, plain], everything[:, :, _N])
        dm, missed, weight, value = (np.zeros_like(usual) for _ in range(4))
        for part in strata_sums:
            here = part[:, :, _N].sum(axis=1, keepdims=True)
            q = np.where(part[:, :, _N] > 0, _ratio(part[:, :, plain], part[:, :, _N]), usual)
            dm += here * q
            # Without logged propensities a row of the arm weighs N_h / n_ah.
            w = part[:, :, _W] if weighted else here * (part[:, :, _N] > 0)
            wr = part[:, :, heavy] if weighted else w * q
            weight, value, missed = weight + w, value + wr, missed + wr - q * w
        found["dm"].append(_ratio(dm, rows))  # a replicate may have no row of a thin segment
        found["ips"].append(_ratio(value, rows))
        found["snips"].append(_ratio(value, weight))
        found["dr"].append(_ratio(dm + missed, rows))
    return {name: (pair[0], pair[1]) for name, pair in found.items()}


def _ratio(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros_like(top), where=np.broadcast_to(bottom > 0, top.shape))


def _refusals(sums: LogSums, effective: Floats, unseen: Floats) -> tuple[str, ...]:
    reasons = []
    for place, rows in enumerate(sums.totals[:, N]):
        if len(sums.arms) == 1:
            reasons.append("the only arm of this segment: nothing to compare it with")
        elif rows < FEWEST_ROWS:
            reasons.append(f"only {rows:,.0f} rows, {FEWEST_ROWS} are needed")
        elif effective[place] < FEWEST_EFFECTIVE:
            reasons.append(f"its {rows:,.0f} rows weigh as much as {effective[place]:.0f}, {FEWEST_EFFECTIVE:.0f} are needed")
        elif unseen[place] > MOST_UNSEEN:
            reasons.append(f"not in use during {unseen[place]:.0%} of the traffic, {MOST_UNSEEN:.0%} can be bridged")
        else:
            reasons.append("")
    return tuple(reasons)


def intervals(estimates: SegmentEstimates, estimator: str = "dr") -> Floats:
    """(2, 2, K) low and high of the 95% bootstrap intervals of reward and cost.

    Where all rewards of an arm are equal the bootstrap has nothing to vary: the interval is Wilson's, from the effective size.
    """
    found = np.array([interval(replicates, estimates.sums.sums.shape[1]) for replicates in estimates.replicates[estimator]])
    totals = estimates.sums.totals
    flat = totals[:, RR] * totals[:, N] - totals[:, R] ** 2 <= 1e-12 * totals[:, N] ** 2
    if flat.any():
        z2 = 3.8415 / np.maximum(estimates.effective, 1.0)
        value = estimates.reward(estimator)
        centre, half = (value + z2 / 2) / (1 + z2), np.sqrt(z2 * (value * (1 - value) + z2 / 4)) / (1 + z2)
        found[0] = np.where(flat, [centre - half, centre + half], found[0])
    found = np.asarray(np.maximum(found, 0.0), dtype=np.float64)
    found[0] = np.minimum(found[0], 1.0)
    return found
