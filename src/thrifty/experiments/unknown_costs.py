"""Section 5.2: costs that are random and unknown do not change the picture [Sinha2021] Algorithm 3."""

from thrifty.environments.families import random_costs
from thrifty.experiments.experiment import Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import band, by_name, columns_of, final, fit_slope, half_decades, regret_columns, samples
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import paper_tau, unknown_costs_bound

_ARMS = Instance([0.5, 0.46, 0.48, 0.2], [0.9, 0.2, 0.5, 0.05], 0.1)
_CASES = ("cs-etc, known costs", "cs-etc, unknown costs", "cs-ucb, known costs", "cs-ucb, unknown costs")


def _horizons(scale: Scale) -> list[int]:
    return half_decades(6, scale.pick(11, 14))


def settings(scale: Scale) -> list[Setting]:
    """Four arms whose costs are known, or Bernoulli with the same means."""
    runs = scale.number_of_runs(20)
    return [
        Setting(random_costs(_ARMS) if "unknown" in case else _ARMS, case.partition(",")[0], horizon, runs, scale.seed)
        for case in _CASES
        for horizon in _horizons(scale)
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Total regret with and without knowledge of the costs."""
    horizons = _horizons(scale)
    found = by_name(results, _CASES)
    bound = [unknown_costs_bound(t, 4, tau=paper_tau(t, 4)) for t in horizons]
    curves = {case: band(horizons, [samples(runs, "total") for runs in each], "se") for case, each in found.items()}
    panel = Panel(
        "",
        "horizon T (rounds)",
        "quality + cost regret at T",
        curves | {"bound, unknown costs": Curve.line(horizons, bound)},
        "log",
        "log",
        _CASES,
    )
    figure = PanelFigure(
        [panel],
        title="Section 5.2: unknown costs",
        caption=f"mean of {scale.number_of_runs(20)} runs, two standard errors either way; means {_ARMS.means.tolist()}, "
        f"costs {_ARMS.costs.tolist()}, alpha = 0.1",
    )
    rows = [
        {"case": case, "T": t, "bound_unknown": limit} | regret_columns(runs)
        for case, each in found.items()
        for t, limit, runs in zip(horizons, bound, each, strict=True)
    ]
    return Finding(columns_of(rows), figure, (_claim(found, horizons, bound),))


def _claim(found: dict[str, list[Runs]], horizons: list[int], bound: list[float]) -> Claim:
    totals = {case: [final(runs, "total")["mean"] for runs in each] for case, each in found.items()}
    ratio = max(value / limit for value, limit in zip(totals[_CASES[1]], bound, strict=True))
    slope = fit_slope(horizons, totals[_CASES[1]])
    return Claim(
        "section 5.2",
        "Theorem 3 holds for CS-ETC with unknown costs",
        verdict(ratio <= 1.0),
        f"measured over 2 K tau + 6 T sqrt(2 ln T / tau) + 8/T, at most {ratio:.3f}; exponent of T {slope}. "
        f"At T = {horizons[-1]:,}: " + ", ".join(f"{case} {each[-1]:,.0f}" for case, each in totals.items()),
    )


EXPERIMENT = Experiment("unknown-costs", "Section 5.2: unknown, random costs", "Four arms, Bernoulli costs.", settings, conclude)
