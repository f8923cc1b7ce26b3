"""Simulate what experiments need, each setting once."""

import os
from collections.abc import Callable, Sequence

from thrifty.experiments.catalogue import EXPERIMENTS, experiment
from thrifty.experiments.experiment import Experiment, Scale
from thrifty.simulation import Runs
from thrifty.sweep import sweep


def run_experiments(
    names: Sequence[str],
    scale: Scale,
    folder: str | os.PathLike[str],
    *,
    backend: str = "local",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[Experiment, list[Runs]]]:
    """Every experiment with the results that its `conclude` takes.

    Parameters
    ----------
    names : items of the catalogue; none for all of them
    scale : how large, and with which seed
    folder : where simulated results are kept
    backend, workers, progress : as in `sweep`

    >>> import tempfile
    >>> [(fig1, results)] = run_experiments(["fig1"], Scale(quick=True, runs=2), tempfile.mkdtemp())
    >>> fig1.conclude(Scale(quick=True, runs=2), results).claims[1].verdict
    'holds'

    """
    chosen = [experiment(name) for name in names] or list(EXPERIMENTS.values())
    settings = [each.settings(scale) for each in chosen]
    every = [setting for own in settings for setting in own]
    results = iter(sweep(every, folder, backend=backend, workers=workers, progress=progress))
    return [(each, [next(results) for _ in own]) for each, own in zip(chosen, settings, strict=True)]
