"""The picture of a simulation: quality and cost regret over time."""

import os
from pathlib import Path

from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.reports.drawing import checked_picture_path, draw, save
from thrifty.simulation import Runs, summarise


def plot_regret(runs: Runs, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Draw quality and cost regret over time into `path`: PNG, SVG or PDF by its ending."""
    save(draw(regret_figure(runs, title=title)), checked_picture_path(Path(path)))


def regret_figure(runs: Runs, *, title: str | None = None) -> PanelFigure:
    """Both regrets over time, a curve per policy, with bands of two standard errors."""
    panels = [
        Panel(f"{metric.capitalize()} regret", "round", f"cumulative {metric} regret", _curves(runs, metric))
        for metric in ("quality", "cost")
    ]
    caption = f"mean of {runs.results[0].pulls.shape[0]} runs; bands are two standard errors either way"
    return PanelFigure(panels, title or f"Regret over {runs.rounds:,} rounds", caption)


def _curves(runs: Runs, metric: str) -> dict[str, Curve]:
    summaries = {result.policy: summarise(runs.samples(result.policy)[metric]) for result in runs}
    return {policy: Curve.band(runs.checkpoints, each["mean"], 2 * each["se"]) for policy, each in summaries.items()}
