"""Pictures of a recommendation: saving and change of quality by segment, and the worth of every candidate."""

from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.advice import Recommendation
from thrifty.advice.fixed import fixed_arm
from thrifty.logs.evidence import OVERALL
from thrifty.reports.drawing import COLOURS, GREY, MARKERS, STYLES, house_style, literal, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DRAWN = 40
"""Segments that a picture shows; the files have all."""


def draw_choices(found: Recommendation) -> "Figure":
    """Saving and change of quality against today, a line per segment."""
    rows = found.segments.to_dicts()[-MOST_DRAWN - 1 :]
    with house_style():
        figure, axes = make_axes(1, 2, size=(9.6, 1.2 + 0.27 * len(rows)), sharey=True)
        _draw_changes(axes[0][0], rows, "saving")
        axes[0][0].set_xlabel("cost saved against today (%)")
        _draw_changes(axes[0][1], rows, "quality_change")
        axes[0][1].set_xlabel("change of quality, points")
        axes[0][0].set_yticks(np.arange(len(rows))[::-1], [literal(row["segment"]) for row in rows])
        figure.suptitle("Mean and middle 95% of simulated worlds", fontsize=8)
    return figure


def _draw_changes(ax: "Axes", rows: list[dict[str, Any]], name: str) -> None:
    """One value with its interval a row, the first row on top; the row of all segments stands out."""
    middle, low, high = (100.0 * np.array([row[f"{name}{end}"] for row in rows]) for end in ("", "_low", "_high"))
    places = np.arange(len(rows))[::-1]
    is_overall = np.array([row["segment"] == OVERALL for row in rows])
    for mask, colour, size in ((~is_overall, COLOURS[0], 4), (is_overall, COLOURS[1], 6)):
        errors = np.maximum([middle - low, high - middle], 0.0)[:, mask]
        ax.errorbar(middle[mask], places[mask], xerr=errors, fmt="o", color=colour, markersize=size, elinewidth=1.0)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.grid(axis="y", visible=False)


def draw_candidates(found: Recommendation) -> "Figure":
    """Mean worth of every policy against alpha, over all segments by their traffic."""
    with house_style():
        figure, axes = make_axes(1, 1, size=(6.0, 3.4))
        ax = axes[0][0]
        for number, (policy, (alphas, worths)) in enumerate(_worths(found).items()):
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            style = STYLES[number % len(STYLES)]
            ax.plot(alphas, worths, style, marker=marker, color=colour, label=literal(policy), markersize=5)
        ax.axhline(0.0, color=GREY, linewidth=0.8)
        ax.set(xlabel="alpha", ylabel="worth, per cent of the best arm's cost")
        ax.set_title("All segments together; 0 is always taking the best arm", fontsize=9)
        ax.legend(fontsize=8)
    return figure


def _worths(found: Recommendation) -> dict[str, tuple[list[float], list[float]]]:
    """By policy: the alphas, and at each the worth in per cent, averaged over segments by their rows."""
    rows_of = {choice.fit.name: choice.fit.rows for choice in found.choices}
    sums: dict[str, dict[float, float]] = {}
    for row in found.candidates.to_dicts():
        if fixed_arm(row["policy"]) is not None or row["segment"] not in rows_of:
            continue
        by_alpha = sums.setdefault(row["policy"], {})
        by_alpha[row["alpha"]] = by_alpha.get(row["alpha"], 0.0) + rows_of[row["segment"]] * row["worth"]
    total = sum(rows_of.values())
    return {
        policy: (sorted(by_alpha), [100.0 * by_alpha[alpha] / total for alpha in sorted(by_alpha)])
        for policy, by_alpha in sums.items()
    }
