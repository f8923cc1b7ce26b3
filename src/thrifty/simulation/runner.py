"""Replications on all cores: bind the loop to each policy, spread the runs over threads, gather the pull counts."""

import itertools
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any

import numpy as np

from thrifty.arrays import Booleans, Floats, Integers
from thrifty.compiled import source_digest
from thrifty.environments import Changing, Feedback, World, checked_feedback, checked_world
from thrifty.environments.sampling import tabulate
from thrifty.interruption import leave, start_jobs
from thrifty.known import KnownOutcomes, known_statistics
from thrifty.policies import Policy, distinct_policies
from thrifty.policies.binding import bind_rule, explaining_faults, given_terms
from thrifty.problem import Instance, checked_count
from thrifty.simulation.checkpoints import checked_checkpoints
from thrifty.simulation.loop import RunRecord, RunStreams, SimulatedWorld, replicate
from thrifty.simulation.results import PolicyRuns, Runs
from thrifty.streams import make_streams

_WORLD, _POLICY, _DELAY, _TAPES = 0, 1, 2, 3  # the streams of a run
_LONGEST = 1 << 62
_PATIENCE_S = 0.5  # how long an interrupted simulation waits for its loops: a loop looks at the stop flag more often than that


class SimulationInterrupted(KeyboardInterrupt):
    """Raised by `simulate` after Ctrl-C. `runs` has the runs that were completed, of the policies that completed any.

    Code that is being compiled, or that never returns, goes on in a thread that nobody waits for and that ends with the process.
    """

    def __init__(self, message: str, runs: Runs) -> None:
        super().__init__(message)
        self.runs = runs


