"""Slow, obvious twins: every policy in plain Python lists, written from the paper without looking at the kernels.

They share with the package only the random streams, which have tests of their own, so that both see the same rewards.
"""

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.problem import Instance
from thrifty.streams import Stream, below, beta, gamma, make_streams, normal, uniform

GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass
class History:
    """What a twin may look at: the terms, and the rewards of every arm in the order they came."""

    instance: Instance
    horizon: int
    own: Stream
    rewards: list[list[float]] = field(default_factory=list)
    costs: list[list[float]] | None = None  # of every arm in the order they came; None where costs are known
    cost_scale: float | None = 1.0  # None where scale and spread are learnt
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

    def mean_cost(self, arm: int) -> float:
        """What the arm costs; where costs are unknown, on average so far."""
        if self.costs is None:
            return float(self.instance.costs[arm])
        return sum(self.costs[arm]) / len(self.costs[arm])

    def prices(self) -> list[float]:
        """What every arm costs; where costs are unknown, a lower confidence bound: that of Algorithm 3 if the scale is known."""
        if self.costs is None:
            return self.instance.costs.tolist()  # type: ignore[no-any-return]
        if self.cost_scale is not None:
            return [max(self.mean_cost(arm) - self.cost_scale * self.radius(arm), 0.0) for arm in range(self.n_arms)]
        return [self.lowest_cost(arm) for arm in range(self.n_arms)]

    def cost_deviation(self, arm: int) -> float:
        """The standard deviation, with one outcome more whose deviation is the mean itself."""
        assert self.costs is not None
        mean = self.mean_cost(arm)
        return math.sqrt(math.fsum([mean**2, *((cost - mean) ** 2 for cost in self.costs[arm])]) / len(self.costs[arm]))

    def lowest_cost(self, arm: int) -> float:
        """Where Student's t with n degrees of freedom, at the mean mu and a deviation in proportion to mu, has lost a factor T."""
        mean, n = self.mean_cost(arm), len(self.rewards[arm])
        if mean == 0.0:
            return 0.0
        return mean / (1 + self.cost_deviation(arm) / mean * math.sqrt(self.horizon ** (2 / (n + 1)) - 1))


Twin = Callable[[History], int]
Bound = Callable[[History, int, int], float]  # of an arm, on the upper (1) or the lower (-1) side


def paper_bound(history: History, arm: int, side: int) -> float:
    return history.upper(arm) if side > 0 else history.lower(arm)


def hoeffding_bound(history: History, arm: int, side: int) -> float:
    """Mean +- sqrt(ln(2 K T^2) / (2 n)), clipped."""
    level = math.log(2 * history.n_arms) + 2 * math.log(history.horizon)
    width = math.sqrt(0.5 * level / len(history.rewards[arm]))
    return min(history.mean(arm) + width, 1.0) if side > 0 else max(history.mean(arm) - width, 0.0)


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


def cs_ucb(history: History, *, bound: Bound = paper_bound) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    scores = [bound(history, arm, 1) for arm in range(history.n_arms)]
    return cheapest_feasible(scores, history.prices(), (1 - history.instance.alpha) * max(scores))


def cs_etc(history: History, *, tau: int | None = None, bound: Bound = paper_bound) -> int:
    if history.rounds < history.n_arms * (tau or tau_of(history)):
        return history.rounds % history.n_arms
    uppers = [bound(history, arm, 1) for arm in range(history.n_arms)]
    floor = (1 - history.instance.alpha) * max(bound(history, arm, -1) for arm in range(history.n_arms))
    return cheapest_feasible(uppers, history.prices(), floor)


def one_shot_etc(history: History, *, tau: int | None = None) -> int:
    if history.rounds >= history.n_arms * (tau or tau_of(history)) and history.committed is None:
        history.committed = cs_etc(history, tau=tau)
    return cs_etc(history, tau=tau) if history.committed is None else history.committed


def _cs_ts(draw: Callable[[History, int], float]) -> Twin:
    def choose(history: History) -> int:
        if history.rounds < history.n_arms:
            return history.rounds
        drawn = [(draw(history, arm), _cost_draw(history, arm)) for arm in range(history.n_arms)]
        scores, prices = zip(*drawn, strict=True)
        return cheapest_feasible(scores, prices, (1 - history.instance.alpha) * max(scores))

    return choose


def _beta_draw(history: History, arm: int, *, a: float = 1.0, b: float = 1.0) -> float:
    successes = sum(history.rewards[arm])
    return float(beta(history.own, a + successes, b + len(history.rewards[arm]) - successes))


def evidence_weight(rewards: Sequence[float]) -> float:
    """The variance of 0s and 1s with this mean over that of the rewards, with two of variance 1/4 more in both."""
    mean = math.fsum(rewards) / len(rewards)
    found = math.fsum((reward - mean) ** 2 for reward in rewards)
    return max((len(rewards) * mean * (1 - mean) + 0.5) / (found + 0.5), 1.0)


