"""Replications on all cores: bind the loop to each policy, spread the runs over threads, gather the pull counts."""

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

import numpy as np
from numpy.typing import NDArray

from thrifty import __version__
from thrifty.compiled import source_digest
from thrifty.environments import World
from thrifty.environments.sampling import LawTable, tabulate
from thrifty.policies import Policy, policy
from thrifty.policies.binding import bind_rule
from thrifty.problem import Instance, Terms, checked_count
from thrifty.simulation.checkpoints import checked_checkpoints
from thrifty.simulation.loop import replicate
from thrifty.simulation.results import PolicyRuns, Runs
from thrifty.streams import make_streams

_WORLD, _POLICY = 0, 1  # the two streams of a run


def simulate(
    world: Instance | World,
    policies: Sequence[str | Policy] | str | Policy,
    *,
    horizon: int,
    runs: int = 50,
    seed: int = 0,
    checkpoints: int | Sequence[int] | str = "linear",
    trace: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Runs:
    """Play every policy in the same world, `runs` times over.

    The same seed gives the same pulls, whatever the number of threads and whichever other policies take part. Every run draws its
    rewards from one stream that all policies share and its policy's randomness from another.

    Parameters
    ----------
    world : an Instance (Bernoulli rewards, known costs) or a World
    policies : names ("cs-etc:tau=100"), paths to files of your own, or Policy objects
    horizon : T, the number of rounds of a run
    runs : how many independent runs
    seed : a non-negative integer
    checkpoints : when pulls are counted: "linear" or "log" spaced, a number of linear ones, or the rounds themselves
    trace : keep every chosen arm as well: runs * horizon numbers per policy
    threads : how many to use; all cores by default
    progress : called with (rounds played, rounds in all) every tenth of a second or so

    >>> runs = simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), ["cs-etc"], horizon=1000, runs=4, seed=1)
    >>> runs["cs-etc"].pulls[:, -1].sum(axis=1).tolist()
    [1000, 1000, 1000, 1000]

    """
    world = world if isinstance(world, World) else World.of(world)
    chosen = [policy(spec) for spec in ([policies] if isinstance(policies, (str, Policy)) else policies)]
    if not chosen:
        raise ValueError("policies must name at least one policy")
    runs, seed = checked_count("runs", runs), checked_count("seed", seed, low=0)
    threads = checked_count("threads", threads if threads is not None else os.cpu_count() or 1)
    terms = world.terms(horizon)
    rounds = checked_checkpoints(checkpoints, terms.horizon, terms.n_arms * runs)
    tasks = [_Task(each, terms, world, rounds, runs=runs, seed=seed, trace=trace) for each in chosen]
    completed = _play(tasks, threads, progress)
    results = [task.result(done) for task, done in zip(tasks, completed, strict=True)]
    return Runs(world=world.to_dict(), instance=world.instance, horizon=terms.horizon, checkpoints=rounds, results=tuple(results))


class _Task:
    """One policy's runs: the bound kernel, its inputs, and the arrays it writes into."""

    def __init__(
        self, chosen: Policy, terms: Terms, world: World, rounds: NDArray[np.int64], *, runs: int, seed: int, trace: bool
    ) -> None:
        truth = {name: float(getattr(world.instance, name)) for name in chosen.told}
        self.policy, self.terms, self.rounds, self.seed = chosen, terms, rounds, seed
        self.numbers = chosen.numbers(terms, truth)
        self.kernel = bind_rule(replicate, chosen, terms, self.numbers)
        self.rewards = tabulate(world.rewards)
        self.costs: LawTable | None = None if world.costs_known else tabulate(world.costs)  # type: ignore[arg-type]
        self.pulls = np.zeros((runs, rounds.size, terms.n_arms), dtype=np.int64)
        self.traces = np.zeros((runs, terms.horizon), dtype=np.int32) if trace else None

    @property
    def runs(self) -> int:
        return self.pulls.shape[0]

    def play(self, first: int, last: int, played: NDArray[np.int64], stop: NDArray[np.bool_]) -> int:
        """Play runs `first` to `last - 1`; the number of those that were played to the end."""
        known = self.terms.costs if self.terms.costs is not None else np.full(self.terms.n_arms, np.nan)
        keys = np.arange(first, last)
        with np.errstate(over="ignore"):  # the streams wrap around by design; compiled code does not warn, plain Python would
            whole: int = self.kernel(
                tuple(self.numbers.values()),
                known,
                np.argsort(known, kind="stable"),
                self.terms.alpha,
                self.terms.horizon,
                self.rewards,
                self.costs,
                make_streams(self.seed, np.column_stack([keys, np.full_like(keys, _WORLD)])),
                make_streams(self.seed, np.column_stack([keys, np.full_like(keys, _POLICY)])),
                self.rounds,
                self.pulls[first:last],
                None if self.traces is None else self.traces[first:last],
                played,
                stop,
            )
        return whole

    def result(self, completed: NDArray[np.bool_]) -> PolicyRuns:
        return PolicyRuns(
            policy=self.policy.label,
            parameters=self.numbers,
            seed=self.seed,
            version=__version__,
            digest=source_digest(),
            pulls=self.pulls[completed],
            trace=None if self.traces is None else self.traces[completed],
        )


def _play(tasks: list[_Task], threads: int, progress: Callable[[int, int], None] | None) -> list[NDArray[np.bool_]]:
    """Which runs of each task were completed: all of them, unless somebody pressed Ctrl-C."""
    stop = np.zeros(1, dtype=np.bool_)
    total = sum(task.runs * task.terms.horizon for task in tasks)
    completed = [np.zeros(task.runs, dtype=np.bool_) for task in tasks]
    counters: list[NDArray[np.int64]] = []

    def work(number: int, first: int, last: int, played: NDArray[np.int64]) -> None:
        whole = tasks[number].play(first, last, played, stop)
        completed[number][first : first + whole] = True

    with ThreadPoolExecutor(threads) as pool:
        futures: list[Future[None]] = []
        for number, task in enumerate(tasks):
            for first, last in _shares(task.runs, threads):
                counters.append(np.zeros(1, dtype=np.int64))
                futures.append(pool.submit(work, number, first, last, counters[-1]))
        try:
            _wait(futures, lambda: int(sum(counter[0] for counter in counters)), total, progress)
        except KeyboardInterrupt:
            stop[0] = True
            for future in futures:
                future.cancel()
            wait(futures)
            done = ", ".join(
                f"{task.policy.label} {int(mask.sum())}/{task.runs}" for task, mask in zip(tasks, completed, strict=True)
            )
            raise KeyboardInterrupt(f"stopped; whole runs completed: {done}") from None
    return completed


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
