"""Paired comparisons: how much two policies differ, run by run."""

from dataclasses import dataclass

import numpy as np

from thrifty.arrays import Floats
from thrifty.simulation.summaries import mean_interval
from thrifty.table import Table


@dataclass(frozen=True)
class Difference:
    """The mean difference between two policies in one metric, with a 95% interval.

    `correlation` is that of the two over the runs: the closer to 1, the more the pairing helps. NaN if one of them does not vary.
    `lower` is the share of runs in which the first policy has the smaller regret; ties count half.
    """

    mean: float
    low: float
    high: float
    median: float
    correlation: float
    lower: float


@dataclass(frozen=True)
class Comparison:
    """Two policies compared run by run: the regret of `one` less that of `other`, by metric.

    Run n of both has the same seed. With tapes it also has the same rewards, pull by pull: the policies then differ by what they
    do, and the interval of the difference is narrower.

    >>> from thrifty import Instance, simulate
    >>> runs = simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), ["cs-etc", "oracle"], horizon=1000, runs=4, tapes=True)
    >>> print(runs.compare("cs-etc", "oracle"))
    cs-etc less oracle: 4 runs, paired by tapes; mean difference [95% interval]
    regret          difference  median  correlation  cs-etc lower in
    quality     0.0 [0.0, 0.0]     0.0            -              50%
    cost     63.0 [63.0, 63.0]    63.0            -               0%
    total    63.0 [63.0, 63.0]    63.0            -               0%
    """

    one: str
    other: str
    differences: dict[str, Difference]
    runs: int
    tapes: bool

    def __getitem__(self, metric: str) -> Difference:
        if metric not in self.differences:
            raise KeyError(f"no metric {metric!r}: there are {', '.join(self.differences)}")
        return self.differences[metric]

    def summary(self) -> Table:
        """One row a metric, as texts."""
        found = self.differences.values()
        columns = {
            "regret": list(self.differences),
            "difference": [f"{each.mean:,.1f} [{each.low:,.1f}, {each.high:,.1f}]" for each in found],
            "median": [f"{each.median:,.1f}" for each in found],
            "correlation": ["-" if np.isnan(each.correlation) else f"{each.correlation:.2f}" for each in found],
            f"{self.one} lower in": [f"{each.lower:.0%}" for each in found],
        }
        return Table({name: np.array(values, dtype=str) for name, values in columns.items()})

    def __str__(self) -> str:
        return f"{self._about()}\n{self.summary()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary().to_html(caption=self._about())

    def _about(self) -> str:
        pairing = "paired by tapes" if self.tapes else "paired by seed"
        return f"{self.one} less {self.other}: {self.runs} runs, {pairing}; mean difference [95% interval]"


def paired_difference(one: Floats, other: Floats, *, largest: float) -> Difference:
    """The difference of two regrets, each (runs,) and at most `largest`.

    >>> paired_difference(np.array([3.0, 5.0]), np.array([1.0, 3.0]), largest=10.0).mean
    2.0
    """
    gap = one - other
    low, high = mean_interval(gap, lowest=-largest, highest=largest)
    varies = min(np.ptp(one), np.ptp(other)) > 0.0
    correlation = float(np.corrcoef(one, other)[0, 1]) if varies else float("nan")
    lower = float((gap < 0.0).mean() + 0.5 * (gap == 0.0).mean())
    return Difference(float(gap.mean()), low, high, float(np.median(gap)), correlation, lower)
