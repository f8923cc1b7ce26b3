"""What is expected of candidates and of choices: means over simulated worlds, with the middle 95% of the worlds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.advice.fit import SegmentFit
from thrifty.advice.fixed import fixed_arm
from thrifty.advice.play import Score
from thrifty.advice.selection import Scores, SegmentChoice, floor_held
from thrifty.logs.evidence import OVERALL
from thrifty.logs.frontier import Frontier
from thrifty.logs.savings import share_saved

Floats = NDArray[np.float64]

_MEANS = ("quality_regret", "cost_regret", "worth")


def candidate_row(fit: SegmentFit, alpha: float, label: str, scores: Scores) -> dict[str, Any]:
    """One candidate in one segment."""
    found = scores[fit.name, alpha, label]
    row: dict[str, Any] = {"segment": fit.name, "alpha": alpha, "policy": label, "worlds": len(found)}
    for name in ("quality", "cost", "given_up", "quality_regret", "cost_regret", "worth", "regret"):
        row |= _middle([getattr(score, name) for score in found], name)
    return {**row, "floor_held": floor_held(found, alpha)}


def expected_rows(
    choices: Sequence[SegmentChoice], scores: Scores, found: Frontier, start: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The choice of each segment, and all choices together, weighted by the traffic of the segments.

    `start` is what the warm start of each choice is worth, by segment.
    """
    traffic = sum(choice.fit.rows for choice in choices)
    rows, together = [], dict.fromkeys(_Values.__dataclass_fields__, np.zeros(1))
    for choice in choices:
        fit, mine = choice.fit, scores[choice.fit.name, choice.alpha, choice.policy]
        point = found.points.filter(segment=fit.name, alpha=choice.alpha).to_dicts()[0]
        values = _values(choice, mine)
        chosen: dict[str, Any] = {
            "policy": choice.policy,
            "alpha": choice.alpha,
            "arm": fixed_arm(choice.policy) or point["arm_now"],
        }
        means = {name: float(np.mean([getattr(score, name) for score in mine])) for name in _MEANS} | {"start": start[fit.name]}
        rows.append({"segment": fit.name, "rows": fit.rows, **chosen, **_compared(values), **means})
        for name, value in values.__dict__.items():
            together[name] = together[name] + fit.rows / traffic * np.asarray(value)
    chosen = {"policy": "", "alpha": None, "arm": ""}
    means = {name: sum(row[name] * row["rows"] for row in rows) / traffic for name in (*_MEANS, "start")}
    return [*rows, {"segment": OVERALL, "rows": traffic, **chosen, **_compared(_Values(**together)), **means}]


@dataclass(frozen=True, eq=False)
class _Values:
    """(worlds,) quality and cost of a choice, the smallest quality that its alpha allows, and those that it is compared with."""

    quality: Floats
    cost: Floats
    floor: Floats
    today_quality: Floats
    today_cost: Floats
    best_quality: Floats
    best_cost: Floats


def _values(choice: SegmentChoice, scores: list[Score]) -> _Values:
    best = np.array([score.best_quality for score in scores])
    return _Values(
        np.array([score.quality for score in scores]),
        np.array([score.cost for score in scores]),
        floor=(1.0 - choice.alpha) * best,
        today_quality=np.array(choice.fit.today[0]),
        today_cost=np.array(choice.fit.today[1]),
        best_quality=best,
        best_cost=np.array([score.best_cost for score in scores]),
    )


def _compared(values: _Values) -> dict[str, float]:
    quality, cost = values.quality, values.cost
    return {
        **_middle(quality, "quality"),
        **_middle(cost, "cost"),
        **_middle(quality - values.today_quality, "quality_change"),
        **_middle(share_saved(cost, values.today_cost), "saving"),
        **_middle(1.0 - quality / np.maximum(values.best_quality, 1e-300), "given_up_to_best"),
        **_middle(share_saved(cost, values.best_cost), "saving_to_best"),
        "floor_held": float(np.mean(quality >= values.floor * (1.0 - 1e-9))),
    }


def _middle(values: list[float] | Floats, name: str) -> dict[str, float]:
    """The mean, and the middle 95% of the worlds; NaN if a world has no value."""
    low, high = np.percentile(values, [2.5, 97.5])
    return {name: float(np.mean(values)), f"{name}_low": float(low), f"{name}_high": float(high)}
