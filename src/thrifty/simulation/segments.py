"""Segments: many small worlds that share their arms, each decision in one of them. Learning alone, or leaning on the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.borrowing import Spread, count_with_parents, write_effective
from thrifty.compiled import driver, inlined, kernel
from thrifty.interruption import run_interruptibly
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule, explaining_faults, given_terms
from thrifty.policies.contract import RuleTerms, next_horizon, refresh_all
from thrifty.policies.step import decide, start_state, take_outcome
from thrifty.problem import Instance, Terms, checked_count
from thrifty.statistics import ArmStatistics, Outcome, counted
from thrifty.streams import below, make_streams, uniform

_WORLD, _POLICY = 0, 1  # the streams of a run


class SegmentTree(NamedTuple):
    """The statistics of all nodes of a tree of segments. The first S nodes are the segments, the last one is the root."""

    parents: Any  # (nodes,) the node above; -1 for the root
    sums: Any  # (nodes, K) of a node and all below it
    spread: Any  # (nodes, K) how the nodes directly below differ


class SegmentStreams(NamedTuple):
    """The random streams of all runs, (runs, 4), or of one run, (4,)."""

    world: Any
    own: Any  # the policy's


@driver
def replicate_segments(rule, given, means, parents, leaning, streams, rounds, pulls):
    """Whole runs: every round a segment is drawn, its rule chooses, the outcome comes at once.

    `means` are (S, K), `parents` as in `SegmentTree`, `pulls` (runs, S, K). With `leaning` segments borrow from each other.
    """
    n_segments, n_arms = means.shape
    for run in range(pulls.shape[0]):
        sums, spread = np.zeros((parents.size, n_arms), ArmStatistics), np.zeros((parents.size, n_arms), Spread)
        tree, mine = SegmentTree(parents, sums, spread), SegmentStreams(streams.world[run], streams.own[run])
        decisions = np.zeros(n_segments, np.int64)
        horizons = np.full(n_segments, next_horizon(0, n_arms))
        states = [start_state(rule, terms_of_segment(rule, given, horizons[0])) for _ in range(n_segments)]
        for t in range(rounds):
            segment = below(mine.world, n_segments)
            grown = decisions[segment] >= horizons[segment]
            if grown:
                horizons[segment] = next_horizon(decisions[segment], n_arms)
            terms = terms_of_segment(rule, given, horizons[segment])
            arm = play_segment(rule, terms, states[segment], tree, segment, leaning, grown, means[segment], mine, t)
            decisions[segment] += 1
            pulls[run, segment, arm] += 1


@inlined
def terms_of_segment(rule, given, horizon):
    """What the rule of a segment knows."""
    return RuleTerms(given.costs, given.by_cost, given.alpha, horizon, rule.Parameters(*given.numbers), rule.parts)


@kernel
def play_segment(rule, terms, state, tree, segment, leaning, grown, means, streams, t):
    """The decision of round `t` in a segment, and its outcome; returns the arm. `grown` says that the horizon is a new one."""
    if leaning:
        write_effective(tree.sums, tree.spread, tree.parents, segment, state.stats)
    if leaning or grown:
        refresh_all(rule.observe, terms, state.stats, state.memory)
    arm, propensity = decide(rule, terms, state, None, streams.own, t)
    reward = 1.0 * (uniform(streams.world) < means[arm])
    count_with_parents(tree.sums, tree.spread, tree.parents, segment, arm, reward)
    outcome = Outcome(arm, reward, np.nan, propensity)
    take_outcome(rule, terms, state, None, outcome, counted(outcome), None)
    return arm


def parents_of(paths: Sequence[str]) -> Integers:
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
    pulls: Integers

    @property
    def total_regret(self) -> Floats:
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
    chosen : the policy, which does not know the horizon
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
    found.check_keeps_all("a simulation of segments")
    terms = Terms(n_arms=one.n_arms, costs=one.costs, alpha=one.alpha, horizon=None)
    numbers = found.numbers(terms)
    play = bind_rule(replicate_segments, found, terms, numbers)
    pulls = np.zeros((checked_count("runs", runs), len(instances), one.n_arms), np.int64)
    streams = SegmentStreams(*(make_streams(seed, np.array([(run, use) for run in range(runs)])) for use in (_WORLD, _POLICY)))
    means, parents = np.array([each.means for each in instances]), parents_of(list(by_path))
    with explaining_faults(found, one.n_arms, streams.own):
        given, whole = given_terms(terms, numbers), checked_count("rounds", rounds)
        run_interruptibly(lambda: play(given, means, parents, leaning, streams, whole, pulls))
    return SegmentRuns(found.label, instances, pulls)
