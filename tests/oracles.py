"""Slow, obvious twins: every policy in plain Python lists, written from the paper without looking at the kernels.

They share with the package only the random streams, which have tests of their own, so that both see the same rewards.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from thrifty.problem import Instance
from thrifty.streams import Stream, below, beta, make_streams, normal, uniform


@dataclass
class History:
    """What a twin may look at: the terms, and the rewards of every arm in the order they came."""

    instance: Instance
    horizon: int
    own: Stream
    rewards: list[list[float]] = field(default_factory=list)
    rounds: int = 0
    committed: int | None = None

    @property
    def n_arms(self) -> int:
        return self.instance.n_arms

    def mean(self, arm: int) -> float:
        total = 0.0
        for reward in self.rewards[arm]:
            total += reward
        return total / len(self.rewards[arm])

    def radius(self, arm: int) -> float:
        return math.sqrt(2 * math.log(self.horizon) / len(self.rewards[arm]))

    def upper(self, arm: int) -> float:
        return min(self.mean(arm) + self.radius(arm), 1.0)

    def lower(self, arm: int) -> float:
        return max(self.mean(arm) - self.radius(arm), 0.0)


Twin = Callable[[History], int]


def cheapest_feasible(scores: Sequence[float], costs: Sequence[float], floor: float) -> int:
    """Lowest cost, then highest score, then lowest index, among the arms that reach the floor; the top arm always does."""
    top = max(scores)
    feasible = [arm for arm, score in enumerate(scores) if score >= floor or score == top]
    return min(feasible, key=lambda arm: (costs[arm], -scores[arm], arm))


def highest(scores: Sequence[float]) -> int:
    return max(range(len(scores)), key=lambda arm: (scores[arm], -arm))


def tau_of(history: History) -> int:
    tau: float = (history.horizon / history.n_arms) ** (2 / 3)
    return min(math.ceil(tau), history.horizon // history.n_arms)


def cs_ucb(history: History) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    scores = [history.upper(arm) for arm in range(history.n_arms)]
    return cheapest_feasible(scores, history.instance.costs.tolist(), (1 - history.instance.alpha) * max(scores))


def cs_etc(history: History) -> int:
    if history.rounds < history.n_arms * tau_of(history):
        return history.rounds % history.n_arms
    uppers = [history.upper(arm) for arm in range(history.n_arms)]
    floor = (1 - history.instance.alpha) * max(history.lower(arm) for arm in range(history.n_arms))
    return cheapest_feasible(uppers, history.instance.costs.tolist(), floor)


def one_shot_etc(history: History) -> int:
    if history.rounds >= history.n_arms * tau_of(history) and history.committed is None:
        history.committed = cs_etc(history)
    return cs_etc(history) if history.committed is None else history.committed


def _cs_ts(draw: Callable[[History, int], float]) -> Twin:
    def choose(history: History) -> int:
        if history.rounds < history.n_arms:
            return history.rounds
        scores = [draw(history, arm) for arm in range(history.n_arms)]
        return cheapest_feasible(scores, history.instance.costs.tolist(), (1 - history.instance.alpha) * max(scores))

    return choose


def _beta_draw(history: History, arm: int) -> float:
    successes = sum(history.rewards[arm])
    return float(beta(history.own, 1.0 + successes, 1.0 + len(history.rewards[arm]) - successes))


def _gaussian_draw(history: History, arm: int) -> float:
    return history.mean(arm) + float(normal(history.own)) / math.sqrt(len(history.rewards[arm]))


def _shrunk_draw(history: History, arm: int) -> float:
    n = len(history.rewards[arm])
    return sum(history.rewards[arm]) / (1.0 + n) + float(normal(history.own)) / math.sqrt(1.0 + n)


def ucb1(history: History) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    return highest(
        [history.mean(arm) + math.sqrt(2 * math.log(history.rounds) / len(history.rewards[arm])) for arm in range(history.n_arms)]
    )


def ts(history: History) -> int:
    return highest([_beta_draw(history, arm) for arm in range(history.n_arms)])


def scalarised(history: History) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    return highest([history.mean(arm) + history.radius(arm) - 1.0 * history.instance.costs[arm] for arm in range(history.n_arms)])


def cheapest(history: History) -> int:
    return int(np.argmin(history.instance.costs))


def uniform_choice(history: History) -> int:
    return int(below(history.own, history.n_arms))


def oracle(history: History) -> int:
    return history.instance.optimal_arm


TWINS: dict[str, Twin] = {
    "cs-ucb": cs_ucb,
    "cs-ts": _cs_ts(_beta_draw),
    "cs-ts:prior=gaussian": _cs_ts(_gaussian_draw),
    "cs-ts:prior=shrunk": _cs_ts(_shrunk_draw),
    "cs-etc": cs_etc,
    "one-shot-etc": one_shot_etc,
    "ucb1": ucb1,
    "ts": ts,
    "scalarised": scalarised,
    "cheapest": cheapest,
    "uniform": uniform_choice,
    "oracle": oracle,
}


def play(twin: Twin, instance: Instance, horizon: int, seed: int, run: int = 0) -> list[int]:
    """The arms a twin chooses in one run with Bernoulli rewards."""
    world, own = make_streams(seed, np.array([[run, 0], [run, 1]]))
    history = History(instance, horizon, own, rewards=[[] for _ in range(instance.n_arms)])
    arms = []
    for _ in range(horizon):
        arm = twin(history)
        history.rewards[arm].append(1.0 if uniform(world) < instance.means[arm] else 0.0)
        history.rounds += 1
        arms.append(arm)
    return arms
