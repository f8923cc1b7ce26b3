"""Theorem 1: Gaussian CS-TS has cost regret linear in T on a deterministic instance [Sinha2021] section 2, appendix C."""

from thrifty.environments.families import theorem_1
from thrifty.experiments.experiment import (
    IMPRECISE,
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
    horizons = _horizons(scale)
    rows: list[Row] = []
    panels, slopes, above = [], [], True
    rest = iter(results)
    for alpha, n_arms in _CASES:
        curves = {}
        for prior in _PRIORS:
            each = [next(rest) for _ in horizons]
            means = [final(runs, "cost")["mean"] for runs in each]
            slope = fit_slope(horizons, means)
            slopes.append(slope.value)
            curves[f"cs-ts, {prior} posterior"] = band(horizons, [samples(runs, "cost") for runs in each], "se")
            above = above and all(mean > thompson_floor(n_arms, alpha) * t for mean, t in zip(means, horizons, strict=True))
            rows += [
                {
                    "alpha": alpha, "K": n_arms, "posterior": prior, "T": t, "cost_mean": mean, "share_of_T": mean / t,
                    "bound": thompson_floor(n_arms, alpha) * t, "slope": slope.value,
                    "largest_quality_gap": float(runs.instance.quality_gaps.max()),
                }
                for t, mean, runs in zip(horizons, means, each, strict=True)
            ]  # fmt: skip
        curves["lower bound of the proof"] = line(horizons, [thompson_floor(n_arms, alpha) * t for t in horizons])
        labels = ("horizon T (rounds)", "cost regret at T (cost units)")
        panels.append(Panel(f"alpha = {alpha:g}, K = {n_arms}", *labels, curves, "log", "log", marked=list(curves)[:2]))
    figure = draw_panels(
        panels,
        title="Theorem 1: cost regret of Gaussian CS-TS",
        caption=f"mean of {scale.number_of_runs(20)} runs; bands, too narrow to see, are two standard errors either way; "
        "the instance changes with T",
    )
    zero_at_every_alpha = all(row["largest_quality_gap"] == 0.0 for row in rows)
    claims = (
        Claim(
            "Theorem 1",
            "the regret of CS-TS with Gaussian posteriors is linear in T",
            verdict(min(slopes) > 0.9 and above),
            f"fitted exponents of T from {min(slopes):.3f} to {max(slopes):.3f}; shares of rounds on dear arms from "
            f"{min(row['share_of_T'] for row in rows):.2f} to {max(row['share_of_T'] for row in rows):.2f}, "
            f"{'always' if above else 'not always'} above the bound of the proof",
        ),
        Claim(
            "appendix C",
            "as d < q alpha sqrt(T), the highest quality is q and quality regret is zero on this instance for any alpha",
            verdict(zero_at_every_alpha, IMPRECISE),
            "q alpha sqrt(T) = d alpha / (1-alpha) exceeds d only for alpha > 1/2; at alpha = 0.1 the dear arms miss the floor by "
            f"{max(row['largest_quality_gap'] for row in rows if row['alpha'] == 0.1):.3g}. "
            "Arm 0 stays optimal, so the linear cost regret stands",
        ),
    )
    return Finding(columns_of(rows), figure, claims)


EXPERIMENT = Experiment(
    "theorem1", "Theorem 1: linear cost regret of Gaussian Thompson sampling", "Deterministic rewards, d = 1.", settings, conclude
)
