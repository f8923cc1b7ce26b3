"""Theorem 1: Gaussian CS-TS has cost regret linear in T on a deterministic instance [Sinha2021] section 2, appendix C."""

from typing import Any

from thrifty.environments.families import theorem_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, band, columns_of, final, fit_slope, samples
from thrifty.experiments.verdict import Claim, Judge, Means, exact
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import thompson_floor

_CASES = ((0.6, 2), (0.6, 5), (0.1, 5))  # alpha, K
_PRIORS = ("gaussian", "shrunk")


def _horizons(scale: Scale) -> list[int]:
    return [10**power for power in range(3, scale.pick(6, 7))]


def settings(scale: Scale) -> list[Setting]:
    """The instance of the proof with d = 1, for several alpha, K and T; both Gaussian posteriors."""
    runs = scale.number_of_runs(20)
    return [
        Setting(theorem_1(alpha, n_arms, horizon=horizon), f"cs-ts:prior={prior}", horizon, runs, scale.seed)
        for alpha, n_arms in _CASES
        for prior in _PRIORS
        for horizon in _horizons(scale)
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Cost regret against T with the proof's lower bound, and its exponent."""
    rest = iter(results)
    rows: list[Row] = []
    panels = []
    groups: dict[Any, Any] = {}
    for alpha, n_arms in _CASES:
        found = {prior: [next(rest) for _ in _horizons(scale)] for prior in _PRIORS}
        panels.append(_panel(alpha, n_arms, found))
        for prior, each in found.items():
            rows += _rows(alpha, n_arms, prior, each)
            groups |= {(alpha, n_arms, prior, runs.rounds): samples(runs, "cost") for runs in each}
    figure = PanelFigure(
        panels,
        title="Theorem 1: cost regret of Gaussian CS-TS",
        caption=f"mean of {scale.number_of_runs(20)} runs; bands, too narrow to see, are two standard errors either way; "
        "the instance changes with T",
    )
    return Finding(columns_of(rows), figure, (_linear_regret(Judge(groups), rows, _horizons(scale)), _zero_quality_regret(rows)))


def _panel(alpha: float, n_arms: int, found: dict[str, list[Runs]]) -> Panel:
    horizons = [runs.rounds for runs in found[_PRIORS[0]]]
    measured = {
        f"cs-ts, {prior} posterior": band(horizons, [samples(runs, "cost") for runs in each], "se") for prior, each in found.items()
    }
    bound = Curve.line(horizons, [thompson_floor(n_arms, alpha) * t for t in horizons])
    curves = {**measured, "lower bound of the proof": bound}
    labels = ("horizon T (rounds)", "cost regret at T (cost units)")
    return Panel(f"alpha = {alpha:g}, K = {n_arms}", *labels, curves, "log", "log", marked=list(measured))


def _rows(alpha: float, n_arms: int, prior: str, each: list[Runs]) -> list[Row]:
    means = [final(runs, "cost")["mean"] for runs in each]
    slope = fit_slope([runs.rounds for runs in each], means).value
    return [
        {
            "alpha": alpha,
            "K": n_arms,
            "posterior": prior,
            "T": runs.rounds,
            "cost_mean": mean,
            "share_of_T": mean / runs.rounds,
            "bound": thompson_floor(n_arms, alpha) * runs.rounds,
            "slope": slope,
            "largest_quality_gap": float(runs.instance.quality_gaps.max()),
        }
        for mean, runs in zip(means, each, strict=True)
    ]


def _linear_regret(judge: Judge, rows: list[Row], horizons: list[int]) -> Claim:
    cases = [(alpha, n_arms, prior) for alpha, n_arms in _CASES for prior in _PRIORS]

    def condition(means: Means) -> bool:
        slopes = [fit_slope(horizons, [means[*case, t] for t in horizons]).value for case in cases]
        above = all(means[*case, t] > thompson_floor(case[1], case[0]) * t for case in cases for t in horizons)
        return min(slopes) > 0.9 and above

    slopes, shares = ([row[name] for row in rows] for name in ("slope", "share_of_T"))
    least = min(row["cost_mean"] / row["bound"] for row in rows)
    return judge.claim(
        "Theorem 1",
        "the regret of CS-TS with Gaussian posteriors is linear in T",
        condition,
        f"fitted exponents of T from {min(slopes):.3f} to {max(slopes):.3f}; shares of rounds on dear arms from "
        f"{min(shares):.2f} to {max(shares):.2f}, at least {least:.0f} times the bound of the proof",
    )


def _zero_quality_regret(rows: list[Row]) -> Claim:
    by_alpha = {alpha: max(row["largest_quality_gap"] for row in rows if row["alpha"] == alpha) for alpha, _ in _CASES}
    return exact(
        "appendix C",
        "as d < q alpha sqrt(T), the highest quality is q and quality regret is zero on this instance for any alpha",
        [gap == 0.0 for gap in by_alpha.values()],
        "q alpha sqrt(T) = d alpha / (1-alpha) exceeds d only for alpha > 1/2; dear arms miss the floor by "
        + ", ".join(f"{gap:.3g} at alpha = {alpha:g}" for alpha, gap in by_alpha.items())
        + ". Arm 0 stays optimal, so the linear cost regret stands",
    )


EXPERIMENT = Experiment(
    "theorem1", "Theorem 1: linear cost regret of Gaussian Thompson sampling", "Deterministic rewards, d = 1.", settings, conclude
)
