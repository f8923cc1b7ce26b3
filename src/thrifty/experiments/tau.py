"""Section 4: CS-ETC with the paper's tau, and with the one that minimises the bound of Theorem 3 [Sinha2021]."""

import math

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.families import HardFamily, table_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, band, columns_of, half_decades, samples
from thrifty.experiments.verdict import Claim, Judge, Means, exact
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs, summarise
from thrifty.sweep import Setting
from thrifty.theory import etc_bound, optimal_tau, paper_tau

_ALPHA, _DEAR = 0.1, 4
_PAPER, _OPTIMAL = "tau = (T/K)^(2/3)", "tau = (2 ln T)^(1/3) (T/K)^(2/3)"
_TAUS = {_PAPER: paper_tau, _OPTIMAL: optimal_tau}
_HARD, _POOR = "the hard family, K = 4", "mu_2 = 0.30, K = 2"

Values = NDArray[np.float64]
Found = dict[tuple[str, str, int], Values]


def _horizons(scale: Scale) -> list[int]:
    return half_decades(7, scale.pick(13, 15))


def _instances(case: str, horizon: int) -> list[Instance]:
    if case == _POOR:
        return [table_1(0.30)]
    family = HardFamily.hardest(_ALPHA, _DEAR, horizon=horizon)
    return [family.member(0), family.member(1)]


def _points(scale: Scale) -> list[tuple[str, str, int]]:
    return [(case, name, t) for case in (_HARD, _POOR) for name in _TAUS for t in _horizons(scale)]


def settings(scale: Scale) -> list[Setting]:
    """Both tau on the hard family and on the instance where CS-ETC rejects the cheap arm late."""
    runs = scale.number_of_runs(20)
    return [
        Setting(instance, f"cs-etc:tau={_tau(name, t, instance.n_arms)}", t, runs, scale.seed)
        for case, name, t in _points(scale)
        for instance in _instances(case, t)
    ]


def _tau(name: str, horizon: int, n_arms: int) -> int:
    return min(math.ceil(_TAUS[name](horizon, n_arms)), horizon // n_arms)


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Total regret with either tau, and the bounds."""
    rest = iter(results)
    found: Found = {}
    for case, name, t in _points(scale):
        each = [samples(next(rest), "total") for _ in _instances(case, t)]
        found[case, name, t] = np.mean(each, axis=0)
    horizons = _horizons(scale)
    figure = PanelFigure(
        [_panel(found, case, horizons) for case in (_HARD, _POOR)],
        title="Section 4: how long CS-ETC should explore",
        caption=f"mean of {scale.number_of_runs(20)} runs (on the hard family, of each of Phi^0 and Phi^1); bands are two standard "
        "errors either way",
    )
    rows: list[Row] = [
        {
            "case": case,
            "tau_rule": name,
            "T": t,
            "tau": _tau(name, t, _n_arms(case)),
            "regret_mean": float(values.mean()),
            "regret_se": float(summarise(values)["se"]),
            "bound": _bound(case, name, t),
        }
        for (case, name, t), values in found.items()
    ]
    return Finding(columns_of(rows), figure, corrections=(_bound_is_lower(horizons), _regret_by_tau(Judge(found), horizons)))


def _n_arms(case: str) -> int:
    return _DEAR + 1 if case == _HARD else 2


def _bound(case: str, name: str, horizon: int) -> float:
    return etc_bound(horizon, _n_arms(case), tau=_TAUS[name](horizon, _n_arms(case)))


def _panel(found: Found, case: str, horizons: list[int]) -> Panel:
    measured = {f"measured, {name}": band(horizons, [found[case, name, t] for t in horizons], "se") for name in _TAUS}
    bounds = {f"bound, {name}": Curve.line(horizons, [_bound(case, name, t) for t in horizons]) for name in _TAUS}
    labels = (case, "horizon T (rounds)", "quality + cost regret at T")
    return Panel(*labels, measured | bounds, "log", "log", marked=list(measured))


def _bound_is_lower(horizons: list[int]) -> Claim:
    ratios = {t: _bound(_HARD, _OPTIMAL, t) / _bound(_HARD, _PAPER, t) for t in horizons}
    return exact(
        "Theorem 3",
        f"{_OPTIMAL} has a lower bound on regret than the paper's tau",
        all(ratio < 1.0 for ratio in ratios.values()),
        "one bound over the other: " + ", ".join(f"{ratio:.2f} at T = {t:,}" for t, ratio in ratios.items()),
    )


def _regret_by_tau(judge: Judge, horizons: list[int]) -> Claim:
    def ratio(case: str, t: int) -> float:
        return float(judge.means[case, _OPTIMAL, t] / judge.means[case, _PAPER, t])

    def is_better(means: Means, case: str, t: int) -> bool:
        return bool(means[case, _OPTIMAL, t] < means[case, _PAPER, t])

    return judge.claim(
        "Theorem 3",
        "yet on the hard family the paper's tau has lower regret, and where a poor cheap arm must be rejected neither is always "
        "better",
        lambda means: [
            not any(is_better(means, _HARD, t) for t in horizons),
            any(is_better(means, _POOR, t) for t in horizons) and not all(is_better(means, _POOR, t) for t in horizons),
        ],
        "; ".join(
            f"regret with the longer tau over regret with the paper's, {case}: "
            + ", ".join(f"{ratio(case, t):.2f} at T = {t:,}" for t in horizons)
            for case in (_HARD, _POOR)
        ),
    )


EXPERIMENT = Experiment(
    "tau", "Section 4: how long should CS-ETC explore?", "The paper's tau, and the one with the lowest bound.", settings, conclude
)
