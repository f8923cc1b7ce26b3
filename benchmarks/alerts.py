"""How often alerts come without reason, and how late they come with one: `python benchmarks/alerts.py`.

Routers decide in made-up time, at the pace of the machine. Without a change every alert is false, but for `floor broken` while a
router still learns. With a change the delay is from the change to the alert, in seconds and in decisions of the arm or router.
"""

import argparse
import heapq
import math
import random
import statistics
import tempfile
from dataclasses import dataclass, field

from thrifty.router import Router
from thrifty.router.monitor import LOOK_S, Monitor
from thrifty.store import open_store

HOUR_S = 3600.0


@dataclass
class Clock:
    """Made-up time."""

    now: float = 1_700_006_400.0

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now

    def monotonic(self) -> float:
        """The same."""
        return self.now


@dataclass(frozen=True)
class World:
    """Prices and means of arms, segments whose means differ by a factor, and how traffic rises and falls within a day."""

    means: dict[str, float]
    prices: dict[str, float]
    segments: tuple[tuple[str, float], ...] = (("", 1.0),)
    swing: float = 0.0
    lag_s: float = 3.0


SMS = {"a": 0.008, "b": 0.006, "c": 0.004}
STATIONARY = {
    "three arms": World({"a": 0.95, "b": 0.92, "c": 0.7}, SMS),
    "low rates": World({"a": 0.06, "b": 0.055, "c": 0.01}, SMS),
    "20 segments, day and night": World(
        {"a": 0.95, "b": 0.92, "c": 0.7}, SMS, tuple((f"S{n}", 1.0 - 0.02 * n) for n in range(20)), swing=0.9, lag_s=30.0
    ),
}
CHANGES = {
    "the chosen arm from 0.92 to 0.3": {"b": 0.3},
    "the chosen arm from 0.92 to 0.6": {"b": 0.6},
    "all arms to 0.3": {"a": 0.3, "b": 0.3, "c": 0.3},
    "outcomes stop": {},
}


@dataclass
class Run:
    """One router under traffic."""

    world: World
    seed: int
    rate: float
    events: list[tuple[float, str, str]] = field(default_factory=list)  # when an alert began, its rule and its arm
    made: list[tuple[float, str]] = field(default_factory=list)

    def play(self, seconds: float, *, change_at: float = math.inf, change: dict[str, float] | None = None) -> None:
        """Decide for so long."""
        clock, rng, means = Clock(), random.Random(self.seed), dict(self.world.means)
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(f"sqlite:///{folder}/r.db")
            router = Router(self.world.prices, 0.05, store=store, name="r", clock=clock, seed=self.seed, memory_bytes=2_000_000)
            monitor, start, pending, bad = Monitor(clock.now), clock.now, list[tuple[float, str, float]](), set[tuple[str, ...]]()
            at, look_at, stopped = clock.now, clock.now + LOOK_S, False
            while at < start + seconds:
                peak = 1.0 + self.world.swing * math.sin(2 * math.pi * at / (24 * HOUR_S))
                at += rng.expovariate(self.rate * max(peak, 0.05))
                while look_at <= at:
                    while pending and pending[0][0] <= look_at:
                        clock.now, decision, reward = heapq.heappop(pending)
                        router.record_soon(decision, reward)
                    clock.now = look_at
                    router.expire()
                    monitor.look(router.state, look_at)
                    found = {each[:3] for each in monitor.verdicts()}
                    self.events += [(look_at - start, each[0], each[2]) for each in found - bad]
                    bad = found | (bad if monitor.undecided() else set())
                    look_at += LOOK_S
                if at - start > change_at:
                    means.update(change or {})
                    stopped = not change
                clock.now = at
                segment, factor = rng.choice(self.world.segments)
                decision_made = router.decide_soon(segment)
                if change is not None:
                    self.made.append((at - start, decision_made.arm))
                reward = float(rng.random() < means[decision_made.arm] * factor)
                if not stopped:
                    heapq.heappush(pending, (at + rng.expovariate(1.0 / self.world.lag_s), decision_made.id, reward))
            router.close()
            store.close()


def false_alarms(days: float, rate: float) -> None:
    """Alerts of worlds that do not change."""
    print(f"without a change, {days:g} router-days each, {rate:g} decisions a second")
    for name, world in STATIONARY.items():
        found: list[tuple[float, str, str]] = []
        runs = max(1, round(days / 5))
        for seed in range(runs):
            run = Run(world, seed, rate)
            run.play(days / runs * 24 * HOUR_S)
            found += run.events
        print(f"  {name:<28} {len(found)} alerts {[(round(at), rule, arm) for at, rule, arm in found]}", flush=True)


def delays(runs: int, rate: float) -> None:
    """How long real changes go unnoticed, after two hours of learning."""
    print(f"with a change after 2 hours, {runs} runs each, {rate:g} decisions a second")
    for name, change in CHANGES.items():
        late, decisions, before, rules = list[float](), list[int](), 0, set[str]()
        for seed in range(runs):
            run = Run(STATIONARY["three arms"], 100 + seed, rate)
            run.play(3 * HOUR_S, change_at=2 * HOUR_S, change=change)
            before += sum(at < 2 * HOUR_S for at, _, _ in run.events)
            first = min((each for each in run.events if each[0] >= 2 * HOUR_S), default=None)
            if first is not None:
                late.append(first[0] - 2 * HOUR_S)
                decisions.append(sum(2 * HOUR_S <= at <= first[0] and first[2] in ("", arm) for at, arm in run.made))
                rules.add(first[1])
        middle = f"median {statistics.median(late):.0f} s, {statistics.median(decisions):.0f} decisions" if late else ""
        found = f"found in {len(late)} of {runs}: {middle}, worst {max(late, default=0):.0f} s, {sorted(rules)}"
        print(f"  {name:<34} {found}; {before} before the change", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=50.0, help="router-days without a change, for each world")
    parser.add_argument("--rate", type=float, default=0.1, help="decisions a second without a change")
    parser.add_argument("--runs", type=int, default=20, help="runs with a change, for each change")
    options = parser.parse_args()
    delays(options.runs, 2.0)
    false_alarms(options.days, options.rate)


if __name__ == "__main__":
    main()
