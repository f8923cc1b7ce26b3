"""Rollouts whose keys come again: how often the guardrail stops them. `rollouts.py --only keys` prints the tables.

Each key has a success rate of its own, drawn from a Beta law with the mean of the world, worth 5 observations; all its requests
fall to one group. Outcomes come at once. `stop_of` is the guardrail in compiled code; `check` compares it with the real one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from thrifty.floor_test import LEVEL
from thrifty.router.choice import BUCKETS
from thrifty.router.guardrail import BLOCKS, LATE_LEVEL, REPEATS, SMALLEST_BLOCK, Contrast, Guardrail
from thrifty.sequences import RATES, WEIGHTS

GAP = 0.03
_LOG_WEIGHTS, _RATES, _PRICES = np.log(WEIGHTS), RATES.copy(), -np.log1p(-RATES) - RATES


class KeyedWorld(NamedTuple):
    """Keys and decisions of a rollout; `keys` is 0 if requests have none.

    `zipf` is the exponent of the law by which keys come, 0 if all are alike. From the decision `falls_at` on,
    the policy breaks the floor, if it does at all.
    """

    name: str
    keys: int
    decisions: int
    share: float = 0.5
    zipf: float = 0.0
    falls_at: int = 0
    mean: float = 0.9
    alpha: float = 0.05


WORLDS = [
    KeyedWorld("100 keys x 500", 100, 50_000),
    KeyedWorld("1,000 keys x 50", 1000, 50_000),
    KeyedWorld("10,000 keys x 5", 10_000, 50_000),
    KeyedWorld("20,000 keys x 20", 20_000, 400_000),
    KeyedWorld("40,000 keys x 10", 40_000, 400_000),
    KeyedWorld("100,000 keys, Zipf with exponent 1.1", 100_000, 400_000, zipf=1.1),
    KeyedWorld("no keys", 0, 400_000),
    KeyedWorld("canary of 5%, 100 keys x 500", 100, 50_000, share=0.05),
    KeyedWorld("canary of 5%, 10,000 keys x 5", 10_000, 50_000, share=0.05),
    KeyedWorld("canary of 5%, 100,000 keys x 10", 100_000, 1_000_000, share=0.05),
    KeyedWorld("canary of 5%, 200,000 keys x 5", 200_000, 1_000_000, share=0.05),
    KeyedWorld("canary of 5%, no keys", 0, 400_000, share=0.05),
]

LATE_WORLDS = [
    KeyedWorld("10,000 keys", 10_000, 1_000_000, falls_at=100_000),
    KeyedWorld("20,000 keys", 20_000, 1_000_000, falls_at=200_000),
    KeyedWorld("40,000 keys", 40_000, 1_000_000, falls_at=400_000),
    KeyedWorld("100,000 keys, Zipf with exponent 1.1", 100_000, 2_000_000, zipf=1.1, falls_at=400_000),
    KeyedWorld("canary of 5%, 150,000 keys", 150_000, 4_000_000, share=0.05, falls_at=1_500_000),
]


@njit(cache=True)
def _is_broken(sums: np.ndarray, scale: float, level: float) -> bool:
    """`FloorTest.broken`; `sums` are decisions and rewards of both groups, the sum of y, and that of (y - its guess)^2."""
    excess, spread, target = sums[4], sums[5], -np.log(level)
    if excess <= 0.0 or excess * excess < 2.0 * spread * target:
        return False
    terms = _LOG_WEIGHTS + _RATES * (excess / scale) - _PRICES * (spread / scale**2)
    top = terms.max()
    return bool(top + np.log(np.exp(terms - top).sum()) >= target)


@njit(cache=True)
def _add(sums: np.ndarray, routed: bool, reward: float, share: float, keep: float) -> None:
    """`FloorTest.add` of one decision."""
    f, g = (sums[1] + 0.5) / (sums[0] + 1.0), (sums[3] + 0.5) / (sums[2] + 1.0)
    moved = -(reward - f) / share if routed else keep * (reward - g) / (1.0 - share)
    first = 0 if routed else 2
    sums[first] += 1.0
    sums[first + 1] += reward
    sums[4] += keep * g - f + moved
    sums[5] += moved * moved


@njit(cache=True)
def stop_of(buckets: np.ndarray, routed: np.ndarray, rewards: np.ndarray, share: float, alpha: float) -> tuple[int, int, int]:
    """After how many decisions the floor counts as broken, 0 for never; keys counted by then; and the block, 0 for the main test.

    `buckets` are -1 for requests without a key: then all of them are.
    """
    scale, keep, keyed = max(1.0 / share, (1.0 - alpha) / (1.0 - share)), 1.0 - alpha, buckets[0] >= 0
    main, block = np.zeros(6), np.zeros(6)
    in_main, in_block = np.zeros(BUCKETS, np.bool_), np.zeros(BUCKETS, np.bool_)
    counted = left_out = blocks = n_keys = 0
    for n in range(buckets.size):
        bucket = buckets[n]
        new = fresh = not keyed or not in_main[bucket]
        if new:
            in_main[bucket] = keyed
            n_keys += 1
            _add(main, routed[n], rewards[n], share, keep)
        if blocks:
            fresh = not in_block[bucket]
        if blocks and fresh:
            in_block[bucket] = True
            counted += 1
            _add(block, routed[n], rewards[n], share, keep)
            if _is_broken(block, scale, LATE_LEVEL / (blocks * (blocks + 1))):
                return n + 1, n_keys, blocks
        elif blocks:
            left_out += 1
        if new and _is_broken(main, scale, LEVEL - LATE_LEVEL if keyed else LEVEL):
            return n + 1, n_keys, 0
        if not blocks:
            counted, left_out = n_keys, n + 1 - n_keys
        size = counted + left_out
        settled = counted - fresh  # outcomes come at once, but this decision has none yet when the guardrail asks
        often = size >= SMALLEST_BLOCK and size * BLOCKS >= n + 1 and left_out >= REPEATS * counted
        if keyed and often and settled * 16 >= counted * 15:
            blocks += 1
            counted = left_out = 0
            block[:] = 0.0
            in_block[:] = False
    return 0, n_keys, 0


def draw(world: KeyedWorld, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Buckets, groups and rewards of a rollout; the policy is `gap` below the floor once it has fallen."""
    n = world.decisions
    if world.keys:
        drawn = rng.integers(0, world.keys, n)
        if world.zipf:
            weights = np.cumsum(np.arange(1.0, world.keys + 1.0) ** -world.zipf)
            drawn = np.searchsorted(weights / weights[-1], rng.random(n)).clip(0, world.keys - 1)
        rates = rng.beta(5.0 * world.mean, 5.0 * (1.0 - world.mean), world.keys)[drawn]
        buckets, routed = rng.integers(0, BUCKETS, world.keys)[drawn], (rng.random(world.keys) < world.share)[drawn]
    else:
        buckets, routed, rates = np.full(n, -1), rng.random(n) < world.share, np.full(n, world.mean)
    below = np.where(np.arange(n) >= world.falls_at, gap, 0.0)
    means = np.where(routed, (1.0 - world.alpha) * rates - below, rates)
    return buckets, routed, (rng.random(n) < means).astype(np.float64)


