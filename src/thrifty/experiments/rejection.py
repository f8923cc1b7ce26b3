"""Section 6: from which horizon on CS-ETC rejects a cheap arm that is not good enough [Sinha2021]."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.families import table_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, columns_of
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import first_rejection, paper_tau

_FACTORS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


def _means(scale: Scale) -> tuple[float, ...]:
    return (0.30, 0.35) if scale.quick else (0.30, 0.35, 0.40)


def _horizon(mean: float, factor: float) -> int:
    return round(factor * first_rejection(mean, 0.5, alpha=0.1))


def settings(scale: Scale) -> list[Setting]:
    """CS-ETC at multiples of the noise-free horizon."""
    runs = scale.number_of_runs(100)
    return [
        Setting(table_1(mean), "cs-etc", _horizon(mean, factor), runs, scale.seed) for mean in _means(scale) for factor in _FACTORS
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The share of runs that ever leave the cheap arm."""
    rest = iter(results)
    rows: list[Row] = []
    curves = {}
    groups: dict[Any, Any] = {}
    for mean in _means(scale):
        noise_free = first_rejection(mean, 0.5, alpha=0.1)
        rejects = [_rejects(next(rest)) for _ in _FACTORS]
        groups |= {(mean, factor): each for factor, each in zip(_FACTORS, rejects, strict=True)}
        shares = [float(each.mean()) for each in rejects]
        curves[f"mu_2 = {mean:.2f} (noise-free T = {noise_free:,})"] = Curve.line(_FACTORS, shares)
        rows += [
            {"mu_2": mean, "noise_free_T": noise_free, "T": _horizon(mean, factor), "share_of_runs_that_reject": share}
            for factor, share in zip(_FACTORS, shares, strict=True)
        ]
    panel = Panel(
        "",
        "horizon, in multiples of the noise-free one",
        "share of runs that reject the cheap arm",
        curves,
        "log",
        marked=list(curves),
    )
    figure = PanelFigure(
        [panel],
        title="Section 6: when CS-ETC first rejects the cheap arm",
        caption=f"{scale.number_of_runs(100)} runs of Table 1's arms",
    )
    return Finding(columns_of(rows), figure, corrections=(_correction(Judge(groups), _means(scale)),))


def _correction(judge: Judge, cheap_means: tuple[float, ...]) -> Claim:
    def condition(means: Means) -> bool:
        return all(means[mean, 0.25] < 0.2 and means[mean, 2.0] > 0.8 for mean in cheap_means)

    first = {mean: first_rejection(mean, 0.5, alpha=0.1) for mean in (0.30, 0.35, 0.40)}
    return judge.claim(
        "section 6",
        "CS-ETC rejects a cheap arm that is not good enough from about the horizon on at which it would without noise, "
        "far beyond the paper's 5,000 rounds",
        condition,
        "without noise it first rejects the cheap arm at T = "
        + ", ".join(f"{t:,} (mu_2 = {mean:.2f})" for mean, t in first.items())
        + "; shares of runs that reject at a quarter of that, and at twice that: "
        + "; ".join(f"{judge.means[mean, 0.25]:.0%} and {judge.means[mean, 2.0]:.0%}" for mean in cheap_means),
    )


def _rejects(runs: Runs) -> NDArray[np.bool_]:
    """(runs,) whether a run ever leaves the cheap arm."""
    tau = math.ceil(paper_tau(runs.rounds, 2))
    return np.asarray(runs.results[0].pulls[:, -1, 0] > tau)


EXPERIMENT = Experiment(
    "rejection", "Section 6: when does CS-ETC reject?", "Table 1's arms at longer horizons.", settings, conclude
)
