"""Beyond the paper, which names it as future work: how far is each policy from the least regret on one instance? [Sinha2021]"""

import math
from functools import cache

from thrifty.environments.families import table_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, band, columns_of, samples
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import instance_lower_bound

_POLICIES = ("cs-ids", "cs-ts", "cs-ucb", "cs-direct", "pe-cs", "cs-etc")
_LIMIT = "lower bound, constant x ln T"
_CASES = {
    "mu_2 = 0.30, below the floor": table_1(0.30),
    "mu_2 = 0.60, above the floor": table_1(0.60),
    "four arms, alpha = 0.2": Instance([0.6, 0.57, 0.54, 0.35], [1.0, 0.6, 0.3, 0.1], 0.2),
}


def _horizon(scale: Scale) -> int:
    horizon: int = scale.pick(10**5, 10**7)
    return horizon


def _checkpoints(scale: Scale) -> tuple[int, ...]:
    return tuple(round(10 ** (half / 2)) for half in range(4, scale.pick(11, 15)))


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(scale.pick(20, 10))


def settings(scale: Scale) -> list[Setting]:
    """Six policies, each of which knows the horizon, on three instances whose least regret is finite."""
    return [
        Setting(instance, policy, _horizon(scale), _runs(scale), scale.seed, checkpoints=_checkpoints(scale))
        for instance in _CASES.values()
        for policy in _POLICIES
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Regret over time beside the lower bound, and how many times the bound each policy has at the end."""
    rest = iter(results)
    found = {case: {policy: next(rest) for policy in _POLICIES} for case in _CASES}
    figure = PanelFigure(
        [_panel(case, each) for case, each in found.items()],
        title=f"Regret beside the least that is possible on the instance, T = {_horizon(scale):,}",
        caption=f"mean of {_runs(scale)} runs; bands are two standard errors either way. The bound is asymptotic, for consistent "
        "policies: a policy may be below it at a finite t",
    )
    rows: list[Row] = [
        {
            "case": case,
            "policy": policy,
            "t": int(t),
            "regret_mean": float(values.mean()),
            "regret_se": float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else 0.0,
            "lower_bound": _limit(case, int(t)),
            "regret_over_bound": float(values.mean()) / _limit(case, int(t)),
        }
        for case, each in found.items()
        for policy, runs in each.items()
        for t, values in zip(runs.checkpoints, runs.samples(policy)["total"].T, strict=True)
    ]
    judge = Judge({(case, policy): samples(runs, "total") for case, each in found.items() for policy, runs in each.items()})
    return Finding(columns_of(rows), figure, corrections=(_correction(judge, _horizon(scale)),))


def _limit(case: str, t: int) -> float:
    return _constant(case) * math.log(t)


@cache
def _constant(case: str) -> float:
    return instance_lower_bound(_CASES[case]).constant


def _panel(case: str, each: dict[str, Runs]) -> Panel:
    moments = next(iter(each.values())).checkpoints
    curves = {policy: band(moments, runs.samples(policy)["total"].T, "se") for policy, runs in each.items()}
    curves[_LIMIT] = Curve.line(moments, [_limit(case, int(t)) for t in moments])
    return Panel(case, "round t", "quality + cost regret", curves, "log", "log")


def _correction(judge: Judge, horizon: int) -> Claim:
    def over(means: Means, case: str, policy: str) -> float:
        return float(means[case, policy]) / limits[case]

    def worst(means: Means, policy: str) -> float:
        return max(over(means, case, policy) for case in _CASES)

    limits = {case: _limit(case, horizon) for case in _CASES}
    return judge.claim(
        "section 6.1",
        "CS-IDS has less than twice the least regret on each instance tried, CS-UCB and CS-ETC have not",
        lambda means: [worst(means, "cs-ids") < 2, worst(means, "cs-ucb") > 2, worst(means, "cs-etc") > 2],
        f"regret over the lower bound at T = {horizon:,}: "
        + "; ".join(
            f"{case}: " + ", ".join(f"{policy} {over(judge.means, case, policy):.1f}" for policy in _POLICIES) for case in _CASES
        ),
    )


EXPERIMENT = Experiment(
    "limits",
    "Future work: how far is each policy from the limit?",
    "Every policy beside the instance-dependent lower bound of docs/theory/instance-bound.md.",
    settings,
    conclude,
)