def _cost_draw(history: History, arm: int) -> float:
    """What the arm costs; where costs are unknown, a draw from a posterior.

    Of costs in [0, cost_scale] a Beta with a uniform prior. If no scale is known, Student's t around the mean, cut off at 0.
    """
    if history.costs is None:
        return history.mean_cost(arm)
    if history.cost_scale is None:
        mean, n = history.mean_cost(arm), len(history.costs[arm])
        while mean > 0.0:
            student = float(normal(history.own)) / math.sqrt(float(gamma(history.own, n / 2)) / (n / 2))
            drawn = mean + history.cost_deviation(arm) / math.sqrt(n) * student
            if drawn >= 0.0:
                return drawn
        return 0.0
    spent = sum(history.costs[arm]) / history.cost_scale
    return history.cost_scale * float(beta(history.own, 1.0 + spent, 1.0 + len(history.costs[arm]) - spent))


def _gaussian_draw(history: History, arm: int) -> float:
    return history.mean(arm) + float(normal(history.own)) / math.sqrt(len(history.rewards[arm]))


def _shrunk_draw(history: History, arm: int, *, sigma_0: float = 1.0, sigma_n: float = 1.0) -> float:
    """A draw from the posterior of a N(0, sigma_0^2) prior after n rewards with noise N(0, sigma_n^2): precisions add."""
    precision = 1 / sigma_0**2 + len(history.rewards[arm]) / sigma_n**2
    mean = sum(history.rewards[arm]) / sigma_n**2 / precision
    return mean + float(normal(history.own)) / math.sqrt(precision)


def _kl(p: float, q: float) -> float:
    won = p * math.log(p / q) if p > 0 else 0.0
    return won + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_bound(history: History, arm: int, side: int) -> float:
    """The q beyond the mean with n kl(mean, q) = ln(2 K T^2), by bisection from the outside."""
    level = math.log(2 * history.n_arms * history.horizon**2) / len(history.rewards[arm])
    near, far = history.mean(arm), 1.0 if side > 0 else 0.0
    for _ in range(40):
        middle = (near + far) / 2
        near, far = (middle, far) if _kl(history.mean(arm), middle) <= level else (near, middle)
    return far


def mixture_bound(history: History, arm: int, side: int) -> float:
    """The p beyond the mean where the evidence of a uniform mixture against p is ln(K / 0.05), by bisection."""
    n, won = len(history.rewards[arm]), sum(history.rewards[arm])
    log_beta = math.lgamma(won + 1) + math.lgamma(n - won + 1) - math.lgamma(n + 2)

    def evidence(p: float) -> float:
        return log_beta - (won * math.log(p) if won else 0.0) - ((n - won) * math.log(1 - p) if n > won else 0.0)

    near, far = history.mean(arm), 1.0 if side > 0 else 0.0
    for _ in range(40):
        middle = (near + far) / 2
        near, far = (middle, far) if evidence(middle) < math.log(history.n_arms / 0.05) else (near, middle)
    return far


def cs_direct(history: History, *, limit: float = 1.0, bound: Bound = kl_bound) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    share = 1 - history.instance.alpha
    uppers = [bound(history, arm, 1) for arm in range(history.n_arms)]
    lowers = [bound(history, arm, -1) for arm in range(history.n_arms)]
    candidate = cheapest_feasible(uppers, history.prices(), share * max(lowers))
    rival = highest(uppers)
    pulls = [len(rewards) for rewards in history.rewards]
    undecided = lowers[candidate] < share * uppers[rival]
    may_ask = pulls[rival] < min(limit * (history.horizon / history.n_arms) ** (2 / 3), pulls[candidate])
    return int(rival if undecided and may_ask else candidate)


class Elimination:
    """PE-CS, or PE when the reference is given, as a generator of arms: sample, test, go on."""

    def __init__(self, reference: Callable[[Instance], int] | None = None, *, kappa: int = 5, limit: float = math.inf) -> None:
        self.reference, self.kappa, self.limit = reference, kappa, limit

    def __call__(self, history: History) -> int:
        if history.rounds == 0:
            self.plan = self._play(history)
        return next(self.plan)

    def _tau(self, history: History, m: int) -> int:
        gap = 2.0**-m
        return math.ceil(2 * math.log(history.horizon * gap**2) / gap**2)

    def _beta(self, history: History, m: int) -> float:
        return math.sqrt(math.log(history.horizon * 0.25**m) / (2 * self._tau(history, m)))

    def _last(self, history: History) -> int:
        return max(int(0.5 * math.log2(history.horizon / math.e)), 0)

    def _spent(self, history: History, arm: int) -> bool:
        return bool(len(history.rewards[arm]) >= self.limit * (history.horizon / history.n_arms) ** (2 / 3))

    def _play(self, history: History) -> Iterator[int]:
        arms, costs = range(history.n_arms), history.instance.costs
        yield from arms
        if self.reference is not None:
            reference = self.reference(history.instance)
        else:
            reference = yield from self._search(history)
        for arm in sorted(arms, key=lambda a: (costs[a], a)):
            if arm == reference or costs[arm] >= costs[reference]:
                break
            if (yield from self._is_good_enough(history, arm, reference)):
                yield from itertools.repeat(arm)
        yield from itertools.repeat(reference)

    def _search(self, history: History) -> Generator[int, None, int]:
        active, m, last = list(range(history.n_arms)), 0, self._last(history)
        while len(active) > 1:
            arm = min(active, key=lambda a: (len(history.rewards[a]), a))
            if self._spent(history, arm):
                return max(active, key=history.mean)
            if len(history.rewards[arm]) < self._tau(history, m):
                yield arm
                continue
            beta = self._beta(history, m)
            best = max(history.mean(arm) - beta for arm in active)
            active = [arm for arm in active if history.mean(arm) + beta >= best]
            if m < last:
                m += 1
            elif self.limit < math.inf:
                return max(active, key=history.mean)
            elif len(active) > 1:
                yield min(active, key=lambda a: (len(history.rewards[a]), a))
        return active[0]

    def _is_good_enough(self, history: History, arm: int, reference: int) -> Generator[int, None, bool]:
        share, w, last = 1 - history.instance.alpha, 0, self._last(history)
        while True:
            ahead = min(w + self.kappa, last)
            for sampled, m in ((arm, w), (reference, ahead)):
                while len(history.rewards[sampled]) < self._tau(history, m) and not self._spent(history, sampled):
                    yield sampled
            beta, reference_beta = self._beta(history, w), self._beta(history, ahead)
            if share * (history.mean(reference) + reference_beta) < history.mean(arm) - beta:
                return True
            if history.mean(arm) + beta < share * (history.mean(reference) - reference_beta):
                return False
            if w < last and not self._spent(history, arm):
                w += 1
            elif self.limit < math.inf:
                return True  # the benefit of the doubt
            else:  # the published algorithm goes on sampling both
                few = len(history.rewards[arm]) <= len(history.rewards[reference])
                yield arm if few else reference


