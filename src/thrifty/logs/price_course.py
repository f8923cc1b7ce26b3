"""The course of prices: whether an arm has one price at a time, where it changed, and what it is now.

A change of price is a split of the blocks of time at which the mean costs before and after differ by more than chance explains:
the largest of all z^2 / 2 is compared with the logarithm of the number of splits tried, over `CHANCE`. So random costs are called
a changed price in at most about `CHANCE` of stationary logs.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.logs.aggregates import CC, C, LogSums, N

LISTED = 0.02
"""Costs that vary by less than this share of their mean within a block of time are a price list; others are random."""

CHANCE = 0.01
_EXACT, _RANDOM = 0.001, 0.02  # the smallest relative change of a listed price, and of a mean of random costs, that is reported
_BLOCKS, _STEADY = 5, 0.9  # blocks with several rows, and the share of them with one price, that make a price list
_FREEDOM = 20  # rows beyond one per block from which the variance within blocks is known
_FEWEST = 30  # rows on each side of a change of random costs
_DEPTH = 4


@dataclass(frozen=True)
class PriceChange:
    """From `block` on, an arm costs `after`; before it cost `before`."""

    block: int
    before: float
    after: float


def prices_are_listed(sums: LogSums) -> bool:
    """True if every arm of a segment has one price at a time, False if costs are random."""
    return all(_is_listed(cells) for cells in sums.sums)


def latest_price(sums: LogSums) -> NDArray[np.float64]:
    """(K,) what every arm costs now: its price in the last block in which it was used, or its mean cost since the last change."""
    return np.array([_latest(cells) for cells in sums.sums])


def price_changes(cells: Floats, tests: int) -> list[PriceChange]:
    """The changes of one arm's price, in order of time.

    Parameters
    ----------
    cells : (B, SUMS) the sums of one arm by block
    tests : how many arms are looked at in all

    """
    used = np.flatnonzero(cells[:, N] > 0)
    rows, costs = cells[used, N], cells[used, C]
    listed, variance = _is_listed(cells), _variance(cells)
    level = 0.0 if listed else math.log(max(used.size, 2) * max(tests, 1) / CHANCE)
    starts = _splits(rows, costs, variance, level, least=1 if listed else _FEWEST, share=_EXACT if listed else _RANDOM)
    edges = [0, *starts, used.size]
    means = [float(costs[a:b].sum() / rows[a:b].sum()) for a, b in pairwise(edges)]
    found: list[PriceChange] = []
    for place, start in enumerate(starts):
        if place > 0 and start == starts[place - 1] + 1:  # the price changed inside of the block between them
            found[-1] = replace(found[-1], after=means[place + 1])
        else:
            found.append(PriceChange(int(used[start]), means[place], means[place + 1]))
    return found


def _splits(
    rows: Floats, costs: Floats, variance: float, level: float, *, least: int, share: float, depth: int = _DEPTH
) -> list[int]:
    """Where the mean cost changes: the strongest split, and those in both parts of it."""
    if rows.size < 2 or depth == 0:
        return []
    n, c = np.cumsum(rows)[:-1], np.cumsum(costs)[:-1]
    others, rest = rows.sum() - n, costs.sum() - c
    before, after = c / n, rest / others
    size = (before - after) ** 2 * n * others / (n + others)
    large = np.abs(after - before) > share * np.maximum(np.minimum(before, after), 1e-300)
    size = np.where(large & (n >= least) & (others >= least), size, -1.0)
    place = int(np.argmax(size))
    if size[place] <= 0.0 or size[place] < 2.0 * level * variance:
        return []
    at = place + 1
    how = {"least": least, "share": share, "depth": depth - 1}
    left = _splits(rows[:at], costs[:at], variance, level, **how)  # type: ignore[arg-type]
    right = _splits(rows[at:], costs[at:], variance, level, **how)  # type: ignore[arg-type]
    return [*left, at, *(at + place for place in right)]


def _is_listed(cells: Floats) -> bool:
    """Whether costs hardly vary in nine of ten blocks, or where blocks have one row each, between most neighbours."""
    several = cells[cells[:, N] > 1]
    if several.shape[0] >= _BLOCKS:
        means = several[:, C] / several[:, N]
        within = several[:, CC] / several[:, N] - means**2
        return bool((within <= (LISTED * np.maximum(means, 1e-12)) ** 2 + 1e-12).mean() >= _STEADY)
    means = _means(cells)
    steps = np.abs(np.diff(means))
    return steps.size == 0 or bool(np.median(steps) <= LISTED * means.mean())


def _variance(cells: Floats) -> float:
    """The variance of a cost around the mean of its time: within blocks or, if they have about one row each, between neighbours."""
    if _freedom(cells) >= _FREEDOM:
        return float(max(_within(cells), 0.0) / _freedom(cells))
    used = cells[cells[:, N] > 0, N]
    if used.size < 2:
        return 0.0
    weights = used[1:] * used[:-1] / (used[1:] + used[:-1])
    return float(np.mean(weights * np.diff(_means(cells)) ** 2))


def _freedom(cells: Floats) -> float:
    return float(np.maximum(cells[:, N] - 1.0, 0.0).sum())


def _within(cells: Floats) -> float:
    return float((cells[:, CC] - cells[:, C] ** 2 / np.maximum(cells[:, N], 1.0)).sum())


def _means(cells: Floats) -> Floats:
    used = cells[:, N] > 0
    return np.asarray(cells[used, C] / cells[used, N])


def _latest(cells: Floats) -> float:
    if not (cells[:, N] > 0).any():
        return math.nan
    if _is_listed(cells):
        return float(_means(cells)[-1])
    changes = price_changes(cells, 1)
    since = cells[changes[-1].block if changes else 0 :].sum(axis=0)
    return float(since[C] / since[N])
