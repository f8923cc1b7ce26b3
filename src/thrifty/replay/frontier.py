"""The frontier: quality against cost as alpha moves, per segment and overall, and where the choice changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.problem import checked_alpha
from thrifty.replay.estimators import SegmentEstimates
from thrifty.replay.evaluation import Evidence, Progress, best_choice, examine, floor_choice, spread
from thrifty.replay.reading import Log
from thrifty.replay.source import require_polars

Floats = NDArray[np.float64]

GRID = tuple(round(0.01 * step, 2) for step in range(31))
"""The alphas looked at unless others are named: 0 to 0.3."""

OVERALL = "all segments"


@dataclass(frozen=True, eq=False)
class Frontier:
    """What `frontier` returns, as polars frames.

    `points` has a row per segment (and one for all segments together) and alpha: the arm, its quality and cost with intervals,
    the saving
    against always taking the best arm, the share of quality given up, and how sure it is that the floor holds. `changes` lists
    the alphas
    at which a segment turns to a cheaper arm. `knees` has, per segment and overall, the alpha after which savings come dearest.
    `refused` lists the segments about which nothing is said, and why.
    """

    points: Any
    changes: Any
    knees: dict[str, float]
    refused: dict[str, str]
    evidence: Evidence


def frontier(
    source: Log | Evidence, alphas: Sequence[float] = GRID, *, seed: int = 0, progress: Progress | None = None
) -> Frontier:
    """Quality against cost as alpha moves.

    Parameters
    ----------
    source : a log, or the evidence that `examine` made of one
    alphas : subsidy factors in [0, 1], in any order
    seed : of the bootstrap
    progress : called with (what is under way, rows read so far)

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0, 1, 1] * 166 + [1] * 4, "cost": [0.2, 0.1] * 500})
    >>> found = frontier(Log(frame), [0.0, 0.5])
    >>> found.points.filter(segment="all")["arm"].to_list()
    ['a', 'b']

    """
    grid = sorted({checked_alpha(alpha) for alpha in alphas})
    evidence = source if isinstance(source, Evidence) else examine(source, seed=seed, progress=progress)
    told = [each for each in evidence.estimates if each.usable.sum() > 1]
    refused = {each.sums.name: next(filter(None, each.refusals)) for each in evidence.estimates if each.usable.sum() <= 1}
    if not told:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(refused.items())[:3])
        raise ValueError(f"no segment has two arms with overlap enough to compare them ({reasons})")
    rows = [_segment_point(evidence, each, alpha) for each in told for alpha in grid]
    rows += [_overall_point(evidence, told, alpha) for alpha in grid]
    pl = require_polars()
    points = pl.DataFrame(rows, infer_schema_length=None)
    changes = pl.DataFrame([row for each in told for row in _changes(evidence, each)], infer_schema_length=None, schema=_CHANGES)
    names = [*(each.sums.name for each in told), OVERALL]
    knees = {name: _knee(points.filter(segment=name)) for name in names}
    return Frontier(points, changes, knees, refused, evidence)


def floor_is_held(estimates: SegmentEstimates, arm: int, alpha: float) -> Floats:
    """(1 + B,) whether the arm reaches the floor, in the estimate and in every replicate."""
    rewards = estimates.replicates["dr"][0]
    return np.asarray(rewards[:, arm] >= (1.0 - alpha) * rewards[:, estimates.usable].max(axis=1) - 1e-12, dtype=np.float64)


def _point(segment: str, alpha: float, arm: str, *, rows: float, n: int, reward: Floats, cost: Floats, best: tuple[Floats, Floats],
           held: float) -> dict[str, Any]:  # fmt: skip
    row: dict[str, Any] = {"segment": segment, "alpha": alpha, "arm": arm, "rows": round(rows)}
    given_up = 1.0 - reward / np.maximum(best[0], 1e-300)
    saving = 1.0 - cost / np.maximum(best[1], 1e-300)
    for name, values in (("quality", reward), ("cost", cost), ("saving", saving), ("given_up", given_up)):
        middle, low, high = spread(values, n)
        bounded = name == "quality"
        row |= {name: float(middle), f"{name}_low": float(max(low, 0.0) if bounded else low)}
        row |= {f"{name}_high": float(min(high, 1.0) if bounded else high)}
    return {**row, "floor_held": held}


def _segment_point(evidence: Evidence, each: SegmentEstimates, alpha: float) -> dict[str, Any]:
    arm, best = floor_choice(each, alpha), best_choice(each)
    reward, cost = each.replicates["dr"]
    return _point(
        each.sums.name, alpha, each.sums.arms[arm], rows=each.sums.totals[arm, 0], n=evidence.weights.shape[1],
        reward=reward[:, arm],
        cost=cost[:, arm], best=(reward[:, best], cost[:, best]), held=float(floor_is_held(each, arm, alpha)[1:].mean()),
    )  # fmt: skip


def _overall_point(evidence: Evidence, told: list[SegmentEstimates], alpha: float) -> dict[str, Any]:
    traffic = np.add.reduce([each.traffic for each in told])
    values: dict[str, list[Floats]] = {"mine": [np.zeros_like(traffic)] * 2, "best": [np.zeros_like(traffic)] * 2}
    held, rows = 0.0, 0.0
    for each in told:
        arms = {"mine": floor_choice(each, alpha), "best": best_choice(each)}
        for whose, arm in arms.items():
            values[whose] = [
                total + each.traffic * replicates[:, arm]
                for total, replicates in zip(values[whose], each.replicates["dr"], strict=True)
            ]
        held += float(each.traffic[0] * floor_is_held(each, arms["mine"], alpha)[1:].mean())
        rows += each.sums.totals[arms["mine"], 0]
    mine, best = ([total / traffic for total in values[whose]] for whose in ("mine", "best"))
    return _point(
        OVERALL, alpha, "", rows=rows, n=evidence.weights.shape[1], reward=mine[0], cost=mine[1], best=(best[0], best[1]),
        held=held / float(traffic[0]),
    )  # fmt: skip


_CHANGES = ("segment", "alpha", "alpha_low", "alpha_high", "from_arm", "to_arm", "saving")


def _changes(evidence: Evidence, each: SegmentEstimates) -> list[dict[str, Any]]:
    """Arms in the order in which a growing alpha turns to them: each reaches the floor later and costs less than all before it."""
    rewards, costs = each.replicates["dr"]
    told = np.flatnonzero(each.usable)
    top = rewards[:, told].max(axis=1)
    arm = best_choice(each)
    rows = []
    needed = {int(other): 1.0 - rewards[:, other] / np.maximum(top, 1e-300) for other in told}
    for other in sorted(needed, key=lambda other: float(needed[other][0])):
        if costs[0, other] < costs[0, arm]:
            middle, low, high = spread(needed[other], evidence.weights.shape[1])
            saving = 1.0 - float(costs[0, other] / costs[0, best_choice(each)])
            ends = (each.sums.arms[arm], each.sums.arms[other])
            rows.append(dict(zip(_CHANGES, (each.sums.name, middle, max(low, 0.0), min(high, 1.0), *ends, saving), strict=True)))
            arm = other
    return rows


def _knee(points: Any) -> float:
    """The alpha at which the saving lies highest above the straight line from no saving to the largest, as shares of what is
    given up.

    The smallest such alpha; 0 where nothing is saved.
    """
    saving, given_up = points["saving"].to_numpy(), np.maximum(points["given_up"].to_numpy(), 0.0)
    if saving.max(initial=0.0) <= 0.0:
        return 0.0
    above = saving / saving.max() - given_up / max(float(given_up.max()), 1e-300)
    return float(points["alpha"][int(np.argmax(above.round(9)))])