class InformationDirected:
    """CS-IDS by the formulas, with numpy."""

    def __init__(
        self,
        *,
        draws: int = 60,
        power: float = 4,
        sobriety: float = 2.5,
        enough: float = 0.35,
        patience: float = 0.2,
        debit: float = 0.5,
        foresight: float = 0.5,
        exchange: float = 1,
        budget: float = 2,
        plan: float = 0.02,
    ) -> None:
        self.n, self.power, self.foresight, self.exchange, self.share = draws, power, foresight, exchange, plan
        self.sobriety, self.enough, self.patience, self.debit, self.budget = sobriety, enough, patience, debit, budget

    def __call__(self, history: History) -> int:
        k = history.n_arms
        if history.rounds == 0:
            self.turn, self.stale, self.left = 0, set(range(k)), 0
            self.draws, self.costs = np.zeros((self.n, k)), np.zeros((self.n, k))
            if history.costs is None:
                spread = np.ptp(history.instance.costs)
                self.costs[:] = history.instance.costs / (spread if spread > 0 else 1.0)
        if history.rounds < k:
            self.played = history.rounds
            return history.rounds
        if history.rounds > k:
            self.stale.add(self.played)
        if self.left == 0:
            self._make_coin(history)
        self.left -= 1
        first, second, weight = self.coin
        takes_second = uniform(history.own) < weight if 0 < weight < 1 else weight >= 1
        self.played = second if takes_second else first
        return self.played

    def _make_coin(self, history: History) -> None:
        self.turn = (self.turn + 1) % history.n_arms
        self.stale.add(self.turn)
        for arm in sorted(self.stale):
            self.draws[:, arm] = [_beta_draw(history, arm) for _ in range(self.n)]
            if history.costs is not None:
                self.costs[:, arm] = [_cost_draw(history, arm) for _ in range(self.n)]
        self.stale = set()
        self.coin = self._choose(history)
        first, second, weight = self.coin
        kept = [len(history.rewards[arm]) / share for arm, share in ((first, 1 - weight), (second, weight)) if share > 0]
        self.left = max(1, int(min(self.share * min(kept), 8)))

    def _choose(self, history: History) -> tuple[int, int, float]:
        each, costs = np.arange(self.n), self.costs / self._unit(history)
        floors = (1 - history.instance.alpha) * self._highest(history)
        optima = np.array([min(np.flatnonzero(self.draws[m] >= floors[m]), key=lambda a: (costs[m, a], a)) for m in each])
        quality = np.maximum(floors[:, None] - self.draws, 0).mean(axis=0)
        dearer = np.maximum(costs - costs[each, optima][:, None], 0).mean(axis=0)
        r = self.exchange * quality + dearer
        v = self._spread(self.draws, optima)
        if history.costs is not None:
            v = v + self._spread(costs, optima)
        paid = [history.mean_cost(arm) for arm in range(history.n_arms)]
        enough = self.budget * (history.horizon / history.n_arms) ** (2 / 3)
        for arm in range(history.n_arms):
            if paid[arm] > paid[int(np.argmin(r))] and len(history.rewards[arm]) >= enough:
                v[arm] = 0
        ahead = int(np.argmin(r - self.foresight * (history.horizon / history.n_arms) ** (2 / 3) * v))
        if r[ahead] > r.min():
            return ahead, ahead, 0.0
        too_soon = self._given_up_too_soon(history, int(np.argmin(r)), np.array(paid) / self._unit_of(paid, history))
        if too_soon is not None:
            return too_soon, too_soon, 0.0
        if r.min() <= 0:
            return int(np.argmin(r)), int(np.argmin(r)), 0.0
        return self._mixture(history, r, v)

    def _highest(self, history: History) -> Floats:
        """The highest draws, less luck."""
        means = self.draws.mean(axis=0)
        enough = max(self.enough * (history.horizon / history.n_arms) ** (2 / 3), 60)
        tried = np.array([len(rewards) >= enough for rewards in history.rewards])
        of_tried, of_others = np.full(self.n, -np.inf), np.full(self.n, -np.inf)
        if tried.any():
            of_tried = self.draws[:, tried].max(axis=1)
            of_tried -= self.sobriety * max(of_tried.mean() - means[tried].max(), 0)
        if not tried.all():
            of_others = self.draws[:, ~tried].max(axis=1)
        if (n_others := np.sum(~tried)) > 5:
            base = np.maximum(of_tried, means.max())
            alone = np.maximum(self.draws[:, ~tried], base[:, None]).mean(axis=0).max()
            of_others -= (1 - 5 / n_others) * (np.maximum(of_others, base).mean() - alone)
        return np.asarray(np.maximum(of_tried, of_others))

    def _given_up_too_soon(self, history: History, chosen: int, price: Floats) -> int | None:
        """The cheapest of the arms that look worse than the floor and may still save more than they have lost."""
        arms, keep = range(history.n_arms), 1 - history.instance.alpha
        n = [len(rewards) for rewards in history.rewards]
        trials = [evidence_weight(rewards) * len(rewards) for rewards in history.rewards]
        m = [(sum(rewards) + 0.5) / (len(rewards) + 1) for rewards in history.rewards]
        cheaper = [arm for arm in arms if price[arm] < price[chosen]]
        open_cases = []
        for arm in cheaper:
            shortfall = keep * max(m) - m[arm]
            if shortfall > 0 and n[arm] <= n[highest(m)]:
                evidence = infeasibility(trials, m, arm, keep, self.debit * math.log(max(history.n_arms - 1, 1)))
                saving = self.patience * history.horizon / len(cheaper) * (price[chosen] - price[arm]) * evidence_tail(evidence)
                if saving > self.exchange * n[arm] * shortfall:
                    open_cases.append(arm)
        return min(open_cases, key=lambda arm: (price[arm], arm), default=None)

    def _unit_of(self, paid: list[float], history: History) -> float:
        """What prices are divided by."""
        return self._unit(history) if history.costs is not None else max(paid) - min(paid) or 1.0

    def _unit(self, history: History) -> float:
        """What drawn costs are divided by."""
        if history.costs is None:
            return 1.0
        if history.cost_scale is not None:
            return history.cost_scale
        means = [history.mean_cost(arm) for arm in range(history.n_arms)]
        return (max(means) - min(means)) or max(means) or 1.0

    def _spread(self, drawn: Floats, optima: Integers) -> Floats:
        """The variance, over which arm is optimal, of every arm's conditional mean."""
        overall = drawn.mean(axis=0)
        parts = [(optima == o).mean() * (drawn[optima == o].mean(axis=0) - overall) ** 2 for o in set(optima.tolist())]
        return np.asarray(sum(parts))

    def _mixture(self, history: History, r: Floats, v: Floats) -> tuple[int, int, float]:
        best = (np.inf, int(np.argmin(r)), int(np.argmin(r)), 0.0)
        for arm in range(history.n_arms):
            if v[arm] > 0:
                best = min(best, (r[arm] ** self.power / v[arm], arm, arm, 0.0), key=lambda option: option[0])
        for a, b in itertools.product(range(history.n_arms), repeat=2):
            dr, dv = r[b] - r[a], v[b] - v[a]
            if dr > 0 and dv > 0:
                share = float(np.clip((dv * r[a] - self.power * dr * v[a]) / ((self.power - 1) * dr * dv), 0, 1))
                if v[a] + share * dv > 0:
                    ratio = (r[a] + share * dr) ** self.power / (v[a] + share * dv)
                    best = min(best, (ratio, a, b, share), key=lambda option: option[0])
        return best[1:]


