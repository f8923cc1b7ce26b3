"""Results of a simulation: pull counts at checkpoints, and where they came from. Regret is derived from them when needed."""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.files import write_whole
from thrifty.problem import Instance
from thrifty.table import Table, aligned

_FORMAT = 3
_NAMES_IN_FORMAT_2 = {"horizon": "rounds", "told_horizon": "horizon"}  # what the header called them: what it calls them now
METRICS = ("quality", "cost", "total")


@dataclass(frozen=True, eq=False)
class PolicyRuns:
    """The runs of one policy.

    `pulls` is (runs, checkpoints, K): how often every arm was pulled by each checkpoint. `trace` is (runs, T), the arms in order,
    kept only when asked for. The rest is provenance: policy, settled parameters, seed, version and digest of the sources.
    """

    policy: str
    parameters: dict[str, float]
    seed: int
    version: str
    digest: str
    pulls: NDArray[np.int64]
    trace: NDArray[np.int32] | None = None

    @property
    def provenance(self) -> dict[str, Any]:
        """Everything but the numbers, ready for JSON."""
        return {name: getattr(self, name) for name in ("policy", "parameters", "seed", "version", "digest")}


@dataclass(frozen=True, eq=False)
class Runs:
    """What `simulate` returns: the runs of every policy in one world.

    `rounds` is the number of rounds played; `horizon` is the horizon that the policies know, None if they know none. `pieces` are
    the instances by their first round: one, unless the world changes.

    >>> from thrifty import simulate
    >>> runs = simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), ["cs-etc", "oracle"], horizon=1000, runs=4)
    >>> print(runs)
    2 arms, floor 0.45 (alpha 0.1); 1,000 rounds, 4 runs; mean +- standard error
    policy  quality regret  cost regret  total regret
    cs-etc      0.0 +- 0.0  63.0 +- 0.0   63.0 +- 0.0
    oracle      0.0 +- 0.0   0.0 +- 0.0    0.0 +- 0.0
    """

    world: dict[str, Any]
    pieces: tuple[tuple[int, Instance], ...]
    rounds: int
    horizon: int | None
    feedback: dict[str, Any] | None
    checkpoints: NDArray[np.int64]
    results: tuple[PolicyRuns, ...]

    @property
    def instance(self) -> Instance:
        """The expected rewards and costs; those of the beginning in a world that changes."""
        return self.pieces[0][1]

    def __iter__(self) -> Iterator[PolicyRuns]:
        return iter(self.results)

    def __getitem__(self, policy: str) -> PolicyRuns:
        for result in self.results:
            if result.policy == policy:
                return result
        raise KeyError(f"no runs of {policy!r}: there are {', '.join(result.policy for result in self.results)}")

    def samples(self, policy: str) -> dict[str, NDArray[np.float64]]:
        """Cumulative quality, cost and total regret of every run at every checkpoint, each (runs, checkpoints).

        In a world that changes this is dynamic regret: every pull counts against the optimum of its own time.
        """
        pulls = np.diff(self[policy].pulls, axis=1, prepend=0)
        times = np.r_[0, self.checkpoints[:-1]]
        piece_of = np.searchsorted([start for start, _ in self.pieces], times, side="right") - 1
        instances = [instance for _, instance in self.pieces]
        quality = np.einsum("rck,ck->rc", pulls, np.array([each.quality_gaps for each in instances])[piece_of]).cumsum(axis=1)
        cost = np.einsum("rck,ck->rc", pulls, np.array([each.cost_gaps for each in instances])[piece_of]).cumsum(axis=1)
        return {"quality": quality, "cost": cost, "total": quality + cost}

    def regret(self) -> Table:
        """Quality, cost and total regret over time: mean, standard deviation and standard error, by policy and checkpoint."""
        columns: dict[str, list[Any]] = {"policy": [], "t": []}
        for result in self.results:
            columns["policy"] += [result.policy] * self.checkpoints.size
            columns["t"] += self.checkpoints.tolist()
            for metric, samples in self.samples(result.policy).items():
                for statistic, values in summarise(samples).items():
                    columns.setdefault(f"{metric}_{statistic}", []).extend(values.tolist())
        return Table({name: np.asarray(values) for name, values in columns.items()})

    def final(self) -> dict[str, dict[str, dict[str, float]]]:
        """Regret at the end: policy -> quality, cost, total -> mean, sd, se."""
        return {
            result.policy: {
                metric: {name: float(values[-1]) for name, values in summarise(samples).items()}
                for metric, samples in self.samples(result.policy).items()
            }
            for result in self.results
        }

    def summary(self) -> Table:
        """Quality, cost and total regret at the end, one row a policy, as texts: mean +- standard error."""
        final = self.final()
        columns = {"policy": list(final)} | {
            f"{metric} regret": [f"{each[metric]['mean']:,.1f} +- {each[metric]['se']:,.1f}" for each in final.values()]
            for metric in METRICS
        }
        return Table({name: np.array(values, dtype=str) for name, values in columns.items()})

    def __str__(self) -> str:
        table = self.summary()
        return f"{self._about()}\n{aligned([tuple(table.columns), *table.rows()])}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary().to_html(caption=self._about())

    def _about(self) -> str:
        arms = f"{self.instance.n_arms} arms, floor {self.instance.floor:g} (alpha {self.instance.alpha:g})"
        changes = "" if len(self.pieces) == 1 else f" at first, {len(self.pieces) - 1} changes"
        unknown = "" if self.horizon is not None else ", horizon unknown"
        runs = self.results[0].pulls.shape[0]
        return f"{arms}{changes}; {self.rounds:,} rounds{unknown}, {runs} runs; mean +- standard error"

    def to_pandas(self) -> Any:
        """`regret()` as a pandas DataFrame."""
        return self.regret().to_pandas()

    def to_polars(self) -> Any:
        """`regret()` as a polars DataFrame."""
        return self.regret().to_polars()

    def plot(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Draw quality and cost regret over time into `path`: PNG, SVG or PDF by its ending."""
        from thrifty.reports.regret import plot_regret

        plot_regret(self, path, title=title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything into one .npz file, whole or not at all."""
        header = {
            "format": _FORMAT,
            "world": self.world,
            "pieces": [(start, instance.to_dict()) for start, instance in self.pieces],
            "rounds": self.rounds,
            "horizon": self.horizon,
            "feedback": self.feedback,
            "results": [result.provenance for result in self.results],
        }
        arrays: dict[str, Any] = {"header": np.array(json.dumps(header)), "checkpoints": self.checkpoints}
        for number, result in enumerate(self.results):
            arrays[f"pulls_{number}"] = result.pulls
            if result.trace is not None:
                arrays[f"trace_{number}"] = result.trace
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_whole(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Runs":
        """Read what `save` wrote."""
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays["header"]))
            if header["format"] == 2:
                header = {_NAMES_IN_FORMAT_2.get(name, name): value for name, value in header.items()}
            elif header["format"] != _FORMAT:
                raise ValueError(f"{path} has format {header['format']}, and this version reads 2 and {_FORMAT}")
            results = tuple(
                PolicyRuns(**provenance, pulls=arrays[f"pulls_{number}"], trace=arrays.get(f"trace_{number}"))
                for number, provenance in enumerate(header["results"])
            )
            pieces = tuple((start, Instance(**described)) for start, described in header["pieces"])
        except (OSError, KeyError, EOFError, zipfile.BadZipFile, json.JSONDecodeError, TypeError) as error:
            raise ValueError(f"{path} is not a whole file of runs written by Runs.save: {error}") from None
        facts = (header["world"], pieces, header["rounds"], header["horizon"], header["feedback"])
        return cls(*facts, arrays["checkpoints"], results)


def summarise(samples: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Mean, standard deviation and standard error over the first axis; both deviations are 0 for a single run."""
    runs = samples.shape[0]
    sd = samples.std(axis=0, ddof=1) if runs > 1 else np.zeros(samples.shape[1:])
    return {"mean": samples.mean(axis=0), "sd": sd, "se": sd / np.sqrt(runs)}
