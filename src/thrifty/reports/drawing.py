"""Drawing: the house style of pictures, and how the figures of `thrifty.figures` are drawn. Needs the extra `plots`."""

import io
import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.figures import FigureData, Map, MapFigure, Panel, PanelFigure, RangeFigure
from thrifty.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

# Okabe and Ito's palette, which people with colour-blindness can tell apart; line styles tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx")
GREY = "#888888"

_FONT = "DejaVu Sans"  # comes with matplotlib
_LOOK: dict[Any, Any] = {
    "font.family": _FONT,
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
_METADATA: Mapping[str, Mapping[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


@contextmanager
def house_style(**changes: Any) -> Iterator[None]:
    """Draw in the house style, with changes to it; a ValueError says how to install matplotlib if it is missing."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("pictures need matplotlib: pip install 'thrifty[plots]'") from None
    with matplotlib.rc_context(_LOOK | changes):
        yield


def check_pictures() -> None:
    """A ValueError if nothing can be drawn here, before any work is done."""
    with house_style():
        pass


def make_axes(rows: int, columns: int, *, size: tuple[float, float], **options: Any) -> tuple["Figure", Any]:
    """A figure of `size` inches and its (rows, columns) axes. Call it within `house_style`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def draw(data: FigureData) -> "Figure":
    """Draw a figure that is described as data."""
    if isinstance(data, PanelFigure):
        return _draw_panels(data)
    return _draw_maps(data) if isinstance(data, MapFigure) else _draw_ranges(data)


def image(figure: "Figure", ending: str) -> bytes:
    """The figure as a PNG, SVG or PDF file, by the ending. The same figure gives the same bytes."""
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format=ending[1:], metadata=dict(_METADATA[ending]))
    return buffer.getvalue()


def literal(text: str) -> str:
    r"""A name from outside as matplotlib draws it letter by letter; otherwise text between dollar signs would be a formula.

    Letters that the font of the pictures does not have (Chinese, emoji) are drawn as their codes.

    >>> print(literal("$5 route"), literal("\N{ROCKET} DE"))
    \$5 route [1F680] DE
    """
    drawn = _drawn_letters()
    pieces = [(letter in drawn, letter) for letter in text]
    shown = [
        "".join(letter for _, letter in run) if known else f"[{' '.join(f'{ord(letter):X}' for _, letter in run)}]"
        for known, run in ((known, list(run)) for known, run in itertools.groupby(pieces, key=lambda piece: piece[0]))
    ]
    return "".join(shown).replace("$", r"\$")


@cache
def _drawn_letters() -> frozenset[str]:
    """The letters that the font of the pictures has."""
    from matplotlib.font_manager import findfont, get_font

    return frozenset(chr(code) for code in get_font(findfont(_FONT)).get_charmap() if code >= 32)


def checked_picture_path(path: Path) -> Path:
    """The path, if it ends like a picture.

    >>> checked_picture_path(Path("fig.bmp"))
    Traceback (most recent call last):
    ValueError: a picture must end in .png, .svg, .pdf, got fig.bmp
    """
    if path.suffix not in _METADATA:
        raise ValueError(f"a picture must end in {', '.join(_METADATA)}, got {path}")
    return path


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format that the path's ending names."""
    write_whole(checked_picture_path(path), image(figure, path.suffix))


def _draw_panels(data: PanelFigure) -> "Figure":
    with house_style():
        width = 5.6 if len(data.panels) == 1 else 4.2 * len(data.panels)
        figure, axes = make_axes(1, len(data.panels), size=(width, 4.1))
        names = list(dict.fromkeys(name for panel in data.panels for name in panel.curves))  # one look for one name, in all panels
        for panel, ax in zip(data.panels, axes[0], strict=True):
            draw_panel(ax, panel, names)
        _finish(figure, axes[0], data)
    return figure


def draw_panel(ax: "Axes", panel: Panel, names: Sequence[str]) -> None:
    """Draw one panel into axes of your own. A curve looks as its place in `names` says."""
    for name in panel.curves:
        _draw_curve(ax, panel, name, number=names.index(name))
    ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label, xscale=panel.x_scale, yscale=panel.y_scale)
    if panel.y_scale == "linear":
        top = max((float(np.nanmax(curve.high)) for curve in panel.curves.values()), default=0.0) or 1.0
        ax.set_ylim(-0.02 * top, 1.05 * top)  # a little below zero, so that a curve that stays there is seen
    _set_ticks(ax, panel)
    ax.margins(x=0.06 if panel.loose else 0.01)


def _draw_curve(ax: "Axes", panel: Panel, name: str, *, number: int) -> None:
    curve, colour = panel.curves[name], COLOURS[number % len(COLOURS)]
    marker = MARKERS[number % len(MARKERS)] if name in panel.marked else ""
    style = "none" if panel.loose else STYLES[number % len(STYLES)]
    ax.plot(curve.x, curve.middle, color=colour, linestyle=style, label=literal(name), marker=marker, markersize=4)
    ax.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)


