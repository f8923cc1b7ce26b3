"""Sweeps: many settings, each simulated once, its result kept in a file named by a digest of the setting.

Finished settings are skipped on a re-run, so an interrupted sweep resumes where it was; merging two sweeps is copying files into
one folder. The same setting gives the same bits on one core, on all of them and on a Dask cluster. Needs the extra `sweep`.
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
        """How many rounds it plays in all."""
        return self.horizon * self.runs

    @property
    def moments(self) -> list[int]:
        """The rounds after which pulls are counted."""
        asked = list(self.checkpoints) if isinstance(self.checkpoints, tuple) else self.checkpoints
        moments: list[int] = checked_checkpoints(asked, self.horizon, self.instance.n_arms * self.runs).tolist()
        return moments

    @cached_property
    def key(self) -> str:
        """Sixty-four hexadecimal digits that name this setting, and nothing else does."""
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
            self.world, self.policy, horizon=self.horizon, runs=self.runs, seed=self.seed,
            checkpoints=self.moments, threads=1, progress=progress,
        )  # fmt: skip


class Store:
    """A folder of results, one file per setting. Results of other sources live in other folders below it.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> setting = Setting(Instance([0.5, 0.46], [1.0, 0.0], 0.1), "cs-etc", horizon=100, runs=2)
    >>> store.load(setting) is None
    True
    >>> store.save(setting, setting.play())
    >>> store.load(setting)["cs-etc"].pulls.shape
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
        """Where the result of a setting is kept."""
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
        """Keep a result, whole or not at all."""
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
    store = Store(folder)
    distinct = {setting.key: setting for setting in settings}
    results = {key: found for key, setting in distinct.items() if (found := store.load(setting)) is not None}
    # The longest first, so that no worker is left alone with one at the end.
    pending = sorted(
        (setting for key, setting in distinct.items() if key not in results), key=lambda each: -each.rounds * each.instance.n_arms
    )
    total = sum(setting.rounds for setting in distinct.values())
    done = total - sum(setting.rounds for setting in pending)
    workers = checked_count("workers", workers if workers is not None else os.cpu_count() or 1)
    if progress is not None:
        progress(done, total)
    try:
        for key, runs in _run(pending, backend, workers) if pending else ():
            store.save(distinct[key], runs)
            results[key] = runs
            done += distinct[key].rounds
            if progress is not None:
                progress(done, total)
    except KeyboardInterrupt:
        kept = f"{len(results)} of {len(distinct)} settings are finished and kept"
        raise KeyboardInterrupt(f"stopped; {kept}: the same command goes on from there") from None
    return [results[setting.key] for setting in settings]


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

    def play(setting: Setting) -> tuple[str, Runs]:
        return setting.key, setting.play(lambda _done, _total: _stop_if(stopping))

    # Kernels release the interpreter's lock, so threads are enough, and each kernel is compiled once.
    parallel = joblib.Parallel(n_jobs=workers, backend="threading", batch_size=1, return_as="generator_unordered")
    try:
        yield from parallel(joblib.delayed(play)(setting) for setting in pending)
    except BaseException:
        stopping.set()  # the others stop within a tenth of a second; what was finished is kept
        raise


def _stop_if(stopping: threading.Event) -> None:
    if stopping.is_set():
        raise KeyboardInterrupt("stopped")


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
    """What a Dask worker does: the setting's key and its result."""
    return setting.key, setting.play()


@contextmanager
def _client(address: str, workers: int) -> Iterator[Any]:
    distributed = _import("distributed")
    # Distributed logs every lost connection of workers that come and go; what matters is raised.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if not address:
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        )
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
