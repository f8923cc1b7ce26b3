"""Findings in a notebook: the picture and the files of every kind of result."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.advice import Recommendation
from thrifty.findings import Findings
from thrifty.logs import Frontier, Replay
from thrifty.questions import ArmComparison, Power, Readout, RoutingValue
from thrifty.reports.drawing import checked_picture_path, save
from thrifty.reports.forest import Forest, draw_forest
from thrifty.reports.frontier import frontier_files
from thrifty.reports.frontier_charts import draw_frontier
from thrifty.reports.recommendation import recommendation_files
from thrifty.reports.recommendation_charts import draw_choices

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_findings(found: Findings) -> "Figure":
    """The picture of a result."""
    return _DRAWINGS[type(found)](found)


def findings_files(found: Findings) -> dict[str, bytes]:
    """File names and contents of a result: those of its report, or its frames as CSV."""
    report = _REPORTS.get(type(found))
    if report is not None:
        return report(found)
    return {f"{name}.csv": frame.write_csv().encode() for name, frame in found.frames.items()}


def save_figure(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure into a file: PNG, SVG or PDF by its ending."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"a picture needs the path of a file that ends in .png, .svg or .pdf, got {path!r:.80}")
    save(figure, checked_picture_path(Path(path)))


def _draw_replay(found: Replay) -> "Figure":
    first = found.policies.unique(["policy", "alpha"], keep="first", maintain_order=True).to_dicts()
    rows = {row["policy"] + ("" if row["alpha"] is None else f", alpha {row['alpha']:g}"): row for row in first}
    columns = {"reward": "mean reward", "saving": "share of today's cost saved"}
    return draw_forest(Forest(rows, columns, "What other choices would have brought and saved, with 95% intervals"))


def _draw_power(found: Power) -> "Figure":
    rows = {f"{row['segment']}: {row['arm']} ({row['verdict']})": row for row in found.arms.to_dicts()}
    return draw_forest(Forest(rows, {"margin": "margin above the floor"}, found.headline(), zero=True))


def _draw_arms(found: ArmComparison) -> "Figure":
    rows = {f"{row['segment']}: {row['arm']} less {row['other']}": row for row in found.pairs.to_dicts()}
    columns = {"difference": "difference of mean reward", "cost_difference": "difference of cost"}
    return draw_forest(Forest(rows, columns, "Arm less arm; all intervals hold at once with 95%", zero=True))


def _draw_value(found: RoutingValue) -> "Figure":
    rows = {row["segment"]: row for row in found.segments.to_dicts()}
    columns = {"reward_change": "change of mean reward against today", "saving": "share of today's cost saved"}
    return draw_forest(Forest(rows, columns, "The given routing against today, with 95% intervals", zero=True))


def _draw_readout(found: Readout) -> "Figure":
    rows = {f"{row['until']} ({row['treated'] + row['control']:,})": row for row in found.looks.tail(20).to_dicts()}
    columns = {"given_up": f"share of the reward of {found.experiment.control} given up", "saving": "share of its cost saved"}
    return draw_forest(Forest(rows, columns, "All intervals hold at once with 95%", zero=True))


_DRAWINGS: dict[type, Callable[[Any], "Figure"]] = {
    Frontier: draw_frontier,
    Recommendation: draw_choices,
    Replay: _draw_replay,
    Power: _draw_power,
    ArmComparison: _draw_arms,
    RoutingValue: _draw_value,
    Readout: _draw_readout,
}
_REPORTS: dict[type, Callable[[Any], dict[str, bytes]]] = {
    Frontier: frontier_files,
    Recommendation: recommendation_files,
}
