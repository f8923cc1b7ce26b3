"""Section 5.2: what becomes of Theorems 3 and 4 where costs are random and unknown [Sinha2021] Algorithm 3."""

from thrifty.environments import World
from thrifty.environments.families import minimal_delta, near_the_floor, random_costs
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, band, by_name, columns_of, final, fit_slope, largest_regret, regret_columns, samples
from thrifty.experiments.theorem4 import falling_costs
from thrifty.experiments.verdict import Claim, Judge, UpperBound, first_testable
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import consistent_bound, paper_tau, unknown_costs_bound

_ARMS = Instance([0.5, 0.46, 0.48, 0.2], [0.9, 0.2, 0.5, 0.05], 0.1)
_ETC = "cs-etc, unknown costs"
_THEOREM_3 = ("cs-etc, known costs", _ETC, "cs-ucb, known costs", "cs-ucb, unknown costs")
_NEAR = "cs-ucb, near the floor, alpha = 0.4"
_FALLING = "cs-ucb, falling costs, alpha = 0"
_THEOREM_4 = (_NEAR, _FALLING)
_CLAIMED = "the claimed bound"
_CASES = _THEOREM_3 + _THEOREM_4


def _horizons(scale: Scale) -> list[int]:
    return [10**power for power in range(3, scale.pick(7, 8))]


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(20)


def _world(case: str, horizon: int) -> Instance | World:
    if case == _NEAR:
        return random_costs(near_the_floor(horizon))
    if case == _FALLING:
        return random_costs(falling_costs((0.3, 0.5, 0.7), 2.0))
    return random_costs(_ARMS) if "unknown" in case else _ARMS


def _policy(case: str) -> str:
    """The paper's rules know that costs are in [0, 1]."""
    name = case.partition(",")[0]
    return name if "known costs" in case and "unknown" not in case else f"{name}:cost_scale=1"


def settings(scale: Scale) -> list[Setting]:
    """Arms whose costs are known, or Bernoulli with the same means."""
    return [
        Setting(_world(case, horizon), _policy(case), horizon, _runs(scale), scale.seed)
        for case in _CASES
        for horizon in _horizons(scale)
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Total regret with and without knowledge of the costs, and against both theorems."""
    found = by_name(results, _CASES)
    figure = PanelFigure(
        [_panel_3(found), _panel_4(found)],
        title="Section 5.2: unknown costs",
        caption=f"mean of {_runs(scale)} runs, bands two standard errors either way. Left: means {_ARMS.means.tolist()}, "
        f"costs {_ARMS.costs.tolist()}, alpha = 0.1. The bound is that for "
        "unknown costs and CS-ETC. Right: unknown costs; delta = 1 near the floor, 2 for falling costs",
    )
    rows: list[Row] = [
        {"case": case, "T": runs.rounds, "claimed_bound": _bound(case, runs.rounds)} | regret_columns(runs)
        for case, each in found.items()
        for runs in each
    ]
    judge = Judge({(case, runs.rounds): samples(runs, "total") for case, each in found.items() for runs in each})
    claims = (_theorem_3(judge, found), _theorem_4(judge, found))
    return Finding(columns_of(rows), figure, claims, (_theorem_4_at_zero(judge, found),))


def _bound(case: str, horizon: int) -> float:
    """The bound for unknown costs: of Theorem 3, worked out in `unknown_costs_bound`, or of Theorem 4, which is said to hold."""
    if case in _THEOREM_3:
        return unknown_costs_bound(horizon, _ARMS.n_arms, tau=paper_tau(horizon, _ARMS.n_arms))
    instance = _instance(case, horizon)
    return consistent_bound(horizon, instance.n_arms, delta=minimal_delta(instance))


def _panel_3(found: dict[str, list[Runs]]) -> Panel:
    horizons = [runs.rounds for runs in found[_ETC]]
    curves = {case: band(horizons, [samples(runs, "total") for runs in found[case]], "se") for case in _THEOREM_3}
    curves[_CLAIMED] = Curve.line(horizons, [_bound(_ETC, t) for t in horizons])
    return Panel("Theorem 3", "horizon T (rounds)", "total regret at T", curves, "log", "log", _THEOREM_3)


def _panel_4(found: dict[str, list[Runs]]) -> Panel:
    horizons = [runs.rounds for runs in found[_NEAR]]
    curves = {
        case: band(horizons, [samples(runs, "total") / _bound(case, runs.rounds) for runs in found[case]], "se")
        for case in _THEOREM_4
    }
    curves[_CLAIMED] = Curve.line(horizons, [1.0] * len(horizons))
    return Panel("Theorem 4", "horizon T (rounds)", "total regret at T over the bound", curves, "log", "log", _THEOREM_4)


def _limits(found: dict[str, list[Runs]], cases: tuple[str, ...]) -> list[UpperBound]:
    return [
        UpperBound((case, runs.rounds), _bound(case, runs.rounds), runs.rounds * largest_regret(runs.instance))
        for case in cases
        for runs in found[case]
    ]


def _first(case: str) -> str:
    """From which T on a case can break its bound."""
    return f"T >= {first_testable(lambda t: _bound(case, t) / largest_regret(_instance(case, t)), 1.0, lowest=100):,} ({case})"


def _instance(case: str, horizon: int) -> Instance:
    world = _world(case, horizon)
    return world.instance if isinstance(world, World) else world


def _theorem_3(judge: Judge, found: dict[str, list[Runs]]) -> Claim:
    last = found[_ETC][-1].rounds
    return judge.claim_bounds(
        "section 5.2",
        "Theorem 3 holds for CS-ETC with unknown costs: 2 K tau + 6 T sqrt(2 ln T / tau) + 8/T, worked out here",
        _limits(found, (_ETC,)),
        testable_from=_first(_ETC),
        measured=f"At T = {last:,}: " + ", ".join(f"{case} {judge.shown((case, last))}" for case in _THEOREM_3),
    )


def _theorem_4(judge: Judge, found: dict[str, list[Runs]]) -> Claim:
    near = found[_NEAR]
    slope = fit_slope([runs.rounds for runs in near], [final(runs, "total")["mean"] for runs in near])
    last = near[-1].rounds
    return judge.claim_bounds(
        "section 5.2",
        "Theorem 4 holds for CS-UCB with unknown costs: (1 + delta) sqrt(8 K T ln T) + 4/T by its proof",
        _limits(found, _THEOREM_4),
        testable_from=", ".join(_first(case) for case in _THEOREM_4),
        measured=f"At T = {last:,} near the floor: regret {judge.shown((_NEAR, last))} against {_bound(_NEAR, last):,.0f}, "
        f"exponent of T {slope.value:.2f}",
    )


def _theorem_4_at_zero(judge: Judge, found: dict[str, list[Runs]]) -> Claim:
    last = found[_FALLING][-1].rounds
    return judge.claim_bounds(
        "section 5.2",
        "Theorem 4 holds for CS-UCB with unknown costs at alpha = 0, where only the arm with the highest score is feasible",
        _limits(found, (_FALLING,)),
        testable_from=_first(_FALLING),
        measured=f"At T = {last:,}: regret {judge.shown((_FALLING, last))} against {_bound(_FALLING, last):,.0f}",
    )


EXPERIMENT = Experiment("unknown-costs", "Section 5.2: unknown, random costs", "Bernoulli costs.", settings, conclude)
