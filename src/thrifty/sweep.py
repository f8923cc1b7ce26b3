"""Sweeps: many settings, each simulated once. A result is kept in a file that is named by a digest of the setting.

Finished settings are skipped on a re-run, so an interrupted sweep resumes where it stopped. To merge two sweeps, copy the files
into one folder. The same setting gives the same bits on one core, on many cores and on a Dask cluster. Needs the extra `sweep`.
"""

import os
import threading
import zipfile
import zlib
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from pathlib import Path

from thrifty import __version__
from thrifty.cluster import cluster_address, connect, describe_cluster, require_extra
from thrifty.compiled import source_digest
from thrifty.problem import checked_count
from thrifty.simulation import Runs
from thrifty.simulation.setting import Progress, Setting

__all__ = ["Progress", "ResultFolder", "Setting", "sweep"]


class ResultFolder:
    """A folder of results, one file per setting. Each version of the sources has a folder of its own below it.

    >>> import tempfile
    >>> from thrifty import Instance
    >>> results = ResultFolder(tempfile.mkdtemp())
    >>> setting = Setting(Instance([0.5, 0.46], [1.0, 0.0], 0.1), "cs-etc", horizon=100, runs=2)
    >>> results.load(setting) is None
    True
    >>> results.save(setting, setting.play())
    >>> results.load(setting)["cs-etc"].pulls.shape
    (2, 1, 2)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise ValueError(f"folder must be the path of a folder, got {folder!r:.80}")
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
    >>> from thrifty import Instance
    >>> settings = [Setting(Instance([0.5, mean], [1.0, 0.0], 0.1), "cs-etc", horizon=500, runs=2) for mean in (0.3, 0.6)]
    >>> [runs.final()["cs-etc"]["cost"]["mean"] for runs in sweep(settings, tempfile.mkdtemp())]
    [0.0, 40.0]

    """
    if not isinstance(settings, (list, tuple)) or not all(isinstance(each, Setting) for each in settings):
        raise ValueError(f"a sweep takes a list of Setting, got {settings!r:.80}")
    kept = ResultFolder(folder)
    workers = checked_count("workers", workers if workers is not None else os.cpu_count() or 1)
    distinct = {setting.key: setting for setting in settings}
    results = {key: found for key, setting in distinct.items() if (found := kept.load(setting)) is not None}
    pending = [setting for key, setting in distinct.items() if key not in results]
    # The longest first, so that no worker is left alone with a long one at the end.
    pending.sort(key=lambda each: -each.all_rounds * each.instance.n_arms)
    report = _Report(
        sum(setting.all_rounds for setting in distinct.values()), sum(setting.all_rounds for setting in pending), progress
    )
    try:
        for key, runs in _run(pending, backend, workers) if pending else ():
            kept.save(distinct[key], runs)
            results[key] = runs
            report.add(distinct[key].all_rounds)
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
    if not setting.fits(runs):
        raise ValueError(f"{source} holds the result of another setting: delete it, and the sweep makes it again")


def _run(pending: list[Setting], backend: str, workers: int) -> Iterator[tuple[str, Runs]]:
    address = cluster_address(backend)
    return _run_local(pending, workers) if address is None else _run_dask(pending, address, workers)


def _run_local(pending: list[Setting], workers: int) -> Iterator[tuple[str, Runs]]:
    joblib = require_extra("joblib")
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
    joblib, distributed = require_extra("joblib"), require_extra("distributed")
    where = describe_cluster(address)
    with connect(address, workers) as client, joblib.parallel_config(backend="dask", client=client, wait_for_workers_timeout=5):
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
