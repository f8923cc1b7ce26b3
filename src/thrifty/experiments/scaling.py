"""Theorems 2 and 3: how regret grows with T and with K on the hard family, between both bounds [Sinha2021] sections 3 and 4."""

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.families import HardFamily
from thrifty.experiments.experiment import (
    POLICIES,
    Claim,
    Experiment,
    Finding,
    Scale,
    Slope,
    band,
    columns_of,
    fit_slope,
    line,
    samples,
    verdict,
)
from thrifty.pictures import Panel, draw_panels
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import direct_lower_bound, etc_bound, paper_lower_bound, paper_tau

_ALPHA = 0.1
_BOUNDS = ("CS-ETC's upper bound", "direct lower bound", "paper's lower bound")


def _points_of_t(scale: Scale) -> list[tuple[int, int]]:
    """(T, K) with K = 4 dear arms: half decades from 10^3."""
    return [(round(10 ** (half / 2)), 4) for half in range(6, scale.pick(11, 15))]


def _points_of_k(scale: Scale) -> list[tuple[int, int]]:
    """(T, K) at a fixed T, K doubling from 2."""
    return [(scale.pick(10**5, 10**6), 2**power) for power in range(1, scale.pick(5, 7))]


def _members(n_dear: int) -> tuple[int, ...]:
    """Phi^0, and the first and the last of Phi^1..Phi^K, which differ only in the order of equal arms."""
    return (0, 1, n_dear)


def _settings(points: list[tuple[int, int]], scale: Scale) -> list[Setting]:
    runs = scale.number_of_runs(20)
    return [
        Setting(HardFamily.hardest(_ALPHA, n_dear, horizon=horizon).member(member), policy, horizon, runs, scale.seed)
        for policy in POLICIES
        for horizon, n_dear in points
        for member in _members(n_dear)
    ]


def settings_of_t(scale: Scale) -> list[Setting]:
    """Every policy, T and member."""
    return _settings(_points_of_t(scale), scale)


def settings_of_k(scale: Scale) -> list[Setting]:
    """Every policy, K and member."""
    return _settings(_points_of_k(scale), scale)


def _mixed(members: list[Runs]) -> NDArray[np.float64]:
    """Regret averaged over the mixture: half of Phi^0's, half of the others'."""
    free, first, last = (samples(runs, "total") for runs in members)
    return np.asarray(0.5 * free + 0.25 * (first + last))


def conclude_t(scale: Scale, results: list[Runs]) -> Finding:
    """The exponent of T."""
    return _conclude(scale, results, _points_of_t(scale), which=0)


def conclude_k(scale: Scale, results: list[Runs]) -> Finding:
    """The exponent of K."""
    return _conclude(scale, results, _points_of_k(scale), which=1)


def _conclude(scale: Scale, results: list[Runs], points: list[tuple[int, int]], *, which: int) -> Finding:
    x = [point[which] for point in points]
    rest = iter(results)
    mixed = {policy: [_mixed([next(rest) for _ in range(3)]) for _ in points] for policy in POLICIES}
    bounds = {
        _BOUNDS[0]: [etc_bound(t, k + 1, tau=paper_tau(t, k + 1)) for t, k in points],
        _BOUNDS[1]: [direct_lower_bound(t, k, alpha=_ALPHA) for t, k in points],
        _BOUNDS[2]: [paper_lower_bound(t, k, alpha=_ALPHA) for t, k in points],
    }
    slopes = {policy: fit_slope(x, [float(values.mean()) for values in each]) for policy, each in mixed.items()}
    curves = {policy: band(x, each, "se") for policy, each in mixed.items()}
    curves |= {bound: line(x, each) for bound, each in bounds.items()}
    name, fixed = (("T", f"K = {points[0][1]}"), ("K", f"T = {points[0][0]:,}"))[which]
    label = ("horizon T (rounds)", "number of dear arms, K")[which]
    panel = Panel("", label, "mean quality + cost regret", curves, "log", "log", marked=POLICIES, x_ticks=(() if which == 0 else x))
    figure = draw_panels(
        [panel],
        title=f"Theorems 2 and 3: regret against {name}, {fixed}, alpha = {_ALPHA}",
        caption=f"mean of {scale.number_of_runs(20)} runs of each of Phi^0, Phi^1 and Phi^K, weighted 1/2, 1/4, 1/4; "
        "bands are two standard errors either way; the family changes with T and K",
    )
    rows = [
        {
            "policy": policy, "T": t, "K": k, "regret_mean": float(values.mean()), "slope": slopes[policy].value, "slope_low":
            slopes[policy].low,
            "slope_high": slopes[policy].high, "upper_bound": bounds[_BOUNDS[0]][at], "direct_lower_bound": bounds[_BOUNDS[1]][at],
            "paper_lower_bound": bounds[_BOUNDS[2]][at],
        }
        for policy, each in mixed.items()
        for at, ((t, k), values) in enumerate(zip(points, each, strict=True))
    ]  # fmt: skip
    return Finding(columns_of(rows), figure, _claims(mixed, bounds, slopes, name=name, x=x))


def _claims(
    mixed: dict[str, list[NDArray[np.float64]]],
    bounds: dict[str, list[float]],
    slopes: dict[str, Slope],
    *,
    name: str,
    x: list[int],
) -> tuple[Claim, ...]:
    wanted, shown = (2 / 3, "2/3") if name == "T" else (1 / 3, "1/3")
    means = {policy: np.array([float(values.mean()) for values in each]) for policy, each in mixed.items()}
    lowest = {policy: float(np.min(each / np.asarray(bounds[_BOUNDS[1]]))) for policy, each in means.items()}
    highest = float(np.max(means["cs-etc"] / np.asarray(bounds[_BOUNDS[0]])))
    order = means["cs-etc"] / np.asarray(x) ** wanted
    spread = float(order.max() / order.min())
    return (
        Claim(
            "Theorem 2",
            f"any policy has regret of at least the order K^(1/3) T^(2/3), here against {name}",
            verdict(min(lowest.values()) >= 1.0),
            "measured over the direct lower bound, at least: "
            + ", ".join(f"{policy} {value:.2f}" for policy, value in lowest.items()),
        ),
        Claim(
            "Theorem 3",
            f"the regret of CS-ETC is at most its bound, here against {name}",
            verdict(highest <= 1.0),
            f"measured over the explicit bound, at most: {highest:.3f}",
        ),
        Claim(
            "Theorem 3",
            f"CS-ETC's regret is of the order K^(1/3) T^(2/3), here against {name}",
            verdict(spread < 1.5),
            f"regret over {name}^({shown}) changes by a factor of {spread:.2f} over the whole range. "
            "Fitted exponents with 95% intervals: "
            + ", ".join(f"{policy} {slope}" for policy, slope in slopes.items())
            + (
                ""
                if name == "T"
                else "; the family has K + 1 arms, so the exponent of K comes down to 1/3 only as K / (K+1) nears 1"
            ),
        ),
    )


OF_T = Experiment(
    "scaling-t",
    "Theorems 2 and 3: regret against T",
    "The hardest family for every T, K = 4, alpha = 0.1.",
    settings_of_t,
    conclude_t,
)
OF_K = Experiment(
    "scaling-k", "Theorems 2 and 3: regret against K", "The hardest family for every K, alpha = 0.1.", settings_of_k, conclude_k
)
