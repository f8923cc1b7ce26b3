"""The picture of a simulation: regret over time."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.reports.drawing import checked_picture_path, draw, draw_panel, house_style, save
from thrifty.simulation import METRICS, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = {
    "interval": ("mean", "low", "high", "mean of {runs} runs; bands are 95% intervals of the mean"),
    "quantiles": ("median", "q05", "q95", "median of {runs} runs; bands have 5% to 95% of the runs"),
}
"""What a band shows: the statistics of its middle, its lower and its upper edge, and the caption."""


def plot_regret(
    runs: Runs, path: str | os.PathLike[str], *, metrics: tuple[str, ...], band: str = "interval", title: str | None = None
) -> None:
    """Draw regret over time into `path`: PNG, SVG or PDF by its ending."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"a picture needs the path of a file that ends in .png, .svg or .pdf, got {path!r:.80}")
    save(draw(regret_figure(runs, metrics=metrics, band=band, title=title)), checked_picture_path(Path(path)))


def regret_figure(
    runs: Runs, *, metrics: tuple[str, ...] = ("quality", "cost"), band: str = "interval", title: str | None = None
) -> PanelFigure:
    """Regrets over time, one panel a metric, a curve per policy."""
    panels = [regret_panel(runs, metric, band) for metric in metrics]
    caption = BANDS[band][-1].format(runs=runs.results[0].pulls.shape[0])
    return PanelFigure(panels, title or f"Regret over {runs.rounds:,} rounds", caption)


def draw_regret(runs: Runs, ax: "Axes", *, metric: str, band: str = "interval", title: str | None = None) -> None:
    """Draw one regret over time into axes of your own, with a legend."""
    panel = regret_panel(runs, metric, band)
    with house_style():
        draw_panel(ax, panel, list(panel.curves))
        ax.legend()
        ax.set_title(panel.title if title is None else title)


def regret_panel(runs: Runs, metric: str, band: str) -> Panel:
    """One regret over time with a curve per policy. `band` is "interval" or "quantiles"."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r:.80}")
    if band not in BANDS:
        raise ValueError(f"band must be one of {', '.join(BANDS)}, got {band!r:.80}")
    middle, low, high, _ = BANDS[band]
    found = {result.policy: runs.summaries(result.policy)[metric] for result in runs}
    curves = {policy: Curve(runs.checkpoints, each[middle], each[low], each[high]) for policy, each in found.items()}
    return Panel(f"{metric.capitalize()} regret", "round", f"cumulative {metric} regret", curves)
