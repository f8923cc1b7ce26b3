"""The instances that the second edition of the leaderboard added: for each kind some to tune on, and as many that are held out."""

from collections.abc import Sequence

import numpy as np

from thrifty.environments import Beta, Fees, Law, World, scaled
from thrifty.environments.families import HardFamily
from thrifty.leaderboard.entry import HELD_OUT, TUNING, Entry, make_entry
from thrifty.problem import Instance


def second_edition() -> list[Entry]:
    """All of them, the tuning half first; then fees by outcome, of both halves."""
    fees = [_fees(half, seed) for half, seeds in ((TUNING, (61, 62)), (HELD_OUT, (71, 72))) for seed in seeds]
    return [*_to_tune_on(), *_held_out(), *fees]


def _to_tune_on() -> list[Entry]:
    tiny = np.random.default_rng(7)
    return [
        *_hard(TUNING, ((2, 0.1), (8, 0.1), (3, 0.3))),
        _fixed(TUNING, "tiny rates, 12 arms", tiny.uniform(0.005, 0.06, 12), tiny.uniform(0, 1, 12), horizon=20_000),
        _fixed(TUNING, "well separated, .7 and .3", [0.7, 0.3], [1, 0]),
        _fixed(TUNING, "well separated, 4 arms", [0.85, 0.3, 0.5, 0.7], [1, 0.2, 0.4, 0.7]),
        _fixed(TUNING, "cheap is best, 4 arms", [0.8, 0.6, 0.5, 0.4], [0, 0.3, 0.6, 1]),
        _fixed(TUNING, "near ties, 6 arms", 0.4 + 0.015 * np.arange(-3, 3), np.linspace(0, 1, 6), alpha=0.05),
        _fixed(TUNING, "near the floor, 4 arms", [0.7, 0.62, 0.64, 0.635], [1, 0, 0.3, 0.6]),
        _fixed(TUNING, "three tied tops", [0.6, 0.6, 0.6, 0.55, 0.4], [1, 0.95, 0.9, 0.3, 0]),
        _fixed(TUNING, "five tied tops, one free", [0.5] * 5 + [0.47], [1, 0.9, 0.8, 0.7, 0.6, 0]),
        _fixed(TUNING, "alpha = 0, 4 arms", [0.7, 0.7, 0.6, 0.65], [1, 0.8, 0.5, 1], alpha=0.0),
        *_drawn(TUNING, (4, 5, 6, 7)),
        *(_random(TUNING, n_arms, 1000 + n_arms, 10_000) for n_arms in (10, 20, 50, 100)),
        _random(TUNING, 1000, 2000, 20_000),
        _random(TUNING, 5, 1031, 1000),
        _random(TUNING, 5, 1032, 100_000),
        _fixed(TUNING, "two arms, .6 and .5", [0.6, 0.5], [1, 0], horizon=1000),
        _fixed(TUNING, "two arms, .6 and .52", [0.6, 0.52], [1, 0], horizon=200_000),
        _fixed(TUNING, "two arms, .6 and .55", [0.6, 0.55], [1, 0], horizon=200_000),
        *(_dollars(TUNING, seed) for seed in (41, 42)),
    ]


def _held_out() -> list[Entry]:
    tiny = np.random.default_rng(17)
    return [
        *_hard(HELD_OUT, ((6, 0.1), (2, 0.3), (1, 0.2))),
        _fixed(HELD_OUT, "tiny rates, 10 arms", tiny.uniform(0.005, 0.06, 10), tiny.uniform(0, 1, 10), horizon=20_000),
        _fixed(HELD_OUT, "well separated, .75 and .4", [0.75, 0.4], [1, 0]),
        _fixed(HELD_OUT, "well separated, 6 arms", [0.9, 0.2, 0.4, 0.75, 0.6, 0.3], [1, 0.1, 0.3, 0.8, 0.6, 0]),
        _fixed(HELD_OUT, "cheap is best, 5 arms", [0.7, 0.55, 0.5, 0.4, 0.6], [0, 0.2, 0.5, 0.8, 1]),
        _fixed(HELD_OUT, "near ties, 7 arms", 0.6 + 0.012 * np.arange(-3, 4), np.linspace(0, 1, 7), alpha=0.05),
        _fixed(HELD_OUT, "near the floor, 5 arms", [0.5, 0.44, 0.455, 0.445, 0.46], [1, 0, 0.25, 0.5, 0.75]),
        _fixed(HELD_OUT, "four tied tops", [0.7, 0.7, 0.7, 0.7, 0.64, 0.5], [1, 0.95, 0.9, 0.85, 0.25, 0]),
        _fixed(HELD_OUT, "three tied tops, one free", [0.6] * 3 + [0.56], [1, 0.8, 0.6, 0]),
        _fixed(HELD_OUT, "alpha = 0, 5 arms", [0.6, 0.6, 0.55, 0.5, 0.58], [1, 0.7, 0.4, 0.2, 0.9], alpha=0.0),
        *_drawn(HELD_OUT, (8, 9, 10, 11)),
        *(_random(HELD_OUT, n_arms, 2000 + n_arms, 10_000) for n_arms in (10, 20, 50, 100)),
        _random(HELD_OUT, 1000, 3000, 20_000),
        _random(HELD_OUT, 5, 2031, 1000),
        _random(HELD_OUT, 5, 2032, 100_000),
        _fixed(HELD_OUT, "two arms, .8 and .7", [0.8, 0.7], [1, 0], horizon=1000),
        _fixed(HELD_OUT, "two arms, .5 and .43", [0.5, 0.43], [1, 0], horizon=200_000),
        _fixed(HELD_OUT, "two arms, .5 and .46", [0.5, 0.46], [1, 0], horizon=1_000_000),
        *(_dollars(HELD_OUT, seed) for seed in (51, 52)),
    ]