def _draw_maps(data: MapFigure) -> "Figure":
    with house_style(**{"axes.grid": False}):
        figure, axes = make_axes(1, len(data.maps), size=(4.2 * len(data.maps), 4.4))
        for each, ax in zip(data.maps, axes[0], strict=True):
            _draw_map(ax, each)
        for number, name in enumerate(data.names):
            _add_square(axes[0][0], (-9, -9), number, label=name)  # outside the view, for the legend
        _finish(figure, axes[0], data)
    return figure


def _draw_map(ax: "Axes", data: Map) -> None:
    for (row, column), kind in np.ndenumerate(data.kinds):
        _add_square(ax, (column, row), int(kind))
        ax.text(column, row, data.texts[row][column], ha="center", va="center", fontsize=7)
    columns, rows = len(data.x_ticks), len(data.y_ticks)
    ax.set(title=data.title, xlabel=data.x_label, ylabel=data.y_label, xlim=(-0.5, columns - 0.5), ylim=(-0.5, rows - 0.5))
    ax.set_xticks(range(columns), data.x_ticks, rotation=45)
    ax.set_yticks(range(rows), data.y_ticks)


def _add_square(ax: "Axes", centre: tuple[int, int], kind: int, label: str | None = None) -> None:
    from matplotlib.patches import Rectangle

    corner, hatch = (centre[0] - 0.5, centre[1] - 0.5), HATCHES[kind % len(HATCHES)]
    ax.add_patch(Rectangle(corner, 1, 1, facecolor=COLOURS[kind], edgecolor="white", alpha=0.55, hatch=hatch, label=label))


def _draw_ranges(data: RangeFigure) -> "Figure":
    ranges = data.ranges
    with house_style():
        figure, axes = make_axes(1, 1, size=(6.4, 1.6 + 0.45 * len(ranges)))
        ax = axes[0][0]
        ends = [end for low, high in ranges.values() for end in (low, high) if np.isfinite(end) and end > 0]
        view = min(ends) / 3, 3 * max(ends)
        for row, ends_of_row in enumerate(ranges.values()):
            _draw_range(ax, row, ends_of_row, view)
        ax.set(xscale="log", xlabel=data.x_label, yticks=range(len(ranges)), yticklabels=list(ranges), xlim=view)
        ax.set_ylim(-0.6, len(ranges) - 0.2)
        ax.grid(axis="y", visible=False)
        _finish(figure, axes[0], data)
    return figure


def _draw_range(ax: "Axes", row: int, ends: tuple[float, float], view: tuple[float, float]) -> None:
    """One range as a bar; an open one ends in an arrow, an empty one is the word "none"."""
    (low, high), (left, right) = ends, view
    ax.axhline(row, color="#eeeeee", linewidth=0.6, zorder=0)
    if low > high:
        ax.text(np.sqrt(left * right), row, "none", ha="center", va="center", fontstyle="italic")
        return
    ax.plot([max(low, left), min(high, right)], [row, row], color=COLOURS[0], linewidth=7, solid_capstyle="butt")
    if not np.isfinite(high):
        ax.annotate("", (right * 1.02, row), (right * 0.8, row), arrowprops={"arrowstyle": "->", "color": COLOURS[0]})
    end = f"to {high:.3g}" if np.isfinite(high) else "and more"
    ax.text(max(low, left), row + 0.28, f"{low:.3g} {end}", fontsize=7)


def _set_ticks(ax: "Axes", panel: Panel) -> None:
    """Thinned ticks on logarithmic axes, and plain numbers where `x_ticks` are given."""
    from matplotlib.ticker import FixedLocator

    for axis, scale in ((ax.xaxis, panel.x_scale), (ax.yaxis, panel.y_scale)):
        if scale == "log":
            thin_ticks(axis)
    if panel.x_ticks:
        _set_plain_ticks(ax.xaxis, FixedLocator(panel.x_ticks))


def thin_ticks(axis: "Axis") -> None:
    """Plain numbers 1, 2, 5, 10, ... on a logarithmic axis that spans less than two decades; else labels would overlap."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    if high < 100 * low:
        _set_plain_ticks(axis, LogLocator(subs=(1.0, 2.0, 5.0)))


def _set_plain_ticks(axis: "Axis", locator: "Locator") -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axis.set_major_locator(locator)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,g}"))


def _finish(figure: "Figure", axes: Any, data: FigureData) -> None:
    """One legend for all axes below them, where it covers no data, and the title and caption above."""
    labelled = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if labelled:
        columns = int(figure.get_figwidth() / (0.55 + 0.068 * max(map(len, labelled))))  # inches of a handle and of a letter
        figure.legend(labelled.values(), labelled, loc="outside lower center", ncols=max(1, min(len(labelled), columns)))
    caption = textwrap.fill(data.caption, int(16 * figure.get_figwidth()))
    figure.suptitle(f"{data.title}\n{caption}" if data.title else caption, fontsize=8)