def rollouts(world: KeyedWorld, gap: float, runs: int, seed: int) -> np.ndarray:
    """(runs, 3) what `stop_of` says of each."""
    rng = np.random.default_rng(seed)
    return np.array([stop_of(*draw(world, gap, rng), world.share, world.alpha) for _ in range(runs)])


HEAD = (
    "keys, mean 0.9",
    "decisions",
    "the floor holds exactly: stopped",
    "broken by 3 points: stopped",
    "median decisions until it stops",
    "median keys until it stops",
    "99% have stopped within",
)


def row_of(world: KeyedWorld, runs: int, seed: int) -> list[str]:
    """A row of the first table."""
    holds, breaks = rollouts(world, 0.0, runs, seed), rollouts(world, GAP, runs, seed + 1)
    found = breaks[breaks[:, 0] > 0]
    when = [f"{np.median(found[:, column]):,.0f}" for column in (0, 1)] if len(found) >= runs / 2 else ["-", "-"]
    late = f"{np.quantile(found[:, 0], 0.99):,.0f}" if len(found) >= 0.99 * runs else "-"
    shares = [f"{(each[:, 0] > 0).mean():.1%}" for each in (holds, breaks)]
    row = [world.name, f"{world.decisions:,}", *shares, when[0], when[1] if world.keys else "-", late]
    print(*row, sep="  ", flush=True)
    return row


LATE_HEAD = ("keys, mean 0.9", "falls after", "stopped before", "stopped after", "median decisions after the fall", "99% within")


