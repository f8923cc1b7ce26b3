"""Context: a second pass over a log that sums rewards and costs by segment, arm and the values of its other columns.

The choice of an arm may depend on columns that have no meaning in `Columns` (the amount of a payment, the kind of card). If the
reward depends on them too, a comparison of arms is confounded. `context_columns` lists these columns, `context_sums` has what a
test of dependence, a stratified estimate or an outcome model needs. Numbers are put into bins of about equal size, other values
beyond the most frequent ones are pooled, so that memory is bounded.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.reading import MOST_ARMS, Log, LogBatch
from thrifty.suggestions import did_you_mean
from thrifty.table import visible

if TYPE_CHECKING:
    import polars

HOUR = "hour of day"
"""The name of a column that every log with times has: the hour in UTC, 0 to 23."""

EMPTY, OTHER = "(empty)", "(other)"
CONTEXT_SUMS = 5
"""The sums of a cell: rows, rewards, squared rewards, costs, squared costs."""


class SegmentContext(NamedTuple):
    """The arms of one segment, by name, and (K, V, CONTEXT_SUMS) their sums by value."""

    arms: tuple[str, ...]
    sums: Floats


@dataclass(frozen=True, eq=False)
class ContextSums:
    """Sums by segment, arm and the joint values of some columns.

    `values` are the V names of the joint values, such as "card = amex, amount 10 to 25". `segments` has the sums of each segment.
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    segments: Mapping[str, SegmentContext]


def context_columns(log: Log) -> tuple[str, ...]:
    """The columns of a log that have no meaning in its `Columns`, and `HOUR` if the log has times.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a"], "reward": [1], "cost": [1], "card": ["amex"]})
    >>> context_columns(Log(frame))
    ('card',)
    """
    named = set(log.columns.named().values())
    others = tuple(name for name in log.column_names if name not in named)
    return (*others, HOUR) if log.timed else others


def context_sums(
    log: Log, groups: Sequence[Sequence[str]], *, bins: int = 8, progress: Callable[[int], None] | None = None
) -> tuple[ContextSums, ...]:
    """Read the log once more and sum it up by segment, arm and the joint values of each group of columns.

    Parameters
    ----------
    log : see `Log`
    groups : for each result, the columns whose joint values it has; see `context_columns`
    bins : the most values of one column; bins and frequent values are found in the first batch of rows
    progress : called with the rows read so far

    >>> import polars
    >>> rows = {"arm": ["a", "b"] * 4, "reward": [1, 0] * 4, "cost": [1] * 8, "card": ["amex"] * 6 + ["visa"] * 2}
    >>> (found,) = context_sums(Log(polars.DataFrame(rows)), [["card"]])
    >>> found.values, found.segments["all"].arms
    (('card = amex', 'card = visa'), ('a', 'b'))
    >>> found.segments["all"].sums[:, :, 0].tolist()  # rows
    [[3.0, 1.0], [3.0, 1.0]]

    """
    known = context_columns(log)
    for name in dict.fromkeys(name for group in groups for name in group):
        if name not in known:
            raise ValueError(f"no column {name!r} to compare by: {did_you_mean(name, known, otherwise=', '.join(known) or 'none')}")
    wanted = tuple(dict.fromkeys(name for group in groups for name in group))
    read = tuple(name for name in wanted if name != HOUR)
    binnings: dict[str, _Binning] = {}
    tables = [_CellTable() for _ in groups]
    for batch in log.batches(progress, context=read):
        if batch.arms.size == 0:
            continue
        if not binnings:
            binnings = {name: _binning(name, _values(batch, name), bins) for name in wanted}
        codes = {name: binnings[name].encode(_values(batch, name)) for name in wanted}
        for group, table in zip(groups, tables, strict=True):
            joint, size = _joint(group, codes, binnings)
            table.add(batch, joint, size)
    return tuple(_summed(log, group, table, binnings) for group, table in zip(groups, tables, strict=True))


def _values(batch: LogBatch, name: str) -> "polars.Series":
    pl = require_polars()
    if name == HOUR:
        return pl.Series(np.floor(batch.times / 3600.0) % 24.0)  # type: ignore[no-any-return]
    assert batch.context is not None
    return batch.context[name]


