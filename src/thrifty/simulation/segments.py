"""Segments: many small worlds that share their arms, each decision in one of them. Learning alone, or leaning on the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.borrowing import Kin, borrow, count_kin, unlikeness
from thrifty.compiled import driver, index
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule
from thrifty.policies.contract import RuleTerms, next_horizon, refresh_all, start
from thrifty.problem import Instance, Terms, checked_count
from thrifty.statistics import ArmStatistics, Outcome, fold
from thrifty.streams import below, make_streams, uniform


@driver
def replicate_segments(
    init, choose, observe, parts, Parameters, numbers, costs, by_cost, alpha, leaning, means, world_streams, own_streams,
    rounds, pulls,
):  # fmt: skip
    """Whole runs: every round a segment is drawn, its rule chooses, the outcome comes at once. `pulls` is (runs, S, K)."""
    parameters = Parameters(*numbers)
    n_segments, n_arms = means.shape
    for run in range(pulls.shape[0]):
        own = np.zeros((n_segments, n_arms), ArmStatistics)
        eyes = np.zeros((n_segments, n_arms), ArmStatistics)
        parent = np.zeros(n_arms, ArmStatistics)
        kin = np.zeros(n_arms, Kin)
        decisions = np.zeros(n_segments, np.int64)
        horizons = np.full(n_segments, next_horizon(0, n_arms))
        first = RuleTerms(costs, by_cost, alpha, horizons[0], parameters, parts)
        memories = [start(init, first) for _ in range(n_segments)]
        for _ in range(rounds):
            segment = below(world_streams[run], n_segments)
            memory, mine, seen = memories[segment], own[segment], eyes[segment]
            grown = decisions[segment] >= horizons[segment]
            if grown:
                horizons[segment] = next_horizon(decisions[segment], n_arms)
            terms = RuleTerms(costs, by_cost, alpha, horizons[segment], parameters, parts)
            if leaning:
                borrow(mine, parent, unlikeness(parent, kin), seen)
            if leaning or grown:
                refresh_all(observe, terms, seen, memory)
            arm = index(choose(terms, seen, memory, own_streams[run]))
            reward = 1.0 * (uniform(world_streams[run]) < means[segment, arm])
            count_kin(kin[arm], -1.0, mine[arm].seen, mine[arm].reward_sum)
            for stats in (mine, parent, seen):
                stats[arm].sent += 1
                fold(stats, arm, 1.0, reward, np.nan, None)
            count_kin(kin[arm], 1.0, mine[arm].seen, mine[arm].reward_sum)
            observe(terms, seen, memory, Outcome(arm, reward, np.nan, np.nan))
            decisions[segment] += 1
            pulls[run, segment, arm] += 1


@dataclass(frozen=True, eq=False)
class SegmentRuns:
    """Pulls of every arm in every segment, (runs, S, K), and the truth about each segment."""

    policy: str
    segments: tuple[Instance, ...]
    pulls: NDArray[np.int64]

    @property
    def total_regret(self) -> NDArray[np.float64]:
        """(runs,) quality and cost regret, summed over segments."""
        gaps = np.array([each.quality_gaps + each.cost_gaps for each in self.segments])
        return np.asarray(np.einsum("rsk,sk->r", self.pulls, gaps))


def simulate_segments(
    segments: Sequence[Instance], chosen: str | Policy, *, rounds: int, leaning: bool, runs: int = 20, seed: int = 0
) -> SegmentRuns:
    """Play one policy in many segments at once; each decision falls into a segment drawn at random.

    Parameters
    ----------
    segments : the truth in every segment; all have the same costs and alpha
    chosen : the policy, which is not told a horizon
    rounds : decisions in all
    leaning : whether segments borrow from each other, or each learns alone
    runs : how many independent runs
    seed : a non-negative integer

    >>> similar = [Instance([0.8, 0.75], [1.0, 0.0], 0.1)] * 10
    >>> simulate_segments(similar, "cs-ts", rounds=500, leaning=True, runs=2).pulls.sum(axis=(1, 2)).tolist()
    [500, 500]

    """
    if not segments:
        raise ValueError("segments must name at least one instance, got none")
    one = segments[0]
    if any((each.costs != one.costs).any() or each.alpha != one.alpha for each in segments):
        raise ValueError("all segments must have the same costs and the same alpha: they share their arms")
    found = policy(chosen)
    terms = Terms(n_arms=one.n_arms, costs=one.costs, alpha=one.alpha, horizon=None)
    numbers = found.numbers(terms)
    kernel = bind_rule(replicate_segments, found, terms, numbers)
    pulls = np.zeros((checked_count("runs", runs), len(segments), one.n_arms), np.int64)
    streams = [make_streams(seed, np.array([(run, purpose) for run in range(runs)])) for purpose in (0, 1)]
    with np.errstate(over="ignore"):
        kernel(
            tuple(numbers.values()), one.costs, np.argsort(one.costs, kind="stable"), one.alpha, leaning,
            np.array([each.means for each in segments]), *streams, checked_count("rounds", rounds), pulls,
        )  # fmt: skip
    return SegmentRuns(found.label, tuple(segments), pulls)
