"""Evidence: all estimates that one pass over a log gives, and choices of arms that are valued without bias.

The rows that make an arm look best also overrate it. So the value of a choice is estimated crosswise: groups of blocks of time
alternate between two halves, arms are chosen in one half and valued in the other, and vice versa.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.compiled import builder
from thrifty.logs.aggregates import Aggregates, C, R, aggregate
from thrifty.logs.bootstrap import REPLICATES, block_groups, block_weights, interval
from thrifty.logs.estimators import SegmentEstimates, estimate_segment
from thrifty.logs.profile import Profile, profile
from thrifty.logs.reading import Log
from thrifty.policies.selection import cheapest_feasible, highest
from thrifty.problem import checked_count

Progress = Callable[[str, int], None]

ESTIMATED = "propensities are not logged: arms are assumed to have been chosen at random within a segment and stretch of time"
LOGGED = "propensities are taken from the log as they are"
FEW_REPLICATES, MANY_SEGMENTS = 200, 500
OVERALL = "all segments"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The result of `examine`: aggregates, bootstrap weights, a profile, and the estimates of every segment and its halves."""

    log: Log
    aggregates: Aggregates
    weights: Floats
    estimates: tuple[SegmentEstimates, ...]
    halves: tuple[tuple[SegmentEstimates, SegmentEstimates], ...]
    profile: Profile
    seed: int

    @property
    def assumption(self) -> str:
        """Where the propensities come from, in words."""
        return LOGGED if self.aggregates.weighted else ESTIMATED

    @property
    def comparable(self) -> list["Comparable"]:
        """The segments in which at least two arms have an estimate."""
        pairs = zip(self.estimates, self.halves, strict=True)
        return [Comparable(whole, halves) for whole, halves in pairs if whole.usable.sum() > 1]

    @property
    def today(self) -> tuple[Floats, Floats]:
        """(1 + B,) mean reward and mean cost of the log, with replicates."""
        return logged_value(self.estimates, self.weights)


class Comparable(NamedTuple):
    """The estimates of one segment from the whole log, and from each half of it."""

    whole: SegmentEstimates
    halves: tuple[SegmentEstimates, SegmentEstimates]


def examine(log: Log, *, seed: int = 0, progress: Progress | None = None) -> Evidence:
    """Read the log once and estimate everything that does not need another pass.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> examine(Log(frame)).estimates[0].reward().round(2).tolist()
    [1.0, 0.5]
    """
    seed = checked_count("seed", seed, low=0)
    aggregates = aggregate(log, None if progress is None else lambda rows: progress("reading", rows))
    replicates = REPLICATES if len(aggregates.segments) <= MANY_SEGMENTS else FEW_REPLICATES
    weights = block_weights(aggregates.starts.size, replicates, seed=seed)
    estimates = tuple(estimate_segment(each, weights, weighted=aggregates.weighted) for each in aggregates.segments)
    halves = tuple(_halves(each, weights, weighted=aggregates.weighted) for each in estimates)
    return Evidence(log, aggregates, weights, estimates, halves, profile(aggregates, estimates), seed)


def _halves(whole: SegmentEstimates, weights: Floats, *, weighted: bool) -> tuple[SegmentEstimates, SegmentEstimates]:
    """Estimates from the even groups of blocks and from the odd ones, for the arms that have an estimate in the whole segment."""
    groups = block_groups(weights.shape[1])
    pair = []
    for start in (0, 1):
        blocks = np.concatenate(groups[start::2] or groups[:1])
        sums = replace(whole.sums, sums=whole.sums.sums[:, blocks])
        pair.append(replace(estimate_segment(sums, weights[:, blocks], weighted=weighted), refusals=whole.refusals))
    return pair[0], pair[1]


class HalfChoice(NamedTuple):
    """One half of a segment, the arm chosen in the other half, and (1 + B,) the arms chosen in the replicates of that half."""

    estimates: SegmentEstimates
    arm: int
    arms: NDArray[np.int64]


def crosswise(halves: tuple[SegmentEstimates, SegmentEstimates], alpha: float) -> list[HalfChoice]:
    """Each half with the cheapest arm above the floor in the other; alpha = 0 is the best arm, 1 the cheapest."""
    one, other = (_choices(half, alpha) for half in halves)
    return [HalfChoice(halves[0], int(other[0]), other), HalfChoice(halves[1], int(one[0]), one)]


