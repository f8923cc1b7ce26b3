"""Results of a simulation: pull counts at checkpoints, and where they came from. Regret is derived from them when needed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats
from thrifty.policies.registry import check_labels
from thrifty.problem import Instance
from thrifty.simulation.archive import not_whole, read_archive, write_archive
from thrifty.simulation.comparison import Comparison, paired_difference
from thrifty.simulation.summaries import mean_intervals, summarise
from thrifty.simulation.tables import METRICS, summary_table, with_sources
from thrifty.table import Table

_LAST = slice(-1, None)


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
    the instances by their first round: one, unless the world changes. `known` are the outcomes of each arm that were known
    beforehand, None if there were none.

    >>> from thrifty import simulate
    >>> runs = simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), ["cs-etc", "oracle"], horizon=1000, runs=4)
    >>> print(runs)
    2 arms, floor 0.45 (alpha 0.1); 1,000 rounds, 4 runs; mean [95% interval], quantiles of the total
    policy  quality regret        cost regret       total regret  median  5% to 95% of runs
    cs-etc  0.0 [0.0, 0.0]  63.0 [63.0, 63.0]  63.0 [63.0, 63.0]    63.0       63.0 to 63.0
    oracle  0.0 [0.0, 0.0]     0.0 [0.0, 0.0]     0.0 [0.0, 0.0]     0.0         0.0 to 0.0
    """

    world: dict[str, Any]
    pieces: tuple[tuple[int, Instance], ...]
    rounds: int
    horizon: int | None
    feedback: dict[str, Any] | None
    checkpoints: NDArray[np.int64]
    results: tuple[PolicyRuns, ...]
    tapes: bool = False
    known: list[dict[str, Any] | None] | None = None

    def __post_init__(self) -> None:
        check_labels([result.policy for result in self.results])

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
        pulls, gaps = np.diff(self[policy].pulls, axis=1, prepend=0), self._gaps
        quality, cost = (np.einsum("rck,ck->rc", pulls, gaps[metric]).cumsum(axis=1) for metric in ("quality", "cost"))
        return {"quality": quality, "cost": cost, "total": quality + cost}

    @cached_property
    def _gaps(self) -> dict[str, Floats]:
        """By metric (checkpoints, K): the regret of a pull between the checkpoint before and this one."""
        times = np.r_[0, self.checkpoints[:-1]]
        piece_of = np.searchsorted([start for start, _ in self.pieces], times, side="right") - 1
        instances = [instance for _, instance in self.pieces]
        quality = np.array([each.quality_gaps for each in instances])[piece_of]
        cost = np.array([each.cost_gaps for each in instances])[piece_of]
        return {"quality": quality, "cost": cost, "total": quality + cost}

    def largest(self) -> dict[str, Floats]:
        """By metric (checkpoints,): the largest regret that is possible, that of always pulling the worst arm."""
        rounds = np.diff(self.checkpoints, prepend=0)
        return {metric: np.asarray((rounds * gaps.max(axis=1)).cumsum()) for metric, gaps in self._gaps.items()}

    def summaries(self, policy: str, *, at: slice = slice(None)) -> dict[str, dict[str, Floats]]:
        """By metric and statistic, each (checkpoints,): of all checkpoints, or of those that `at` selects.

        The statistics are mean, sd, se (standard error), q05, q25, median, q75, q95, and low and high: the 95% interval of the
        mean by `thrifty.simulation.summaries.mean_interval`.
        """
        largest = self.largest()
        return {
            metric: summarise(samples[:, at]) | mean_intervals(samples[:, at], highest=largest[metric][at])
            for metric, samples in self.samples(policy).items()
        }

    def regret(self) -> Table:
        """Quality, cost and total regret over time, by policy and checkpoint: the statistics of `summaries`."""
        return self._statistics(slice(None))

    def _statistics(self, at: slice) -> Table:
        columns: dict[str, list[Any]] = {"policy": [], "t": []}
        moments = self.checkpoints[at].tolist()
        for result in self.results:
            columns["policy"] += [result.policy] * len(moments)
            columns["t"] += moments
            for metric, summary in self.summaries(result.policy, at=at).items():
                for statistic, values in summary.items():
                    columns.setdefault(f"{metric}_{statistic}", []).extend(values.tolist())
        return Table({name: np.asarray(values) for name, values in columns.items()})

    def final(self) -> dict[str, dict[str, dict[str, float]]]:
        """Regret at the end: policy -> quality, cost, total -> the statistics of `summaries`."""
        return {
            result.policy: {
                metric: {name: float(values[0]) for name, values in summary.items()}
                for metric, summary in self.summaries(result.policy, at=_LAST).items()
            }
            for result in self.results
        }

    def summary(self) -> Table:
        """Regret at the end, one row a policy, as texts: means with their 95% intervals, median and quantiles of the total."""
        return summary_table(self.final())

    def table(self, form: str = "text") -> str:
        """The summary as "text", "markdown", "latex" (with the package booktabs) or "html"; "csv" has the numbers behind it.

        The columns of "csv" are the statistics of `summaries` at the end and, in every row, where the numbers came from.

        >>> from thrifty import simulate
        >>> print(simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), "oracle", horizon=100, runs=2).table("markdown"))
        | policy | quality regret | cost regret | total regret | median | 5% to 95% of runs |
        |---|--:|--:|--:|--:|--:|
        | oracle | 0.0 [0.0, 0.0] | 0.0 [0.0, 0.0] | 0.0 [0.0, 0.0] | 0.0 | 0.0 to 0.0 |
        """
        if form == "csv":
            return self._with_sources(self._statistics(_LAST)).to_csv()
        shown = self.summary()
        writers = {"text": shown.__str__, "markdown": shown.to_markdown, "latex": shown.to_latex, "html": self._repr_html_}
        if form not in writers:
            raise ValueError(f"form must be one of {', '.join([*writers, 'csv'])}, got {form!r}")
        return writers[form]()

    def to_csv(self) -> str:
        """`regret()` as comma-separated text, with where the numbers came from in every row.

        The columns runs, seed, version, digest, parameters (settled, as JSON), horizon, feedback, tapes, known and world (its laws,
        as JSON) follow the statistics, so that rows of several files can be put together.
        """
        return self._with_sources(self.regret()).to_csv()

    def _with_sources(self, table: Table) -> Table:
        common = {name: getattr(self, name) for name in ("horizon", "feedback", "tapes", "known", "world")}
        sources = {
            result.policy: {"runs": result.pulls.shape[0], **result.provenance, **common, "policy": result.policy}
            for result in self.results
        }
        return with_sources(table, sources)

    def compare(self, one: str, other: str) -> "Comparison":
        """The difference in regret between two policies at the end, paired run by run.

        >>> from thrifty import simulate
        >>> world = Instance([0.5, 0.46], [1.0, 0.0], 0.1)
        >>> runs = simulate(world, ["cs-ucb", "cs-etc"], horizon=1000, runs=20, seed=1, tapes=True)
        >>> runs.compare("cs-ucb", "cs-etc")["cost"].low > 0
        True
        """
        first, second = (self.samples(label) for label in (one, other))
        if one == other:
            raise ValueError(f"compare takes two policies, got {one} twice")
        largest = self.largest()
        differences = {
            metric: paired_difference(first[metric][:, -1], second[metric][:, -1], largest=float(largest[metric][-1]))
            for metric in METRICS
        }
        return Comparison(one, other, differences, runs=first["total"].shape[0], tapes=self.tapes)

    def __str__(self) -> str:
        return f"{self._about()}\n{self.summary()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary().to_html(caption=self._about())

    def _about(self) -> str:
        arms = f"{self.instance.n_arms} arms, floor {self.instance.floor:g} (alpha {self.instance.alpha:g})"
        changes = "" if len(self.pieces) == 1 else f" at first, {len(self.pieces) - 1} changes"
        unknown = "" if self.horizon is not None else ", horizon unknown"
        runs, tapes = self.results[0].pulls.shape[0], " on tapes" if self.tapes else ""
        return f"{arms}{changes}; {self.rounds:,} rounds{unknown}, {runs} runs{tapes}; mean [95% interval], quantiles of the total"

    def to_pandas(self) -> Any:
        """`regret()` as a pandas DataFrame."""
        return self.regret().to_pandas()

    def to_polars(self) -> Any:
        """`regret()` as a polars DataFrame."""
        return self.regret().to_polars()

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        ax: Any = None,
        metric: str | None = None,
        band: str = "interval",
        title: str | None = None,
    ) -> Any:
        """Draw regret over time into the file `path`, or into the matplotlib axes `ax`, which are returned.

        Parameters
        ----------
        path : PNG, SVG or PDF by its ending
        ax : axes of your own, for a figure made of several
        metric : quality, cost or total; by default a file has a panel for quality and one for cost, and axes have the total
        band : "interval" for the mean with its 95% interval, "quantiles" for the median with 5% to 95% of the runs
        title : by default what is drawn

        """
        from thrifty.reports.regret import draw_regret, plot_regret

        if (path is None) == (ax is None):
            raise ValueError("plot draws into a file or into axes: give a path or ax=, and not both")
        if ax is not None:
            draw_regret(self, ax, metric=metric or "total", band=band, title=title)
            return ax
        assert path is not None
        plot_regret(self, path, metrics=(metric,) if metric else ("quality", "cost"), band=band, title=title)
        return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything into one .npz file, whole or not at all."""
        header = {
            "world": self.world,
            "pieces": [(start, instance.to_dict()) for start, instance in self.pieces],
            "rounds": self.rounds,
            "horizon": self.horizon,
            "feedback": self.feedback,
            "tapes": self.tapes,
            "known": self.known,
            "results": [result.provenance for result in self.results],
        }
        arrays: dict[str, Any] = {"checkpoints": self.checkpoints}
        for number, result in enumerate(self.results):
            arrays[f"pulls_{number}"] = result.pulls
            if result.trace is not None:
                arrays[f"trace_{number}"] = result.trace
        write_archive(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Runs":
        """Read what `save` wrote."""
        header, arrays = read_archive(path)
        try:
            results = tuple(
                PolicyRuns(**provenance, pulls=arrays[f"pulls_{number}"], trace=arrays.get(f"trace_{number}"))
                for number, provenance in enumerate(header["results"])
            )
            pieces = tuple((start, Instance(**described)) for start, described in header["pieces"])
            facts = (header["world"], pieces, header["rounds"], header["horizon"], header["feedback"])
            return cls(*facts, arrays["checkpoints"], results, tapes=header.get("tapes", False), known=header.get("known"))
        except (KeyError, TypeError) as error:
            raise not_whole(path, error) from None
