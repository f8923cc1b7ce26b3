"""Pictures: the house style, and the one way curves with bands are drawn. Needs the extra `plots`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which people with colour-blindness can tell apart; line styles tell them apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES = ("-", "--", "-.", ":")
FORMATS = (".png", ".svg", ".pdf")

_LOOK = {
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
    """One set of axes: its labels and the curves in it, by the name in the legend."""

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, Curve]


def draw_panels(panels: Sequence[Panel], *, title: str | None, caption: str) -> "Figure":
    """Panels side by side over one shared legend and a caption that says what the bands are."""
    plt = pyplot()
    with plt.rc_context(_LOOK):
        figure: Figure
        figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.9), layout="constrained", squeeze=False)
        for panel, ax in zip(panels, axes[0], strict=True):
            for number, (name, curve) in enumerate(panel.curves.items()):
                colour = COLOURS[number % len(COLOURS)]
                ax.plot(curve.x, curve.middle, color=colour, linestyle=STYLES[number % len(STYLES)], label=name)
                ax.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
            ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            top = max((float(curve.high.max()) for curve in panel.curves.values()), default=0.0) or 1.0
            ax.set_ylim(-0.02 * top, 1.05 * top)  # a little below zero, so that a curve that stays there is seen
            ax.margins(x=0.01)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))
        figure.suptitle(f"{title}\n{caption}" if title else caption, fontsize=8)
    return figure


def save(figure: "Figure", path: Path) -> None:
    """Write a figure; its ending says how. The same figure gives the same bytes."""
    if path.suffix not in FORMATS:
        raise ValueError(f"a picture must end in {', '.join(FORMATS)}, got {path}")
    plt = pyplot()
    dates = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        with plt.rc_context(_LOOK):
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
