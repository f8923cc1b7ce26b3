"""Figures as data: what to draw, without drawing. `thrifty.reports.drawing` draws them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Curve:
    """A line with a band around it: `middle` between `low` and `high` at every x."""

    x: NDArray[Any]
    middle: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]

    @classmethod
    def line(cls, x: NDArray[Any] | Sequence[float], values: Sequence[float]) -> "Curve":
        """A curve without a band, such as a bound.

        >>> Curve.line([1, 2], [0.5, 0.25]).high.tolist()
        [0.5, 0.25]
        """
        middle = np.asarray(values, dtype=float)
        return cls(np.asarray(x), middle, middle, middle)

    @classmethod
    def band(cls, x: NDArray[Any] | Sequence[float], middle: NDArray[np.float64], half: NDArray[np.float64]) -> "Curve":
        """A curve of values that are never negative, with a band of `half` to either side, cut off at 0.

        >>> Curve.band([1], np.array([1.0]), np.array([3.0])).low.tolist()
        [0.0]
        """
        return cls(np.asarray(x), middle, np.maximum(middle - half, 0.0), middle + half)


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes: its labels and the curves in it, by the name in the legend.

    `marked` names the curves drawn with points. A `loose` panel has points and no lines. `x_ticks` are written in full.
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


@dataclass(frozen=True, eq=False)
class Map:
    """A grid of cells (rows, columns); each cell is of one of several kinds and has a short text."""

    title: str
    x_label: str
    y_label: str
    x_ticks: Sequence[str]
    y_ticks: Sequence[str]
    kinds: NDArray[np.int64]
    texts: Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class PanelFigure:
    """Panels side by side over one shared legend; the caption says what the bands are."""

    panels: Sequence[Panel]
    title: str | None
    caption: str


@dataclass(frozen=True, eq=False)
class MapFigure:
    """Maps side by side; the legend has a name for each kind of cell."""

    maps: Sequence[Map]
    names: Sequence[str]
    title: str | None
    caption: str


@dataclass(frozen=True, eq=False)
class RangeFigure:
    """Named ranges (low, high) over a logarithmic axis; high may be infinite, and a range with low > high is empty."""

    ranges: Mapping[str, tuple[float, float]]
    x_label: str
    title: str | None
    caption: str


FigureData = PanelFigure | MapFigure | RangeFigure
