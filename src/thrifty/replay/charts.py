"""Pictures of a frontier: quality against cost, overall and per segment."""

from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty import pictures
from thrifty.replay.evidence import OVERALL
from thrifty.replay.frontier import Frontier

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4
MOST_SEGMENTS = 24
"""Segments drawn, those with the most rows first; the CSV has all."""


def draw_frontier(found: Frontier) -> "Figure":
    """Overall: quality against cost with alpha beside the points, and what is saved and given up against alpha."""
    plt = pictures.pyplot()
    points = found.points.filter(segment=OVERALL)
    today = found.evidence.today
    with plt.rc_context(pictures.LOOK):
        figure: Figure
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
        _draw_points(left, points, knee=found.knees[OVERALL], label=True)
        left.plot(today[1][0], today[0][0], "X", color=pictures.COLOURS[1], markersize=8, zorder=4)
        left.annotate("today", (today[1][0], today[0][0]), textcoords="offset points", xytext=(7, -10), fontsize=8)
        left.set(xlabel="cost a request", ylabel="quality (mean reward)")
        left.set_title("Up and left is better; numbers are alphas", fontsize=9)
        left.margins(0.08)
        alpha = points["alpha"].to_numpy()
        for number, (name, what) in enumerate((("saving", "saved, against always the best"), ("given_up", "quality given up"))):
            colour = pictures.COLOURS[number]
            right.plot(
                alpha, points[name].to_numpy(), color=colour, linestyle=pictures.STYLES[number], label=what, drawstyle="steps-post"
            )
            low, high = points[f"{name}_low"].to_numpy(), points[f"{name}_high"].to_numpy()
            right.fill_between(alpha, low, high, color=colour, alpha=0.18, linewidth=0, step="post")
        right.plot(alpha, alpha, color="#888888", linewidth=0.8, linestyle=":", label="allowed to give up: alpha")
        right.axvline(found.knees[OVERALL], color="#888888", linewidth=0.8)
        right.annotate("knee", (found.knees[OVERALL], 0.0), textcoords="offset points", xytext=(4, 4), fontsize=8, color="#555555")
        right.set(xlabel="alpha", ylabel="share")
        right.yaxis.set_major_formatter(_percent())
        right.set_title("What alpha buys and costs", fontsize=9)
        right.legend(fontsize=8, loc="upper left")
    return figure


def draw_segments(found: Frontier) -> "Figure":
    """Small multiples: the arms of every segment by cost and quality, and the steps that a growing alpha takes."""
    plt = pictures.pyplot()
    told = [each for each in found.evidence.estimates if each.sums.name in found.knees]
    told = sorted(sorted(told, key=lambda each: -each.sums.rows)[:MOST_SEGMENTS], key=lambda each: each.sums.name)
    rows = -(-len(told) // COLUMNS)
    with plt.rc_context(pictures.LOOK):
        figure: Figure
        figure, axes = plt.subplots(rows, COLUMNS, figsize=(10.4, 2.5 * rows), layout="constrained", squeeze=False)
        for ax in axes.flat[len(told) :]:
            ax.set_visible(False)
        for each, ax in zip(told, axes.flat, strict=False):
            points = found.points.filter(segment=each.sums.name)
            usable = np.flatnonzero(each.usable)
            costs, rewards = each.cost()[usable], each.reward()[usable]
            ax.plot(costs, rewards, "o", color="#bbbbbb", markersize=3.5, zorder=2)
            _draw_points(ax, points, knee=found.knees[each.sums.name], label=False)
            for place, arm in enumerate(usable):
                side = (4, 3) if costs[place] < costs.mean() else (-4, 3)
                anchor = "left" if costs[place] < costs.mean() else "right"
                name = each.sums.arms[arm]
                ax.annotate(
                    name if len(name) <= 12 else f"{name[:11]}.", (costs[place], rewards[place]), textcoords="offset points",
                    xytext=side, ha=anchor, fontsize=6, color="#444444",
                )  # fmt: skip
            ax.set_title(f"{each.sums.name}: {each.sums.rows:,} rows", fontsize=8)
            ax.tick_params(labelsize=6)
            ax.xaxis.set_major_locator(_few())
            ax.yaxis.set_major_locator(_few())
            ax.margins(0.14)
        figure.supxlabel("cost a request", fontsize=8)
        figure.supylabel("quality (mean reward)", fontsize=8)
    return figure


def _draw_points(ax: Any, points: Any, *, knee: float, label: bool) -> None:
    """The steps of a frontier, with its intervals; the knee is filled."""
    steps = points.unique(subset=["cost", "quality"], keep="first", maintain_order=True)
    cost, quality = steps["cost"].to_numpy(), steps["quality"].to_numpy()
    errors = np.maximum([quality - steps["quality_low"].to_numpy(), steps["quality_high"].to_numpy() - quality], 0.0)
    sides = np.maximum([cost - steps["cost_low"].to_numpy(), steps["cost_high"].to_numpy() - cost], 0.0)
    ax.errorbar(
        cost, quality, yerr=errors, xerr=sides, color=pictures.COLOURS[0], marker="o", markersize=4, linewidth=1.0, elinewidth=0.8,
        markerfacecolor="white", zorder=3,
    )  # fmt: skip
    at = points.filter(alpha=knee)
    ax.plot(at["cost"].to_numpy(), at["quality"].to_numpy(), "o", color=pictures.COLOURS[0], markersize=6, zorder=5)
    if label:
        shown: list[tuple[float, float]] = []
        width, height = float(np.ptp(cost)) or 1.0, float(np.ptp(quality)) or 1.0
        for alpha, x, y in zip(steps["alpha"].to_numpy(), cost, quality, strict=True):
            if all(abs(x - other[0]) / width + abs(y - other[1]) / height > 0.09 for other in shown):
                ax.annotate(f"{alpha:g}", (x, y), textcoords="offset points", xytext=(6, -9), fontsize=7)
                shown.append((x, y))


def _percent() -> Any:
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(1.0, decimals=0)


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)
