"""The world as it is: the targets for no horizon, delay, drift, segments and speed, measured; writes docs/world-benchmarks.md.

`python benchmarks/world.py --share 0.1` takes a tenth of the runs, for a quick look. `--only speed,segments` measures some of it.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from thrifty import DEFAULT_POLICY, Instance, World, simulate
from thrifty.environments import Exponential, Feedback, Fixed, outage
from thrifty.leaderboard import Entry
from thrifty.leaderboard.first_edition import first_edition
from thrifty.simulation.segments import simulate_segments

PAGE = Path(__file__).parent.parent / "docs" / "world-benchmarks.md"
SEED = 20_261  # not one that anything was tuned on
DEFAULT = DEFAULT_POLICY
LATE = Feedback(Exponential(100))
LOSSY = Feedback(Exponential(100), lost=0.1, deadline=1000)
IGNORED = Feedback(Exponential(100), lost=0.1, deadline=1000, default=None)


def short_entries() -> list[Entry]:
    """Instances of the first leaderboard with 5,000 to 20,000 rounds and at most 20 arms."""
    return [each for each in first_edition() if 5000 <= each.horizon <= 20_000 and each.world.instance.n_arms <= 20]


def totals(entry: Entry, policy: str, runs: int, *, told: bool = True, feedback: Feedback | None = None) -> np.ndarray:
    """(runs,) total regret."""
    length = {"horizon": entry.horizon} if told else {"rounds": entry.horizon}
    played = simulate(entry.world, policy, runs=runs, seed=SEED, feedback=feedback, checkpoints=1, **length)
    return np.asarray(played.samples(policy)["total"][:, -1])


def compared(pairs: list[tuple[str, np.ndarray, np.ndarray]], heading: str, columns: tuple[str, str]) -> list[str]:
    """A table of two regrets and their ratio (each plus 1), and the geometric mean."""
    lines = [f"## {heading}", "", f"| instance | {columns[0]} | {columns[1]} | ratio |", "|---|---|---|---|"]
    ratios = []
    for name, before, after in pairs:
        ratio = (after.mean() + 1.0) / (before.mean() + 1.0)
        ratios.append(ratio)
        lines.append(f"| {name} | {_shown(before)} | {_shown(after)} | {ratio:.2f} |")
    total = sum(after.mean() for _, _, after in pairs) / sum(before.mean() for _, before, _ in pairs)
    mean = float(np.exp(np.log(ratios).mean()))
    above = sum(ratio > 1.5 for ratio in ratios)
    return [
        *lines,
        "",
        f"Geometric mean of the ratios {mean:.3f}; ratio of the sums {total:.3f}; above 1.5 on {above} of {len(ratios)}.",
        "",
    ]


def horizon(share: float) -> list[str]:
    """Total regret without a horizon against with one."""
    runs = max(4, round(100 * share))
    pairs = [(e.name, totals(e, DEFAULT, runs), totals(e, DEFAULT, runs, told=False)) for e in short_entries()]
    return compared(pairs, f"No horizon, T = 5,000 to 20,000, {runs} runs (target: 1.3)", ("horizon known", "unknown"))


def long_horizon(share: float) -> list[str]:
    """The same over a million rounds."""
    runs = max(4, round(100 * share))
    long = [Entry(f"two arms, .5 and {mean}", _two(mean), 1_000_000, "") for mean in (0.40, 0.44, 0.46)]
    pairs = [(e.name, totals(e, DEFAULT, runs), totals(e, DEFAULT, runs, told=False)) for e in long]
    return compared(pairs, f"No horizon, T = 1,000,000, {runs} runs (target: 1.3)", ("horizon known", "unknown"))


def delay(share: float) -> list[str]:
    """Total regret with outcomes 100 decisions late on average, and with some that never come."""
    runs = max(4, round(100 * share))
    some = short_entries()
    pairs = [(e.name, totals(e, DEFAULT, runs), totals(e, DEFAULT, runs, feedback=LATE)) for e in some]
    lines = compared(pairs, f"Delay of 100 decisions on average (exponential), {runs} runs (target: 1.5)", ("at once", "late"))
    return [*lines, "", *loss(some, runs)]


def loss(some: list[Entry], runs: int) -> list[str]:
    """On which instances the optimal arm is pulled most although outcomes get lost."""

    def is_most_pulled(entry: Entry, feedback: Feedback) -> bool:
        played = simulate(entry.world, DEFAULT, horizon=entry.horizon, runs=runs, seed=SEED, feedback=feedback, checkpoints=1)
        return bool(played[DEFAULT].pulls[:, -1].mean(axis=0).argmax() == entry.world.instance.optimal_arm)

    lines = [f"## A tenth of the outcomes never comes, deadline after 1,000 decisions, {runs} runs", ""]
    able = [entry for entry in some if is_most_pulled(entry, LATE)]
    lines.append(f"Without loss the optimal arm is pulled most on {len(able)} of {len(some)} instances; of these, with loss,")
    for feedback, what in ((LOSSY, "counts as a failure"), (IGNORED, "counts as nothing (`default=None`)")):
        lost = [entry.name for entry in able if not is_most_pulled(entry, feedback)]
        where = "not on " + ", ".join(lost) if lost else "on all of them"
        lines.append(f"\n- where a missing outcome {what}: {where}.")
    return [*lines, ""]


def pending(share: float) -> list[str]:
    """What it does to count pending decisions, where five hundred are always on their way."""
    runs = max(4, round(100 * share))
    rng = np.random.default_rng(SEED)
    drawn = []
    for _ in range(8):
        n_arms = int(rng.integers(3, 7))
        world = World.of(Instance(rng.uniform(0.3, 0.7, n_arms), np.sort(rng.uniform(0, 1, n_arms)), 0.1))
        drawn.append(Entry(f"{n_arms} arms, means drawn from [.3, .7]", world, 5000, ""))
    late = Feedback(Fixed(500))
    lines = []
    for policy in ("cs-ids", "cs-ts"):
        pairs = [
            (e.name, *(totals(e, f"{policy}:pending={counts}", runs, told=False, feedback=late) for counts in (0, 1)))
            for e in drawn
        ]
        heading = f"A fixed delay of 500: {policy} with and without counting pending decisions, T = 5,000, {runs} runs"
        lines += compared(pairs, heading, ("pending=0", "pending=1"))
    return lines


def drift(share: float) -> list[str]:
    """An outage of the optimal arm, and what watching for one costs where nothing changes."""
    runs = max(4, round(100 * share))
    lines = [f"## Outage of the optimal arm, `{DEFAULT}+restart`, {runs} runs", ""]
    lines += [
        "| means | outcomes before it is left (median, 95%) | decisions until it is back (median, 95%) |",
        "|---|---|---|",
    ]
    for means in ([0.9, 0.85], [0.6, 0.58], [0.5, 0.47, 0.3]):
        world = outage(Instance(means, [0.0, 1.0, 0.5][: len(means)], 0.1), 0, start=3000, end=6000)
        trace = simulate(world, f"{DEFAULT}+restart", rounds=9000, runs=runs, seed=SEED, trace=True).results[0].trace
        assert trace is not None
        left, back = zip(*(_left_and_back(row == 0) for row in trace), strict=True)
        shown = [f"{np.median(values):.0f}, {np.quantile(values, 0.95):.0f}" for values in (left, back)]
        lines.append(f"| {means} | {shown[0]} | {shown[1]} |")
    some = short_entries()
    few = max(4, runs // 5)
    for way, count in (("restart", runs), ("discount=0.999", few), ("window=2000", few)):
        pairs = [(e.name, totals(e, DEFAULT, count, told=False), totals(e, f"{DEFAULT}+{way}", count, told=False)) for e in some]
        table = compared(pairs, f"The price of `+{way}` where nothing changes, {count} runs (target: 1.15)", ("without", "with"))
        lines += ["", *(table if way == "restart" else [table[0], "", table[-2]])]
    return [*lines, ""]


def _left_and_back(dead: np.ndarray) -> tuple[int, int]:
    """Pulls of the arm before a stretch of 50 decisions in which it has at most 3; decisions until one in which it has 40."""
    gone = next((t for t in range(3000) if dead[3000 + t : 3050 + t].sum() <= 3), 3000)
    back = next((t for t in range(2950) if dead[6000 + t : 6050 + t].sum() >= 40), 3000)
    return int(dead[3000 : 3000 + gone].sum()), back


def segments(share: float) -> list[str]:
    """Fifty segments of 500 decisions, alike and unrelated, alone and leaning on each other."""
    runs = max(4, round(100 * share))
    rng = np.random.default_rng(SEED)
    costs, base = [1.0, 0.5, 0.2, 0.0], np.array([0.85, 0.82, 0.7, 0.6])
    kinds = {
        "similar: means within .01 of each other": [Instance(base + rng.normal(0, 0.01, 4), costs, 0.1) for _ in range(50)],
        "related: within .05": [Instance(np.clip(base + rng.normal(0, 0.05, 4), 0, 1), costs, 0.1) for _ in range(50)],
        "unrelated: uniform means": [Instance(rng.uniform(0, 1, 4), costs, 0.1) for _ in range(50)],
    }
    pairs = []
    for name, each in kinds.items():
        alone, leaning = (
            simulate_segments(each, DEFAULT, rounds=25_000, leaning=leaning, runs=runs, seed=SEED).total_regret
            for leaning in (False, True)
        )
        pairs.append((name, alone, leaning))
    return compared(pairs, f"50 segments of 500 decisions, {runs} runs (targets: 0.5 similar, 1.1 unrelated)", ("alone", "leaning"))


def speed(share: float) -> list[str]:
    """Nanoseconds a round, one thread, in turns; ratios to the plain round of the same policy (target: 2)."""
    lines = [
        "## Speed (target: at most 2x the plain round)",
        "",
        "| policy | arms | plain | late | window | discount | restart |",
        "|---|---|---|---|---|---|---|",
    ]
    for n_arms in (2, 10):
        world = Instance(np.linspace(0.5, 0.6, n_arms), np.linspace(0, 1, n_arms), 0.1)
        for policy, rounds in (("cs-ucb", 2_000_000), ("cs-etc", 2_000_000), ("cs-ts", 500_000), ("cs-ids", 40_000)):
            rounds = max(10_000, round(rounds * max(share, 0.1)))
            ways = [("", None), ("", LATE), ("+window=1000", None), ("+discount=0.999", None), ("+restart", None)]
            times = [np.inf] * len(ways)
            for turn in range(4):
                for number, (way, feedback) in enumerate(ways):
                    play = partial(
                        simulate, world, policy + way, rounds=rounds, runs=1, feedback=feedback, threads=1, checkpoints=1
                    )
                    elapsed = _timed(play)
                    if turn > 0:
                        times[number] = min(times[number], elapsed / rounds)
            shown = [f"{1e9 * times[0]:.0f} ns", *(f"{each / times[0]:.2f}x" for each in times[1:])]
            lines.append(f"| {policy} | {n_arms} | {' | '.join(shown)} |")
    return [*lines, ""]


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _two(mean: float) -> World:
    return World.of(Instance([0.5, mean], [1.0, 0.0], 0.1))


def _shown(values: np.ndarray) -> str:
    return f"{values.mean():,.1f} +- {values.std(ddof=1) / np.sqrt(values.size):,.1f}"


PARTS = {
    "speed": speed,
    "segments": segments,
    "drift": drift,
    "delay": delay,
    "pending": pending,
    "horizon": horizon,
    "long-horizon": long_horizon,
}


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the runs of a full measurement")
    parser.add_argument("--only", help="parts, separated by commas; they are printed, and written where --out says")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or (PAGE if options.only is None else None)
    lines = [
        "# Benchmarks of the world as it is",
        "",
        "Written by `python benchmarks/world.py`; means +- standard errors over runs; ratios are of means, each plus 1.",
        "",
    ]
    for name in (options.only or ",".join(PARTS)).split(","):
        part = PARTS[name](options.share)
        lines += part
        print("\n".join(part), flush=True)
        if out is not None:
            out.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
