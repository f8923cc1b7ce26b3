"""Sweeps: many settings, each simulated once. A result is kept in a file that is named by a digest of the setting.

Finished settings are skipped on a re-run, so an interrupted sweep resumes where it stopped. To merge two sweeps, copy the files
into one folder. The same setting gives the same bits on one core, on many cores and on a Dask cluster. Needs the extra `sweep`.
"""

import hashlib
import json
import logging
import os
import threading
import zipfile
import zlib
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from thrifty import __version__
from thrifty.compiled import source_digest
from thrifty.environments import World
from thrifty.policies import policy
from thrifty.problem import Instance, checked_count
from thrifty.simulation import Runs, simulate
from thrifty.simulation.checkpoints import checked_checkpoints

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Setting:
    """One policy in one world: everything its pulls depend on.

    Parameters
    ----------
    world : an Instance or a World
    policy : a name with its parameters, as on the command line
    horizon, runs, seed, checkpoints : as in `simulate`; checkpoints may be "linear", "log", a number or a tuple of rounds

    >>> setting = Setting(Instance([0.5, 0.46], [1.0, 0.0], 0.1), "cs-etc", horizon=1000, runs=5, seed=1)
    >>> setting.key == Setting(setting.world, "cs-etc", horizon=1000, runs=5, seed=1).key
    True

    """

    world: Instance | World
    policy: str
    horizon: int
    runs: int
    seed: int = 0
    checkpoints: str | int | tuple[int, ...] = 1

    def __post_init__(self) -> None:
        policy(self.policy)
        checked_count("runs", self.runs)
        if isinstance(self.world, Instance):
            object.__setattr__(self, "world", World.of(self.world))

    @property
    def instance(self) -> Instance:
        """The expected rewards and costs."""
        return self.world.instance if isinstance(self.world, World) else self.world

    @property
    def rounds(self) -> int:
        """The rounds of all runs together."""
        return self.horizon * self.runs

    @property
    def moments(self) -> list[int]:
        """The rounds after which pulls are counted."""
        asked = list(self.checkpoints) if isinstance(self.checkpoints, tuple) else self.checkpoints
        moments: list[int] = checked_checkpoints(asked, self.horizon, self.instance.n_arms * self.runs).tolist()
        return moments

    @cached_property
    def key(self) -> str:
        """The digest of the setting: sixty-four hexadecimal digits."""
        assert isinstance(self.world, World)
        described = {
            "world": self.world.to_dict(),
            "policy": self.policy,
            "sources": policy(self.policy).sources,  # of a policy from a file
            "horizon": self.horizon,
            "runs": self.runs,
            "seed": self.seed,
            "checkpoints": self.checkpoints,
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()

    def play(self, progress: Progress | None = None) -> Runs:
        """Simulate it, on one thread."""
        return simulate(
            self.world,
            self.policy,
            horizon=self.horizon,
            runs=self.runs,
            seed=self.seed,
            checkpoints=self.moments,
            threads=1,
            progress=progress,
        )


class ResultFolder:
    """A folder of results, one file per setting. Each version of the sources has a folder of its own below it.

    >>> import tempfile
    >>> results = ResultFolder(tempfile.mkdtemp())
    >>> setting = Setting(Instance([0.5, 0.46], [1.0, 0.0], 0.1), "cs-etc", horizon=100, runs=2)
    >>> results.load(setting) is None
    True
    >>> results.save(setting, setting.play())
    >>> results.load(setting)["cs-etc"].pulls.shape
    (2, 1, 2)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder) / source_digest()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"cannot make the folder {self.folder}: {error.strerror}: name one that can be written") from None
        if not os.access(self.folder, os.W_OK):
            raise ValueError(f"cannot write into {self.folder}: name a folder that can be written")

    def path(self, setting: Setting) -> Path:
        """The file of a setting's result."""
        return self.folder / f"{setting.key}.npz"

    def load(self, setting: Setting) -> Runs | None:
        """The result, None if there is none yet, or a ValueError if the file is damaged or from another version."""
        path = self.path(setting)
        if not path.exists():
            return None
        try:
            runs = Runs.load(path)
        except (ValueError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OverflowError):
            raise ValueError(f"{path} is damaged: delete it, and the sweep makes it again") from None
        _check(runs, setting, path)
        return runs

    def save(self, setting: Setting, runs: Runs) -> None:
        """Write a result. The file is complete or it does not exist."""
        _check(runs, setting, "a worker's result")
        runs.save(self.path(setting))


def sweep(
    settings: Sequence[Setting],
    folder: str | os.PathLike[str],
    *,
    backend: str = "local",
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Runs]:
    """The results of all settings, in order; those already in `folder` are not simulated again.

    Parameters
    ----------
    settings : what to simulate; equal settings are simulated once
    folder : where results are kept
    backend : "local" for threads of this process, "dask" for a Dask cluster started here, "dask://host:port" for a running one
    workers : how many threads or local workers; all cores by default
    progress : called with (rounds played, rounds in all) when a setting is finished

    >>> import tempfile
    >>> settings = [Setting(Instance([0.5, mean], [1.0, 0.0], 0.1), "cs-etc", horizon=500, runs=2) for mean in (0.3, 0.6)]
    >>> [runs.final()["cs-etc"]["cost"]["mean"] for runs in sweep(settings, tempfile.mkdtemp())]
    [0.0, 40.0]

    """
    kept = ResultFolder(folder)
    workers = checked_count("workers", workers if workers is not None else os.cpu_count() or 1)
    distinct = {setting.key: setting for setting in settings}
    results = {key: found for key, setting in distinct.items() if (found := kept.load(setting)) is not None}
    pending = [setting for key, setting in distinct.items() if key not in results]
    # The longest first, so that no worker is left alone with a long one at the end.
    pending.sort(key=lambda each: -each.rounds * each.instance.n_arms)
    report = _Report(sum(setting.rounds for setting in distinct.values()), sum(setting.rounds for setting in pending), progress)
    try:
        for key, runs in _run(pending, backend, workers) if pending else ():
            kept.save(distinct[key], runs)
            results[key] = runs
            report.add(distinct[key].rounds)
    except KeyboardInterrupt:
        finished = f"{len(results)} of {len(distinct)} settings are finished and kept"
        raise KeyboardInterrupt(f"stopped; {finished}: the same command continues from there") from None
    return [results[setting.key] for setting in settings]


class _Report:
    """Calls `progress`, if there is one, with the rounds played so far."""

    def __init__(self, total: int, pending: int, progress: Progress | None) -> None:
        self._total, self._done, self._progress = total, total - pending, progress
        self.add(0)

    def add(self, rounds: int) -> None:
        self._done += rounds
        if self._progress is not None:
            self._progress(self._done, self._total)


def _check(runs: Runs, setting: Setting, source: Path | str) -> None:
    result = runs.results[0]
    if (result.version, result.digest) != (__version__, source_digest()):
        raise ValueError(
            f"{source} is from thrifty {result.version} with sources {result.digest}, and this is {__version__} with "
            f"{source_digest()}: install one version everywhere, and move such results away"
        )
    assert isinstance(setting.world, World)
    found = (runs.world, result.policy, runs.rounds, result.pulls.shape[0], result.seed)
    wanted = (
        json.loads(json.dumps(setting.world.to_dict())),
        policy(setting.policy).label,
        setting.horizon,
        setting.runs,
        setting.seed,
    )
    if found != wanted or runs.checkpoints.tolist() != setting.moments:
        raise ValueError(f"{source} holds the result of another setting: delete it, and the sweep makes it again")


def _run(pending: list[Setting], backend: str, workers: int) -> Iterator[tuple[str, Runs]]:
    if backend == "local":
        return _run_local(pending, workers)
    if backend == "dask" or backend.startswith("dask://"):
        return _run_dask(pending, backend.removeprefix("dask").removeprefix("://"), workers)
    raise ValueError(f"backend must be local, dask or dask://host:port, got {backend!r}")


def _run_local(pending: list[Setting], workers: int) -> Iterator[tuple[str, Runs]]:
    joblib = _import("joblib")
    stopping = threading.Event()

    def stop_if_asked(_done: int, _total: int) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt("stopped")

    def play(setting: Setting) -> tuple[str, Runs]:
        return setting.key, setting.play(stop_if_asked)

    # Kernels release the interpreter's lock, so threads are enough, and each kernel is compiled once.
    parallel = joblib.Parallel(n_jobs=workers, backend="threading", batch_size=1, return_as="generator_unordered")
    try:
        yield from parallel(joblib.delayed(play)(setting) for setting in pending)
    except BaseException:
        stopping.set()  # the others stop within a tenth of a second; what was finished is kept
        raise


def _run_dask(pending: list[Setting], address: str, workers: int) -> Iterator[tuple[str, Runs]]:
    joblib, distributed = _import("joblib"), _import("distributed")
    where = f"the Dask cluster at {address}" if address else "the Dask cluster started here"
    with _client(address, workers) as client, joblib.parallel_config(backend="dask", client=client, wait_for_workers_timeout=5):
        # All tasks at once: workers stay busy, and others take over the task of a worker that dies.
        parallel = joblib.Parallel(n_jobs=-1, batch_size=1, pre_dispatch="all", return_as="generator_unordered")
        try:
            yield from parallel(joblib.delayed(play_keyed)(setting) for setting in pending)
        except TimeoutError:
            raise ValueError(f"{where} has no workers: start some with `dask worker`") from None
        except (OSError, ImportError, distributed.KilledWorker, CancelledError) as error:
            raise ValueError(f"{where} failed ({type(error).__name__}); finished settings are kept, run it again") from None


def play_keyed(setting: Setting) -> tuple[str, Runs]:
    """The task of a Dask worker: play a setting, and return its key and its result."""
    return setting.key, setting.play()


@contextmanager
def _client(address: str, workers: int) -> Iterator[Any]:
    distributed = _import("distributed")
    # Distributed logs every lost connection of workers that come and go; what matters is raised.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if not address:
        options = {"threads_per_worker": 1, "processes": True, "host": "127.0.0.1", "dashboard_address": None}
        cluster = distributed.LocalCluster(n_workers=workers, **options)
        with cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(f"tcp://{address}", timeout="3s")
    except (OSError, TimeoutError, ValueError):
        raise ValueError(f"no Dask scheduler answers at {address}: start one with `dask scheduler`") from None
    with client:
        yield client


def _import(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"sweeps need {name}: pip install 'thrifty[sweep]'") from None
