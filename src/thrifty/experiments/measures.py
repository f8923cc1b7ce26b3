"""What experiments measure: regrets at the end, curves with bands, fitted exponents, and tables of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.figures import Curve
from thrifty.problem import Instance
from thrifty.simulation import Runs, summarise
from thrifty.table import Table

Row = dict[str, Any]

# Two-sided 95% quantiles of Student's t for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def columns_of(rows: Sequence[Row]) -> Table:
    """A table from rows that all have the same keys.

    >>> print(columns_of([{"K": 2, "cost": 1.5}, {"K": 4, "cost": 2.5}]))
    K  cost
    2   1.5
    4   2.5
    """
    return Table({name: np.asarray([row[name] for row in rows]) for name in rows[0]})


def by_name(results: Sequence[Runs], names: Sequence[str]) -> dict[str, list[Runs]]:
    """Results in equal consecutive parts, one part for each name."""
    size = len(results) // len(names)
    return {name: list(results[number * size : (number + 1) * size]) for number, name in enumerate(names)}


def half_decades(first: int, last: int) -> list[int]:
    """Horizons 10^(n/2) for n from `first` to `last` - 1.

    >>> half_decades(6, 9)
    [1000, 3162, 10000]
    """
    return [round(10 ** (half / 2)) for half in range(first, last)]


def regret_columns(runs: Runs) -> Row:
    """Mean, sd and se of quality and cost regret at the end, by column name."""
    return {f"{metric}_{name}": value for metric in ("quality", "cost") for name, value in final(runs, metric).items()}


def regret_label(metric: str, horizon: int) -> str:
    """The label of an axis.

    >>> regret_label("cost", 5000)
    'cost regret at T = 5,000 (cost units)'
    """
    return f"{metric} regret at T = {horizon:,} ({'reward' if metric == 'quality' else 'cost'} units)"


def final(runs: Runs, metric: str) -> dict[str, float]:
    """Mean, sd and se of a regret at the end, for the one policy in `runs`."""
    return runs.final()[runs.results[0].policy][metric]


def largest_regret(instance: Instance, metric: str = "total") -> float:
    """The largest regret that one round can have.

    >>> largest_regret(Instance([0.5, 0.3], [1.0, 0.0], 0.1))
    0.15000000000000002
    """
    gaps = {"quality": instance.quality_gaps, "cost": instance.cost_gaps}
    return float(np.max(gaps["quality"] + gaps["cost"] if metric == "total" else gaps[metric]))


def samples(runs: Runs, metric: str) -> NDArray[np.float64]:
    """(runs,) a regret at the end."""
    return runs.samples(runs.results[0].policy)[metric][:, -1]


def band(x: NDArray[Any] | Sequence[float], values: NDArray[np.float64] | Sequence[NDArray[np.float64]], width: str) -> Curve:
    """The mean of `values` (points, each of runs) at every x, with a band of one "sd" or two "se" either way."""
    summaries = [summarise(np.asarray(each)) for each in values]
    mean = np.array([float(summary["mean"]) for summary in summaries])
    half = np.array([float(summary["sd"]) if width == "sd" else 2 * float(summary["se"]) for summary in summaries])
    return Curve.band(x, mean, half)


def broken_at(curve: Curve, x: float, *, left: float) -> Curve:
    """The curve with a jump at `x`, one of its points: up to there it ends in the value `left`, and goes on after a gap.

    >>> broken_at(Curve.line([1.0, 2.0, 3.0], [0.0, 5.0, 4.0]), 2.0, left=0.0).middle.tolist()
    [0.0, 0.0, nan, 5.0, 4.0]
    """
    at = int(np.flatnonzero(curve.x == x)[0])
    return Curve(
        np.insert(curve.x.astype(float), [at, at], [x, x]),
        *(np.insert(values.astype(float), [at, at], [left, np.nan]) for values in (curve.middle, curve.low, curve.high)),
    )


@dataclass(frozen=True)
class Slope:
    """An exponent fitted on logarithms by least squares, with a 95% interval from the scatter around the line."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def fit_slope(x: Sequence[float], y: Sequence[float]) -> Slope:
    """The exponent b of y = a x^b.

    >>> str(fit_slope([1, 10, 100], [2, 2000, 2000000]))
    '3.000 [3.000, 3.000]'
    """
    log_x, log_y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    free = log_x.size - 2
    if not free >= 1:
        raise ValueError(f"a slope with an interval needs at least 3 points, got {log_x.size}")
    centred = log_x - log_x.mean()
    slope = float(centred @ log_y / (centred @ centred))
    residual = log_y - log_y.mean() - slope * centred
    error = float(np.sqrt(residual @ residual / free / (centred @ centred)))
    half = _STUDENT[min(free, len(_STUDENT)) - 1] * error
    return Slope(slope, slope - half, slope + half)