def _choices(estimates: SegmentEstimates, alpha: float) -> NDArray[np.int64]:
    """(1 + B,) the arms that the estimate and every replicate would choose."""
    arms = np.flatnonzero(estimates.usable)
    rewards, costs = (np.ascontiguousarray(replicates[:, arms]) for replicates in estimates.replicates["dr"])
    return np.asarray(arms[_choose_each(rewards, costs, alpha)], dtype=np.int64)


@builder
def _choose_each(rewards: Any, costs: Any, alpha: float) -> Any:
    chosen = np.zeros(rewards.shape[0], np.int64)
    for row in range(rewards.shape[0]):
        chosen[row] = cheapest_feasible(rewards[row], costs[row], (1.0 - alpha) * rewards[row].max())
    return chosen


def crosswise_value(parts: Sequence[HalfChoice], estimator: str = "dr") -> tuple[Floats, Floats]:
    """(1 + B,) mean reward and mean cost over halves of segments, in each of which one arm takes every request.

    A replicate is the estimate plus an error: that of the arm which the replicate itself would choose. The halves choose the same
    arm mostly when both overrate it, so their errors are correlated. Replicates with a fixed arm would not show this.
    """
    traffic = np.add.reduce([part.estimates.traffic for part in parts])
    results = []
    for metric in (0, 1):
        total = np.zeros_like(traffic)
        for each, arm, arms in parts:
            values = each.replicates[estimator][metric]
            total += each.traffic * (values[0, arm] + values[np.arange(arms.size), arms] - values[0, arms])
        results.append(np.asarray(total / traffic))
    return results[0], results[1]


def logged_value(estimates: Sequence[SegmentEstimates], weights: Floats) -> tuple[Floats, Floats]:
    """(1 + B,) mean reward and mean cost in the log, over these segments."""
    traffic = np.add.reduce([each.traffic for each in estimates])
    totals = np.add.reduce([each.sums.sums.sum(axis=0) for each in estimates])
    return weights @ totals[:, R] / traffic, weights @ totals[:, C] / traffic


def floor_choice(estimates: SegmentEstimates, alpha: float) -> int:
    """The cheapest arm whose estimated reward reaches (1 - alpha) times the best, among the arms that have an estimate."""
    arms = np.flatnonzero(estimates.usable)
    rewards, costs = estimates.reward()[arms], estimates.cost()[arms]
    return int(arms[cheapest_feasible(rewards, costs, (1.0 - alpha) * rewards.max())])


def best_choice(estimates: SegmentEstimates) -> int:
    """The arm with the highest estimated reward, among the arms that have an estimate."""
    arms = np.flatnonzero(estimates.usable)
    return int(arms[highest(estimates.reward()[arms])])


def assumptions(evidence: Evidence) -> tuple[str, ...]:
    """The assumptions behind every number, in words."""
    columns = evidence.log.columns
    missing = {
        "failure": "a row without an outcome counts as a failure",
        "ignore": "rows without an outcome are left out: outcomes are assumed to go missing whether good or bad",
        "censored": f"a row without an outcome counts as a failure after {columns.deadline_s:g} seconds; younger rows are left out",
    }[columns.missing or "failure"]
    return (
        evidence.assumption,
        missing,
        "traffic and rates stay as they were over the span of the log, and what one request gets does not change the others",
        "intervals are 95% bootstrap intervals over blocks of time; sure bounds hold for any law with rewards in [0, 1], with 95%",
        "choices are estimated crosswise: arms are chosen in one half of the time and valued in the other",
    )


def spread(replicates: Floats, n_blocks: int) -> Floats:
    """(3,) an estimate with its interval."""
    low, high = interval(replicates[:, np.newaxis], n_blocks)
    return np.array([replicates[0], low[0], high[0]])


def finite(value: Any) -> Any:
    """`value` with None in place of numbers that JSON cannot hold.

    >>> finite({"a": [float("nan"), 1.0]})
    {'a': [None, 1.0]}
    """
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