def _fixed(
    half: str, name: str, means: Sequence[float] | np.ndarray, costs: Sequence[float] | np.ndarray, *, alpha: float = 0.1,
    horizon: int = 10_000,
) -> Entry:  # fmt: skip
    return make_entry(name, Instance(means, costs, alpha), horizon, half)


def _hard(half: str, kinds: Sequence[tuple[int, float]]) -> list[Entry]:
    """Like those of the first edition: the free arm on the floor, and just below it."""
    return [
        make_entry(
            f"hard family, {n_dear} dear, alpha = {alpha}, member {member}",
            HardFamily(alpha, min(0.45, (1 - alpha) / 2), 0.225 * (n_dear / 10_000) ** (1 / 3), n_dear).member(member),
            10_000,
            half,
        )
        for n_dear, alpha in kinds
        for member in (0, 1)
    ]


def _drawn(half: str, seeds: Sequence[int]) -> list[Entry]:
    found = []
    for seed in seeds:
        rng = np.random.default_rng(100 + seed)
        found.append(_fixed(half, f"drawn: uniform {seed}", rng.uniform(0, 1, 5), rng.uniform(0, 1, 5)))
        found.append(_fixed(half, f"drawn: payments {seed}", rng.beta(30, 3, 6), rng.uniform(0.1, 1, 6), alpha=0.02))
        means = np.sort(rng.uniform(0.3, 0.7, 4))
        found.append(_fixed(half, f"drawn: dear is better {seed}", means, np.sort(rng.uniform(0, 1, 4))))
    return found


def _random(half: str, n_arms: int, seed: int, horizon: int) -> Entry:
    rng = np.random.default_rng(seed)
    name = f"random, K = {n_arms:,}, T = {horizon:,}, seed {seed}"
    return _fixed(half, name, rng.uniform(0.1, 0.9, n_arms), rng.uniform(0, 1, n_arms), horizon=horizon)


def _dollars(half: str, seed: int) -> Entry:
    """Calls of language models: 1e-5 to 1e-2 dollars, seen with each outcome; dearer models are better."""
    rng = np.random.default_rng(seed)
    means = np.sort(rng.uniform(0.6, 0.95, 5))
    dollars = np.sort(10 ** rng.uniform(-5, -2, 5))
    costs: list[Law] = [scaled(Beta(1, 9), 10 * float(mean)) for mean in dollars]
    world = World(means.tolist(), costs, 0.05)
    return Entry(f"costs in dollars, seed {seed}", world, 10_000, half, unit=float(np.ptp(dollars)))


def _fees(half: str, seed: int) -> Entry:
    """Processors that charge another fee for a failure than for a success, in dollars, seen with each outcome."""
    rng = np.random.default_rng(seed)
    means, success = rng.uniform(0.75, 0.97, 5), 10 ** rng.uniform(-2, -0.5, 5)
    failure = success * rng.uniform(0, 1, 5)
    costs = [Fees(scaled(Beta(2, 6), 4 * s), float(f)) for s, f in zip(success.tolist(), failure.tolist(), strict=True)]
    world = World(means.tolist(), costs, 0.05)
    return Entry(f"fees by outcome, seed {seed}", world, 10_000, half, unit=float(np.ptp(world.instance.costs)))
