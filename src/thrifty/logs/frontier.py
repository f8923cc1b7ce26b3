"""The frontier: quality against cost as alpha moves, per segment and overall, and where the choice changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.evidence import OVERALL, Beliefs, Evidence, Progress, examine, spread
from thrifty.logs.knee import choice_steps, knee
from thrifty.logs.savings import saving_in_words, share_saved
from thrifty.logs.selective import (
    ChosenArm,
    choose_arm,
    floor_choice,
    mean_target,
    ratio_target,
    selective,
    with_ends,
)
from thrifty.logs.sensitivity import hidden_odds
from thrifty.logs.source import require_polars
from thrifty.logs.success_cost import cost_per_success
from thrifty.problem import checked_alphas
from thrifty.table import Table

GRID = tuple(round(0.01 * step, 2) for step in range(31))
"""The alphas looked at unless others are named: 0 to 0.3."""


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Findings):
    """What `frontier` returns, as polars frames.

    `points` has a row per segment (and one for all segments together) and alpha: the arm, its quality and cost with intervals,
    the saving and the share of quality given up against always taking `best_arm`, the arm of alpha 0, and the probability that
    the floor holds. `choice` is a number; rows with the same number name the same arms. `arm_now` is the arm that would be chosen
    at the latest prices. `changes` lists the alphas at which a segment changes to a cheaper arm. `knee_points` has, per segment and
    overall, the same row at the knee: the alpha after which a further saving costs the most quality. `refused` lists the segments
    that have no estimate, and why. `hidden_odds` is how many times a hidden cause would have to change the odds of the choice to
    refute it; null where propensities are logged, or where nothing would.
    """

    points: Any
    changes: Any
    knee_points: Any
    refused: dict[str, str]
    evidence: Evidence

    @property
    def knees(self) -> dict[str, float]:
        """The alpha of the knee, per segment and overall."""
        return dict(self.knee_points.select("segment", "alpha").iter_rows())

    @property
    def frames(self) -> dict[str, Any]:
        """The points and the changes."""
        return {"points": self.points, "changes": self.changes}

    def headline(self) -> str:
        """What alpha buys at the knee."""
        knee = self.knee_points.filter(segment=OVERALL).to_dicts()[0]
        about = f"{self.evidence.aggregates.rows:,} rows, {len(self.knees) - 1} segments"
        saves = saving_in_words(knee["saving"], "the best arm's cost")
        lost = f"for {knee['given_up']:.1%} of the best quality" if knee["given_up"] > 0.0 else "without loss of quality"
        bought = f"at alpha {knee['alpha']:g} {saves} {lost}"
        return f"{about}; {bought} ({self.verdict})"

    @property
    def verdict(self) -> str:
        """How far the comparison of arms can be trusted, and what would refute the choice at the knee."""
        odds = self.knee_points.filter(segment=OVERALL)["hidden_odds"].item()
        return self.evidence.confounding.verdict(odds)

    def table(self) -> Table:
        """The points of all segments together."""
        formats = {"alpha": "g", "quality": ".4f", "cost": ".4g", "saving": ".1%", "given_up": ".1%", "floor_held": ".0%"}
        return interval_table(self.points.filter(segment=OVERALL).to_dicts(), formats)


def frontier(source: Any, alphas: Sequence[float] | float = GRID, *, seed: int = 0, progress: Progress | None = None) -> Frontier:
    """Quality against cost as alpha moves.

    Parameters
    ----------
    source : a log, or anything that `Log` takes (a path, a frame, ...), or the evidence that `examine` made of one
    alphas : subsidy factors in [0, 1], in any order
    seed : of the bootstrap
    progress : called with (the current step, rows read so far)

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0, 1, 1] * 166 + [1] * 4, "cost": [0.2, 0.1] * 500})
    >>> found = frontier(frame, [0.0, 0.5])
    >>> found.points.filter(segment="all")["arm"].to_list()
    ['a', 'b']

    """
    grid = checked_alphas(alphas)
    evidence = examine(source, seed=seed, progress=progress)
    segments = evidence.comparable
    refused = {each.sums.name: next(filter(None, each.refusals)) for each in evidence.estimates if each.usable.sum() <= 1}
    if not segments:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(refused.items())[:3])
        raise ValueError(f"no segment has two arms with enough rows to compare them ({reasons})")
    knees = {each.sums.name: knee([each]) for each in segments} | {OVERALL: knee(segments)}
    beliefs = evidence.beliefs({*grid, knees[OVERALL]}, knees)
    rows, at_knee = [], []
    for name, part in [*((each.sums.name, [each]) for each in segments), (OVERALL, segments)]:
        rows += _numbered([_point(evidence, _chosen(part, alpha), beliefs, name) for alpha in grid], part)
        at_knee.append(_point(evidence, _chosen(part, knees[name]), beliefs, name))
    pl = require_polars()
    changes = pl.DataFrame(
        [row for each in segments for row in _changes(evidence, each)], infer_schema_length=None, schema=_CHANGES
    )
    odds = {"hidden_odds": pl.Float64}  # a column of nulls where nothing can refute the choice
    points, knee_points = (pl.DataFrame(each, infer_schema_length=None, schema_overrides=odds) for each in (rows, at_knee))
    return Frontier(points, changes, knee_points, refused, evidence)


def _chosen(segments: list[SegmentEstimates], alpha: float) -> list[ChosenArm]:
    return [choose_arm(each, alpha) for each in segments]


def _numbered(rows: list[dict[str, Any]], segments: list[SegmentEstimates]) -> list[dict[str, Any]]:
    """The rows of growing alphas with the number of their choice: rows of the same number name the same arms."""
    before, number = None, -1
    for row in rows:
        arms = [each.arm for each in _chosen(segments, row["alpha"])]
        number, before = number + (arms != before), arms
        row["choice"] = number
    return rows


def _point(evidence: Evidence, chosen: list[ChosenArm], beliefs: Beliefs, name: str) -> dict[str, Any]:
    """The arms chosen at one alpha, in one segment or in all, weighted by their traffic."""
    first, n_blocks = chosen[0], evidence.weights.shape[1]
    rows = [each.estimates.sums.rows for each in chosen]
    held = [beliefs.floor_held[each.estimates.sums.name, each.alpha] for each in chosen]
    row: dict[str, Any] = {
        "segment": name,
        "alpha": first.alpha,
        "arm": "" if name == OVERALL else first.name,
        "best_arm": "" if name == OVERALL else first.estimates.sums.arms[first.best],
        "arm_now": "" if name == OVERALL else first.arm_now,
        "rows": round(sum(each.estimates.sums.totals[each.arm, 0] for each in chosen)),
    }
    quality, cost = (mean_target(chosen, metric) for metric in (0, 1))
    shown = float(quality.replicates[0]) - beliefs.flattered(chosen)
    best = [replace(each, arm=each.best) for each in chosen]
    shown_best = float(mean_target(best, 0).replicates[0]) - beliefs.flattered(chosen, best=True)
    values = {
        "quality": np.clip(with_ends(shown, selective(quality, chosen, n_blocks)), 0.0, 1.0),
        "cost": np.maximum(with_ends(float(cost.replicates[0]), selective(cost, chosen, n_blocks)), 0.0),
        "cost_per_success": cost_per_success(chosen, n_blocks, reward=shown),
        "saving": _less(chosen, 1, float(cost.replicates[0]), float(mean_target(best, 1).replicates[0]), n_blocks),
        "given_up": _less(chosen, 0, shown, shown_best, n_blocks),
    }
    for what, (middle, low, high) in values.items():
        row |= {what: float(middle), f"{what}_low": float(low), f"{what}_high": float(high)}
    odds = math.inf if evidence.aggregates.weighted else hidden_odds(chosen)
    return {**row, "floor_held": float(np.average(held, weights=rows)), "hidden_odds": odds if odds < math.inf else None}


def _less(chosen: list[ChosenArm], metric: int, value: float, best: float, n_blocks: int) -> Floats:
    """(3,) the share by which a value is below that of the best arms; NaN where that is 0."""
    if best <= 0.0:
        return np.full(3, np.nan)
    if all(each.arm == each.best for each in chosen):
        return np.zeros(3)
    target = ratio_target(chosen, metric)
    if target is None:
        return np.full(3, 1.0 - value / best)
    low, high = selective(target, chosen, n_blocks, with_best=True)
    return with_ends(1.0 - value / best, 1.0 - np.exp([high, low]))


_CHANGES = ("segment", "alpha", "alpha_low", "alpha_high", "from_arm", "to_arm", "saving")


def _changes(evidence: Evidence, each: SegmentEstimates) -> list[dict[str, Any]]:
    """The arms that are chosen as alpha grows, in order: each reaches the floor later and costs less than all before it."""
    rewards, costs = each.replicates["dr"]
    top = rewards[:, each.usable].max(axis=1)
    rows = []
    for alpha, arm, other in choice_steps(each):
        needed = 1.0 - rewards[:, other] / np.maximum(top, 1e-300)
        _, low, high = spread(needed, evidence.weights.shape[1])
        saving = float(share_saved(costs[0, other], costs[0, floor_choice(each, 0.0)]))
        ends = (each.sums.arms[arm], each.sums.arms[other])
        rows.append(dict(zip(_CHANGES, (each.sums.name, alpha, max(low, 0.0), min(high, 1.0), *ends, saving), strict=True)))
    return rows
