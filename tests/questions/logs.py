"""Logs with known rates for the questions."""

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars

from thrifty.logs import Columns, Evidence, Log, examine
from thrifty.logs.aggregates import CC, RR, SUMS, C, LogSums, N, R
from thrifty.logs.bootstrap import block_weights
from thrifty.logs.estimators import estimate_segment

ARMS = ("Elm", "Fir", "Oak", "Yew", "Ash")


def frame(rates: Sequence[Sequence[float]], rows: int, seed: int, *, costs: Sequence[float] = (5, 4, 3, 2, 1)) -> polars.DataFrame:
    """`rows` rows a day apart by a minute, one row of `rates` per segment, arms and segments equally often."""
    rng = np.random.default_rng(seed)
    table = np.asarray(rates)
    segment, arm = rng.integers(0, table.shape[0], rows), rng.integers(0, table.shape[1], rows)
    return polars.DataFrame(
        {
            "arm": np.array(ARMS)[arm],
            "segment": np.array([f"s{number}" for number in range(table.shape[0])])[segment],
            "reward": 1.0 * (rng.random(rows) < table[segment, arm]),
            "cost": np.asarray(costs, dtype=float)[arm],
            "at": 1.7e9 + 60.0 * np.arange(rows),
        }
    )


def log(rates: Sequence[Sequence[float]], rows: int, seed: int, *, costs: Sequence[float] = (5, 4, 3, 2, 1)) -> Log:
    """The same as a log."""
    return Log(frame(rates, rows, seed, costs=costs), Columns(segment="segment", time="at"))


BLOCKS, REPLICATES = 64, 200


@functools.cache
def _template() -> Evidence:
    return examine(log([[0.9, 0.8]], 600, 1))


def quick(rates: Sequence[Sequence[float]], rows: int, seed: int) -> Evidence:
    """The evidence of such a log, its sums made without a frame and with few replicates: a hundred of them take a second."""
    rng = np.random.default_rng(seed)
    table = np.asarray(rates)
    segment, arm = rng.integers(0, table.shape[0], rows), rng.integers(0, table.shape[1], rows)
    reward, cost = 1.0 * (rng.random(rows) < table[segment, arm]), 5.0 - arm
    cells = np.zeros((*table.shape, BLOCKS, SUMS))
    place = segment, arm, np.arange(rows) * BLOCKS // rows
    flat = np.ravel_multi_index(place, cells.shape[:3])
    for column, values in ((N, np.ones(rows)), (R, reward), (RR, reward), (C, cost), (CC, cost**2)):
        cells[..., column] = np.bincount(flat, values, cells[..., column].size).reshape(cells.shape[:3])
    names, ones = ARMS[: table.shape[1]], np.ones(table.shape[1])
    delays = np.zeros((table.shape[1], 1), np.int64)
    segments = tuple(LogSums(f"s{n}", names, each, ones, 5.0 * ones, delays) for n, each in enumerate(cells))
    weights = block_weights(BLOCKS, REPLICATES, seed=seed)
    estimates = tuple(estimate_segment(each, weights, weighted=False) for each in segments)
    aggregates = replace(_template().aggregates, segments=segments, starts=np.arange(BLOCKS, dtype=float))
    return replace(_template(), aggregates=aggregates, weights=weights, estimates=estimates)
