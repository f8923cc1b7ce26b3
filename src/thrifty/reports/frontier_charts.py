"""Pictures of a frontier: quality against cost, overall and per segment."""

from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.logs import Frontier
from thrifty.logs.evidence import OVERALL
from thrifty.reports.drawing import COLOURS, GREY, STYLES, house_style, literal, make_axes
from thrifty.reports.labels import label_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SEGMENTS = 24
"""Segments drawn, those with the most rows first; the CSV has all."""

_COLUMNS = 4
_LONGEST_NAME = 12


def draw_frontier(found: Frontier) -> "Figure":
    """Overall: quality against cost with alpha beside the points, and what is saved and given up against alpha."""
    points = found.points.filter(segment=OVERALL)
    with house_style():
        figure, axes = make_axes(1, 2, size=(9.6, 4.2))
        _draw_plane(axes[0][0], found, points)
        _draw_savings(axes[0][1], points, knee=found.knees[OVERALL])
    return figure


def draw_segments(found: Frontier) -> "Figure":
    """Small multiples: the arms of every segment by cost and quality, and the steps that a growing alpha takes."""
    judged = [each for each in found.evidence.estimates if each.sums.name in found.knees]
    largest = sorted(judged, key=lambda each: -each.sums.rows)[:MOST_SEGMENTS]
    rows = -(-len(largest) // _COLUMNS)
    with house_style():
        figure, axes = make_axes(rows, _COLUMNS, size=(10.4, 2.5 * rows))
        for ax in axes.flat[len(largest) :]:
            ax.set_visible(False)
        for each, ax in zip(sorted(largest, key=lambda each: each.sums.name), axes.flat, strict=False):
            _draw_segment(ax, found, each)
        figure.supxlabel("cost a request", fontsize=8)
        figure.supylabel("quality (mean reward)", fontsize=8)
    return figure


def _draw_plane(ax: "Axes", found: Frontier, points: Any) -> None:
    """Quality against cost, with what was done today."""
    (quality, *_), (cost, *_) = found.evidence.today
    _draw_steps(ax, points, found.knee_points.filter(segment=OVERALL))
    ax.plot(cost, quality, "X", color=COLOURS[1], markersize=8, zorder=4)
    ax.set(xlabel="cost a request", ylabel="quality (mean reward)")
    ax.set_title("Up and left is better; numbers are alphas", fontsize=9)
    ax.margins(0.08)
    _label_steps(ax, points, today=(cost, quality))


def _draw_savings(ax: "Axes", points: Any, *, knee: float) -> None:
    """The shares of cost saved and of quality given up, against alpha."""
    from matplotlib.ticker import PercentFormatter

    alpha = points["alpha"].to_numpy()
    for number, (name, label) in enumerate((("saving", "saved, against always the best"), ("given_up", "quality given up"))):
        look: dict[str, Any] = {"color": COLOURS[number], "label": label, "linestyle": STYLES[number]}
        ax.plot(alpha, points[name].to_numpy(), drawstyle="steps-post", **look)
        low, high = points[f"{name}_low"].to_numpy(), points[f"{name}_high"].to_numpy()
        ax.fill_between(alpha, low, high, color=COLOURS[number], alpha=0.18, linewidth=0, step="post")
    ax.plot(alpha, alpha, color=GREY, linewidth=0.8, linestyle=":", label="allowed to give up: alpha")
    ax.axvline(knee, color=GREY, linewidth=0.8)
    ax.annotate("knee", (knee, 0.0), textcoords="offset points", xytext=(4, 4), fontsize=8, color="#555555")
    ax.set(xlabel="alpha", ylabel="share")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_title("What alpha buys and costs", fontsize=9)
    ax.legend(fontsize=8, loc="upper left", frameon=True, edgecolor="none", framealpha=0.9)


def _draw_segment(ax: "Axes", found: Frontier, estimates: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    name = estimates.sums.name
    usable = np.flatnonzero(estimates.usable)
    costs, rewards = estimates.cost()[usable], estimates.reward()[usable]
    ax.plot(costs, rewards, "o", color="#bbbbbb", markersize=3.5, zorder=2)
    points = found.points.filter(segment=name)
    _draw_steps(ax, points, found.knee_points.filter(segment=name))
    ax.set_title(f"{literal(name)}: {estimates.sums.rows:,} rows", fontsize=8)
    ax.tick_params(labelsize=6)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.margins(0.2, 0.14)
    names = [_shortened(estimates.sums.arms[arm]) for arm in usable]
    steps = _middle_of_each_choice(points)
    line = steps.select("cost", "quality").to_numpy()
    label_points(ax, np.column_stack([costs, rewards]), names, fontsize=6, obstacles=line, bars=_bars(steps))


def _shortened(name: str) -> str:
    """A name that fits beside a point.

    >>> _shortened("an aggregator with a long name")
    'an aggregat.'
    """
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}."


def first_of_each_choice(points: Any) -> Any:
    """Of the points of one segment, or of all, those at which the choice changes."""
    return points.unique(subset=["choice"], keep="first", maintain_order=True)


def _middle_of_each_choice(points: Any) -> Any:
    """Of the points with the same choice, the one in the middle: at the first, an arm is just on the floor, and little known."""
    middles = [rows["alpha"][rows.height // 2] for rows in points.partition_by("choice", maintain_order=True)]
    return points.filter(points["alpha"].is_in(middles))


def _bars(steps: Any) -> list[Any]:
    """The error bars of steps, each as two ends."""
    upright = [np.array([[row["cost"], row["quality_low"]], [row["cost"], row["quality_high"]]]) for row in steps.to_dicts()]
    level = [np.array([[row["cost_low"], row["quality"]], [row["cost_high"], row["quality"]]]) for row in steps.to_dicts()]
    return [*upright, *level]


def _draw_steps(ax: "Axes", points: Any, at_knee: Any) -> None:
    """The steps of a frontier, with their intervals; the knee is filled."""
    steps = _middle_of_each_choice(points)
    cost, quality = steps["cost"].to_numpy(), steps["quality"].to_numpy()
    errors: dict[str, Any] = {
        f"{axis}err": np.maximum([middle - steps[f"{name}_low"].to_numpy(), steps[f"{name}_high"].to_numpy() - middle], 0.0)
        for axis, name, middle in (("x", "cost", cost), ("y", "quality", quality))
    }
    look: dict[str, Any] = {"color": COLOURS[0], "marker": "o", "markersize": 4, "linewidth": 1.0, "elinewidth": 0.8}
    ax.errorbar(cost, quality, **errors, **look, markerfacecolor="white", zorder=3)
    ax.plot(at_knee["cost"].to_numpy(), at_knee["quality"].to_numpy(), "o", color=COLOURS[0], markersize=6, zorder=5)


def _label_steps(ax: "Axes", points: Any, *, today: tuple[float, float]) -> None:
    """Alpha beside each step that is far enough from the steps already labelled, and what was done today."""
    steps, alphas = _middle_of_each_choice(points), first_of_each_choice(points)["alpha"].to_list()
    places = steps.select("cost", "quality").to_numpy()
    extent = np.maximum(np.ptp(places, axis=0), 1e-300)
    chosen: list[int] = []
    for number, place in enumerate(places):
        if all(np.abs((place - places[other]) / extent).sum() > 0.09 for other in chosen):
            chosen.append(number)
    labelled = np.vstack([places[chosen], [today]])
    label_points(
        ax, labelled, [*(f"{alphas[number]:g}" for number in chosen), "today"], fontsize=7, obstacles=places, bars=_bars(steps)
    )
