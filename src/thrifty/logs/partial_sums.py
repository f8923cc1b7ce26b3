"""Partial sums: the parts of a log are summed up one by one, here or on a Dask cluster, and then added in their order.

Both ways do the same additions in the same order, so they give the same bits.
"""

import math
import os
import time
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Integers
from thrifty.cluster import cluster_address, connect, describe_cluster, require_extra
from thrifty.compiled import source_digest
from thrifty.logs.duplicates import KnownRepeats, SeenIds
from thrifty.logs.names import MOST_ARMS, MOST_SEGMENTS, Names
from thrifty.logs.parts import Part
from thrifty.logs.pooling import MOST_VALUES
from thrifty.logs.reading import Log
from thrifty.logs.recipe import Recipe
from thrifty.logs.rows import RowReader, read_ids
from thrifty.logs.summing import Cells
from thrifty.logs.tally import Tally

Progress = Callable[[int], None] | None

_LOOK_S, _ALONE_S = 2.0, 10.0  # how often workers are counted, and how long there may be none


class PartTask(NamedTuple):
    """What a worker needs to sum up one part.

    `before` counts the rows of the parts before it, `repeats` are the places of its repeated ids among the rows that count else.
    """

    part: Part
    recipe: Recipe
    before: int
    by_rows: bool
    several: bool
    repeats: Integers | None = None


@dataclass(frozen=True, eq=False)
class PartSums:
    """The cells of one part, with the names behind its codes, and what else was found in it."""

    cells: Cells
    arms: list[str]
    segments: list[str]
    tally: Tally
    first_time: float
    last_time: float
    digest: str


def sum_part(task: PartTask) -> PartSums:
    """The task of a Dask worker: sum up one part."""
    pooled = task.recipe.pooled
    arms, segments = Names("arm", MOST_ARMS), Names("segment", MOST_VALUES if pooled else MOST_SEGMENTS, pooled)
    repeats = None if task.repeats is None else KnownRepeats(task.repeats)
    reader = RowReader(task.recipe, arms, segments, before=task.before, several=task.several, repeats=repeats)
    cells = Cells(by_rows=task.by_rows)
    for batch in reader.read(task.part):
        cells.add(batch)
    return PartSums(cells.compact(), arms.names, segments.names, reader.tally, reader.first_time, reader.last_time, source_digest())


def sum_log(log: Log, *, by_rows: bool, progress: Progress = None) -> Cells:
    """The cells of a whole log; its tally is in `log` afterwards."""
    address = cluster_address(log.backend)
    if address is None:
        return _sum_here(log, by_rows=by_rows, progress=progress)
    _check_parts(log, address)
    return _sum_on_cluster(log, address, by_rows=by_rows, progress=progress)


def _sum_here(log: Log, *, by_rows: bool, progress: Progress) -> Cells:
    whole, reader = Cells(by_rows=by_rows), log.reader
    for number, part in enumerate(log.parts):
        cells = Cells(by_rows=by_rows)
        for batch in reader.read(part):
            cells.add(batch)
            if progress is not None:
                progress(reader.tally.rows)
        if number == len(log.parts) - 1 and (last := reader.finish()) is not None:
            cells.add(last)
        whole.absorb(cells, np.arange(len(log.segments.names)), np.arange(len(log.arms.names)))
    log.conclude(reader.tally, reader)
    return whole


def _check_parts(log: Log, address: str) -> None:
    """A ValueError if the parts of a log cannot be summed up elsewhere."""
    columns = log.columns
    if columns.chain_columns:
        raise ValueError(
            "--chain needs all rows in one place, and a cluster has parts of them: leave it out, or use --backend local"
        )
    if log.parts[0].kind == "frame":
        raise ValueError("a frame in memory cannot be summed up on a cluster: write it to Parquet files, or use the backend local")
    for part in log.parts:
        if address and part.path is not None and part.path.is_relative_to(log.folder):
            raise ValueError(f"{part.name} was unpacked on this machine, where workers cannot read it: write it to Parquet files")


def _sum_on_cluster(log: Log, address: str, *, by_rows: bool, progress: Progress) -> Cells:
    tasks, before, where = [], 0, describe_cluster(address)
    for part in log.parts:
        tasks.append(PartTask(part, log.recipe, before, by_rows, log.several))
        before += part.rows
    whole, tally, latest = Cells(by_rows=by_rows), Tally(), -math.inf
    with connect(address, min(len(tasks), os.cpu_count() or 1)) as client:
        _wait_for_workers(client, where)
        if log.columns.id is not None:
            tasks = _with_repeats(client, tasks, where)
        for found in _results(client, sum_part, tasks, where):
            if found.digest != source_digest():
                raise ValueError(
                    f"a worker has other sources of thrifty ({found.digest}, here {source_digest()}): install one version"
                )
            segments, arms = ([names.code(name) for name in theirs] for names, theirs in _translations(log, found))
            whole.absorb(found.cells, np.array(segments, np.int64), np.array(arms, np.int64))
            found.tally.out_of_order += int(found.first_time < latest)
            latest = found.last_time if found.tally.used else latest
            tally.add(found.tally)
            if progress is not None:
                progress(tally.rows)
    log.segments.check()
    log.conclude(tally)
    return whole


def _translations(log: Log, found: PartSums) -> tuple[tuple[Names, list[str]], tuple[Names, list[str]]]:
    return (log.segments, found.segments), (log.arms, found.arms)


def _wait_for_workers(client: Any, where: str) -> None:
    try:
        client.wait_for_workers(1, timeout=5)
    except TimeoutError:
        raise ValueError(f"{where} has no workers: start some with `dask worker`") from None


def ids_of_part(task: PartTask) -> Any:
    """The task of a Dask worker: the ids of one part, as hashes."""
    return read_ids(task.part, task.recipe)


def _with_repeats(client: Any, tasks: list[PartTask], where: str) -> list[PartTask]:
    """The tasks with their repeated ids. Ids are compared here, in the order of the parts, as on one machine."""
    seen = SeenIds()
    found = _results(client, ids_of_part, tasks, where)
    return [task._replace(repeats=np.flatnonzero(seen.repeated(ids))) for task, ids in zip(tasks, found, strict=True)]


def _wait_for(client: Any, future: Any, where: str) -> Any:
    """The result of a task; a ValueError if the cluster has had no workers for a while."""
    last_seen = time.monotonic()
    while True:
        try:
            return future.result(timeout=_LOOK_S)
        except TimeoutError:
            if client.nthreads():
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > _ALONE_S:
                raise ValueError(f"{where} has lost its workers: start some with `dask worker`, and ask again") from None


def _results(client: Any, work: Callable[[PartTask], Any], tasks: list[PartTask], where: str) -> Iterator[Any]:
    """The result of every task, in order; each is released once it is used."""
    distributed = require_extra("distributed")
    futures = client.map(work, tasks, pure=False)
    try:
        while futures:
            yield _wait_for(client, futures[0], where)
            futures.pop(0).release()
    except (OSError, ImportError, distributed.KilledWorker, CancelledError) as error:
        raise ValueError(
            f"{where} failed ({type(error).__name__}: {error!s:.200}): its workers must see the files of the log"
        ) from None