def late_row_of(world: KeyedWorld, runs: int, seed: int) -> list[str]:
    """A row of the second table: the policy is at the floor exactly, and 3 points below once all keys were seen."""
    stops = rollouts(world, GAP, runs, seed)[:, 0]
    early, later = (stops > 0) & (stops <= world.falls_at), stops[stops > world.falls_at] - world.falls_at
    share = later.size / max((~early).sum(), 1)
    within = [f"{np.quantile(later, q):,.0f}" if share >= q else "-" for q in (0.5, 0.99)]
    row = [world.name, f"{world.falls_at:,}", f"{early.mean():.1%}", f"{share:.1%}", *within]
    print(*row, sep="  ", flush=True)
    return row


@njit(cache=True)
def _visits(uniform: np.ndarray, rates: np.ndarray, again: float, leaves: float) -> tuple[np.ndarray, np.ndarray]:
    """Keys of decisions and their rewards, for customers with habits; `rates` are of the group that each key is in.

    After a failure the same customer comes next with probability `again`, or stays away for a while with probability `leaves`.
    """
    n, keys = uniform.shape[0], rates.size
    drawn, rewards, away, last = np.zeros(n, np.int64), np.zeros(n), np.zeros(keys, np.int64), -1
    for i in range(n):
        key = int(uniform[i, 0] * keys)
        if last >= 0 and uniform[i, 1] < again:
            key = last
        while away[key] > i:
            key = (key + 1) % keys
        drawn[i], rewards[i] = key, 1.0 if uniform[i, 2] < rates[key] else 0.0
        last = key if rewards[i] == 0.0 else -1
        if last >= 0 and uniform[i, 3] < leaves:
            away[key] = i + 2 * keys
    return drawn, rewards


HABITS = [("try again at once, 4 of 5", 0.8, 0.0), ("stay away for a while, every second one", 0.0, 0.5)]
HABIT_HEAD = ("after a failure customers", "keys", "decisions", "share", "the floor holds exactly: stopped")


def habit_row_of(name: str, again: float, leaves: float, world: KeyedWorld, options: tuple[int, int]) -> list[str]:
    """A row of the third table; `options` are the number of rollouts and the seed."""
    rng, stopped = np.random.default_rng(options[1]), 0
    for _ in range(options[0]):
        routed, rates = rng.random(world.keys) < world.share, rng.beta(5.0 * world.mean, 5.0 * (1.0 - world.mean), world.keys)
        rates = np.where(routed, 1.0 - world.alpha, 1.0) * rates
        drawn, rewards = _visits(rng.random((world.decisions, 4)), rates, again, leaves)
        buckets = rng.integers(0, BUCKETS, world.keys)[drawn]
        stopped += stop_of(buckets, routed[drawn], rewards, world.share, world.alpha)[0] > 0
    row = [name, f"{world.keys:,}", f"{world.decisions:,}", f"{world.share:g}", f"{stopped / options[0]:.1%}"]
    print(*row, sep="  ", flush=True)
    return row


def check(seed: int) -> None:
    """Raise an AssertionError unless the compiled guardrail stops where the real one does."""
    rng = np.random.default_rng(seed)
    many, late = KeyedWorld("", 5000, 20_000), KeyedWorld("", 1500, 40_000, falls_at=12_000)
    worlds = [KeyedWorld("", 500, 8000), many, many._replace(share=0.05), many._replace(zipf=1.1), KeyedWorld("", 0, 8000)]
    for world, gap in [*((world, 0.3) for world in worlds), (late, 0.3), (late, 0.1), (many, 0.05), (many, 0.0)]:
        buckets, routed, rewards = draw(world, gap, rng)
        guardrail, stopped = Guardrail(), 0
        guardrail.watch(Contrast("baseline", world.alpha, world.share), 0.0)
        for n, (bucket, is_routed, reward) in enumerate(zip(buckets.tolist(), routed.tolist(), rewards.tolist(), strict=True), 1):
            code = "exploit" if is_routed else "baseline"
            guardrail.decided((0, n), code, bucket=None if bucket < 0 else bucket)
            guardrail.settled((0, n), code, reward)
            if guardrail.broken_by is not None:
                stopped = n
                break
        found = stop_of(buckets, routed, rewards, world.share, world.alpha)
        assert found[0] == stopped, f"{world}: the compiled guardrail stops at {found}, the real one at {stopped}"
        print(f"check: {world.keys:,} keys, stops after {stopped:,} decisions, by block {found[2]}")
