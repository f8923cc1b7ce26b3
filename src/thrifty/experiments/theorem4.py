"""Theorem 4: CS-UCB on cost-consistent instances, where the theorem holds and where it does not [Sinha2021] section 5.1."""

from thrifty.environments.families import cost_consistent, minimal_delta, near_the_floor, unseen_arm
from thrifty.experiments.experiment import (
    Claim,
    Experiment,
    Finding,
    Row,
    Scale,
    band,
    columns_of,
    final,
    fit_slope,
    line,
    samples,
    verdict,
)
from thrifty.pictures import Panel, draw_panels
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
    return [round(10 ** (half / 2)) for half in range(6, scale.pick(13, 15))]


def settings(scale: Scale) -> list[Setting]:
    """CS-UCB on two instances at alpha = 0 and on both counterexamples."""
    runs = scale.number_of_runs(10)
    return [Setting(_instance(case, t), "cs-ucb", t, runs, scale.seed) for case in _CASES for t in _horizons(scale)]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Total regret against the claimed bound."""
    horizons = _horizons(scale)
    rest = iter(results)
    found = {case: [next(rest) for _ in horizons] for case in _CASES}
    rows: list[Row] = []
    panels = []
    for title, cases in (("alpha = 0", _CASES[:2]), ("alpha > 0", _CASES[2:])):
        curves = {case: band(horizons, [samples(runs, "total") for runs in found[case]], "se") for case in cases}
        for case in cases:
            n_arms = found[case][0].instance.n_arms
            curves[f"claimed bound, K = {n_arms}"] = line(horizons, [consistent_bound(t, n_arms, delta=1.0) for t in horizons])
        panels.append(Panel(title, "horizon T (rounds)", "quality + cost regret at T", curves, "log", "log", marked=cases))
    for case, each in found.items():
        slope = fit_slope(horizons[-4:], [final(runs, "total")["mean"] for runs in each[-4:]])
        rows += [
            {
                "case": case, "T": t, "K": runs.instance.n_arms, "delta": minimal_delta(runs.instance),
                "quality_mean": final(runs, "quality")["mean"], "cost_mean": final(runs, "cost")["mean"],
                "claimed_bound": consistent_bound(t, runs.instance.n_arms, delta=1.0),
                "quality_bound": consistent_quality_bound(t, runs.instance.n_arms), "slope_of_last_four": slope.value,
            }
            for t, runs in zip(horizons, each, strict=True)
        ]  # fmt: skip
    figure = draw_panels(
        panels,
        title="Theorem 4: CS-UCB where costs follow quality (delta = 1)",
        caption=f"mean of {scale.number_of_runs(10)} runs; bands are two standard errors either way",
    )
    return Finding(columns_of(rows), figure, _claims(rows, horizons[-1]))


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