class Balanced:
    """CS-Balance by its three rules, over plain lists; all arms are rivals."""

    def __init__(
        self, *, caution: float = 0.5, patience: float = 1, exchange: float = 1, plan: float = 0.02, outset: float = 0
    ) -> None:
        self.caution, self.patience, self.exchange, self.share, self.outset = caution, patience, exchange, plan, outset

    def __call__(self, history: History) -> int:
        if history.rounds < history.n_arms:
            self.left = 0
            return history.rounds
        if self.left == 0:
            self.arm = self._plan(history)
            self.left = max(1, int(self.share * len(history.rewards[self.arm])))
        self.left -= 1
        return self.arm

    def _plan(self, history: History) -> int:
        self.keep, self.ahead = 1 - history.instance.alpha, history.horizon + self.outset
        self.n = [len(rewards) for rewards in history.rewards]
        self.price, self.mean = self._prices(history), self._estimates(history)
        self.order = sorted(range(history.n_arms), key=lambda arm: (self.price[arm], arm))
        self.beside = {arm: self._beside_rivals(arm) for arm in self.order}
        self.regret = self._regrets()
        information = self._information()
        best = min(self.order, key=lambda arm: (self.regret[arm], self.order.index(arm)))
        able = [best, *(arm for arm in self.order if arm != best and information[arm] > 0 and self._affords(arm, best))]
        return max(able, key=lambda arm: information[arm] / max(self.regret[arm], 1e-12))

    def _prices(self, history: History) -> list[float]:
        if history.costs is None:
            costs = [float(cost) for cost in history.instance.costs]
        else:
            costs = [history.mean_cost(arm) * max(1 - 1 / math.sqrt(n), 0) if n > 1 else 0.0 for arm, n in enumerate(self.n)]
        spread = max(costs) - min(costs)
        return [cost / (spread if spread > 0 else 1.0) for cost in costs]

    def _estimates(self, history: History) -> list[float]:
        k, won = history.n_arms, [sum(rewards) for rewards in history.rewards]
        squares = [sum(reward * reward for reward in rewards) for rewards in history.rewards]
        within = sum(q - w * w / n for q, w, n in zip(squares, won, self.n, strict=True))
        self.dispersion = min((within + 1) / (sum(w - w * w / n for w, n in zip(won, self.n, strict=True)) + 1), 1)
        means = [(won[arm] + 0.5) / (self.n[arm] + 1) for arm in range(k)]
        average = sum(means) / k
        chance = [self.dispersion * m * (1 - m) / (n + 1) for m, n in zip(means, self.n, strict=True)]
        beyond = sum((m - average) ** 2 - c * (1 - 1 / k) for m, c in zip(means, chance, strict=True))
        centre = (average * sum(self.n) + 50) / (sum(self.n) + 100)
        strength = self.dispersion * min(max(centre * (1 - centre) / ((1 / 12 + max(beyond, 0)) / k), 2), 100)
        return [(won[arm] + strength * centre) / (self.n[arm] + strength) for arm in range(k)]

    def _variances(self, arm: int, rival: int) -> tuple[float, float]:
        """Of the arm and of the rival's floor, if the arm were on the floor."""
        own, other = self.keep * self.mean[rival], min(self.mean[arm] / self.keep, 1.0) if self.keep else 1.0
        return (
            self.dispersion * max(own * (1 - own), 0.01) / self.n[arm],
            self.dispersion * self.keep**2 * max(other * (1 - other), 0.01) / self.n[rival],
        )

    def _compare(self, arm: int, rival: int) -> tuple[float, float]:
        s = math.sqrt(sum(self._variances(arm, rival)))
        return (self.keep * self.mean[rival] - self.mean[arm]) / s, s

    def _shortfall(self, arm: int, rival: int) -> float:
        z, s = self._compare(arm, rival)
        return s * (_normal_excess(z) - _normal_excess(z - (self.keep - self.mean[arm]) / s))

    def _beside_rivals(self, arm: int) -> tuple[float, float, int]:
        """The largest shortfall, the chance to be good enough, and the strongest rival (-1 if there is none)."""
        z = {rival: self._compare(arm, rival)[0] for rival in range(len(self.n)) if rival != arm}
        shortfalls = {rival: self._shortfall(arm, rival) for rival in z if z[rival] > -6}
        clear = min((_normal_cdf(-z[rival]) for rival in shortfalls), default=1.0)
        if not shortfalls or max(shortfalls.values()) <= 0:
            return 0.0, clear, -1
        strongest = max(shortfalls, key=lambda rival: shortfalls[rival])
        if clear < 0.5:
            clear = min(clear * sum(each > z[strongest] - 2 for each in z.values()), 0.5)
        return shortfalls[strongest], clear, strongest

    def _clear_before(self, place: int) -> float:
        return max((self.beside[arm][1] for arm in self.order[:place]), default=0.0)

    def _regrets(self) -> dict[int, float]:
        steps, regrets = 0.0, {}
        for place, arm in enumerate(self.order):
            if place > 0:
                steps += (self.price[arm] - self.price[self.order[place - 1]]) * self._clear_before(place)
            regrets[arm] = self.exchange * self.beside[arm][0] + steps
        return regrets

    def _information(self) -> list[float]:
        found = [0.0] * len(self.n)
        for arm in range(len(self.n)):
            before = self._clear_before(self.order.index(arm))
            pairs = {rival: self._pair(arm, rival, 1 - before) for rival in range(len(self.n)) if rival != arm}
            if self.beside[arm][0] > 0 and before <= 1 - 1e-6 and pairs:
                rival = max(pairs, key=lambda each: pairs[each][1] / max(self.regret[each], 1e-12) ** 2)
                if pairs[rival][1] > 0:
                    found[arm] += pairs[rival][0]
                    found[rival] += pairs[rival][1]
        return found

    def _pair(self, arm: int, rival: int, weight: float) -> tuple[float, float]:
        z, s = self._compare(arm, rival)
        if abs(z) >= 6 or self.beside[arm][0] <= 0:
            return 0.0, 0.0
        weight *= min(s * _normal_excess(z) / self.beside[arm][0], 1)
        weight *= (math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)) ** 2 / (_normal_cdf(z) * _normal_cdf(-z))
        own, other = self._variances(arm, rival)
        return weight * (own / s) ** 2, weight * (other / s / self.keep) ** 2 if self.keep else 0.0

    def _affords(self, arm: int, best: int) -> bool:
        shortfall, _clear, strongest = self.beside[arm]
        quality = self.exchange * shortfall
        worth = self.exchange * self._shortfall(best, arm)
        looks = min(self.n[arm], self.n[strongest]) if strongest >= 0 else self.n[arm]
        spent = self.n[arm] * (self.regret[arm] - quality) + looks * quality
        if self.price[arm] < self.price[best]:
            savings = {each: (self.price[best] - self.price[each]) * self.beside[each][1] for each in self.order}
            total = sum(saving for each, saving in savings.items() if self.price[each] < self.price[best])
            share = savings[arm] / total if total > 0 else 1.0
            return spent < self.patience * self.ahead * share * max(worth, savings[arm])
        dearer = [each for each in self.order if each != best and self.price[each] >= self.price[best]]
        danger = self.exchange * sum(self._shortfall(best, each) for each in dearer)
        ahead = self.ahead * (worth / danger if danger > worth else 1.0)
        pace = (ahead / max(self.price[arm] - self.price[best], 0.02)) ** (2 / 3)
        return spent * math.sqrt(self.n[arm] / pace) < self.caution * ahead * worth


