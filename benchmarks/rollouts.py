"""How often the guardrail stops a rollout that holds the floor, and one that breaks it by 3 points, looked at after every outcome.

    python benchmarks/rollouts.py                 # everything: some 40 minutes on one core
    python benchmarks/rollouts.py --only sums     # the floor test alone, 1,000 rollouts a row
    python benchmarks/rollouts.py --only late     # the guardrail with late outcomes: failures of one group come sooner
    python benchmarks/rollouts.py --only keys     # keys that come again, each with a success rate of its own; harm that comes late
    python benchmarks/rollouts.py --only routers  # whole routers that learn, in a canary

"holds" is a policy whose mean reward is (1 - alpha) times that of the comparison group at all times, exactly. "breaks" is 3 points
below that. `moves` lets all means swing by a fifth, and drop to 0 in an outage of 1% of the time.
"""

import argparse
import heapq
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import keyed_rollouts as keyed
from thrifty import Router
from thrifty.floor_test import LEVEL, FloorTest
from thrifty.router.guardrail import Contrast, Guardrail
from thrifty.sequences import log_wealth

GAP = 0.03
CHUNK = 50_000
TARGET = -np.log(LEVEL)


class World(NamedTuple):
    """A rollout: what it compares, the share that is routed, the mean of the comparison group, alpha, and whether means move."""

    name: str
    share: float
    mean: float
    alpha: float
    moves: bool = False


WORLDS = [
    World("canary, equal groups", 0.5, 0.9, 0.05),
    World("canary of 5%", 0.05, 0.9, 0.05),
    World("live, holdout of 5%", 0.95, 0.9, 0.05),
    World("canary, equal groups", 0.5, 0.6, 0.05),
    World("canary of 5%", 0.05, 0.6, 0.05),
    World("live, holdout of 5%", 0.95, 0.6, 0.05),
    World("canary, equal groups, moves", 0.5, 0.75, 0.1, moves=True),
    World("canary of 5%, moves", 0.05, 0.75, 0.1, moves=True),
]


