"""Slow, obvious twins: every policy in plain Python lists, written from the paper without looking at the kernels.

They share with the package only the random streams, which have tests of their own, so that both see the same rewards.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
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
        if not self.rewards[arm]:
            return 0.0
        total = 0.0
        for reward in self.rewards[arm]:
            total += reward
        return total / len(self.rewards[arm])

    def radius(self, arm: int) -> float:
        return math.sqrt(2 * math.log(self.horizon) / max(len(self.rewards[arm]), 1))

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


def _kl(p: float, q: float) -> float:
    terms = [(p, q), (1 - p, 1 - q)]
    return sum(a * math.log(a / b) for a, b in terms if a > 0)


def kl_bound(history: History, arm: int, side: int) -> float:
    """The q beyond the mean with n kl(mean, q) = ln(2 K T^2), by bisection from the outside."""
    level = math.log(2 * history.n_arms * history.horizon**2) / len(history.rewards[arm])
    near, far = history.mean(arm), 1.0 if side > 0 else 0.0
    for _ in range(40):
        middle = (near + far) / 2
        near, far = (middle, far) if _kl(history.mean(arm), middle) <= level else (near, middle)
    return far


def cs_direct(history: History) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    share = 1 - history.instance.alpha
    uppers = [kl_bound(history, arm, 1) for arm in range(history.n_arms)]
    lowers = [kl_bound(history, arm, -1) for arm in range(history.n_arms)]
    candidate = cheapest_feasible(uppers, history.instance.costs.tolist(), share * max(lowers))
    rival = highest(uppers)
    pulls = [len(rewards) for rewards in history.rewards]
    undecided = lowers[candidate] < share * uppers[rival]
    may_ask = pulls[rival] < min((history.horizon / history.n_arms) ** (2 / 3), pulls[candidate])
    return int(rival if undecided and may_ask else candidate)


class Elimination:
    """PE-CS, or PE when the reference is given, as a generator of arms: sample, test, go on."""

    def __init__(self, reference: Callable[[Instance], int] | None = None) -> None:
        self.reference = reference

    def __call__(self, history: History) -> int:
        if history.rounds == 0:
            self.plan = self._play(history)
        return next(self.plan)

    def _tau(self, history: History, m: int) -> int:
        gap = 2.0**-m
        return math.ceil(2 * math.log(history.horizon * gap**2) / gap**2)

    def _beta(self, history: History, m: int) -> float:
        return math.sqrt(math.log(history.horizon * 0.25**m) / (2 * self._tau(history, m)))

    def _play(self, history: History) -> Iterator[int]:
        arms, costs, share = range(history.n_arms), history.instance.costs, 1 - history.instance.alpha
        last = max(int(0.5 * math.log2(history.horizon / math.e)), 0)
        yield from arms
        if self.reference is not None:
            reference = self.reference(history.instance)
        else:
            active = list(arms)
            for m in itertools.count():
                while len(active) > 1 or m == 0:
                    arm = min(active, key=lambda a: (len(history.rewards[a]), a))
                    if len(history.rewards[arm]) >= self._tau(history, min(m, last)) and m < last:
                        break
                    yield arm
                beta = self._beta(history, m)
                best = max(history.mean(arm) - beta for arm in active)
                active = [arm for arm in active if history.mean(arm) + beta >= best]
                if len(active) == 1:
                    break
            reference = active[0]
        for arm in sorted(arms, key=lambda a: (costs[a], a)):
            if arm == reference or costs[arm] >= costs[reference]:
                break
            for w in itertools.count():
                ahead = min(w + 5, last)
                for sampled, m in ((arm, min(w, last)), (reference, ahead)):
                    while len(history.rewards[sampled]) < self._tau(history, m):
                        yield sampled
                beta, reference_beta = self._beta(history, min(w, last)), self._beta(history, ahead)
                if share * (history.mean(reference) + reference_beta) < history.mean(arm) - beta:
                    yield from itertools.repeat(arm)
                if history.mean(arm) + beta < share * (history.mean(reference) - reference_beta):
                    break
                while w >= last:  # the published algorithm goes on sampling both
                    few = len(history.rewards[arm]) <= len(history.rewards[reference])
                    yield arm if few else reference
                    if share * (history.mean(reference) + reference_beta) < history.mean(arm) - beta:
                        yield from itertools.repeat(arm)
                    if history.mean(arm) + beta < share * (history.mean(reference) - reference_beta):
                        break
                if w >= last:
                    break
        yield from itertools.repeat(reference)


class InformationDirected:
    """CS-IDS by the formulas, with numpy: 30 draws, power 3, foresight 0.5, leniency 0.7."""

    def __call__(self, history: History) -> int:
        k = history.n_arms
        if history.rounds == 0:
            self.turn, self.draws, self.stale = 0, np.zeros((30, k)), set(range(k))
        if history.rounds < k:
            self.played = history.rounds
            return history.rounds
        if history.rounds > k:
            self.stale.add(self.played)
        self.turn = (self.turn + 1) % k
        self.stale.add(self.turn)
        for arm in sorted(self.stale):
            self.draws[:, arm] = [_beta_draw(history, arm) for _ in range(30)]
        self.stale = set()
        self.played = self._choose(history)
        return self.played

    def _choose(self, history: History) -> int:
        costs = history.instance.costs
        spread = costs.max() - costs.min()
        costs = costs / (spread if spread > 0 else 1.0)
        floors = (1 - history.instance.alpha) * self.draws.max(axis=1)
        optima = np.array(
            [
                min(np.flatnonzero(draw >= floor), key=lambda a: (costs[a], a))
                for draw, floor in zip(self.draws, floors, strict=True)
            ]
        )
        quality = np.maximum(floors[:, None] - self.draws, 0).mean(axis=0)
        price = np.maximum(costs[None, :] - costs[optima][:, None], 0).mean(axis=0)
        r = 0.7 * quality + price
        overall = self.draws.mean(axis=0)
        v = sum((optima == o).mean() * (self.draws[optima == o].mean(axis=0) - overall) ** 2 for o in set(optima.tolist()))
        v = np.asarray(v)
        ahead = int(np.argmin(r - 0.5 * (history.horizon / history.n_arms) ** (2 / 3) * v))
        if r[ahead] > r.min():
            return ahead
        if r.min() <= 0:
            return int(np.argmin(r))
        best = (np.inf, int(np.argmin(r)), int(np.argmin(r)), 0.0)
        for arm in range(history.n_arms):
            if v[arm] > 0:
                best = min(best, (r[arm] ** 3 / v[arm], arm, arm, 0.0), key=lambda option: option[0])
        for a, b in itertools.product(range(history.n_arms), repeat=2):
            dr, dv = r[b] - r[a], v[b] - v[a]
            if dr > 0 and dv > 0:
                share = float(np.clip((dv * r[a] - 3 * dr * v[a]) / (2 * dr * dv), 0, 1))
                if v[a] + share * dv > 0:
                    best = min(best, ((r[a] + share * dr) ** 3 / (v[a] + share * dv), a, b, share), key=lambda option: option[0])
        return best[2] if uniform(history.own) < best[3] else best[1]


class ImportanceWeighted:
    """CS-EXP3 by its formulas: explore 0.5, rate 1."""

    gains: list[float]
    chances: list[float]
    played: int

    def __call__(self, history: History) -> int:
        k = history.n_arms
        if history.rounds == 0:
            self.gains = [0.0] * k
        else:
            self.gains[self.played] += history.rewards[self.played][-1] / self.chances[self.played]
        explored = min(0.5 * (k * math.log(k + 1) / history.horizon) ** (1 / 3), 0.5)
        floor = (1 - history.instance.alpha) * max(self.gains)
        by_cost = sorted(range(k), key=lambda arm: (history.instance.costs[arm], arm))
        left, self.chances = 1.0, [0.0] * k
        for arm in by_cost:
            taken = left * math.exp(-(explored / k) * max(floor - self.gains[arm], 0.0))
            self.chances[arm] = explored / k + (1.0 - explored) * taken
            left -= taken
        ticket = float(uniform(history.own))
        for arm in by_cost:
            ticket -= self.chances[arm]
            if ticket < 0:
                break
        self.played = arm
        return arm


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


def best_known(history: History) -> int:
    if history.rounds < 50 * history.n_arms:
        return history.rounds % history.n_arms
    return highest([history.mean(arm) for arm in range(history.n_arms)])


def round_robin(history: History) -> int:
    return history.rounds % history.n_arms


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
    "cs-ids": InformationDirected(),
    "cs-direct": cs_direct,
    "cs-exp3": ImportanceWeighted(),
    "pe": Elimination(lambda instance: int(np.argmax(instance.costs))),
    "pe-cs": Elimination(),
    "ucb1": ucb1,
    "ts": ts,
    "scalarised": scalarised,
    "best-known": best_known,
    "round-robin": round_robin,
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


def play_late(
    twin: Twin,
    pieces: Sequence[tuple[int, Instance]],
    rounds: int,
    *,
    arrivals: Callable[[int, Stream], float] = lambda t, _: t,
    deadline: float = math.inf,
    window: float = math.inf,
    seed: int,
) -> list[int]:
    """The arms a twin chooses in a world that changes, is heard late and forgets; nobody knows the horizon.

    `arrivals(t, stream)` is the round after which the outcome of round t is known, infinite for never.
    """
    world, own, late = make_streams(seed, np.array([[0, 0], [0, 1], [0, 2]]))
    n_arms = pieces[0][1].n_arms
    arms: list[int] = []
    known: list[tuple[int, float, float]] = []  # arm, whether it counts as an outcome, reward; oldest first
    due: dict[int, list[tuple[int, float, float]]] = {}
    horizon = raised = n_arms
    for t in range(rounds):
        instance = [each for start, each in pieces if start <= t][-1]
        if t >= raised:
            raised = t + max(t // 8, n_arms)
            horizon = int(min(raised, window))
        history = History(instance, horizon, own, rewards=[[] for _ in range(n_arms)], rounds=t)
        for arm, counts, reward in known:
            if counts:
                history.rewards[arm].append(reward)
            else:
                history.rewards[arm][-1] += reward  # a correction moves the sum and leaves the count
        arm = twin(history)
        arms.append(arm)
        reward = 1.0 if uniform(world) < instance.means[arm] else 0.0
        when = arrivals(t, late)
        if when <= t + deadline:
            if when < math.inf:
                due.setdefault(int(when), []).append((arm, 1.0, reward))
        else:
            if when < math.inf and reward != 0.0:
                due.setdefault(int(when), []).append((arm, 0.0, reward))
            due.setdefault(t + int(deadline), []).append((arm, 1.0, 0.0))
        known += due.pop(t, [])
        known = known[-int(window) :] if window < math.inf else known
    return arms


def cusum(rewards: Sequence[float]) -> list[list[float]]:
    """Evidence, outcomes and rewards of the three tests of `restart` after every outcome of one arm that raises no alarm."""
    tests = [[0.0, 0.0, 0.0] for _ in range(3)]
    slopes = [(0.0, 0.0)] * 3  # what a reward of 1 adds, and what a reward of 0 does
    next_look = 20.0
    kept = []
    for seen, reward in enumerate(rewards, start=1):
        for number, (if_won, if_lost) in enumerate(slopes):
            evidence = tests[number][0] + reward * if_won + (1.0 - reward) * if_lost
            if evidence > 0.0:
                tests[number] = [evidence, tests[number][1] + 1.0, tests[number][2] + reward]
            else:
                tests[number] = [0.0, 0.0, 0.0]
        if seen >= next_look:
            next_look = 1.25 * seen
            mean = (sum(rewards[:seen]) + 0.5) / (seen + 1.0)
            width = 2.0 * math.sqrt(mean * (1.0 - mean) / seen)
            low, high = max(mean - width, 0.25 * mean), min(mean + width, 1.0 - 0.25 * (1.0 - mean))
            aims = [(low, 0.5 * low), (low, 0.02 * low), (high, 1.0 - 0.5 * (1.0 - high))]
            slopes = [(math.log(now / was), math.log((1.0 - now) / (1.0 - was))) for was, now in aims]
        kept.append([value for test in tests for value in test])
    return kept