class Worthiest(Balanced):
    """CS-Worth over plain lists, with the estimates and comparisons of CS-Balance."""

    def __init__(self, *, exchange: float = 3, doubt: float = 0.2, tau: int | None = None, plan: float = 0.02) -> None:
        super().__init__(exchange=exchange, plan=plan)
        self.doubt, self.tau = doubt, tau

    def __call__(self, history: History) -> int:
        if history.rounds < history.n_arms * (self.tau or tau_of(history)):
            self.left = 0
            return history.rounds % history.n_arms
        return super().__call__(history)

    def _plan(self, history: History) -> int:
        self.keep, self.n = 1 - history.instance.alpha, [len(rewards) for rewards in history.rewards]
        self.mean, costs = self._estimates(history), [history.mean_cost(arm) for arm in range(history.n_arms)]
        top = highest(self.mean)
        unit = costs[top] or sum(costs) / len(costs) or 1.0
        worths = [(costs[top] - c) / unit - self.exchange * (1 - m / self.mean[top]) for c, m in zip(costs, self.mean, strict=True)]
        able = [arm for arm in range(history.n_arms) if arm == top or self._may_be_good_enough(arm, top)]
        best = max(worths[arm] for arm in able)
        return top if best <= worths[top] else next(arm for arm in able if worths[arm] == best)

    def _may_be_good_enough(self, arm: int, top: int) -> bool:
        return _normal_cdf(-self._compare(arm, top)[0]) >= self.doubt


