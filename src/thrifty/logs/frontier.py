"""The frontier: quality against cost as alpha moves, per segment and overall, and where the choice changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.evidence import (
    OVERALL,
    Comparable,
    Evidence,
    Progress,
    best_choice,
    crosswise,
    crosswise_value,
    examine,
    floor_choice,
    spread,
)
from thrifty.logs.reading import Log
from thrifty.logs.source import require_polars
from thrifty.problem import checked_alpha
from thrifty.table import Table

GRID = tuple(round(0.01 * step, 2) for step in range(31))
"""The alphas looked at unless others are named: 0 to 0.3."""


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Findings):
    """What `frontier` returns, as polars frames.

    `points` has a row per segment (and one for all segments together) and alpha: the arm, its quality and cost with intervals,
    the saving against always taking the best arm, the share of quality given up, and the probability that the floor holds.
    `changes` lists the alphas at which a segment changes to a cheaper arm. `knees` has, per segment and overall, the alpha after
    which a further saving costs the most quality. `refused` lists the segments that have no estimate, and why.
    """

    points: Any
    changes: Any
    knees: dict[str, float]
    refused: dict[str, str]
    evidence: Evidence

    @property
    def frames(self) -> dict[str, Any]:
        """The points and the changes."""
        return {"points": self.points, "changes": self.changes}

    def headline(self) -> str:
        """What alpha buys at the knee."""
        knee = self.points.filter(segment=OVERALL, alpha=self.knees[OVERALL]).to_dicts()[0]
        about = f"{self.evidence.aggregates.rows:,} rows, {len(self.knees) - 1} segments"
        return f"{about}; at alpha {knee['alpha']:g} saves {knee['saving']:.1%} for {knee['given_up']:.1%} of the best quality"

    def table(self) -> Table:
        """The points of all segments together."""
        formats = {"alpha": "g", "quality": ".4f", "cost": ".4g", "saving": ".1%", "given_up": ".1%", "floor_held": ".0%"}
        return interval_table(self.points.filter(segment=OVERALL).to_dicts(), formats)


def frontier(
    source: Log | Evidence, alphas: Sequence[float] = GRID, *, seed: int = 0, progress: Progress | None = None
) -> Frontier:
    """Quality against cost as alpha moves.

    Parameters
    ----------
    source : a log, or the evidence that `examine` made of one
    alphas : subsidy factors in [0, 1], in any order
    seed : of the bootstrap
    progress : called with (the current step, rows read so far)

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0, 1, 1] * 166 + [1] * 4, "cost": [0.2, 0.1] * 500})
    >>> found = frontier(Log(frame), [0.0, 0.5])
    >>> found.points.filter(segment="all")["arm"].to_list()
    ['a', 'b']

    """
    grid = sorted({checked_alpha(alpha) for alpha in alphas})
    evidence = source if isinstance(source, Evidence) else examine(source, seed=seed, progress=progress)
    pairs = evidence.comparable
    refused = {each.sums.name: next(filter(None, each.refusals)) for each in evidence.estimates if each.usable.sum() <= 1}
    if not pairs:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(refused.items())[:3])
        raise ValueError(f"no segment has two arms with enough rows to compare them ({reasons})")
    rows = [_point(evidence, [pair], alpha) for pair in pairs for alpha in grid]
    rows += [_point(evidence, pairs, alpha, name=OVERALL) for alpha in grid]
    pl = require_polars()
    points = pl.DataFrame(rows, infer_schema_length=None)
    changes = pl.DataFrame(
        [row for each, _ in pairs for row in _changes(evidence, each)], infer_schema_length=None, schema=_CHANGES
    )
    names = [*(each.sums.name for each, _ in pairs), OVERALL]
    knees = {name: _knee(points.filter(segment=name)) for name in names}
    return Frontier(points, changes, knees, refused, evidence)


def floor_is_held(estimates: SegmentEstimates, arm: int, alpha: float) -> Floats:
    """(1 + B,) whether the arm reaches the floor, in the estimate and in every replicate."""
    rewards = estimates.replicates["dr"][0]
    return np.asarray(rewards[:, arm] >= (1.0 - alpha) * rewards[:, estimates.usable].max(axis=1) - 1e-12, dtype=np.float64)


def _point(evidence: Evidence, pairs: list[Comparable], alpha: float, *, name: str | None = None) -> dict[str, Any]:
    """One segment, or several weighted by their traffic under a `name`, at one alpha. Choices are valued crosswise."""
    parts = [part for _, halves in pairs for part in crosswise(halves, alpha)]
    reward, cost = crosswise_value(parts)
    best_reward, best_cost = crosswise_value([part for _, halves in pairs for part in crosswise(halves, 0.0)])
    held = [float(floor_is_held(each, floor_choice(each, alpha), alpha)[1:].mean()) for each, _ in pairs]
    first = pairs[0][0]
    row: dict[str, Any] = {
        "segment": name or first.sums.name,
        "alpha": alpha,
        "arm": "" if name else first.sums.arms[floor_choice(first, alpha)],
        "rows": round(sum(each.sums.totals[arm, 0] for each, arm, _ in parts)),
    }
    given_up = 1.0 - reward / np.maximum(best_reward, 1e-300)
    saving = 1.0 - cost / np.maximum(best_cost, 1e-300)
    for what, values in (("quality", reward), ("cost", cost), ("saving", saving), ("given_up", given_up)):
        middle, low, high = spread(values, evidence.weights.shape[1])
        ends = (max(low, 0.0), min(high, 1.0)) if what == "quality" else (low, high)
        row |= {what: float(middle), f"{what}_low": float(ends[0]), f"{what}_high": float(ends[1])}
    return {**row, "floor_held": float(np.average(held, weights=[each.sums.rows for each, _ in pairs]))}


_CHANGES = ("segment", "alpha", "alpha_low", "alpha_high", "from_arm", "to_arm", "saving")


def _changes(evidence: Evidence, each: SegmentEstimates) -> list[dict[str, Any]]:
    """The arms that are chosen as alpha grows, in order: each reaches the floor later and costs less than all before it."""
    rewards, costs = each.replicates["dr"]
    arms = np.flatnonzero(each.usable)
    top = rewards[:, arms].max(axis=1)
    arm = best_choice(each)
    rows = []
    needed = {int(other): 1.0 - rewards[:, other] / np.maximum(top, 1e-300) for other in arms}
    for other in sorted(needed, key=lambda other: float(needed[other][0])):
        if costs[0, other] < costs[0, arm]:
            middle, low, high = spread(needed[other], evidence.weights.shape[1])
            saving = 1.0 - float(costs[0, other] / costs[0, best_choice(each)])
            ends = (each.sums.arms[arm], each.sums.arms[other])
            rows.append(dict(zip(_CHANGES, (each.sums.name, middle, max(low, 0.0), min(high, 1.0), *ends, saving), strict=True)))
            arm = other
    return rows


def _knee(points: Any) -> float:
    """The alpha at which the saving is farthest above the straight line from no saving to the largest one.

    The line runs over the share of quality given up. Ties go to the smallest alpha; 0 where nothing is saved.
    """
    saving, given_up = points["saving"].to_numpy(), np.maximum(points["given_up"].to_numpy(), 0.0)
    if saving.max(initial=0.0) <= 0.0:
        return 0.0
    above = saving / saving.max() - given_up / max(float(given_up.max()), 1e-300)
    return float(points["alpha"][int(np.argmax(above.round(9)))])
