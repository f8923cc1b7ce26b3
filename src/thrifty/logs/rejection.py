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
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import driver, index, kernel, record
from thrifty.logs.aggregates import Aggregates, N
from thrifty.logs.bootstrap import interval
from thrifty.logs.estimators import SegmentEstimates, strata_of
from thrifty.logs.price_course import prices_are_listed
from thrifty.logs.reading import Log, LogBatch
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule, explaining_faults, given_terms
from thrifty.policies.step import decide, rule_terms, start_rule, take_outcome
from thrifty.problem import Terms, checked_count
from thrifty.statistics import Outcome, counted
from thrifty.streams import make_streams, uniform

PLAYS, MOST_PLAYS = 4, 10_000
"""How often a policy is played through the log, each time with its own randomness: unless told otherwise, and at most."""

FEWEST_MATCHES = 30


WaitingChoice = record([("arm", np.int64), ("propensity", np.float64), ("asked", np.int64)])
"""The choice that waits for its row: its arm, or -1 if the rule is to be asked, its propensity, NaN if unknown, and its number."""


class LoggedRows(NamedTuple):
    """Rows of one segment."""

    arms: Any
    rewards: Any
    costs: Any
    keep: Any  # the probability with which a row that matches is kept
    blocks: Any


class ReplayState(NamedTuple):
    """One play: a rule, and how far it has come in the rows."""

    rule: Any  # RuleState
    waiting: Any  # (1,) WaitingChoice
    own_stream: Any
    coins: Any  # the stream that decides which rows are kept
    sums: Any  # (blocks, 3) rows matched, rewards, costs


@driver
def match_rows(rule, given, play, rows):
    """Show the rule the rows it matches, and add them to `play.sums`."""
    show_rows(rule, rule_terms(rule, given), play, rows)


