"""Appendix B: the Bernoulli factory's flips and the derived algorithm pi_0 against the proof's constants [Sinha2021]."""

from typing import Any

import numpy as np

from thrifty.environments.families import HardFamily
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, columns_of
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import Derived, derive, flip_bound, flip_linear

_ALPHAS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
_DEAR = 3
_PLACE = "appendix B"


def settings(_scale: Scale) -> list[Setting]:
    """None: pi_0 is not a policy of the simulator; `derive` runs it here."""
    return []


def conclude(scale: Scale, _results: list[Runs]) -> Finding:
    """Flips per call and both regrets, for every alpha on Phi^0 and Phi^1."""
    rounds, runs = scale.pick(2_000, 20_000), scale.number_of_runs(20)
    rows: list[Row] = []
    groups: dict[Any, Any] = {}
    for alpha in _ALPHAS:
        heads, flips = flip_linear(_p(alpha), 1 / (1 - alpha), slack=0.5, count=scale.pick(40_000, 400_000), seed=scale.seed)
        groups |= {(alpha, "heads"): heads, (alpha, "flips"): flips}
        family = HardFamily(alpha, _p(alpha), _p(alpha) / 2 * (_DEAR / rounds) ** (1 / 3), _DEAR)
        for member in (0, 1):
            derived = derive("cs-etc", family, member=member, rounds=rounds, runs=runs, seed=scale.seed)
            groups |= _derived_groups(alpha, member, derived)
            rows.append({"alpha": alpha, "member": member, "factory_flips": float(flips.mean()), **_derived_columns(derived)})
    figure = PanelFigure(
        [_panel(rows)],
        title="Appendix B: what the reduction costs",
        caption=f"CS-ETC inside pi_0, {runs} runs of L = {rounds:,} calls, K = {_DEAR}, p = (1-alpha)/3",
    )
    judge = Judge(groups)
    return Finding(columns_of(rows), figure, (_factory_claim(judge), _calls_claim(judge, rows), _regret_claim(judge, rows)))


def _p(alpha: float) -> float:
    """The mean of the free arm, such that C p = 1/3 for C = 1 / (1 - alpha)."""
    return (1 - alpha) / 3


def _derived_columns(derived: Derived) -> Row:
    outer, inner = float(derived.outer_regret.mean()), float(derived.inner_regret.mean())
    return {
        "pulls_per_call": derived.pulls_per_call,
        "bound_per_call": derived.bound_per_call,
        "outer_regret": outer,
        "inner_regret": inner,
        "outer_over_bound": outer / (derived.bound_per_call * inner),
    }


def _derived_groups(alpha: float, member: int, derived: Derived) -> dict[Any, Any]:
    """Calls and pulls of dear arms, and both regrets, by run."""
    calls, pulls = derived.calls[:, 1:].sum(axis=1), derived.pulls[:, 1:].sum(axis=1)
    return {
        (alpha, "calls", member): np.column_stack([calls, pulls]),
        (alpha, "regrets", member): np.column_stack([derived.inner_regret, derived.outer_regret]),
    }


def _pulls_by_alpha(rows: list[Row]) -> list[float]:
    """The larger of both members' pulls per call, by alpha."""
    return [max(row["pulls_per_call"] for row in rows if row["alpha"] == alpha) for alpha in _ALPHAS]


def _bound(alpha: float) -> float:
    return flip_bound(1 / (1 - alpha), 0.5)


def _panel(rows: list[Row]) -> Panel:
    measured = "measured pulls per call of a dear arm, E[S_l]"
    curves = {
        measured: Curve.line(_ALPHAS, _pulls_by_alpha(rows)),
        "bound of the proof, 19 / (1 - alpha)": Curve.line(_ALPHAS, [_bound(alpha) for alpha in _ALPHAS]),
    }
    return Panel("", "alpha", "pulls per call", curves, y_scale="log", marked=[measured])


def _factory_claim(judge: Judge) -> Claim:
    def deviation(means: Means) -> float:
        return max(abs(float(means[alpha, "heads"]) - 1 / 3) for alpha in _ALPHAS)

    def ratio(means: Means) -> float:
        return max(float(means[alpha, "flips"]) / _bound(alpha) for alpha in _ALPHAS)

    return judge.claim(
        _PLACE,
        "the Bernoulli factory is unbiased and takes at most 9.5 C / delta flips on average",
        lambda means: deviation(means) < 0.02 and ratio(means) <= 1.0,
        f"the share of heads is 1/3 within {deviation(judge.means):.4f} (0.02 would be a failure); flips at most "
        f"{ratio(judge.means):.2f} of the bound",
    )


def _calls_claim(judge: Judge, rows: list[Row]) -> Claim:
    def condition(means: Means) -> bool:
        cases = [(alpha, means[alpha, "calls", member]) for alpha in _ALPHAS for member in (0, 1)]
        return all(pulls <= _bound(alpha) * calls for alpha, (calls, pulls) in cases)

    return judge.claim(
        _PLACE,
        "E[S_l] is at most 19 / (1 - alpha)",
        condition,
        "; ".join(
            f"alpha {alpha:g}: {pulls:.1f} of {_bound(alpha):.0f}"
            for alpha, pulls in zip(_ALPHAS, _pulls_by_alpha(rows), strict=True)
        ),
    )


def _regret_claim(judge: Judge, rows: list[Row]) -> Claim:
    def condition(means: Means) -> bool:
        cases = [(alpha, means[alpha, "regrets", member]) for alpha in _ALPHAS for member in (0, 1)]
        return all(outer <= _bound(alpha) * inner for alpha, (inner, outer) in cases)

    return judge.claim(
        _PLACE,
        "pi_0's modified quality plus cost regret is at most 19 / (1 - alpha) times the inner policy's regret",
        condition,
        f"measured over the bound, at most {max(row['outer_over_bound'] for row in rows):.2f}",
    )


EXPERIMENT = Experiment(
    "reduction", "Appendix B: the factory and pi_0", "Any alpha-policy on alpha = 0 instances.", settings, conclude
)
