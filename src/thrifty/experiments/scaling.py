"""Theorems 2 and 3: how regret grows with T and with K on the hard family, between both bounds [Sinha2021] sections 3 and 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.families import HardFamily
from thrifty.experiments.experiment import POLICIES, Experiment, Finding, Scale
from thrifty.experiments.measures import Row, Slope, band, by_name, columns_of, fit_slope, half_decades, largest_regret, samples
from thrifty.experiments.verdict import Claim, Judge, Means, UpperBound, first_testable
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.simulation import Runs, summarise
from thrifty.sweep import Setting
from thrifty.theory import etc_bound, paper_lower_bound, paper_tau, sharp_lower_bound

_ALPHA = 0.1
_THEOREM_2 = "any policy has regret of at least the order (1-alpha)^2 K^(1/3) T^(2/3) on some instance of the family"
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
    """The exponent of T, and every policy against the lower bounds."""
    points = _points_of_t(scale)
    growth = _Growth("T", [t for t, _ in points], points, _mixed_by_policy(results))
    figure = _figure(scale, growth, growth.panel("horizon T (rounds)"), f"K = {points[0][1]}")
    judge = growth.judge
    return Finding(
        columns_of(growth.rows()),
        figure,
        claims=(_lower_bound_claim(judge, growth, _PAPER, _THEOREM_2), _order_claim(judge, growth)),
        corrections=(_lower_bound_claim(judge, growth, _SHARP, "the same with the constants of the sharp lower bound"),),
    )


def conclude_k(scale: Scale, results: list[Runs]) -> Finding:
    """The exponent of K, and CS-ETC against its upper bound."""
    points = _points_of_k(scale)
    growth = _Growth("K", [k for _, k in points], points, _mixed_by_policy(results))
    free = [samples(runs, "total") for runs in by_name(results, POLICIES)["cs-etc"][::3]]
    judge = Judge({("cs-etc on Phi^0", at): values for at, values in enumerate(free)})
    panel = growth.panel("number of dear arms, K", x_ticks=growth.x)
    figure = _figure(scale, growth, panel, f"T = {points[0][0]:,}")
    return Finding(columns_of(growth.rows()), figure, (_upper_bound_claim(judge, growth),))


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
    def judge(self) -> Judge:
        """Groups are named (policy, number of the point)."""
        return Judge({(policy, at): values for policy, each in self.mixed.items() for at, values in enumerate(each)})

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
                "regret_se": float(summarise(self.mixed[policy][at])["se"]),
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


def _figure(scale: Scale, growth: _Growth, panel: Panel, note: str) -> PanelFigure:
    return PanelFigure(
        [panel],
        title=f"Theorems 2 and 3: regret against {growth.name}, {note}, alpha = {_ALPHA}",
        caption=f"mean of {scale.number_of_runs(20)} runs of each of Phi^0, Phi^1 and Phi^K, weighted 1/2, 1/4, 1/4; "
        "bands are two standard errors either way; the family changes with T and K",
    )


def _lower_bound_claim(judge: Judge, growth: _Growth, name: str, text: str) -> Claim:
    bound = growth.bounds[name]
    lowest = {policy: float(np.min(means / np.asarray(bound))) for policy, means in growth.means.items()}
    return judge.claim(
        "Theorem 2",
        text,
        lambda means: all(means[policy, at] >= limit for policy in POLICIES for at, limit in enumerate(bound)),
        f"measured over the {name} with its constant, at least: "
        + ", ".join(f"{policy} {value:.2f}" for policy, value in lowest.items())
        + f"; T from {growth.x[0]:,} to {growth.x[-1]:,}. Other policies are not ruled out",
    )


def _order_claim(judge: Judge, growth: _Growth) -> Claim:
    def exponent(means: Means) -> float:
        """Of T in CS-ETC's regret over K^(1/3) T^(2/3) sqrt(log T)."""
        ratios = [means["cs-etc", at] / (t ** (2 / 3) * np.sqrt(np.log(t))) for at, t in enumerate(growth.x)]
        return fit_slope(growth.x, ratios).value

    return judge.claim(
        "section 1.3",
        "CS-ETC is near-optimal: its worst-case regret is of the order K^(1/3) T^(2/3) sqrt(log T)",
        lambda means: exponent(means) < 0.02,
        f"on the hard family its regret over that order grows with the exponent {exponent(judge.means):.3f} of T (not below 0.02 "
        "would be a failure). Fitted exponents of regret with 95% intervals: "
        + ", ".join(f"{policy} {slope}" for policy, slope in growth.slopes.items()),
    )


def _upper_bound_claim(judge: Judge, growth: _Growth) -> Claim:
    limits = [
        UpperBound(("cs-etc on Phi^0", at), bound, t * _largest_per_round(t, k))
        for at, ((t, k), bound) in enumerate(zip(growth.points, growth.bounds[_UPPER], strict=True))
    ]

    def start(n_dear: int) -> str:
        n_arms, largest = n_dear + 1, _largest_per_round(growth.points[0][0], n_dear)
        first = first_testable(lambda t: etc_bound(t, n_arms, tau=paper_tau(t, n_arms)), largest, lowest=2 * n_arms)
        return f"T >= {first:,} for K = {n_dear}"

    return judge.claim_bounds(
        "Theorem 3",
        "the regret of CS-ETC with tau = (T/K)^(2/3) is O(K^(1/3) T^(2/3) sqrt(log T)) on any instance: "
        "2 K tau + 4 T sqrt(2 ln T / tau) + 4/T by its proof",
        limits,
        testable_from=", ".join(map(start, growth.x)),
        measured="Fitted exponents of K with 95% intervals: "
        + ", ".join(f"{policy} {slope}" for policy, slope in growth.slopes.items())
        + "; the family has K + 1 arms, so that of CS-ETC comes down to 1/3 only as K / (K+1) nears 1",
    )


def _largest_per_round(horizon: int, n_dear: int) -> float:
    """The largest regret of one round on Phi^0, where dear arms cost 1 for nothing."""
    return largest_regret(HardFamily.hardest(_ALPHA, n_dear, horizon=horizon).member(0))


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
