"""Chains: attempts of one request that follow each other, as one request.

Two rows belong together if they agree in the columns of the chain and the later one comes within some seconds of the earlier one.
A chain went to the arm of its first attempt, which is what a router decides; its reward is the highest of its attempts, its cost
the sum of all. Only chains that may still go on are kept in memory. Rows must come in the order of time, more or less.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.logs.batch import LogBatch
from thrifty.logs.names import MOST_ARMS
from thrifty.logs.polars_extra import require_polars


@dataclass
class ChainCounts:
    """What was found about chains: attempts, chains, the longest, and (arms, 2) rows and successes of first and later attempts."""

    attempts: int = 0
    chains: int = 0
    longest: int = 0
    first: Floats = field(default_factory=lambda: np.zeros((MOST_ARMS, 2)))
    later: Floats = field(default_factory=lambda: np.zeros((MOST_ARMS, 2)))

    def lines(self, within_s: float) -> list[str]:
        """What the counts say, in words.

        First attempts and retries are compared arm by arm, because retries often go to another arm.

        >>> ChainCounts(150, 100, 3, np.array([[100.0, 80.0]]), np.array([[50.0, 10.0]])).lines(60.0)[1].split(";")[0]
        'attempts affect each other: by the same arm a first attempt succeeds in 80.0%, a retry in 20.0%'
        """
        retries = self.attempts - self.chains
        lines = [
            f"{self.attempts:,} attempts are {self.chains:,} requests: {retries:,} ({retries / max(self.attempts, 1):.1%}) are "
            f"retries within {within_s:g} seconds, the longest chain has {self.longest}; a request counts for the arm of its first "
            "attempt, with the cost of all"
        ]
        both = (self.first[:, 0] > 0) & (self.later[:, 0] > 0)
        if not both.any():
            return lines
        rows = np.column_stack([self.first[both, 0], self.later[both, 0]])
        rates = np.column_stack([self.first[both, 1], self.later[both, 1]]) / rows
        pooled = (self.first[both, 1] + self.later[both, 1]) / rows.sum(axis=1)
        weights = rows.prod(axis=1) / rows.sum(axis=1)  # those of Mantel and Haenszel
        shares = weights / weights.sum()
        error = math.sqrt(float((shares**2 * pooled * (1.0 - pooled) / weights).sum()))
        first, later = shares @ rates
        shown = f"by the same arm a first attempt succeeds in {first:.1%}, a retry in {later:.1%}"
        if abs(first - later) > 4.0 * error:
            return [*lines, f"attempts affect each other: {shown}; chains take this into account"]
        return [*lines, f"no sign that attempts affect each other: {shown}"]


class Chains:
    """Groups rows into chains, batch by batch."""

    def __init__(self, within_s: float) -> None:
        self._within = within_s
        self._open: _OpenChains | None = None
        self.counts = ChainCounts()

    def add(self, batch: LogBatch, keys: Any) -> LogBatch:
        """The chains that this batch ends."""
        if batch.arms.size == 0:
            return batch
        rows = _OpenChains(batch, np.asarray(keys, np.uint64), batch.times, np.ones(batch.arms.size, np.int64))
        joined = rows if self._open is None else _join(self._open, rows)
        grouped = self._group(joined, 0 if self._open is None else self._open.keys.size)
        over = grouped.latest + self._within < batch.times.max()
        self._open = grouped.take(np.flatnonzero(~over))
        return self._ended(grouped.take(np.flatnonzero(over)))

    def finish(self) -> LogBatch | None:
        """The chains that are still open, at the end of the log."""
        return None if self._open is None else self._ended(self._open)

    def _ended(self, chains: "_OpenChains") -> LogBatch:
        self.counts.chains += chains.keys.size
        self.counts.attempts += int(chains.attempts.sum())
        self.counts.longest = max(self.counts.longest, int(chains.attempts.max(initial=0)))
        return chains.batch

    def _group(self, rows: "_OpenChains", carried: int) -> "_OpenChains":
        """One row for each chain; the first `carried` rows are chains that were open before."""
        order = np.argsort(rows.keys, kind="stable")
        keys, batch = rows.keys[order], rows.batch
        gaps = batch.times[order[1:]] - rows.latest[order[:-1]]
        begins = np.concatenate([[True], (keys[1:] != keys[:-1]) | (np.abs(gaps) > self._within)])
        starts = np.flatnonzero(begins)
        fresh = order >= carried
        for counts, mine in ((self.counts.first, begins & fresh), (self.counts.later, ~begins & fresh)):
            arms = batch.arms[order[mine]]
            counts[:, 0] += np.bincount(arms, minlength=MOST_ARMS)
            counts[:, 1] += np.bincount(arms, batch.rewards[order[mine]] >= 1.0, MOST_ARMS)
        lasts = np.append(starts[1:], keys.size) - 1
        heads = order[starts]
        rank = np.argsort(heads, kind="stable")  # in the order of the log
        delays = batch.times[order[lasts]] - batch.times[heads] + batch.delays_s[order[lasts]]
        found = _pick(batch, heads)
        found = replace(
            found,
            rewards=np.maximum.reduceat(batch.rewards[order], starts),
            costs=np.add.reduceat(batch.costs[order], starts),
            delays_s=delays,
            answered=np.logical_or.reduceat(batch.answered[order], starts),
        )
        latest, attempts = np.maximum.reduceat(rows.latest[order], starts), np.add.reduceat(rows.attempts[order], starts)
        return _OpenChains(found, keys[starts], latest, attempts).take(rank)


@dataclass(frozen=True, eq=False)
class _OpenChains:
    """Chains as rows: their sums, keys, latest times and numbers of attempts."""

    batch: LogBatch
    keys: Any
    latest: Any
    attempts: Any

    def take(self, places: Any) -> "_OpenChains":
        return _OpenChains(_pick(self.batch, places), self.keys[places], self.latest[places], self.attempts[places])


_ARRAYS = ("arms", "segments", "rewards", "costs", "times", "propensities", "delays_s", "answered", "rows")


def _pick(batch: LogBatch, places: Any) -> LogBatch:
    context = None if batch.context is None else batch.context[places]
    return LogBatch(**{name: getattr(batch, name)[places] for name in _ARRAYS}, context=context)


def _join(one: _OpenChains, other: _OpenChains) -> _OpenChains:
    pl = require_polars()
    arrays = {name: np.concatenate([getattr(one.batch, name), getattr(other.batch, name)]) for name in _ARRAYS}
    parts = [each.batch.context for each in (one, other)]
    context = None if parts[0] is None or parts[1] is None else pl.concat(parts)
    pairs = ((one.keys, other.keys), (one.latest, other.latest), (one.attempts, other.attempts))
    return _OpenChains(LogBatch(**arrays, context=context), *(np.concatenate(pair) for pair in pairs))
