"""Section 2: "similar performance for the UCB variant": is the cost regret of CS-UCB linear in T, too? [Sinha2021]"""

from typing import Any

from thrifty.environments import World
from thrifty.environments.families import figure_1, theorem_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, band, columns_of, final, fit_slope, samples
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_POLICIES = ("cs-ucb", "cs-ts", "cs-ts:prior=gaussian")
_FIGURE_1, _THEOREM_1 = "Figure 1's arms", "Theorem 1's arms, alpha = 0.6, K = 2"
_CASES = (_FIGURE_1, _THEOREM_1)


def _horizons(scale: Scale) -> list[int]:
    return [10**power for power in range(3, scale.pick(6, 7))]


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(50)


def _world(case: str, horizon: int) -> Instance | World:
    return figure_1(horizon) if case == _FIGURE_1 else theorem_1(0.6, 2, horizon=horizon)


def settings(scale: Scale) -> list[Setting]:
    """Both instances, whose gap is of the order 1 / sqrt(T), for growing T."""
    return [
        Setting(_world(case, t), policy, t, _runs(scale), scale.seed)
        for case in _CASES
        for policy in _POLICIES
        for t in _horizons(scale)
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The share of rounds on the dear arm, and the exponent of T."""
    horizons = _horizons(scale)
    names = [(case, policy, t) for case in _CASES for policy in _POLICIES for t in horizons]
    found = dict(zip(names, results, strict=True))
    panels = [
        Panel(
            case,
            "horizon T (rounds)",
            "cost regret at T over T",
            {policy: band(horizons, [_share(found[case, policy, t]) for t in horizons], "se") for policy in _POLICIES},
            "log",
            marked=_POLICIES,
        )
        for case in _CASES
    ]
    figure = PanelFigure(
        panels,
        title="Section 2: linear cost regret of CS-UCB and CS-TS",
        caption=f"mean of {_runs(scale)} runs; bands are two standard errors either way; the instance changes with T, and a level "
        "line is linear regret",
    )
    rows: list[Row] = [
        {"case": case, "policy": policy, "T": t, "cost_mean": final(runs, "cost")["mean"], "cost_se": final(runs, "cost")["se"]}
        for (case, policy, t), runs in found.items()
    ]
    return Finding(
        columns_of(rows), figure, (_claim(Judge({name: samples(runs, "cost") for name, runs in found.items()}), horizons),)
    )


def _share(runs: Runs) -> Any:
    return samples(runs, "cost") / runs.rounds


def _claim(judge: Judge, horizons: list[int]) -> Claim:
    def exponent(means: Means, case: str, policy: str) -> float:
        return fit_slope(horizons, [means[case, policy, t] for t in horizons]).value

    shown = [
        f"{case}: " + ", ".join(f"{policy} {exponent(judge.means, case, policy):.2f}" for policy in _POLICIES) for case in _CASES
    ]
    return judge.claim(
        "section 2",
        "on some instances the TS variant incurs a linear cost regret, and similar performance is observed for the UCB variant",
        lambda means: any(exponent(means, case, "cs-ucb") > 0.9 for case in _CASES),
        f"exponents of T from {horizons[0]:,} to {horizons[-1]:,}: " + "; ".join(shown) + ". Above 0.9 counts as linear",
    )


EXPERIMENT = Experiment(
    "ucb", "Section 2: is CS-UCB's cost regret linear, too?", "A gap of the order 1 / sqrt(T), for growing T.", settings, conclude
)