class _Binning:
    """The bins of one column: upper ends of all but the last bin for numbers, or the most frequent values."""

    def __init__(self, name: str, edges: Floats | None, frequent: list[str]) -> None:
        self.edges, self.frequent = edges, frequent
        name = visible(name)
        if edges is None:
            self.labels = [*(f"{name} = {visible(value)}" for value in frequent), f"{name} = {OTHER}"]
        else:
            ends = [-math.inf, *edges.tolist(), math.inf]
            self.labels = [_span(name, low, high) for low, high in pairwise(ends)]
        self.labels.append(f"{name} = {EMPTY}")

    def encode(self, values: "polars.Series") -> Integers:
        """(n,) the bin of each value; the last bin is that of empty cells."""
        pl = require_polars()
        if self.edges is not None:
            numbers = values.cast(pl.Float64, strict=False).to_numpy()
            return np.where(np.isnan(numbers), self.edges.size + 1, np.searchsorted(self.edges, numbers, side="left"))
        codes = values.cast(pl.String).replace_strict(
            [*self.frequent, None, ""],
            [*range(len(self.frequent)), len(self.frequent) + 1, len(self.frequent) + 1],
            default=len(self.frequent),
            return_dtype=pl.Int64,
        )
        return np.asarray(codes.to_numpy(), np.int64)


def _span(name: str, low: float, high: float) -> str:
    if math.isinf(low):
        return name if math.isinf(high) else f"{name} to {high:g}"
    return f"{name} above {low:g}" if math.isinf(high) else f"{name} above {low:g} to {high:g}"


def _binning(name: str, values: "polars.Series", bins: int) -> _Binning:
    pl = require_polars()
    present = values.drop_nulls()
    numbers = present.cast(pl.Float64, strict=False).drop_nulls().drop_nans()
    if values.dtype != pl.Boolean and numbers.len() == present.len() > 0 and numbers.n_unique() > bins:
        edges = np.unique(np.quantile(numbers.to_numpy(), np.arange(1, bins) / bins))
        return _Binning(name, edges, [])
    text = present.cast(pl.String)
    counts = text.filter(text != "").value_counts().sort(["count", text.name], descending=[True, False]).head(bins)
    return _Binning(name, None, sorted(counts[text.name].to_list()))


def _joint(group: Sequence[str], codes: Mapping[str, Integers], binnings: Mapping[str, _Binning]) -> tuple[Integers, int]:
    joint, size = np.zeros(next(iter(codes.values())).size, np.int64), 1
    for name in group:
        joint = joint * len(binnings[name].labels) + codes[name]
        size *= len(binnings[name].labels)
    return joint, size


class _CellTable:
    """Sums by a key made of segment, arm and value; only cells that have rows are kept."""

    def __init__(self) -> None:
        self.keys, self.sums = np.zeros(0, np.int64), np.zeros((0, CONTEXT_SUMS))

    def add(self, batch: LogBatch, values: Integers, size: int) -> None:
        keys = (batch.segments.astype(np.int64) * MOST_ARMS + batch.arms) * size + values
        found, places = np.unique(keys, return_inverse=True)
        r, c = batch.rewards, batch.costs
        rows = np.column_stack([np.bincount(places, each, found.size) for each in (np.ones_like(r), r, r * r, c, c * c)])
        together, places = np.unique(np.concatenate([self.keys, found]), return_inverse=True)
        sums = np.zeros((together.size, CONTEXT_SUMS))
        sums[places[: self.keys.size]] = self.sums
        sums[places[self.keys.size :]] += rows
        self.keys, self.sums = together, sums


def _summed(log: Log, group: Sequence[str], table: _CellTable, binnings: Mapping[str, _Binning]) -> ContextSums:
    labels = [""]
    for name in group:
        labels = [f"{first}, {label}" if first else label for first in labels for label in binnings[name].labels]
    used = np.unique(table.keys % len(labels))
    place_of = {int(value): place for place, value in enumerate(used)}
    cells: dict[str, dict[str, list[tuple[int, Any]]]] = {}
    for key, sums in zip(table.keys.tolist(), table.sums, strict=True):
        pair, value = divmod(key, len(labels))
        of_segment = cells.setdefault(log.segments.names[pair // MOST_ARMS], {})
        of_segment.setdefault(log.arms.names[pair % MOST_ARMS], []).append((place_of[value], sums))
    segments = {}
    for segment, by_arm in sorted(cells.items()):
        whole = np.zeros((len(by_arm), used.size, CONTEXT_SUMS))
        for place, arm in enumerate(sorted(by_arm)):
            for value, sums in by_arm[arm]:
                whole[place, value] = sums
        segments[segment] = SegmentContext(tuple(sorted(by_arm)), whole)
    return ContextSums(tuple(group), tuple(labels[value] for value in used), segments)