def means_of(world: World, gap: float, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean rewards of some outcomes, routed and compared."""
    compared = np.full(size, world.mean)
    if world.moves:
        at = np.arange(first, first + size)
        compared += 0.2 * world.mean * np.sin(at / 1000.0)
        compared[at % 10_000 < 100] = 0.0
    return np.clip((1.0 - world.alpha) * compared - gap, 0.0, 1.0), compared


def stop_of(world: World, gap: float, horizon: int, rng: np.random.Generator) -> int:
    """After how many outcomes the floor counts as broken, each a batch of its own; 0 for never. The sums of `FloorTest`."""

    def chunk(first: int) -> tuple[np.ndarray, np.ndarray]:
        of_routed, of_compared = means_of(world, gap, first, CHUNK)
        routed = rng.random(CHUNK) < world.share
        return routed, (rng.random(CHUNK) < np.where(routed, of_routed, of_compared)).astype(np.float64)

    return first_break(chunk, world, horizon)


def first_break(chunk: Callable[[int], tuple[np.ndarray, np.ndarray]], world: World, horizon: int) -> int:
    """After how many outcomes the floor counts as broken; `chunk` gives the groups and rewards of the next ones."""
    share, keep = world.share, 1.0 - world.alpha
    scale = FloorTest(world.alpha, share).scale
    rewarded, rewards = np.zeros(2), np.zeros(2)
    excess = spread = 0.0
    for first in range(0, horizon, CHUNK):
        routed, reward = chunk(first)
        guesses = []
        for group, mask in enumerate((routed, ~routed)):
            won, seen = rewards[group] + np.cumsum(mask * reward), rewarded[group] + np.cumsum(mask)
            guesses.append((won - mask * reward + 0.5) / (seen - mask + 1.0))
            rewards[group], rewarded[group] = won[-1], seen[-1]
        moved = np.where(routed, -(reward - guesses[0]) / share, keep * (reward - guesses[1]) / (1.0 - share))
        sums, squares = excess + np.cumsum(keep * guesses[1] - guesses[0] + moved), spread + np.cumsum(moved * moved)
        near = np.flatnonzero((sums > 0.0) & (sums * sums >= 2.0 * squares * TARGET))
        for part in np.array_split(near, near.size // 2000 + 1):
            if part.size:
                broken = log_wealth(sums[part] / scale, squares[part] / scale**2) >= TARGET
                if broken.any():
                    return first + int(part[np.argmax(broken)]) + 1
        excess, spread = float(sums[-1]), float(squares[-1])
    return 0


def late_stop_of(world: World, gap: float, horizon: int, seed: int) -> int:
    """The same for a `Guardrail` whose outcomes come late: routed failures soon and successes late, compared ones the other way."""
    rng, guardrail = random.Random(seed), Guardrail()
    guardrail.watch(Contrast("baseline", world.alpha, world.share), 0.0)
    means = {"exploit": (1.0 - world.alpha) * world.mean - gap, "baseline": world.mean}
    waiting: list[tuple[float, int, str, float]] = []
    for number in range(1, horizon + 1):
        code = "exploit" if rng.random() < world.share else "baseline"
        reward = float(rng.random() < means[code])
        guardrail.decided((0, number), code)
        soon = (code == "exploit") == (reward == 0.0)
        heapq.heappush(waiting, (number + rng.expovariate(0.1 if soon else 0.002), number, code, reward))
        while waiting and waiting[0][0] <= number:
            _, settled, its_code, its_reward = heapq.heappop(waiting)
            guardrail.settled((0, settled), its_code, its_reward)
            if guardrail.broken_by is not None:
                return number
    return 0


def router_stop_of(means: dict[str, float], horizon: int, seed: int, keys: int) -> int:
    """The number of the decision after which a router with the default policy falls back; 0 for never.

    `means` are those of an average key; keys differ as in `keyed_rollouts`. Requests have none if `keys` is 0.
    """
    rng = random.Random(seed)
    rates = [rng.betavariate(4.5, 0.5) / 0.9 for _ in range(keys)]
    arms = {"dear": 1.0, "fair": 0.5, "cheap": 0.1}
    router = Router(arms, 0.05, name=f"r{seed}", mode="canary", canary_share=0.5, baseline="dear", seed=seed)
    for number in range(1, horizon + 1):
        key = rng.randrange(keys) if keys else -1
        decision = router.decide(key=None if key < 0 else str(key))
        if decision.code == "fallback":
            return number
        rate = 1.0 if key < 0 else rates[key]
        router.record(decision.id, reward=float(rng.random() < rate * means[decision.arm]))
    return 0


def row_of(name: str, stops: list[list[int]], horizon: int) -> list[str]:
    """A row of a table: how often each kind was stopped, and when."""
    holds, breaks = (np.array(each) for each in stops)
    when = breaks[breaks > 0]
    median, late = (f"{np.quantile(when, q):,.0f}" for q in (0.5, 0.99)) if when.size else ("-", "-")
    return [name, f"{horizon:,}", f"{(holds > 0).mean():.1%}", f"{(breaks > 0).mean():.1%}", median, late]


def table_of(head: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(head), ["---"] * len(head), *rows]) + "\n"


def tables(options: argparse.Namespace) -> Iterator[str]:
    """What was asked for."""
    head = ("rollout", "horizon", "holds: stopped", "breaks: stopped", "median outcomes to stop", "99% stopped within")
    if options.only in (None, "sums"):
        rows = []
        for world in WORLDS:
            rng = np.random.default_rng(options.seed)
            stops = [[stop_of(world, gap, options.horizon, rng) for _ in range(options.runs)] for gap in (0.0, GAP)]
            rows.append(row_of(f"{world.name}, mean {world.mean:g}, alpha {world.alpha:g}", stops, options.horizon))
            print(*rows[-1], sep="  ", flush=True)
        yield table_of(head, rows)
    if options.only in (None, "late"):
        world, horizon = WORLDS[0], 40_000
        stops = [[late_stop_of(world, gap, horizon, seed) for seed in range(options.runs)] for gap in (0.0, GAP)]
        yield table_of(head, [row_of(f"late outcomes, {world.name}, mean {world.mean:g}", stops, horizon)])
    if options.only in (None, "keys"):
        keyed.check(options.seed)
        yield table_of(keyed.HEAD, [keyed.row_of(each, options.runs, options.seed) for each in keyed.WORLDS])
        habits = [
            (*habit, world)
            for habit in keyed.HABITS
            for world in (keyed.WORLDS[1], keyed.LATE_WORLDS[0]._replace(decisions=300_000))
        ]
        yield table_of(keyed.HABIT_HEAD, [keyed.habit_row_of(*each, (options.runs, options.seed)) for each in habits])
        yield table_of(keyed.LATE_HEAD, [keyed.late_row_of(each, options.runs, options.seed) for each in keyed.LATE_WORLDS])
    if options.only in (None, "routers"):
        horizon, runs = 4000, max(options.runs // 10, 1)
        worlds = [
            ("a router that learns, an arm within alpha", {"dear": 0.9, "fair": 0.87, "cheap": 0.6}, 0),
            ("a router that learns, no other arm within alpha", {"dear": 0.9, "fair": 0.5, "cheap": 0.4}, 0),
            ("a router that learns, two arms exactly at the floor", {"dear": 0.9, "fair": 0.855, "cheap": 0.855}, 0),
            ("the same, 100 keys x 40", {"dear": 0.9, "fair": 0.855, "cheap": 0.855}, 100),
        ]
        stops = [[router_stop_of(means, horizon, seed, keys) for seed in range(runs)] for _, means, keys in worlds]
        words = ("rollout", "rollouts", "horizon", "stopped", "median")
        lines = [
            [
                name,
                f"{runs:,}",
                f"{horizon:,}",
                f"{np.mean(np.array(each) > 0):.1%}",
                f"{np.median([n for n in each if n] or [0]):,.0f}",
            ]
            for (name, _, _), each in zip(worlds, stops, strict=True)
        ]
        yield table_of(words, lines)


def main() -> None:
    """Simulate, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="rollouts of each kind; default %(default)s")
    parser.add_argument("--horizon", type=int, default=400_000, help="outcomes of both groups, at most; default %(default)s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("sums", "late", "keys", "routers"))
    for table in tables(parser.parse_args()):
        print(table)


if __name__ == "__main__":
    main()