class CostOrdered:
    """COF by its three rules, over plain lists; every minimum over x is looked for by golden sections."""

    def __init__(
        self,
        *,
        caution: float = 0.25,
        patience: float = 1,
        debit: float = 0.5,
        exchange: float = 1,
        plan: float = 0.02,
        outset: float = 0,
    ) -> None:
        self.caution, self.patience, self.debit, self.exchange = caution, patience, debit, exchange
        self.share, self.outset = plan, outset

    def __call__(self, history: History) -> int:
        if history.rounds < history.n_arms:
            self.left = 0
            return history.rounds
        if self.left == 0:
            self.arm = self._plan(history)
            self.left = max(1, int(self.share * len(history.rewards[self.arm])))
        self.left -= 1
        return self.arm

    def _plan(self, history: History) -> int:
        arms = range(history.n_arms)
        self.keep, self.ahead = 1 - history.instance.alpha, history.horizon + self.outset
        self.n = [len(rewards) for rewards in history.rewards]
        self.trials = [evidence_weight(rewards) * len(rewards) for rewards in history.rewards]
        self.m = [(sum(rewards) + 0.5) / (len(rewards) + 1) for rewards in history.rewards]
        self.price = self._prices(history)
        self.top = highest(self.m)
        e = cheapest_feasible(self.m, self.price, self.keep * max(self.m))
        cheaper = sorted((arm for arm in arms if self.price[arm] < self.price[e]), key=lambda arm: self.price[arm])
        for arm in cheaper:
            lost = self.exchange * min(self.n[arm], self.n[self.top]) * (self.keep * max(self.m) - self.m[arm])
            evidence = infeasibility(self.trials, self.m, arm, self.keep, self.debit * math.log(max(history.n_arms - 1, 1)))
            saved = self.patience * self.ahead / len(cheaper) * (self.price[e] - self.price[arm]) * evidence_tail(evidence)
            if saved > lost:
                return self._settle(arm, [rival for rival in arms if rival not in cheaper[: cheaper.index(arm) + 1]], e)
        return self._settle(e, [arm for arm in arms if arm not in cheaper and arm != e], e)

    def _prices(self, history: History) -> list[float]:
        costs = [history.mean_cost(arm) for arm in range(history.n_arms)]
        unit = max(costs) - min(costs) or 1.0
        if history.costs is not None:
            unit = history.cost_scale or max(costs) - min(costs) or max(costs) or 1.0
        return [price / unit for price in history.prices()]

    def _compare(self, arm: int, rival: int) -> tuple[float, float, float, float]:
        """The chance that the rival shows the arm to be infeasible, what that loses, and the variances of both means."""
        m_i, floor = self.m[arm], self.keep * self.m[rival]
        x, evidence = _least_on(lambda x: self._pair_at(arm, rival, x), min(m_i, floor), max(m_i, floor))
        failing = evidence_tail(evidence) if m_i >= floor else 1 - evidence_tail(evidence)
        y = x / self.keep
        own, other = max(x * (1 - x), 0.01) / self.trials[arm], self.keep**2 * max(y * (1 - y), 0.01) / self.trials[rival]
        return failing, self.exchange * failing * max(floor - m_i, math.sqrt(own + other)), own, other

    def _pair_at(self, arm: int, rival: int, x: float) -> float:
        if x >= self.keep:
            return math.inf
        return self.trials[arm] * _kl(self.m[arm], x) + self.trials[rival] * _kl(self.m[rival], x / self.keep)

    def _settle(self, arm: int, rivals: list[int], e: int) -> int:
        if self.keep == 0:
            return arm
        ratios = {}
        for rival in sorted(rivals, key=lambda rival: self.price[rival]):
            failing, loss, _, _ = self._compare(arm, rival)
            cost = max(max(self.price[rival] - self.price[arm], 0.02) * (1 - failing), self._quality_cost(rival))
            worth = self.caution * self.ahead / len(rivals) * loss
            ratios[rival] = worth / (self.n[rival] * cost) if cost else math.inf
        if not ratios or max(ratios.values()) <= 1:
            return arm
        rival = max(ratios, key=lambda each: ratios[each])
        failing, loss, own, other = self._compare(arm, rival)
        price = max(self.price[rival] - self.price[arm], 0.02) * (1 - failing)
        price = max(price + max(self.price[rival] - self.price[e], 0) * failing, self._quality_cost(rival))
        return arm if own / self.n[arm] * price >= other / self.n[rival] * loss / 2 else rival

    def _quality_cost(self, arm: int) -> float:
        return 0.0 if arm == self.top else self._compare(arm, self.top)[1]


