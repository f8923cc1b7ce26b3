"""Rejection replay: let a rule choose, and show it the rows of the log in which its choice was made [Li2011].

A rule that is given only rows whose arm it chose itself sees what it would have seen live, provided the log chose arms uniformly at
random, independently of the outcome. Other logs are thinned to that: a row of propensity p is kept with probability m / p, m the
smallest propensity in its segment. A choice waits for its row: the rule is asked once, and what it asked for is looked for from
there on; for uniform logs this matches the rows that asking anew at every row would match, and it asks less.

References
----------
[Li2011] Li, Chu, Langford, Wang, "Unbiased offline evaluation of contextual-bandit-based news article recommendation algorithms",
WSDM 2011.

"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import driver, index
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule
from thrifty.policies.contract import RuleTerms, start_rule
from thrifty.problem import Terms
from thrifty.replay.aggregates import Aggregates, N
from thrifty.replay.bootstrap import interval
from thrifty.replay.estimators import SegmentEstimates, strata_of
from thrifty.replay.profile import prices_are_listed
from thrifty.replay.reading import Log, LogBatch
from thrifty.statistics import Outcome, fold, no_statistics
from thrifty.streams import make_streams, uniform

Floats = NDArray[np.float64]

PLAYS = 4
"""How often a policy is played through the log, each with its own randomness."""

FEWEST_MATCHES = 30


@driver
def match_rows(
    init, choose, observe, parts, Parameters, propensity, numbers, costs, by_cost, alpha, horizon, stats, memory, own_stream,
    coins, held, chance, arms, rewards, row_costs, keep, blocks, sums,
):  # fmt: skip
    """Show the rule the rows it matches, and add them to `sums` (blocks, 3): rows, rewards, costs.

    `held[0]` is the choice that waits for its row, or -1, and `chance[0]` its propensity where the rule says it.
    """
    terms = RuleTerms(costs, by_cost, alpha, horizon, Parameters(*numbers), parts)
    arm = held[0]
    for row in range(arms.size):
        if arm < 0:
            arm = index(choose(terms, stats, memory, own_stream))
            chance[0] = propensity(terms, stats, memory, arm)
            stats[arm].sent += 1
        if arms[row] != arm or uniform(coins) >= keep[row]:
            continue
        reward, cost = rewards[row], row_costs[row]
        fold(stats, arm, 1.0, reward, cost, row_costs)
        observe(terms, stats, memory, Outcome(arm, reward, cost, chance[0]))
        sums[blocks[row], 0] += 1.0
        sums[blocks[row], 1] += reward
        sums[blocks[row], 2] += cost
        arm = -1
    held[0] = arm


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a policy did in one segment: (plays, blocks, 3) rows matched, rewards and costs, or why nothing is said."""

    segment: str
    sums: Floats
    refusal: str

    @property
    def matches(self) -> float:
        """Rows matched, the mean of the plays."""
        return float(self.sums[:, :, 0].sum() / self.sums.shape[0])


class _Play:
    """One rule on its way through the rows of one segment."""

    def __init__(self, chosen: Policy, terms: Terms, n_blocks: int, key: tuple[int, int], seed: int) -> None:
        numbers = chosen.numbers(terms)
        known = terms.costs if terms.costs is not None else np.full(terms.n_arms, np.nan)
        self._given = (tuple(numbers.values()), known, np.argsort(known, kind="stable"), terms.alpha, terms.horizon)
        self._match = bind_rule(match_rows, chosen, terms, numbers, {"propensity": chosen.rule_under(terms).propensity})
        self._memory = bind_rule(start_rule, chosen, terms, numbers)(*self._given)
        self._stats = no_statistics(terms.n_arms)
        self._own, self._coins = make_streams(seed, np.array([[*key, 0], [*key, 1]]))
        self._held, self._chance = np.full(1, -1, np.int64), np.full(1, np.nan)
        self.sums = np.zeros((n_blocks, 3))

    def show(self, arms: NDArray[np.int32], rewards: Floats, costs: Floats, keep: Floats, blocks: NDArray[np.int64]) -> None:
        state = (self._stats, self._memory, self._own, self._coins, self._held, self._chance)
        self._match(*self._given, *state, arms, rewards, costs, keep, blocks, self.sums)