def simulate(
    world: Instance | World | Changing,
    policies: Sequence[str | Policy] | str | Policy,
    *,
    horizon: int | None = None,
    rounds: int | None = None,
    feedback: Feedback | None = None,
    runs: int = 50,
    seed: int = 0,
    checkpoints: int | Sequence[int] | str = "linear",
    trace: bool = False,
    tapes: bool = False,
    known: Sequence[KnownOutcomes | None] | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Runs:
    """Play every policy in the same world, `runs` times over.

    The same seed gives the same pulls, whatever the number of threads and whichever other policies take part. Every run draws its
    rewards from one stream that all policies share and its policy's randomness from another. With `tapes` the rewards of an arm in
    a run are written down beforehand, as it were: its n-th pull has the same reward (and cost) whoever pulls it, and whenever. Two
    policies then differ by what they do and not by their luck, which makes `Runs.compare` sharper.

    Ctrl-C ends it within a second, also while it compiles: a `SimulationInterrupted`, which is a KeyboardInterrupt, has the runs
    that were completed.

    Parameters
    ----------
    world : an Instance (Bernoulli rewards, known costs), a World, or a Changing one
    policies : names ("cs-etc:tau=100"), paths to files of your own, or Policy objects
    horizon : T, the number of rounds of a run, which the policies know; None if they do not
    rounds : how many rounds a run has; by default the horizon
    feedback : when outcomes come back; at once by default
    runs : how many independent runs
    seed : a non-negative integer
    checkpoints : when pulls are counted: "linear" or "log" spaced, a number of linear ones, or the rounds themselves
    trace : keep every chosen arm as well: runs * rounds numbers per policy
    tapes : give every pull of an arm a stream of its own (common random numbers); other rewards than without, of the same law
    known : outcomes of each arm that every policy knows beforehand, None where there are none; no pull of the run
    threads : how many to use; all cores by default
    progress : called with (rounds played, rounds in all) every tenth of a second or so

    >>> runs = simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), ["cs-etc"], horizon=1000, runs=4, seed=1)
    >>> runs["cs-etc"].pulls[:, -1].sum(axis=1).tolist()
    [1000, 1000, 1000, 1000]

    """
    runs, seed = checked_count("runs", runs), checked_count("seed", seed, low=0)
    threads = checked_count("threads", threads if threads is not None else os.cpu_count() or 1)
    chosen = distinct_policies(policies)
    weighing = [each.label for each in chosen if each.rule.weighs_outcomes]
    if known is not None and weighing:
        raise ValueError(
            f"{weighing[0]} weighs every outcome by the probability of its decision, which known outcomes have not: leave it out"
        )
    course = _course_of(world, horizon, rounds, feedback, spacing=checkpoints, runs=runs)
    course = replace(course, seed=seed, tapes=bool(tapes), known=None if known is None else tuple(known))
    tasks = [_Task(each, course, runs=runs, trace=bool(trace)) for each in chosen]
    try:
        _play(tasks, threads, progress)
    except KeyboardInterrupt:
        done = ", ".join(f"{task.policy.label} {int(task.completed.sum())}/{task.runs}" for task in tasks)
        some = course.gather([task for task in tasks if task.completed.any()])
        raise SimulationInterrupted(f"stopped; whole runs completed: {done}", some) from None
    return course.gather(tasks)


def _course_of(
    world: Instance | World | Changing,
    horizon: int | None,
    rounds: int | None,
    feedback: Feedback | None,
    *,
    spacing: int | Sequence[int] | str,
    runs: int,
) -> "_Course":
    world = checked_world(world)
    feedback = checked_feedback(feedback)
    n_arms = world.instance.n_arms
    rounds = checked_rounds(rounds, horizon, n_arms)
    moments = checked_moments(world, spacing, rounds, runs)
    horizon = None if horizon is None else checked_count("horizon", horizon)
    return _Course(world, horizon, rounds, moments, feedback)


def checked_moments(world: World | Changing, spacing: int | Sequence[int] | str, rounds: int, runs: int) -> Integers:
    """The rounds after which pulls are counted: the checkpoints, and where the world changes.

    >>> checked_moments(World([0.5, 0.4], [1.0, 0.0], 0.1), 2, 100, 1).tolist()
    [50, 100]
    """
    changes = [start for start, _ in world.pieces if 0 < start < rounds]
    return np.union1d(checked_checkpoints(spacing, rounds, world.instance.n_arms * runs), changes).astype(np.int64)


def checked_rounds(rounds: int | None, horizon: int | None, n_arms: int) -> int:
    """How many rounds a run has, given the horizon that the policies know.

    >>> checked_rounds(None, 100, 2), checked_rounds(50, None, 2), checked_rounds(50, 100, 2)
    (100, 50, 50)
    """
    if rounds is None and horizon is None:
        raise ValueError("say how long to play: horizon=10_000 tells the policies too, rounds=10_000 does not")
    name, given = ("horizon", horizon) if rounds is None else ("rounds", rounds)
    whole = checked_count(name, given)
    if whole < n_arms:
        raise ValueError(
            f"{name} must be at least the number of arms, got {whole} rounds for {n_arms} arms: every arm is tried once"
        )
    if horizon is not None and whole > checked_count("horizon", horizon):
        raise ValueError(
            f"rounds must be at most the horizon, got {whole} rounds for a horizon of {horizon}: the policies know the horizon; "
            "leave one of the two out"
        )
    return whole


@dataclass(frozen=True, eq=False)
class _Course:
    """What all policies of a simulation have in common."""

    world: World | Changing
    horizon: int | None
    rounds: int
    moments: Integers
    feedback: Feedback | None
    seed: int = 0
    tapes: bool = False
    known: tuple[KnownOutcomes | None, ...] | None = None

    @cached_property
    def known_costs(self) -> Floats:
        """(pieces, K), NaN if costs are unknown."""
        costs = np.array([each.instance.costs for _, each in self.world.pieces])
        return costs if self.world.costs_known else np.full_like(costs, np.nan)

    @cached_property
    def before(self) -> Any:
        """(K,) the statistics that every run starts from."""
        return known_statistics(self.known, self.world.instance.n_arms, costs_known=self.world.costs_known)

    @cached_property
    def simulated(self) -> SimulatedWorld:
        """The world as the loop reads it."""
        worlds = [each for _, each in self.world.pieces]
        costs = None if self.world.costs_known else tabulate([law for each in worlds for law in each.costs])  # type: ignore[misc]
        return SimulatedWorld(
            starts=np.array([start for start, _ in self.world.pieces], dtype=np.int64),
            rewards=tabulate([law for each in worlds for law in each.rewards]),
            costs=costs,
            feedback=None if self.feedback is None else self.feedback.numbers,
            slots=0 if self.feedback is None else self.feedback.slots,
        )

    def streams(self, first: int, last: int) -> RunStreams:
        """The streams of runs `first` to `last - 1`."""
        runs, arms = range(first, last), range(self.world.instance.n_arms)
        world, own, delay = (make_streams(self.seed, np.array([(run, use) for run in runs])) for use in (_WORLD, _POLICY, _DELAY))
        if not self.tapes:
            return RunStreams(world, own, delay, None)
        tapes = make_streams(self.seed, np.array([(run, _TAPES, arm) for run in runs for arm in arms]))
        return RunStreams(world, own, delay, tapes.reshape(len(runs), len(arms), 4))

    def gather(self, tasks: list["_Task"]) -> Runs:
        """The results of all policies."""
        return Runs(
            world=self.world.to_dict(),
            pieces=tuple((start, each.instance) for start, each in self.world.pieces),
            rounds=self.rounds,
            horizon=self.horizon,
            feedback=self.feedback.to_dict() if self.feedback is not None else None,
            tapes=self.tapes,
            known=None if self.known is None else [None if each is None else each.to_dict() for each in self.known],
            checkpoints=self.moments,
            results=tuple(task.result() for task in tasks),
        )


class _Task:
    """One policy's runs: the bound kernel, its inputs, and the arrays it writes into."""

    def __init__(self, chosen: Policy, course: _Course, *, runs: int, trace: bool) -> None:
        n_arms, forgetting = course.world.instance.n_arms, chosen.forgetting
        forgetting.check(n_arms)
        if chosen.known_truths and len(course.world.pieces) > 1:
            raise ValueError(f"{chosen.name} knows the optimal arm of one instance, and this world changes: leave it out")
        truth = {name: float(getattr(course.world.instance, name)) for name in chosen.known_truths}
        self.policy, self.course = chosen, course
        self.terms = course.world.terms(forgetting.horizon(course.horizon, n_arms))
        self.numbers = chosen.numbers(self.terms, truth)
        self.kernel = bind_rule(replicate, chosen, self.terms, self.numbers)
        self.pulls = np.zeros((runs, course.moments.size, n_arms), dtype=np.int64)
        self.traces = np.zeros((runs, course.rounds), dtype=np.int32) if trace else None
        self.completed = np.zeros(runs, dtype=np.bool_)

    @property
    def runs(self) -> int:
        return self.pulls.shape[0]

    def play(self, first: int, last: int, played: Integers, stop: Booleans) -> None:
        """Play runs `first` to `last - 1`, and mark those that were played to the end."""
        course, forgetting = self.course, self.policy.forgetting
        by_cost = np.argsort(course.known_costs, axis=1, kind="stable")
        given = given_terms(self.terms, self.numbers)._replace(costs=course.known_costs, by_cost=by_cost)
        longest = _LONGEST if math.isinf(forgetting.span) else max(int(forgetting.span), self.terms.n_arms)
        traces = None if self.traces is None else self.traces[first:last]
        record = RunRecord(self.pulls[first:last], traces, played, stop)
        streams = course.streams(first, last)
        inputs = (given, course.simulated, longest, forgetting.numbers, course.before)
        with explaining_faults(self.policy, self.terms.n_arms, streams.own):
            whole = self.kernel(*inputs, streams, course.moments, record)
        self.completed[first : first + whole] = True

    def result(self) -> PolicyRuns:
        """The runs that were played to the end. An AssertionError if a round was not counted: the loop would be wrong."""
        completed = self.completed.copy()  # a thread that was left may still mark one
        uncounted = self.pulls[completed].sum(axis=2) != self.course.moments
        if uncounted.any():
            raise AssertionError(f"{self.policy.label}: pulls do not sum to the rounds played, in {uncounted.sum()} checkpoints")
        return PolicyRuns(
            policy=self.policy.label,
            parameters=self.numbers,
            seed=self.course.seed,
            version=version("thrifty"),
            digest=source_digest(),
            pulls=self.pulls[completed],
            trace=None if self.traces is None else self.traces[completed],
        )


def _play(tasks: list[_Task], threads: int, progress: Callable[[int, int], None] | None) -> None:
    """Play all runs of all tasks. Whatever ends it early stops the others too."""
    stop = np.zeros(1, dtype=np.bool_)
    total = sum(task.runs * task.course.rounds for task in tasks)
    shares = [(task, *share) for task in tasks for share in _shares(task.runs, threads)]
    played = np.zeros((len(shares), 1), dtype=np.int64)
    jobs = [partial(task.play, first, last, played[number], stop) for number, (task, first, last) in enumerate(shares)]
    futures = start_jobs(jobs, threads)
    try:
        _wait(futures, lambda: int(played.sum()), total, progress)
    except BaseException:
        stop[0] = True
        leave(futures, patience_s=_PATIENCE_S)
        raise


def _wait(futures: list[Future[None]], played: Callable[[], int], total: int, progress: Callable[[int, int], None] | None) -> None:
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, timeout=0.1)
        for future in finished:
            future.result()
        if progress is not None:
            progress(played(), total)


def _shares(runs: int, threads: int) -> list[tuple[int, int]]:
    """Consecutive shares of the runs: a few per thread, so that an unlucky thread does not keep the others waiting."""
    n_shares = min(runs, 4 * threads if threads > 1 else 1)
    edges = [runs * share // n_shares for share in range(n_shares + 1)]
    return list(itertools.pairwise(edges))
