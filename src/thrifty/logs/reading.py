"""Reading: a log as batches of canonical columns; every row that is left out is counted by its reason."""

import math
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from thrifty.cluster import cluster_address
from thrifty.logs.batch import LogBatch
from thrifty.logs.columns import Columns
from thrifty.logs.exported import fit_export, is_exported, unpack_store
from thrifty.logs.names import MOST_ARMS, MOST_SEGMENTS, Names, twin_notes
from thrifty.logs.parts import Part
from thrifty.logs.plan import latest_time
from thrifty.logs.polars_extra import first_line, require_polars
from thrifty.logs.pooling import MOST_VALUES, count_segments, pool
from thrifty.logs.recipe import Recipe, settle
from thrifty.logs.remedies import remedies
from thrifty.logs.rows import BATCH, RowReader
from thrifty.logs.source import SourceFormat, open_source
from thrifty.logs.statuses import check_statuses
from thrifty.logs.tally import ON_REQUEST, Tally
from thrifty.logs.times import early_note

__all__ = ["BATCH", "MOST_ARMS", "MOST_SEGMENTS", "Log", "LogBatch", "Names"]

TOLERATED = 0.05
"""The share of rows that may be unreadable before a log is refused."""


class Log:
    """A log. It can be read several times; the rows are not kept in memory.

    Parameters
    ----------
    source : the path of a file, a folder or a pattern such as "logs/*.csv.gz"; "-" for what is piped in; a polars or pandas frame;
        an Arrow table; a `Query`; or a thrifty store such as "sqlite:///thrifty.db"
    columns : what its columns mean; those that `thrifty export` writes are known
    router : only the rows of this router, if the source is a store
    now : seconds since 1970 after which a row is in the future; default: the clock
    tolerated : the largest share of unreadable rows; with more of them the log is refused
    backend : "local", "dask" or "dask://host:port": where the sums of a log of several files or of a long Parquet file are made

    >>> import polars
    >>> log = Log(polars.DataFrame({"arm": ["a", "b", None], "reward": [1, 0, 1], "cost": [0.1, 0.2, 0.2]}), tolerated=0.5)
    >>> sum(batch.arms.size for batch in log.batches())
    2
    >>> log.tally.lines()
    ['1 of 3 rows left out: no arm (first in row 3)']

    """

    def __init__(
        self,
        source: Any,
        columns: Columns | None = None,
        *,
        router: str | None = None,
        now: float | None = None,
        tolerated: float = TOLERATED,
        backend: str = "local",
    ) -> None:
        if not isinstance(tolerated, (int, float)) or not 0.0 <= tolerated <= 1.0:
            raise ValueError(f"--tolerate must be a share in [0, 1], got {tolerated!r:.80}: 0.05 lets 5% of the rows be unreadable")
        if now is not None and not (isinstance(now, (int, float)) and math.isfinite(now)):
            raise ValueError(f"--now must be a time in seconds since 1970, got {now!r:.80}")
        if columns is not None and not isinstance(columns, Columns):
            raise ValueError(f"columns must be Columns(arm=..., reward=...), got {columns!r:.80}")
        is_store = isinstance(source, str) and "://" in source
        if router is not None and not is_store:
            raise ValueError(
                f"--router {router!r:.80} is for a store such as sqlite:///thrifty.db: leave it out, or export that router alone "
                "with thrifty export --router"
            )
        columns = columns or Columns()
        cluster_address(backend)
        self.folder = Path(tempfile.mkdtemp(prefix="thrifty-log-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        if is_store:
            source = unpack_store(source, router, self.folder)
        form = SourceFormat(columns.separator, columns.encoding, tuple(columns.named().values()))
        self.parts, self._notes = open_source(source, form, self.folder)
        self._export = None
        if columns.untouched and is_exported(self.parts[0].names()):
            self._export, columns = fit_export([part.scan() for part in self.parts], columns)
        columns = _without_cost(columns, self.parts[0])
        for part in _files(self.parts):
            _check_columns(columns, part, several=self.several)
        self.columns = replace(columns, missing=columns.missing or "failure")
        self.now = time.time() if now is None else now
        self.backend, self.tally = backend, Tally()
        self.arms, self.segments = Names("arm", MOST_ARMS), Names("segment", MOST_SEGMENTS)
        self._tolerated = tolerated
        self._pool_always = False

    @property
    def timed(self) -> bool:
        """Whether rows have times."""
        return self.columns.time is not None

    @property
    def several(self) -> bool:
        """Whether the log has several files."""
        return len(_files(self.parts)) > 1

    @property
    def column_names(self) -> list[str]:
        """All columns of the log."""
        return self.parts[0].names()

    @cached_property
    def recipe(self) -> Recipe:
        """How every part is read: settled from the first rows when the log is read for the first time."""
        pl = require_polars()
        try:
            recipe = settle(self.parts, self.columns, self.now, self._export)
            if self.columns.missing == "censored":
                recipe = replace(recipe, end=latest_time(self.parts, recipe))
            if self.columns.segment_columns and (self.columns.rare or self._pool_always):
                pooling = pool(count_segments(self.parts, recipe), self.columns.rare, len(self.columns.segment_columns))
                self._notes = [*self._notes, *filter(None, [pooling.note])]
                recipe = replace(recipe, pooled=pooling.names)
                self.segments = Names("segment", MOST_VALUES, pooling.names)
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"cannot read the log: {first_line(error)}") from None
        return recipe

    def pool_rare(self) -> None:
        """Pool rare segments from now on; for a log with more than `MOST_SEGMENTS` segments."""
        self._pool_always = True
        self.__dict__.pop("recipe", None)
        self.arms, self.segments = Names("arm", MOST_ARMS), Names("segment", MOST_SEGMENTS)

    @property
    def reader(self) -> RowReader:
        """A new reader of all parts, which gives arms and segments the codes of this log."""
        recipe = self.recipe  # it may set the names of segments
        return RowReader(recipe, self.arms, self.segments, several=self.several)

    def batches(self, progress: Callable[[int], None] | None = None, *, context: Sequence[str] = ()) -> Iterator[LogBatch]:
        """Read the log once, in order, as batches of `BATCH` rows.

        `progress` is called with the rows read so far. `context` names other columns that a batch should have, see `context_sums`.
        """
        reader = self.reader
        for part in self.parts:
            for batch in reader.read(part, context):
                yield batch
                if progress is not None:
                    progress(reader.tally.rows)
        last = reader.finish()
        if last is not None:
            yield last
        self.conclude(reader.tally, reader)

    def conclude(self, tally: Tally, reader: RowReader | None = None) -> None:
        """Take over what was found in all parts; a ValueError if the log cannot be used."""
        if tally.rows == 0:
            raise ValueError("the log has a header and no rows")
        wrong = sum(count for reason, count in tally.left_out.items() if reason not in ON_REQUEST)
        if tally.used == 0 and wrong < tally.rows:
            raise ValueError(f"no row can be used: {'; '.join(tally.lines())}{self._status_hint(tally)}")
        if wrong > self._tolerated * tally.rows or tally.used == 0:
            raise ValueError(
                f"{wrong:,} of {tally.rows:,} rows cannot be used, and {self._tolerated:.0%} are tolerated (--tolerate): "
                + "; ".join(tally.lines())
                + remedies(tally.first, zone=self.columns.time_style.zone)
                + self._status_hint(tally)
            )
        if tally.no_outcome == tally.used:
            raise ValueError(f"no row has an outcome in column {self.columns.reward!r}: name another with --reward")
        tally.notes += [*self.recipe.notes, *self._notes]
        tally.notes += early_note(tally.latest, self.columns.time_style)
        tally.notes += check_statuses(self.columns.success, tally.statuses, self.columns.reward)
        tally.notes += twin_notes(self.arms.names, self.segments.names)
        if reader is not None and reader.chains is not None:
            tally.notes += reader.chains.counts.lines(self.columns.within_s)
        self.tally = tally

    def _status_hint(self, tally: Tally) -> str:
        """What to do if rewards look like statuses, such as 200 and 404."""
        if self.columns.success or not {"reward is not a number", "reward outside [0, 1]"} & set(tally.left_out):
            return ""
        return f"; if column {self.columns.reward!r:.80} holds statuses, name those that are a success with --success"


def _files(parts: Sequence[Part]) -> list[Part]:
    """The first part of each file."""
    return [part for part in parts if part.start == 0]


def _without_cost(columns: Columns, part: Part) -> Columns:
    """With fees, a log needs no cost column."""
    if columns.fees is not None and columns.cost == "cost" and "cost" not in part.names():
        return replace(columns, cost=None)
    return columns


def _check_columns(columns: Columns, part: Part, *, several: bool) -> None:
    try:
        columns.check(part.names())
    except ValueError as error:
        hint = (
            ""
            if part.kind != "csv" or len(part.names()) > 1
            else ": if this is one line of several columns, name what separates them"
        )
        remedy = f"{hint} with --separator, such as --separator '^'" if hint else ""
        raise ValueError(f"{part.name}: {error}{remedy}" if several else f"{error}{remedy}") from None