class _Segment:
    """The rows of one segment: which arms take part, how rows are thinned, and the plays."""

    def __init__(
        self, estimates: SegmentEstimates, chosen: Policy, alphas: Sequence[float], aggregates: Aggregates, number: int,
        log: Log, *, plays: int, seed: int,
    ) -> None:  # fmt: skip
        sums = estimates.sums
        self.takes_part = np.flatnonzero(estimates.usable)
        self.place = np.full(len(log.arms.names), -1, np.int32)
        for place, arm in enumerate(self.takes_part):
            self.place[log.arms.names.index(sums.arms[arm])] = place
        self.strata = np.zeros(aggregates.starts.size, np.int64)
        strata = strata_of(sums, aggregates.starts.size)
        for stratum, blocks in enumerate(strata):
            self.strata[blocks] = stratum
        counts = np.array([sums.sums[:, blocks, N].sum(axis=1) for blocks in strata])
        self.shares = counts[:, self.takes_part] / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        lowest = sums.p_min[self.takes_part] if aggregates.weighted else np.where(self.shares > 0, self.shares, 1.0)
        self.weighted, self.least = aggregates.weighted, float(lowest.min(initial=1.0))
        self.refusal = "" if self.takes_part.size > 1 else "fewer than two arms of this segment have overlap enough"
        costs = estimates.cost()[self.takes_part] if prices_are_listed(sums) else None
        horizon = max(int(sums.rows * self.least), self.takes_part.size)
        self.plays = {
            alpha: [
                _Play(
                    chosen, Terms(self.takes_part.size, costs, alpha, horizon), aggregates.starts.size, (number, play), seed
                )
                for play in range(plays)
            ]
            for alpha in (alphas if not self.refusal else ())
        }  # fmt: skip

    def show(self, batch: LogBatch, rows: NDArray[np.int64], blocks: NDArray[np.int64]) -> None:
        arms = self.place[batch.arms[rows]]
        mine = arms >= 0
        rows, arms = rows[mine], arms[mine]
        where = blocks[rows]
        p = batch.propensities[rows] if self.weighted else self.shares[self.strata[where], arms]
        for plays in self.plays.values():
            for play in plays:
                play.show(arms, batch.rewards[rows], batch.costs[rows], self.least / p, where)

    def replayed(self, name: str, alpha: float, n_blocks: int) -> Replayed:
        if self.refusal:
            return Replayed(name, np.zeros((1, n_blocks, 3)), self.refusal)
        sums = np.array([play.sums for play in self.plays[alpha]])
        few = sums[:, :, 0].sum(axis=1).min() < FEWEST_MATCHES
        return Replayed(name, sums, f"fewer than {FEWEST_MATCHES} rows match the policy's choices" if few else "")


def replay_policy(
    log: Log,
    aggregates: Aggregates,
    estimates: Sequence[SegmentEstimates],
    spec: str | Policy,
    alphas: Sequence[float],
    *,
    seed: int = 0,
    plays: int = PLAYS,
    progress: Callable[[int], None] | None = None,
) -> dict[float, list[Replayed]]:
    """Play a policy through the log, for every alpha at once: alpha -> what it did in each segment. Reads the log once more.

    One rule serves each segment. Arms with too little overlap do not take part.
    """
    chosen = policy(spec)
    if chosen.told:
        raise ValueError(f"{chosen.name} is told the truth, and a log does not know it: try cs-ids")
    if chosen.forgetting.label:
        raise ValueError(
            f"replay plays policies that keep all they have seen, got {chosen.label}: "
            "thrifty recommend plays the others in simulation"
        )
    segments = [
        _Segment(each, chosen, alphas, aggregates, number, log, plays=plays, seed=seed) for number, each in enumerate(estimates)
    ]
    places = np.array([log.segments.names.index(each.sums.name) for each in estimates])
    order_of = np.full(len(log.segments.names), -1)
    order_of[places] = np.arange(places.size)
    counted = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in log.batches(progress):
            times = counted + np.arange(batch.arms.size, dtype=np.float64) if aggregates.by_rows else batch.times
            counted += batch.arms.size
            blocks = np.searchsorted(aggregates.starts, times, side="right") - 1
            numbers = order_of[batch.segments]
            order = np.argsort(numbers, kind="stable")
            edges = np.searchsorted(numbers[order], np.arange(places.size + 1))
            tasks = [
                pool.submit(segments[number].show, batch, order[edges[number] : edges[number + 1]], blocks)
                for number in range(places.size)
                if edges[number] < edges[number + 1]
            ]
            for task in tasks:
                task.result()
    names = [each.sums.name for each in estimates]
    n_blocks = aggregates.starts.size
    return {
        alpha: [segment.replayed(name, alpha, n_blocks) for segment, name in zip(segments, names, strict=True)] for alpha in alphas
    }


def replayed_value(
    replayed: Sequence[Replayed], estimates: Sequence[SegmentEstimates], weights: Floats
) -> tuple[Floats, Floats, float]:
    """Mean reward and mean cost over these segments, each as (value, low, high), and the rows they rest on.

    Segments count by their traffic. The variance is that of the bootstrap over blocks and that between plays.
    """
    told = [(each, about) for each, about in zip(replayed, estimates, strict=True) if not each.refusal]
    if not told:
        return np.full(3, np.nan), np.full(3, np.nan), 0.0
    traffic = np.add.reduce([about.traffic for _, about in told])
    results = []
    for metric in (1, 2):
        together, apart = np.zeros(weights.shape[0]), np.zeros(told[0][0].sums.shape[0])
        for each, about in told:
            of_blocks = each.sums.mean(axis=0)
            together += about.traffic * (weights @ of_blocks[:, metric]) / np.maximum(weights @ of_blocks[:, 0], 1e-300)
            apart += about.traffic[0] * each.sums[:, :, metric].sum(axis=1) / each.sums[:, :, 0].sum(axis=1)
        together, apart = together / traffic, apart / traffic[0]
        low, high = interval(together[:, np.newaxis], weights.shape[1])
        half = float(high[0] - low[0]) / 2.0
        between = apart.var(ddof=1) / apart.size if apart.size > 1 else 0.0
        half = float(np.sqrt(half**2 + (1.96**2) * between))
        results.append(np.array([together[0], together[0] - half, together[0] + half]))
    return results[0], results[1], sum(each.matches for each, _ in told)
