"""Evidence: all estimates that one pass over a log gives, and what they rest on."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.aggregates import Aggregates, C, R, aggregate
from thrifty.logs.bootstrap import REPLICATES, block_weights, interval
from thrifty.logs.confounding import Confounding, examine_choice
from thrifty.logs.estimators import SegmentEstimates, estimate_segment
from thrifty.logs.posterior import RewardPosterior
from thrifty.logs.profile import Profile, profile
from thrifty.logs.reading import Log
from thrifty.logs.selective import ChosenArm, floor_choice
from thrifty.problem import checked_count

Progress = Callable[[str, int], None]

ESTIMATED = "propensities are not logged: arms are assumed to have been chosen at random within a segment and stretch of time"
LOGGED = "propensities are taken from the log as they are"
FEW_REPLICATES, MANY_SEGMENTS = 200, 500
OVERALL = "all segments"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The result of `examine`: aggregates, bootstrap weights, the estimates of every segment, a profile, how arms were chosen."""

    log: Log
    aggregates: Aggregates
    weights: Floats
    estimates: tuple[SegmentEstimates, ...]
    profile: Profile
    confounding: Confounding
    seed: int

    @property
    def assumption(self) -> str:
        """Where the propensities come from, in words."""
        if self.aggregates.weighted:
            return LOGGED
        within = f", and within values of {', '.join(self.confounding.adjusted)}" if self.confounding.adjusted else ""
        left_out = "".join(f"; {note}" for note in self.confounding.left_out)
        return f"{ESTIMATED}{within}{left_out}"

    @property
    def comparable(self) -> list[SegmentEstimates]:
        """The segments in which at least two arms have an estimate."""
        return [each for each in self.estimates if each.usable.sum() > 1]

    def beliefs(self, alphas: Collection[float], own: Mapping[str, float] = MappingProxyType({})) -> "Beliefs":
        """What the posterior of the comparable segments says about the choice at each alpha, and at alpha 0.

        `own` is one more alpha for each segment.
        """
        posterior = RewardPosterior.learn(self.comparable, seed=self.seed)
        flattery, held = {}, {}
        for each in self.comparable:
            mine = posterior.of(each)
            for alpha in {0.0, *alphas, own.get(each.sums.name, 0.0)}:
                flattery[each.sums.name, alpha] = mine.flattery(each, alpha)
                held[each.sums.name, alpha] = mine.floor_held(floor_choice(each, alpha), alpha)
        return Beliefs(flattery, held)

    @property
    def today(self) -> tuple[Floats, Floats]:
        """(1 + B,) mean reward and mean cost of the log, with replicates."""
        return logged_value(self.estimates, self.weights)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """By segment and alpha: how much the choice flatters the arm, and the probability that the arm holds the floor."""

    flattery: dict[tuple[str, float], float]
    floor_held: dict[tuple[str, float], float]

    def flattered(self, chosen: Sequence[ChosenArm], *, best: bool = False) -> float:
        """By how much the mean reward of chosen arms, or of the best ones, is overrated, weighted by their traffic."""
        traffic = np.array([float(each.estimates.traffic[0]) for each in chosen])
        values = [self.flattery[each.estimates.sums.name, 0.0 if best else each.alpha] for each in chosen]
        return float(np.average(values, weights=traffic))


def examine(source: Any, *, seed: int = 0, progress: Progress | None = None) -> Evidence:
    """Read a log and estimate what every arm brings and costs. Without propensities it is read again, to test the choice.

    `source` is a `Log`, or anything that `Log` takes, if its columns have the usual names. Evidence is returned as it is.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> examine(Log(frame)).estimates[0].reward().round(2).tolist()
    [1.0, 0.5]
    """
    if isinstance(source, Evidence):
        return source
    log, seed = source if isinstance(source, Log) else Log(source), checked_count("seed", seed, low=0)
    aggregates = aggregate(log, None if progress is None else lambda rows: progress("reading", rows))
    if not any(each.totals[:, R].any() for each in aggregates.segments):
        column = log.columns.reward
        raise ValueError(f"no request succeeded: every reward in column {column!r} is 0; check --reward or --success")
    replicates = REPLICATES if len(aggregates.segments) <= MANY_SEGMENTS else FEW_REPLICATES
    weights = block_weights(aggregates.starts.size, replicates, seed=seed)
    estimates = tuple(estimate_segment(each, weights, weighted=aggregates.weighted) for each in aggregates.segments)
    confounding = Confounding("logged")
    if not aggregates.weighted:
        report = None if progress is None else lambda rows: progress("testing the choice", rows)
        confounding, estimates = examine_choice(log, aggregates, estimates, report)
    return Evidence(log, aggregates, weights, estimates, profile(aggregates, estimates), confounding, seed)


def logged_value(estimates: Sequence[SegmentEstimates], weights: Floats) -> tuple[Floats, Floats]:
    """(1 + B,) mean reward and mean cost in the log, over these segments."""
    traffic = np.add.reduce([each.traffic for each in estimates])
    totals = np.add.reduce([each.sums.sums.sum(axis=0) for each in estimates])
    return weights @ totals[:, R] / traffic, weights @ totals[:, C] / traffic


def assumptions(evidence: Evidence) -> tuple[str, ...]:
    """The assumptions behind every number, in words."""
    columns = evidence.log.columns
    missing = {
        "failure": "a row without an outcome counts as a failure",
        "ignore": "rows without an outcome are left out: outcomes are assumed to go missing whether good or bad",
        "censored": f"a row without an outcome counts as a failure after {columns.deadline_s:g} seconds; younger rows are left out",
    }[columns.missing or "failure"]
    chains = f" (retries within {columns.within_s:g} seconds count as one request)" if columns.chain_columns else ""
    return (
        evidence.assumption,
        missing,
        "traffic and rates stay as they were over the span of the log, and what one request gets does not change the others"
        + chains,
        "intervals are 95% bootstrap intervals over blocks of time; sure bounds hold for any law with rewards in [0, 1], with 95%",
        "a chosen arm is valued given that it was chosen, so that the rows that made it look good do not flatter it",
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
