"""Labels beside points, placed so that they hide neither each other nor what is drawn."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thrifty.reports.drawing import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Where a label may stand: which end of it is anchored, and how far from the point, in heights of a letter; the nearest first.
_PLACES = (
    ("left", (0.6, 0.4)),
    ("right", (-0.6, 0.4)),
    ("left", (0.7, -0.4)),
    ("right", (-0.7, -0.4)),
    ("left", (0.6, -1.4)),
    ("right", (-0.6, -1.4)),
    ("center", (0.0, 0.9)),
    ("center", (0.0, -1.9)),
    *((side, (shift, height)) for height in (1.6, -2.6, 2.8, -3.8, 4.0, -5.0) for side, shift in (("left", 0.6), ("right", -0.6))),
)
_LETTER = 0.58  # width of a letter over its height
_MARK = 2.5  # half the width of a mark, in points
_OUTSIDE = 1000.0  # the cost of leaving the axes


def label_points(
    ax: "Axes",
    points: Floats,
    names: Sequence[str],
    *,
    fontsize: float,
    obstacles: Floats | None = None,
    bars: Sequence[Floats] = (),
) -> None:
    """Write a name beside each point; call it when everything else is drawn.

    Parameters
    ----------
    ax : the axes, with their final limits
    points : (n, 2) the points, in data units
    names : of the points
    fontsize : in points
    obstacles : (m, 2) a line through what else should stay visible, in data units; the points themselves always count
    bars : (2, 2) the ends of lines of their own, such as error bars, that should stay visible too

    """
    size = _size_points(ax)
    places = _on_axes(ax, points) * size
    lines = [each for each in (obstacles, *bars) if each is not None]
    drawn = np.vstack([places, *(_along(_on_axes(ax, each) * size) for each in lines)])
    taken: list[Floats] = []
    for point, place, name in zip(points, places, names, strict=True):
        box, shift, side = _best_place(place, (_LETTER * fontsize * len(name), 1.1 * fontsize), drawn, taken, size)
        taken.append(box)
        look: dict[str, Any] = {"fontsize": fontsize, "ha": side, "color": "#333333", "zorder": 6}
        ax.annotate(literal(name), (point[0], point[1]), textcoords="offset points", xytext=shift, **look)


def _best_place(
    place: Floats, extent: tuple[float, float], drawn: Floats, taken: list[Floats], size: Floats
) -> tuple[Floats, tuple[float, float], str]:
    """The box (left, bottom, right, top), shift and anchored side that hide the least; the first of equals."""
    width, height = extent
    starts = {"left": 0.0, "right": -width, "center": -width / 2}
    options = []
    for side, (right, up) in _PLACES:
        shift = (right * height, up * height)
        corner = place + shift + (starts[side], 0.0)
        options.append((np.concatenate([corner, corner + extent]), shift, side))
    return min(options, key=lambda option: _hidden(option[0], drawn, taken, size))


def _hidden(box: Floats, drawn: Floats, taken: list[Floats], size: Floats) -> float:
    """How much a label in this box would hide: points drawn, area of other labels, and what is outside of the axes."""
    points = int(((drawn > box[:2] - _MARK) & (drawn < box[2:] + _MARK)).all(axis=1).sum())
    shared = [np.clip(np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2]), 0.0, None).prod() for other in taken]
    outside = float(np.clip(-box[:2], 0.0, None).sum() + np.clip(box[2:] - size, 0.0, None).sum())
    return points + float(np.sum(shared)) + (_OUTSIDE + outside if outside > 1.0 else 0.0)


def _size_points(ax: "Axes") -> Floats:
    """About the width and height of the axes, in points; the exact size is known only when the figure is drawn."""
    figure, grid = ax.get_figure(root=True), ax.get_subplotspec()
    assert figure is not None
    assert grid is not None
    rows, columns = grid.get_gridspec().get_geometry()
    return 72.0 * 0.85 * figure.get_size_inches() / (columns, rows)


def _on_axes(ax: "Axes", points: Floats) -> Floats:
    """Points in data units as fractions of the axes."""
    view = np.array([ax.get_xlim(), ax.get_ylim()]).T
    scaled, (low, high) = ax.transScale.transform(points), ax.transScale.transform(view)
    return np.asarray((scaled - low) / (high - low))


def _along(corners: Floats) -> Floats:
    """Points along the line through the corners, close enough together to count."""
    steps = np.linspace(0.0, 1.0, 12, endpoint=False)[:, np.newaxis]
    pieces = [start + steps * (end - start) for start, end in itertools.pairwise(corners)]
    return np.vstack([*pieces, corners[-1:]])
