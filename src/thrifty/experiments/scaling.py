"""Theorems 2 and 3: how regret grows with T and with K on the hard family, between both bounds [Sinha2021] sections 3 and 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.families import HardFamily
from thrifty.experiments.experiment import POLICIES, Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import Row, Slope, band, by_name, columns_of, fit_slope, half_decades, samples
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import etc_bound, paper_lower_bound, paper_tau, sharp_lower_bound

_ALPHA = 0.1
_UPPER, _SHARP, _PAPER = "CS-ETC's upper bound", "sharp lower bound", "paper's lower bound"

Samples = NDArray[np.float64]


def _points_of_t(scale: Scale) -> list[tuple[int, int]]:
    """(T, K) with K = 4 dear arms: half decades from 10^3."""
    return [(horizon, 4) for horizon in half_decades(6, scale.pick(11, 15))]


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


def _mixed(members: list[Runs]) -> Samples:
    """Regret averaged over the mixture: half of Phi^0's, half of the others'."""
    free, first, last = (samples(runs, "total") for runs in members)
    return np.asarray(0.5 * free + 0.25 * (first + last))


def conclude_t(scale: Scale, results: list[Runs]) -> Finding:
    """The exponent of T."""
    points = _points_of_t(scale)
    growth = _Growth("T", [t for t, _ in points], points, _mixed_by_policy(results))
    panel = growth.panel("horizon T (rounds)")
    note = f"K = {points[0][1]}"
    return _finding(scale, growth, panel, note, exponent=(2 / 3, "2/3"), remark="")


def conclude_k(scale: Scale, results: list[Runs]) -> Finding:
    """The exponent of K."""
    points = _points_of_k(scale)
    growth = _Growth("K", [k for _, k in points], points, _mixed_by_policy(results))
    panel = growth.panel("number of dear arms, K", x_ticks=growth.x)
    note = f"T = {points[0][0]:,}"
    remark = "; the family has K + 1 arms, so the exponent of K comes down to 1/3 only as K / (K+1) nears 1"
    return _finding(scale, growth, panel, note, exponent=(1 / 3, "1/3"), remark=remark)


def _mixed_by_policy(results: list[Runs]) -> dict[str, list[Samples]]:
    return {
        policy: [_mixed(each[first : first + 3]) for first in range(0, len(each), 3)]
        for policy, each in by_name(results, POLICIES).items()
    }


@dataclass(frozen=True, eq=False)
class _Growth:
    """How regret grows along one variable: the points (T, K), and at each the mixed regret of every policy, (runs,)."""

    name: str
    x: list[int]
    points: list[tuple[int, int]]
    mixed: dict[str, list[Samples]]

    @cached_property
    def means(self) -> dict[str, Samples]:
        return {policy: np.array([float(values.mean()) for values in each]) for policy, each in self.mixed.items()}

    @cached_property
    def slopes(self) -> dict[str, Slope]:
        return {policy: fit_slope(self.x, means.tolist()) for policy, means in self.means.items()}

    @cached_property
    def bounds(self) -> dict[str, list[float]]:
        return {
            _UPPER: [etc_bound(t, k + 1, tau=paper_tau(t, k + 1)) for t, k in self.points],
            _SHARP: [sharp_lower_bound(t, k, alpha=_ALPHA) for t, k in self.points],
            _PAPER: [paper_lower_bound(t, k, alpha=_ALPHA) for t, k in self.points],
        }

    def panel(self, label: str, x_ticks: Sequence[int] = ()) -> Panel:
        measured = {policy: band(self.x, each, "se") for policy, each in self.mixed.items()}
        curves = measured | {name: Curve.line(self.x, each) for name, each in self.bounds.items()}
        return Panel("", label, "mean quality + cost regret", curves, "log", "log", marked=POLICIES, x_ticks=x_ticks)

    def rows(self) -> list[Row]:
        return [
            {
                "policy": policy,
                "T": t,
                "K": k,
                "regret_mean": float(self.means[policy][at]),
                "slope": slope.value,
                "slope_low": slope.low,
                "slope_high": slope.high,
                "upper_bound": self.bounds[_UPPER][at],
                "sharp_lower_bound": self.bounds[_SHARP][at],
                "paper_lower_bound": self.bounds[_PAPER][at],
            }
            for policy, slope in self.slopes.items()
            for at, (t, k) in enumerate(self.points)
        ]


def _finding(scale: Scale, growth: _Growth, panel: Panel, note: str, *, exponent: tuple[float, str], remark: str) -> Finding:
    figure = PanelFigure(
        [panel],
        title=f"Theorems 2 and 3: regret against {growth.name}, {note}, alpha = {_ALPHA}",
        caption=f"mean of {scale.number_of_runs(20)} runs of each of Phi^0, Phi^1 and Phi^K, weighted 1/2, 1/4, 1/4; "
        "bands are two standard errors either way; the family changes with T and K",
    )
    claims = (_lower_bound_claim(growth), _upper_bound_claim(growth), _order_claim(growth, exponent, remark))
    return Finding(columns_of(growth.rows()), figure, claims)


def _lower_bound_claim(growth: _Growth) -> Claim:
    bound = np.asarray(growth.bounds[_SHARP])
    lowest = {policy: float(np.min(means / bound)) for policy, means in growth.means.items()}
    return Claim(
        "Theorem 2",
        f"any policy has regret of at least the order K^(1/3) T^(2/3), here against {growth.name}",
        verdict(min(lowest.values()) >= 1.0),
        "measured over the sharp lower bound, at least: " + ", ".join(f"{policy} {value:.2f}" for policy, value in lowest.items()),
    )


def _upper_bound_claim(growth: _Growth) -> Claim:
    highest = float(np.max(growth.means["cs-etc"] / np.asarray(growth.bounds[_UPPER])))
    return Claim(
        "Theorem 3",
        f"the regret of CS-ETC is at most its bound, here against {growth.name}",
        verdict(highest <= 1.0),
        f"measured over the explicit bound, at most: {highest:.3f}",
    )


def _order_claim(growth: _Growth, exponent: tuple[float, str], remark: str) -> Claim:
    value, shown = exponent
    order = growth.means["cs-etc"] / np.asarray(growth.x) ** value
    spread = float(order.max() / order.min())
    return Claim(
        "Theorem 3",
        f"CS-ETC's regret is of the order K^(1/3) T^(2/3), here against {growth.name}",
        verdict(spread < 1.5),
        f"regret over {growth.name}^({shown}) changes by a factor of {spread:.2f} over the whole range. "
        "Fitted exponents with 95% intervals: "
        + ", ".join(f"{policy} {slope}" for policy, slope in growth.slopes.items())
        + remark,
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