@kernel
def show_rows(rule, terms, play, rows):
    """See `match_rows`; a kernel, since a driver counts references in every round."""
    waiting = play.waiting[0]
    for row in range(rows.arms.size):
        if waiting.arm < 0:
            waiting.arm, waiting.propensity = decide(rule, terms, play.rule, None, play.own_stream, waiting.asked)
            waiting.asked += 1
        arm = index(waiting.arm)
        if rows.arms[row] != arm or uniform(play.coins) >= rows.keep[row]:
            continue
        reward, cost = rows.rewards[row], rows.costs[row]
        outcome = Outcome(arm, reward, cost, waiting.propensity)
        take_outcome(rule, terms, play.rule, None, outcome, counted(outcome), rows.costs)
        block = play.sums[rows.blocks[row]]
        block[0] += 1.0
        block[1] += reward
        block[2] += cost
        waiting.arm = -1


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a policy did in one segment: (plays, blocks, 3) rows matched, rewards and costs, or why there is no estimate."""

    segment: str
    sums: Floats
    refusal: str

    @property
    def matches(self) -> float:
        """Rows matched, the mean of the plays."""
        return float(self.sums[:, :, 0].sum() / self.sums.shape[0])


class _Play:
    """One rule in the rows of one segment."""

    def __init__(self, chosen: Policy, terms: Terms, n_blocks: int, key: tuple[int, int], seed: int) -> None:
        numbers = chosen.numbers(terms)
        self._policy, self._n_arms = chosen, terms.n_arms
        self._given = given_terms(terms, numbers)
        self._match = bind_rule(match_rows, chosen, terms, numbers)
        start = bind_rule(start_rule, chosen, terms, numbers)
        waiting = np.array([(-1, np.nan, 0)], WaitingChoice)
        own, coins = make_streams(seed, np.array([[*key, 0], [*key, 1]]))
        self._state = ReplayState(start(self._given), waiting, own, coins, np.zeros((n_blocks, 3)))

    @property
    def sums(self) -> Floats:
        """(blocks, 3) rows matched, rewards and costs."""
        return self._state.sums  # type: ignore[no-any-return]

    def show(self, rows: LoggedRows) -> None:
        with explaining_faults(self._policy, self._n_arms, self._state.own_stream[np.newaxis]):
            self._match(self._given, self._state, rows)


class _Segment:
    """The rows of one segment: which arms take part, how rows are thinned, and the plays."""

    def __init__(self, estimates: SegmentEstimates, aggregates: Aggregates, log: Log) -> None:
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
        self.costs = estimates.cost()[self.takes_part] if prices_are_listed(sums) else None
        self.horizon = max(int(sums.rows * self.least), self.takes_part.size)
        self.plays: dict[float, list[_Play]] = {}

    def start(self, chosen: Policy, alphas: Sequence[float], *, number: int, plays: int, seed: int) -> None:
        """Begin the plays of a policy for every alpha. `number` is that of the segment, and names its random streams."""
        if self.refusal:
            return
        for alpha in alphas:
            terms = Terms(self.takes_part.size, self.costs, alpha, self.horizon)
            self.plays[alpha] = [_Play(chosen, terms, self.strata.size, (number, play), seed) for play in range(plays)]

    def show(self, batch: LogBatch, rows: Integers, blocks: Integers) -> None:
        arms = self.place[batch.arms[rows]]
        mine = arms >= 0
        rows, arms = rows[mine], arms[mine]
        where = blocks[rows]
        p = batch.propensities[rows] if self.weighted else self.shares[self.strata[where], arms]
        shown = LoggedRows(arms, batch.rewards[rows], batch.costs[rows], self.least / p, where)
        for plays in self.plays.values():
            for play in plays:
                play.show(shown)

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
    plays = checked_count("plays", plays, high=MOST_PLAYS)
    chosen = policy(spec)
    if chosen.known_truths:
        raise ValueError(f"{chosen.name} needs to know the truth, and a log does not have it: try cs-ids")
    chosen.check_keeps_all("replay", remedy="thrifty recommend plays the others in simulation")
    segments = [_Segment(each, aggregates, log) for each in estimates]
    for number, segment in enumerate(segments):
        segment.start(chosen, alphas, number=number, plays=plays, seed=seed)
    _show_log(log, aggregates, segments, [each.sums.name for each in estimates], progress)
    names = [each.sums.name for each in estimates]
    n_blocks = aggregates.starts.size
    return {
        alpha: [segment.replayed(name, alpha, n_blocks) for segment, name in zip(segments, names, strict=True)] for alpha in alphas
    }


def _show_log(
    log: Log, aggregates: Aggregates, segments: Sequence[_Segment], names: Sequence[str], progress: Callable[[int], None] | None
) -> None:
    """Show every segment its rows, in the order of the log; segments side by side on all cores."""
    order_of = np.full(len(log.segments.names), -1)
    order_of[[log.segments.names.index(name) for name in names]] = np.arange(len(names))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in log.batches(progress):
            times = batch.rows if aggregates.by_rows else batch.times
            blocks = np.searchsorted(aggregates.starts, times, side="right") - 1
            numbers = order_of[batch.segments]
            order = np.argsort(numbers, kind="stable")
            edges = np.searchsorted(numbers[order], np.arange(len(names) + 1))
            tasks = [
                pool.submit(segment.show, batch, order[first:last], blocks)
                for segment, first, last in zip(segments, edges[:-1], edges[1:], strict=True)
                if first < last
            ]
            for task in tasks:
                task.result()


def replayed_value(
    replayed: Sequence[Replayed], estimates: Sequence[SegmentEstimates], weights: Floats
) -> tuple[Floats, Floats, float]:
    """Mean reward and mean cost over these segments, each as (value, low, high), and the rows they rest on.

    Segments count by their traffic. The variance is that of the bootstrap over blocks and that between plays.
    """
    answered = [(each, about) for each, about in zip(replayed, estimates, strict=True) if not each.refusal]
    if not answered:
        return np.full(3, np.nan), np.full(3, np.nan), 0.0
    traffic = np.add.reduce([about.traffic for _, about in answered])
    results = []
    for metric in (1, 2):
        together, apart = np.zeros(weights.shape[0]), np.zeros(answered[0][0].sums.shape[0])
        for each, about in answered:
            of_blocks = each.sums.mean(axis=0)
            together += about.traffic * (weights @ of_blocks[:, metric]) / np.maximum(weights @ of_blocks[:, 0], 1e-300)
            apart += about.traffic[0] * each.sums[:, :, metric].sum(axis=1) / each.sums[:, :, 0].sum(axis=1)
        together, apart = together / traffic, apart / traffic[0]
        low, high = interval(together[:, np.newaxis], weights.shape[1])
        half = float(high[0] - low[0]) / 2.0
        between = apart.var(ddof=1) / apart.size if apart.size > 1 else 0.0
        half = float(np.sqrt(half**2 + (1.96**2) * between))
        results.append(np.array([together[0], together[0] - half, together[0] + half]))
    return results[0], results[1], sum(each.matches for each, _ in answered)
