"""Bins: the values of a column that has no meaning in `Columns`, as codes.

Numbers are put into bins of about equal size. Of other values the most frequent have a bin each, and so have values that come
later as long as there is room, so that a log in the order of a column is not pooled. What is beyond is pooled by its hash.
"""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats, Integers
from thrifty.logs.numbers import NumberStyle, number_style, parse_number
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.times import TimeStyle, parse_times, time_style
from thrifty.table import visible

if TYPE_CHECKING:
    import polars

EMPTY, OTHER = "(empty)", "(other)"

_PROBED = 1000  # values that show what a column of text holds
_NEARLY_ALL = 0.95


class Binning:
    """The bins of one column, from its values in the first batch of rows.

    Parameters
    ----------
    name : of the column
    values : in the first batch
    bins : the most values with a bin of their own
    intervals : the most bins of numbers, if there are more than `bins` different ones
    pools : the bins of values beyond `bins`
    edges : the upper ends of all but the last bin, if they are known

    """

    def __init__(
        self, name: str, values: "polars.Series", *, bins: int, intervals: int, pools: int = 1, edges: Floats | None = None
    ) -> None:
        self._name, self._bins, self._pools = visible(name), bins, pools
        self._style = _number_style_of(values)
        self._edges = edges
        self._codes: dict[str, int] = {}
        numbers = self._numbers(values)
        if edges is None and numbers is not None and numbers.n_unique() > bins:
            self._edges = np.unique(np.quantile(numbers.to_numpy(), np.arange(1, intervals) / intervals))
        self.ordered = numbers is not None or edges is not None
        """Whether neighbouring bins are alike: those of numbers."""

    @property
    def size(self) -> int:
        """One more than the largest code. The largest is that of empty cells."""
        return (self._bins + self._pools if self._edges is None else self._edges.size + 1) + 1

    @property
    def exact(self) -> NDArray[np.bool_]:
        """(size,) the bins that are not pools of different values."""
        places = np.arange(self.size)
        pools = (places >= self._bins) & (places < self.size - 1)
        return ~pools if self._edges is None else np.ones_like(pools)

    def encode(self, values: "polars.Series") -> Integers:
        """(n,) the code of each value."""
        pl = require_polars()
        if self._edges is not None:
            numbers = _as_numbers(values, self._style).to_numpy()
            return np.where(np.isnan(numbers), self.size - 1, np.searchsorted(self._edges, numbers, side="left"))
        text = values.cast(pl.String)
        self._learn(text)
        known = text.replace_strict([*self._codes, None, ""], [*self._codes.values(), *[self.size - 1] * 2], default=-1)
        codes = np.array(known.to_numpy(), np.int64)
        rest = codes < 0
        if rest.any():
            codes[rest] = self._bins + (text.filter(pl.Series(rest)).hash().to_numpy() % np.uint64(self._pools)).astype(np.int64)
        return codes

    def labels(self) -> list[str]:
        """The names of the bins, by code."""
        if self._edges is not None:
            spans = [_span(self._name, low, high) for low, high in pairwise([-math.inf, *self._edges.tolist(), math.inf])]
            return [*spans, f"{self._name} = {EMPTY}"]
        values = [*(visible(value) for value in self._codes), *[""] * (self._bins - len(self._codes))]
        return [f"{self._name} = {value}" for value in [*values, *[OTHER] * self._pools, EMPTY]]

    def ranks(self) -> Integers:
        """(size,) the places of the bins in the order in which they are listed: numbers by size, other values by name."""
        places = list(range(self.size))
        if self._edges is None:
            names = list(self._codes)
            if self.ordered:
                numbers = _as_numbers(require_polars().Series(names, dtype=require_polars().String), self._style).fill_null(
                    math.inf
                )
                places[: len(names)] = np.argsort(numbers.to_numpy(), kind="stable").tolist()
            else:
                places[: len(names)] = sorted(range(len(names)), key=names.__getitem__)
        ranks = np.empty(self.size, np.int64)
        ranks[places] = np.arange(self.size)
        return ranks

    def _learn(self, text: "polars.Series") -> None:
        """Give bins to values that have none yet, the most frequent first."""
        if len(self._codes) == self._bins:
            return
        counts = text.filter(text.is_not_null() & (text != "")).rename("value").value_counts(name="rows")
        for value in counts.sort(["rows", "value"], descending=[True, False])["value"].to_list():
            if len(self._codes) == self._bins:
                return
            self._codes.setdefault(value, len(self._codes))

    def _numbers(self, values: "polars.Series") -> "polars.Series | None":
        """The numbers of a column; None if some values are no numbers."""
        present = _present(values)
        if values.dtype == require_polars().Boolean or present.is_empty():
            return None
        numbers = _as_numbers(present, self._style).drop_nulls().drop_nans()
        return numbers if numbers.len() == present.len() else None


def names_rows(values: "polars.Series", share: float) -> bool:
    """Whether at least this share of the values of a column of text is different, as in a column of ids.

    >>> import polars
    >>> names_rows(polars.Series(["id-1", "id-2", "id-3"]), 0.8), names_rows(polars.Series([0.1, 0.2, 0.3]), 0.8)
    (True, False)
    """
    present = _present(values)
    style = _number_style_of(values)
    if present.is_empty() or _as_numbers(present, style).drop_nulls().len() == present.len():
        return False
    return present.n_unique() >= max(share * present.len(), 2)


def holds_times(values: "polars.Series") -> bool:
    """Whether a column holds dates or times, perhaps as text. Counts since 1970 are taken as numbers.

    >>> import polars
    >>> holds_times(polars.Series(["2026-01-31 10:00", "2026-02-01"])), holds_times(polars.Series(["1700000000"]))
    (True, False)
    """
    pl = require_polars()
    if values.dtype.is_temporal():
        return True
    present = _present(values).unique(maintain_order=True).head(_PROBED)
    if values.dtype != pl.String or present.is_empty() or present.str.contains(r"^[\s\d.,]*$").all():
        return False
    try:
        style = time_style(present, TimeStyle(), "")
    except ValueError:  # days and months cannot be told apart, but dates they are
        return True
    return parse_times(present, style).drop_nulls().len() >= _NEARLY_ALL * present.len()


def _present(values: "polars.Series") -> "polars.Series":
    present = values.drop_nulls()
    return present.filter(present != "") if present.dtype == require_polars().String else present


def _number_style_of(values: "polars.Series") -> NumberStyle:
    """How the numbers in a column of text are written; plain where this cannot be told."""
    if values.dtype != require_polars().String:
        return NumberStyle()
    try:
        return number_style(_present(values).unique(maintain_order=True).head(_PROBED), None, "")
    except ValueError:
        return NumberStyle()


def _as_numbers(values: "polars.Series", style: NumberStyle) -> "polars.Series":
    pl = require_polars()
    if values.dtype != pl.String:
        return values.cast(pl.Float64, strict=False)
    return values.to_frame("text").select(parse_number(pl, pl.col("text"), style)).to_series()


def _span(name: str, low: float, high: float) -> str:
    if math.isinf(low):
        return name if math.isinf(high) else f"{name} to {high:g}"
    return f"{name} above {low:g}" if math.isinf(high) else f"{name} above {low:g} to {high:g}"
