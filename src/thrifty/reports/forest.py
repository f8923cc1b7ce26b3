"""Forest plots: a value with its interval a row, one panel for each kind of value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.reports.drawing import COLOURS, GREY, house_style, literal, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DRAWN = 40
"""Rows that a picture shows; the frames have all."""


@dataclass(frozen=True)
class Forest:
    """Rows of numbers by label, the columns to draw with the text of their axes, and a title.

    A column `x` is drawn with the interval from `x_low` to `x_high`. A row may lack a number.
    """

    rows: Mapping[str, Mapping[str, Any]]
    columns: Mapping[str, str]
    title: str
    zero: bool = False


def draw_forest(data: Forest) -> "Figure":
    """Draw the first `MOST_DRAWN` rows, the first one on top."""
    rows = list(data.rows.values())[:MOST_DRAWN]
    labels = [literal(label) for label in list(data.rows)[:MOST_DRAWN]]
    with house_style():
        figure, axes = make_axes(1, len(data.columns), size=(2.0 + 3.8 * len(data.columns), 1.2 + 0.27 * len(rows)), sharey=True)
        for ax, (name, text) in zip(axes[0], data.columns.items(), strict=True):
            _draw_column(ax, rows, name)
            ax.set_xlabel(text)
            if data.zero:
                ax.axvline(0.0, color=GREY, linewidth=0.8)
        axes[0][0].set_yticks(np.arange(len(rows))[::-1], labels)
        figure.suptitle(data.title, fontsize=8)
    return figure


def _draw_column(ax: "Axes", rows: list[Mapping[str, Any]], name: str) -> None:
    ends = [[row.get(f"{name}{end}") for row in rows] for end in ("", "_low", "_high")]
    middle, low, high = (np.array([np.nan if value is None else value for value in each], dtype=float) for each in ends)
    low, high = np.where(np.isfinite(low), low, middle), np.where(np.isfinite(high), high, middle)
    shown = np.isfinite(middle)
    errors = np.maximum([middle - low, high - middle], 0.0)[:, shown]
    ax.errorbar(
        middle[shown], np.arange(len(rows))[::-1][shown], xerr=errors, fmt="o", color=COLOURS[0], markersize=4, elinewidth=1.0
    )
    ax.grid(axis="y", visible=False)
