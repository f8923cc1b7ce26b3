"""Section 6: from which horizon on CS-ETC rejects a cheap arm that is not good enough [Sinha2021]."""

import math

import numpy as np

from thrifty.environments.families import table_1
from thrifty.experiments.experiment import Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import Row, columns_of
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import first_rejection, paper_tau

_FACTORS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
_PUBLISHED = 5000


def _means(scale: Scale) -> tuple[float, ...]:
    return (0.30, 0.35) if scale.quick else (0.30, 0.35, 0.40)


def _horizon(mean: float, factor: float) -> int:
    return round(factor * first_rejection(mean, 0.5, alpha=0.1))


def settings(scale: Scale) -> list[Setting]:
    """CS-ETC at multiples of the noise-free horizon."""
    runs = scale.number_of_runs(40)
    return [
        Setting(table_1(mean), "cs-etc", _horizon(mean, factor), runs, scale.seed) for mean in _means(scale) for factor in _FACTORS
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The share of runs that ever leave the cheap arm."""
    rest = iter(results)
    rows: list[Row] = []
    curves = {}
    for mean in _means(scale):
        noise_free = first_rejection(mean, 0.5, alpha=0.1)
        shares = [_share(next(rest)) for _ in _FACTORS]
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
        caption=f"{scale.number_of_runs(40)} runs of Table 1's arms",
    )
    return Finding(columns_of(rows), figure, (_claim(rows),))


def _claim(rows: list[Row]) -> Claim:
    first = {mean: first_rejection(mean, 0.5, alpha=0.1) for mean in (0.30, 0.35, 0.40)}
    below = max(row["share_of_runs_that_reject"] for row in rows if row["T"] < row["noise_free_T"] / 5)
    return Claim(
        "section 6",
        "at T = 5,000 CS-ETC tells a good enough cheap arm from one that is not",
        verdict(min(first.values()) <= _PUBLISHED),
        "noise-free it first rejects the cheap arm at T = "
        + ", ".join(f"{t:,} (mu_2 = {mean:.2f})" for mean, t in first.items())
        + f"; at a tenth of that, {below:.0%} of runs reject",
    )


def _share(runs: Runs) -> float:
    tau = math.ceil(paper_tau(runs.rounds, 2))
    return float(np.mean(runs.results[0].pulls[:, -1, 0] > tau))


EXPERIMENT = Experiment(
    "rejection", "Section 6: when does CS-ETC reject?", "Table 1's arms at longer horizons.", settings, conclude
)
