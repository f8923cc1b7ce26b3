"""Theorem 4: CS-UCB on cost-consistent instances, where the theorem holds and where it does not [Sinha2021] section 5.1."""

from collections.abc import Sequence

from thrifty.environments.families import cost_consistent, minimal_delta, near_the_floor, unseen_arm
from thrifty.experiments.experiment import Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import Row, band, by_name, columns_of, final, fit_slope, half_decades, samples
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import consistent_bound, consistent_quality_bound

_CASES = ("alpha = 0, three arms", "alpha = 0, eight arms", "alpha = 0.35, unseen arm", "alpha = 0.4, near the floor")


def _instance(case: str, horizon: int) -> Instance:
    if case == _CASES[0]:
        return cost_consistent([0.3, 0.5, 0.7], 1.0, alpha=0.0)
    if case == _CASES[1]:
        return cost_consistent([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65], 1.0, alpha=0.0)
    return unseen_arm() if case == _CASES[2] else near_the_floor(horizon)


def _horizons(scale: Scale) -> list[int]:
    return half_decades(6, scale.pick(13, 15))


def settings(scale: Scale) -> list[Setting]:
    """CS-UCB on two instances at alpha = 0 and on both counterexamples."""
    runs = scale.number_of_runs(10)
    return [Setting(_instance(case, t), "cs-ucb", t, runs, scale.seed) for case in _CASES for t in _horizons(scale)]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Total regret against the claimed bound."""
    found = by_name(results, _CASES)
    figure = PanelFigure(
        [_panel(found, "alpha = 0", _CASES[:2]), _panel(found, "alpha > 0", _CASES[2:])],
        title="Theorem 4: CS-UCB where costs follow quality (delta = 1)",
        caption=f"mean of {scale.number_of_runs(10)} runs; bands are two standard errors either way",
    )
    rows = [row for case, each in found.items() for row in _rows(case, each)]
    return Finding(columns_of(rows), figure, _claims(rows, _horizons(scale)[-1]))


def _panel(found: dict[str, list[Runs]], title: str, cases: Sequence[str]) -> Panel:
    horizons = [runs.rounds for runs in found[cases[0]]]
    curves = {case: band(horizons, [samples(runs, "total") for runs in found[case]], "se") for case in cases}
    for case in cases:
        n_arms = found[case][0].instance.n_arms
        bound = [consistent_bound(t, n_arms, delta=1.0) for t in horizons]
        curves[f"claimed bound, K = {n_arms}"] = Curve.line(horizons, bound)
    return Panel(title, "horizon T (rounds)", "quality + cost regret at T", curves, "log", "log", marked=cases)


def _rows(case: str, each: list[Runs]) -> list[Row]:
    last = each[-4:]
    slope = fit_slope([runs.rounds for runs in last], [final(runs, "total")["mean"] for runs in last])
    return [
        {
            "case": case,
            "T": runs.rounds,
            "K": runs.instance.n_arms,
            "delta": minimal_delta(runs.instance),
            "quality_mean": final(runs, "quality")["mean"],
            "cost_mean": final(runs, "cost")["mean"],
            "claimed_bound": consistent_bound(runs.rounds, runs.instance.n_arms, delta=1.0),
            "quality_bound": consistent_quality_bound(runs.rounds, runs.instance.n_arms),
            "slope_of_last_four": slope.value,
        }
        for runs in each
    ]


def _claims(rows: list[Row], horizon: int) -> tuple[Claim, ...]:
    at_zero = [row for row in rows if row["case"] in _CASES[:2]]
    above = {row["case"]: row for row in rows if row["case"] in _CASES[2:] and row["T"] == horizon}
    worst = max((row["quality_mean"] + row["cost_mean"]) / row["claimed_bound"] for row in at_zero)
    quality = max(row["quality_mean"] / row["quality_bound"] for row in rows)
    return (
        Claim(
            "Theorem 4",
            "on cost-consistent instances CS-UCB's regret is O((1 + delta) sqrt(K T log T)): at alpha = 0",
            verdict(worst <= 1.0),
            f"measured over (1 + delta) sqrt(8 K T ln T), at most: {worst:.3f}",
        ),
        Claim(
            "Theorem 4",
            "the same for alpha > 0",
            verdict(all(row["cost_mean"] <= row["claimed_bound"] for row in above.values())),
            f"at T = {horizon:,}: "
            + "; ".join(
                f"{case}: cost regret {row['cost_mean']:,.0f} against the claimed {row['claimed_bound']:,.0f}, "
                f"exponent of T over the last four {row['slope_of_last_four']:.2f}"
                for case, row in above.items()
            ),
        ),
        Claim(
            "Theorem 4",
            "its quality half: quality regret is at most sqrt(8 K T ln T), for every alpha",
            verdict(quality <= 1.0),
            f"measured over the bound, at most: {quality:.3f}",
        ),
    )


EXPERIMENT = Experiment(
    "theorem4",
    "Theorem 4: where it holds, and two counterexamples",
    "CS-UCB; the hypothesis holds with delta = 1.",
    settings,
    conclude,
)