def infeasibility(n: Sequence[float], m: Sequence[float], arm: int, keep: float, debit: float = 0.0) -> float:
    """R_i by its formula: the least over x of how unlikely the means are if the arm has at least x and no floor is above x."""

    def unlikely(x: float) -> float:
        rivals = [n[j] * _kl(m[j], x / keep) - debit for j in range(len(m)) if keep * m[j] > x]
        return (n[arm] * _kl(m[arm], x) if x > m[arm] else 0.0) + sum(each for each in rivals if each > 0)

    return _least_on(unlikely, m[arm], keep * max(m))[1] if keep * max(m) > m[arm] else 0.0


def evidence_tail(evidence: float) -> float:
    return _normal_cdf(-math.sqrt(2 * max(evidence, 0.0)))


def _least_on(f: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a convex function is least, and how much that is, by golden sections."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = f(left), f(right)
    for _ in range(45):  # to 4e-10 of the range; beyond that rounding hides which of two values is less
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = f(right)
    best = min((low, (low + high) / 2, high), key=f)
    return best, f(best)


def _normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _normal_excess(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) + z * _normal_cdf(z)


class ImportanceWeighted:
    """CS-EXP3 by its formulas."""

    def __init__(self, *, explore: float = 0.5, rate: float = 1.0) -> None:
        self.explore, self.rate = explore, rate

    gains: list[float]
    chances: list[float]
    played: int

    def __call__(self, history: History) -> int:
        k = history.n_arms
        if history.rounds == 0:
            self.gains = [0.0] * k
        else:
            self.gains[self.played] += history.rewards[self.played][-1] / self.chances[self.played]
        explored = min(self.explore * (k * math.log(k + 1) / history.horizon) ** (1 / 3), 0.5)
        floor = (1 - history.instance.alpha) * max(self.gains)
        by_cost = sorted(range(k), key=lambda arm: (history.instance.costs[arm], arm))
        left, self.chances = 1.0, [0.0] * k
        for arm in by_cost:
            taken = left * math.exp(-(self.rate * explored / k) * max(floor - self.gains[arm], 0.0))
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


def ts(history: History, *, a: float = 1.0, b: float = 1.0) -> int:
    return highest([_beta_draw(history, arm, a=a, b=b) for arm in range(history.n_arms)])


def scalarised(history: History, *, weight: float = 1.0) -> int:
    if history.rounds < history.n_arms:
        return history.rounds
    return highest([history.mean(arm) + history.radius(arm) - weight * history.mean_cost(arm) for arm in range(history.n_arms)])


def best_known(history: History, *, tries: int = 50) -> int:
    if history.rounds < tries * history.n_arms:
        return history.rounds % history.n_arms
    return highest([history.mean(arm) for arm in range(history.n_arms)])


def round_robin(history: History) -> int:
    return history.rounds % history.n_arms


def cheapest(history: History) -> int:
    if history.costs is not None and history.rounds < history.n_arms:
        return history.rounds
    return min(range(history.n_arms), key=history.mean_cost)


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
    "cs-balance": Balanced(),
    "cs-direct": cs_direct,
    "cs-worth": Worthiest(),
    "cof": CostOrdered(),
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


# Every parameter away from its default.
SET_TWINS: dict[str, Twin] = {
    "cs-ucb:interval=hoeffding": partial(cs_ucb, bound=hoeffding_bound),
    "cs-ucb:interval=kl": partial(cs_ucb, bound=kl_bound),
    "cs-ucb:interval=mixture": partial(cs_ucb, bound=mixture_bound),
    "cs-ts:a=2,b=5": _cs_ts(partial(_beta_draw, a=2.0, b=5.0)),
    "cs-ts:prior=shrunk,sigma_0=2": _cs_ts(partial(_shrunk_draw, sigma_0=2.0)),
    "cs-ts:prior=shrunk,sigma_n=0.5": _cs_ts(partial(_shrunk_draw, sigma_n=0.5)),
    "cs-etc:tau=7": partial(cs_etc, tau=7),
    "cs-etc:tau=7,interval=hoeffding": partial(cs_etc, tau=7, bound=hoeffding_bound),
    "cs-etc:tau=7,interval=mixture": partial(cs_etc, tau=7, bound=mixture_bound),
    "one-shot-etc:tau=7": partial(one_shot_etc, tau=7),
    "cs-ids:draws=7": InformationDirected(draws=7),
    "cs-ids:draws=15,plan=0": InformationDirected(draws=15, plan=0),
    "cs-ids:draws=15,plan=0.1": InformationDirected(draws=15, plan=0.1),
    "cs-ids:draws=15,power=2": InformationDirected(draws=15, power=2),
    "cs-ids:draws=15,foresight=2": InformationDirected(draws=15, foresight=2),
    "cs-ids:draws=15,sobriety=0": InformationDirected(draws=15, sobriety=0),
    "cs-ids:draws=15,enough=9": InformationDirected(draws=15, enough=9),
    "cs-ids:draws=15,patience=0": InformationDirected(draws=15, patience=0),
    "cs-ids:draws=15,debit=3": InformationDirected(draws=15, debit=3),
    "cs-ids:draws=15,budget=0.1": InformationDirected(draws=15, budget=0.1),
    "cs-ids:draws=15,exchange=0.3": InformationDirected(draws=15, exchange=0.3),
    "cs-balance:caution=3": Balanced(caution=3),
    "cs-balance:patience=0.1": Balanced(patience=0.1),
    "cs-balance:exchange=5": Balanced(exchange=5),
    "cs-balance:plan=0.5": Balanced(plan=0.5),
    "cs-balance:outset=5000": Balanced(outset=5000),
    "cs-direct:limit=0.3": partial(cs_direct, limit=0.3),
    "cs-direct:interval=mixture": partial(cs_direct, bound=mixture_bound),
    "cs-worth:exchange=0.5": Worthiest(exchange=0.5),
    "cs-worth:doubt=0.6": Worthiest(doubt=0.6),
    "cs-worth:tau=7": Worthiest(tau=7),
    "cs-worth:plan=0.5": Worthiest(plan=0.5),
    "cof:caution=3": CostOrdered(caution=3),
    "cof:patience=0.1": CostOrdered(patience=0.1),
    "cof:debit=3": CostOrdered(debit=3),
    "cof:exchange=5": CostOrdered(exchange=5),
    "cof:plan=0.5": CostOrdered(plan=0.5),
    "cof:outset=5000": CostOrdered(outset=5000),
    "cs-exp3:explore=2": ImportanceWeighted(explore=2.0),
    "cs-exp3:rate=9": ImportanceWeighted(rate=9.0),
    "pe:reference=1": Elimination(lambda _: 1),
    "pe:kappa=0": Elimination(lambda instance: int(np.argmax(instance.costs)), kappa=0),
    "pe:limit=0.5": Elimination(lambda instance: int(np.argmax(instance.costs)), limit=0.5),
    "pe-cs:kappa=0": Elimination(kappa=0),
    "pe-cs:limit=0.7": Elimination(limit=0.7),
    "ts:a=2,b=5": partial(ts, a=2.0, b=5.0),
    "scalarised:weight=0.3": partial(scalarised, weight=0.3),
    "best-known:tries=7": partial(best_known, tries=7),
}


def play(
    twin: Twin,
    instance: Instance,
    horizon: int,
    seed: int,
    run: int = 0,
    *,
    cost_scale: float | None = None,
    scale_is_known: bool = True,
) -> list[int]:
    """The arms a twin chooses in one run with Bernoulli rewards.

    With a `cost_scale`, costs are unknown: an outcome costs all of `cost_scale` or nothing, and the instance has the means.
    """
    world, own = make_streams(seed, np.array([[run, 0], [run, 1]]))
    history = History(instance, horizon, own, rewards=[[] for _ in range(instance.n_arms)])
    if cost_scale is not None:
        history.costs, history.cost_scale = [[] for _ in range(instance.n_arms)], cost_scale if scale_is_known else None
    arms = []
    with np.errstate(over="ignore"):  # the words of a stream wrap around
        for _ in range(horizon):
            arm = twin(history)
            history.rewards[arm].append(1.0 if uniform(world) < instance.means[arm] else 0.0)
            if history.costs is not None:
                assert cost_scale is not None
                history.costs[arm].append(cost_scale if uniform(world) < instance.costs[arm] / cost_scale else 0.0)
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
    """Evidence, outcomes, rewards and their squares, of the tests of `restart`, after every outcome of an arm without alarm."""
    tests = [[0.0, 0.0, 0.0, 0.0] for _ in range(3)]
    slopes = [(0.0, 0.0)] * 3  # what a reward of 1 adds, and what a reward of 0 does
    next_look = 20.0
    kept = []
    for seen, reward in enumerate(rewards, start=1):
        for number, (if_won, if_lost) in enumerate(slopes):
            evidence = tests[number][0] + reward * if_won + (1.0 - reward) * if_lost
            if evidence > 0.0:
                tests[number] = [evidence, tests[number][1] + 1.0, tests[number][2] + reward, tests[number][3] + reward**2]
            else:
                tests[number] = [0.0, 0.0, 0.0, 0.0]
        if seen >= next_look:
            next_look = 1.25 * seen
            mean = (sum(rewards[:seen]) + 0.5) / (seen + 1.0)
            width = 2.0 * math.sqrt(mean * (1.0 - mean) / seen)
            low, high = max(mean - width, 0.25 * mean), min(mean + width, 1.0 - 0.25 * (1.0 - mean))
            aims = [(low, 0.5 * low), (low, 0.02 * low), (high, 1.0 - 0.5 * (1.0 - high))]
            slopes = [(math.log(now / was), math.log((1.0 - now) / (1.0 - was))) for was, now in aims]
        kept.append([value for test in tests for value in test])
    return kept
