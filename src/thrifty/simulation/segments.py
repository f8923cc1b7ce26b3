"""Segments: many small worlds that share their arms, each decision in one of them. Learning alone, or leaning on the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.borrowing import Spread, borrow, count_segment, distance
from thrifty.compiled import driver, index, kernel
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule
from thrifty.policies.contract import RuleTerms, next_horizon, refresh_all, start
from thrifty.problem import Instance, Terms, checked_count
from thrifty.statistics import ArmStatistics, Outcome, copy_sums, fold
from thrifty.streams import below, make_streams, uniform


@kernel
def look(sums, spread, parents, segment, eyes):
    """Write what the rule of a segment sees: its own sums, and what it borrows from every level above it."""
    for arm in range(eyes.size):
        copy_sums(sums[segment, arm], eyes[arm])
    apart, level = 0.0, segment
    while parents[level] >= 0:
        above = parents[level]
        apart += distance(spread[above])
        for arm in range(eyes.size):
            borrow(sums[level, arm], sums[above, arm], apart, eyes[arm])
        level = above


@kernel
def count(sums, spread, parents, segment, arm, reward):
    """Count one decision and its outcome in the segment and in every level above it."""
    level = segment
    while level >= 0:
        mine, above = sums[level], parents[level]
        before, won_before = mine[arm].seen, mine[arm].reward_sum
        mine[arm].sent += 1
        fold(mine, arm, 1.0, reward, np.nan, None)
        if above >= 0:
            count_segment(spread[above, arm], -1.0, before, won_before)
            count_segment(spread[above, arm], 1.0, mine[arm].seen, mine[arm].reward_sum)
        level = above


@driver
def replicate_segments(
    init, choose, observe, parts, Parameters, numbers, costs, by_cost, alpha, leaning, means, parents, world_streams, own_streams,
    rounds, pulls,
):  # fmt: skip
    """Whole runs: every round a segment is drawn, its rule chooses, the outcome comes at once. `pulls` is (runs, S, K).

    The first S nodes of the tree `parents` are the segments; the parent of the root is -1.
    """
    parameters = Parameters(*numbers)
    n_segments, n_arms = means.shape
    for run in range(pulls.shape[0]):
        sums = np.zeros((parents.size, n_arms), ArmStatistics)
        spread = np.zeros((parents.size, n_arms), Spread)
        eyes = np.zeros((n_segments, n_arms), ArmStatistics)
        decisions = np.zeros(n_segments, np.int64)
        horizons = np.full(n_segments, next_horizon(0, n_arms))
        first = RuleTerms(costs, by_cost, alpha, horizons[0], parameters, parts)
        memories = [start(init, first) for _ in range(n_segments)]
        for _ in range(rounds):
            segment = below(world_streams[run], n_segments)
            memory, seen = memories[segment], eyes[segment]
            grown = decisions[segment] >= horizons[segment]
            if grown:
                horizons[segment] = next_horizon(decisions[segment], n_arms)
            terms = RuleTerms(costs, by_cost, alpha, horizons[segment], parameters, parts)
            if leaning:
                look(sums, spread, parents, segment, seen)
            if leaning or grown:
                refresh_all(observe, terms, seen, memory)
            arm = index(choose(terms, seen, memory, own_streams[run]))
            reward = 1.0 * (uniform(world_streams[run]) < means[segment, arm])
            count(sums, spread, parents, segment, arm, reward)
            seen[arm].sent += 1
            fold(seen, arm, 1.0, reward, np.nan, None)
            observe(terms, seen, memory, Outcome(arm, reward, np.nan, np.nan))
            decisions[segment] += 1
            pulls[run, segment, arm] += 1


def parents_of(paths: Sequence[str]) -> NDArray[np.int64]:
    """The tree of segments as the number of every node's parent: the segments first, then what lies above them, the root last.

    >>> parents_of(["DE/vodafone", "DE/telekom", "FR"]).tolist()
    [3, 3, 4, 4, -1]
    """
    wrong = [path for path in paths if not all(part.strip() for part in path.split("/"))]
    if wrong:
        raise ValueError(f"a segment must be a path of parts that are not empty, such as DE/vodafone, got {wrong[0]!r}")
    above = {path.rpartition("/")[0] for path in paths}
    while more := {path.rpartition("/")[0] for path in above} - above:
        above |= more
    inside = sorted(above & set(paths))
    if inside or len(set(paths)) < len(paths):
        raise ValueError(
            f"segments must be different leaves of the tree, got {(inside or sorted(paths))[0]!r} above or beside itself"
        )
    nodes = [*paths, *sorted(above, reverse=True)]
    number = {path: place for place, path in enumerate(nodes)}
    return np.array([number[path.rpartition("/")[0]] if path else -1 for path in nodes])


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
    segments: Sequence[Instance] | Mapping[str, Instance],
    chosen: str | Policy,
    *,
    rounds: int,
    leaning: bool,
    runs: int = 20,
    seed: int = 0,
) -> SegmentRuns:
    """Play one policy in many segments at once; each decision falls into a segment drawn at random.

    Parameters
    ----------
    segments : the truth in every segment, by its path ("DE/vodafone" lies below "DE", and that below all), or in a list, where all
        are beside each other; all have the same costs and alpha
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
    by_path = segments if isinstance(segments, Mapping) else {str(number): each for number, each in enumerate(segments)}
    instances = tuple(by_path.values())
    one = instances[0]
    if any((each.costs != one.costs).any() or each.alpha != one.alpha for each in instances):
        raise ValueError("all segments must have the same costs and the same alpha: they share their arms")
    found = policy(chosen)
    terms = Terms(n_arms=one.n_arms, costs=one.costs, alpha=one.alpha, horizon=None)
    numbers = found.numbers(terms)
    play = bind_rule(replicate_segments, found, terms, numbers)
    pulls = np.zeros((checked_count("runs", runs), len(instances), one.n_arms), np.int64)
    streams = [make_streams(seed, np.array([(run, purpose) for run in range(runs)])) for purpose in (0, 1)]
    with np.errstate(over="ignore"):
        play(
            tuple(numbers.values()), one.costs, np.argsort(one.costs, kind="stable"), one.alpha, leaning,
            np.array([each.means for each in instances]), parents_of(list(by_path)), *streams,
            checked_count("rounds", rounds), pulls,
        )  # fmt: skip
    return SegmentRuns(found.label, instances, pulls)
