"""Pictures: the house style, and the one way curves with bands, maps and ranges are drawn. Needs the extra `plots`."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which people with colour-blindness can tell apart; line styles tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx")
FORMATS = (".png", ".svg", ".pdf")

LOOK = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "thrifty",  # the same picture gives the same bytes
}


@dataclass(frozen=True)
class Curve:
    """A line with a band around it: `middle` between `low` and `high` at every x."""

    x: NDArray[Any]
    middle: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]


@dataclass(frozen=True)
class Panel:
    """One set of axes: its labels and the curves in it, by the name in the legend.

    `marked` names the curves drawn with points, `loose` panels have points and no lines, `x_ticks` are said in full.
    """

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, Curve]
    x_scale: str = "linear"
    y_scale: str = "linear"
    marked: Sequence[str] = ()
    loose: bool = False
    x_ticks: Sequence[int] = ()


@dataclass(frozen=True)
class Map:
    """A grid of cells (rows, columns), each of which names one of several kinds and carries a short text."""

    title: str
    x_label: str
    y_label: str
    x_ticks: Sequence[str]
    y_ticks: Sequence[str]
    kinds: NDArray[np.int64]
    texts: Sequence[Sequence[str]]


def draw_panels(panels: Sequence[Panel], *, title: str | None, caption: str) -> "Figure":
    """Panels side by side over one shared legend and a caption that says what the bands are."""
    plt = pyplot()
    with plt.rc_context(LOOK):
        figure: Figure
        width = 5.6 if len(panels) == 1 else 4.2 * len(panels)
        figure, axes = plt.subplots(1, len(panels), figsize=(width, 4.1), layout="constrained", squeeze=False)
        names = list(dict.fromkeys(name for panel in panels for name in panel.curves))  # one look for one name, in all panels
        for panel, ax in zip(panels, axes[0], strict=True):
            for name, curve in panel.curves.items():
                number = names.index(name)
                colour = COLOURS[number % len(COLOURS)]
                marker = MARKERS[number % len(MARKERS)] if name in panel.marked else ""
                style = "none" if panel.loose else STYLES[number % len(STYLES)]
                ax.plot(curve.x, curve.middle, color=colour, linestyle=style, label=name, marker=marker, markersize=4)
                ax.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
            ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label, xscale=panel.x_scale, yscale=panel.y_scale)
            if panel.y_scale == "linear":
                top = max((float(curve.high.max()) for curve in panel.curves.values()), default=0.0) or 1.0
                ax.set_ylim(-0.02 * top, 1.05 * top)  # a little below zero, so that a curve that stays there is seen
            _set_ticks(ax, panel)
            ax.margins(x=0.06 if panel.loose else 0.01)
        _finish(figure, axes[0], title, caption)
    return figure


def draw_maps(maps: Sequence[Map], names: Sequence[str], *, title: str | None, caption: str) -> "Figure":
    """Maps side by side; a cell has the colour of its kind, which the legend names, and its text."""
    plt = pyplot()
    with plt.rc_context({**LOOK, "axes.grid": False}):
        figure: Figure
        figure, axes = plt.subplots(1, len(maps), figsize=(4.2 * len(maps), 4.4), layout="constrained", squeeze=False)
        for each, ax in zip(maps, axes[0], strict=True):
            for (row, column), kind in np.ndenumerate(each.kinds):
                square = plt.Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=COLOURS[kind], edgecolor="white", alpha=0.55)
                square.set_hatch(HATCHES[kind % len(HATCHES)])
                ax.add_patch(square)
                ax.text(column, row, each.texts[row][column], ha="center", va="center", fontsize=7)
            ax.set(
                title=each.title, xlabel=each.x_label, ylabel=each.y_label,
                xticks=range(len(each.x_ticks)), yticks=range(len(each.y_ticks)), xticklabels=each.x_ticks,
                yticklabels=each.y_ticks, xlim=(-0.5, len(each.x_ticks) - 0.5), ylim=(-0.5, len(each.y_ticks) - 0.5),
            )  # fmt: skip
            ax.tick_params(axis="x", labelrotation=45)
        for number, name in enumerate(names):
            hidden = plt.Rectangle((-9, -9), 1, 1, facecolor=COLOURS[number], edgecolor="white", alpha=0.55, label=name)
            hidden.set_hatch(HATCHES[number % len(HATCHES)])
            axes[0][0].add_patch(hidden)
        _finish(figure, axes[0], title, caption)
    return figure


def draw_ranges(ranges: Mapping[str, tuple[float, float]], *, x_label: str, title: str | None, caption: str) -> "Figure":
    """Named ranges as horizontal bars over a logarithmic axis; an open one ends in an arrow, an empty one says so."""
    plt = pyplot()
    with plt.rc_context(LOOK):
        figure: Figure
        figure, ax = plt.subplots(figsize=(6.4, 1.6 + 0.45 * len(ranges)), layout="constrained")
        ends = [end for low, high in ranges.values() for end in (low, high) if np.isfinite(end) and end > 0]
        left, right = min(ends) / 3, 3 * max(ends)
        for row, (low, high) in enumerate(ranges.values()):
            if low > high:
                ax.text(np.sqrt(left * right), row, "none", ha="center", va="center", fontstyle="italic")
            else:
                ax.plot([max(low, left), min(high, right)], [row, row], color=COLOURS[0], linewidth=7, solid_capstyle="butt")
                if not np.isfinite(high):
                    ax.annotate("", (right * 1.02, row), (right * 0.8, row), arrowprops={"arrowstyle": "->", "color": COLOURS[0]})
                shown = "and more" if not np.isfinite(high) else f"to {high:.3g}"
                ax.text(max(low, left), row + 0.28, f"{low:.3g} {shown}", fontsize=7)
            ax.axhline(row, color="#eeeeee", linewidth=0.6, zorder=0)
        ax.set(xscale="log", xlabel=x_label, yticks=range(len(ranges)), yticklabels=list(ranges), xlim=(left, right))
        ax.set_ylim(-0.6, len(ranges) - 0.2)
        ax.grid(axis="y", visible=False)
        _finish(figure, [ax], title, caption)
    return figure


def _set_ticks(ax: Any, panel: Panel) -> None:
    """Plain numbers on logarithmic axes that span less than two decades, and where `x_ticks` are given."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    plain = FuncFormatter(lambda value, _position: f"{value:,g}")
    for axis, scale in ((ax.xaxis, panel.x_scale), (ax.yaxis, panel.y_scale)):
        low, high = axis.get_view_interval()
        if scale == "log" and high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(plain)
    if panel.x_ticks:
        ax.xaxis.set_major_locator(FixedLocator(panel.x_ticks))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(plain)


def _finish(figure: "Figure", axes: Any, title: str | None, caption: str) -> None:
    """One legend for all axes below them, where it covers no data, and the caption above."""
    labelled = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if labelled:
        columns = int(figure.get_figwidth() / (0.55 + 0.068 * max(map(len, labelled))))  # inches of a handle and of a letter
        figure.legend(labelled.values(), labelled, loc="outside lower center", ncols=max(1, min(len(labelled), columns)))
    lines = textwrap.fill(caption, int(16 * figure.get_figwidth()))
    figure.suptitle(f"{title}\n{lines}" if title else lines, fontsize=8)


def save(figure: "Figure", path: Path) -> None:
    """Write a figure; its ending says how. The same figure gives the same bytes."""
    if path.suffix not in FORMATS:
        raise ValueError(f"a picture must end in {', '.join(FORMATS)}, got {path}")
    plt = pyplot()
    dates = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        with plt.rc_context(LOOK):
            figure.savefig(path, metadata=dates[path.suffix])
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from None
    finally:
        plt.close(figure)


def pyplot() -> Any:
    """matplotlib.pyplot without a screen, or a ValueError that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("pictures need matplotlib: pip install 'thrifty[plots]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot
