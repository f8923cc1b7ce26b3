"""Context: a second pass over a log that sums rewards and costs by segment, arm and the values of its other columns.

The choice of an arm may depend on columns that have no meaning in `Columns` (the amount of a payment, the kind of card). If the
reward depends on them too, a comparison of arms is confounded. `context_columns` lists these columns, `context_sums` has what a
test of dependence, a stratified estimate or an outcome model needs. `binning.py` puts their values into bins, so that memory is
bounded.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.logs.binning import Binning
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.reading import MOST_ARMS, Log, LogBatch
from thrifty.suggestions import did_you_mean

if TYPE_CHECKING:
    import polars

HOUR = "hour of day"
"""The name of a column that every log with times has: the hour in UTC, 0 to 23."""

TIME = "stretch of time"
"""The name of a column that `context_sums` makes from `Stretches`."""

_HOURS = 24

CONTEXT_SUMS = 5
"""The sums of a cell: rows, rewards, squared rewards, costs, squared costs."""


class Stretches(NamedTuple):
    """Stretches of time with about equally many rows: where all but the last end, in seconds or (`by_rows`) in rows."""

    ends: Floats
    by_rows: bool


class SegmentContext(NamedTuple):
    """The arms of one segment, by name, and (K, V, CONTEXT_SUMS) their sums by value."""

    arms: tuple[str, ...]
    sums: Floats


@dataclass(frozen=True, eq=False)
class ContextSums:
    """Sums by segment, arm and the joint values of some columns.

    `values` are the V names of the joint values, such as "card = amex, amount 10 to 25". `segments` has the sums of each segment.
    `codes` is (V, columns): the bin of each column. Bins of numbers (`ordered`) are numbered by size. The last bin of a column
    (`empty`) has its empty cells; those from `pooled` on have several different values each.
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    segments: Mapping[str, SegmentContext]
    codes: Integers
    ordered: tuple[bool, ...]
    pooled: tuple[int, ...]
    empty: tuple[int, ...]


def context_columns(log: Log) -> tuple[str, ...]:
    """The columns of a log that have no meaning in its `Columns`, those of pooled segments, and `HOUR` if the log has times.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a"], "reward": [1], "cost": [1], "card": ["amex"]})
    >>> context_columns(Log(frame))
    ('card',)
    """
    named = set(log.columns.named().values()) - set(log.columns.segment_columns if log.recipe.pooled else ())
    others = tuple(name for name in log.column_names if name not in named)
    return (*others, HOUR) if log.timed else others


def context_sums(
    log: Log,
    groups: Sequence[Sequence[str]],
    *,
    bins: int = 8,
    intervals: int | None = None,
    pools: int = 1,
    stretches: Stretches | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[ContextSums, ...]:
    """Read the log once more and sum it up by segment, arm and the joint values of each group of columns.

    Parameters
    ----------
    log : see `Log`
    groups : for each result, the columns whose joint values it has; see `context_columns`
    bins : the most values of one column that have a bin of their own, the most frequent of the first batch of rows first
    intervals : the bins of numbers of which there are more; default: as many as `bins`
    pools : the bins for all other values, which are told apart by their hashes
    stretches : what the column `TIME` is made of, if it is in a group
    progress : called with the rows read so far

    >>> import polars
    >>> rows = {"arm": ["a", "b"] * 4, "reward": [1, 0] * 4, "cost": [1] * 8, "card": ["amex"] * 6 + ["visa"] * 2}
    >>> (found,) = context_sums(Log(polars.DataFrame(rows)), [["card"]])
    >>> found.values, found.segments["all"].arms
    (('card = amex', 'card = visa'), ('a', 'b'))
    >>> found.segments["all"].sums[:, :, 0].tolist()  # rows
    [[3.0, 1.0], [3.0, 1.0]]

    """
    known = (*context_columns(log), *([TIME] if stretches else []))
    for name in dict.fromkeys(name for group in groups for name in group):
        if name not in known:
            raise ValueError(f"no column {name!r} to compare by: {did_you_mean(name, known, otherwise=', '.join(known) or 'none')}")
    wanted = tuple(dict.fromkeys(name for group in groups for name in group))
    read = tuple(name for name in wanted if name not in (HOUR, TIME))
    binnings: dict[str, Binning] = {}
    tables = [_CellTable() for _ in groups]
    for batch in log.batches(progress, context=read):
        if batch.arms.size == 0:
            continue
        if not binnings:
            for name in wanted:
                values, edges = _values(batch, name, stretches), _edges(name, bins, stretches)
                binnings[name] = Binning(name, values, bins=bins, intervals=intervals or bins, pools=pools, edges=edges)
        codes = {name: binnings[name].encode(_values(batch, name, stretches)) for name in wanted}
        for group, table in zip(groups, tables, strict=True):
            joint, size = _joint(group, codes, binnings)
            table.add(batch, joint, size)
    return tuple(_summed(log, group, table, binnings) for group, table in zip(groups, tables, strict=True))


def _edges(name: str, bins: int, stretches: Stretches | None) -> Floats | None:
    """The ends of bins that do not depend on the rows that come first."""
    if name == HOUR:
        return np.asarray(
            np.unique(np.floor(_HOURS * np.arange(1, bins) / bins)) - 0.5 if bins < _HOURS else np.arange(1, _HOURS) - 0.5
        )
    if name == TIME and stretches is not None:
        return stretches.ends[:: math.ceil((stretches.ends.size + 1) / bins)]
    return None


def _values(batch: LogBatch, name: str, stretches: Stretches | None) -> "polars.Series":
    pl = require_polars()
    if name == TIME and stretches is not None:
        return pl.Series(batch.rows if stretches.by_rows else batch.times)  # type: ignore[no-any-return]
    if name == HOUR:
        return pl.Series(np.floor(batch.times / 3600.0) % _HOURS)  # type: ignore[no-any-return]
    assert batch.context is not None
    return batch.context[name]


def _joint(group: Sequence[str], codes: Mapping[str, Integers], binnings: Mapping[str, Binning]) -> tuple[Integers, int]:
    joint, size = np.zeros(next(iter(codes.values())).size, np.int64), 1
    for name in group:
        joint = joint * binnings[name].size + codes[name]
        size *= binnings[name].size
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


def _summed(log: Log, group: Sequence[str], table: _CellTable, binnings: Mapping[str, Binning]) -> ContextSums:
    mine = [binnings[name] for name in group]
    sizes = tuple(each.size for each in mine)
    size = int(np.prod(sizes))
    pairs, joint = np.divmod(table.keys, size)
    codes = np.unravel_index(joint, sizes) if sizes else ()
    ranks = np.column_stack([each.ranks()[code] for each, code in zip(mine, codes, strict=True)])
    used, places = np.unique(ranks, axis=0, return_inverse=True)
    labels = [np.array(each.labels())[np.argsort(each.ranks())] for each in mine]
    names = [", ".join(label[place] for label, place in zip(labels, row, strict=True)) for row in used]
    cells: dict[str, dict[str, list[tuple[int, Any]]]] = {}
    for pair, place, sums in zip(pairs.tolist(), places.ravel().tolist(), table.sums, strict=True):
        of_segment = cells.setdefault(log.segments.names[pair // MOST_ARMS], {})
        of_segment.setdefault(log.arms.names[pair % MOST_ARMS], []).append((place, sums))
    segments = {}
    for segment, by_arm in sorted(cells.items()):
        whole = np.zeros((len(by_arm), used.shape[0], CONTEXT_SUMS))
        for place, arm in enumerate(sorted(by_arm)):
            for value, sums in by_arm[arm]:
                whole[place, value] = sums
        segments[segment] = SegmentContext(tuple(sorted(by_arm)), whole)
    pooled = tuple(int(np.flatnonzero(~each.exact)[0]) if not each.exact.all() else each.size - 1 for each in mine)
    ends = tuple(each.size - 1 for each in mine)
    return ContextSums(tuple(group), tuple(names), segments, used, tuple(each.ordered for each in mine), pooled, ends)
