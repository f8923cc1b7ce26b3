"""The regime map that section 6 recommends in words: which policy wins, by gap, horizon and number of arms [Sinha2021]."""

import numpy as np

from thrifty.experiments.experiment import IMPRECISE, POLICIES, Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import Row, columns_of, final
from thrifty.figures import Map, MapFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_GAPS = (-0.15, -0.10, -0.05, -0.02, 0.0, 0.02, 0.05, 0.10, 0.15)
_ARMS = (2, 8)


def _horizons(scale: Scale) -> tuple[int, ...]:
    return (10**3, 10**4, 10**5) if scale.quick else (10**3, 10**4, 10**5, 10**6)


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(scale.pick(10, 20))


def _instance(gap: float, n_arms: int) -> Instance:
    """A free arm `gap` above the floor of arms of mean 1/2 that cost 1; alpha = 0.1."""
    return Instance([0.45 + gap, *[0.5] * (n_arms - 1)], [0.0, *[1.0] * (n_arms - 1)], 0.1)


def settings(scale: Scale) -> list[Setting]:
    """The whole grid."""
    return [
        Setting(_instance(gap, n_arms), policy, horizon, _runs(scale), scale.seed)
        for n_arms in _ARMS
        for horizon in _horizons(scale)
        for gap in _GAPS
        for policy in POLICIES
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The winner of every cell by total regret."""
    horizons = _horizons(scale)
    totals = np.array([final(runs, "total")["mean"] for runs in results]).reshape(len(_ARMS), len(horizons), len(_GAPS), -1)
    winners = totals.argmin(axis=-1)
    ordered = np.sort(totals, axis=-1)
    lead = (ordered[..., 1] + 1.0) / (ordered[..., 0] + 1.0)
    maps = [
        Map(
            f"K = {n_arms}",
            "free arm's mean above the floor (reward units)",
            "horizon T (rounds)",
            x_ticks=[f"{gap:+.2f}" for gap in _GAPS],
            y_ticks=[f"{t:,}" for t in horizons],
            kinds=winners[at],
            texts=[[f"{value:.1f}x" for value in row] for row in lead[at]],
        )
        for at, n_arms in enumerate(_ARMS)
    ]
    figure = MapFigure(
        maps,
        [f"{policy} wins" for policy in POLICIES],
        title="Which policy has the lowest quality + cost regret",
        caption=f"mean of {_runs(scale)} runs; numbers are the runner-up's regret over the winner's, both plus 1",
    )
    rows: list[Row] = [
        {"K": n_arms, "T": t, "gap": gap, "winner": POLICIES[winners[at, row, column]]}
        | {policy: float(totals[at, row, column, number]) for number, policy in enumerate(POLICIES)}
        for at, n_arms in enumerate(_ARMS)
        for row, t in enumerate(horizons)
        for column, gap in enumerate(_GAPS)
    ]
    return Finding(columns_of(rows), figure, (_claim(rows),))


def _claim(rows: list[Row]) -> Claim:
    near = [row["winner"] for row in rows if abs(row["gap"]) <= 0.02]
    far = [row["winner"] for row in rows if abs(row["gap"]) >= 0.10]
    near_etc, far_naive = near.count("cs-etc") / len(near), 1 - far.count("cs-etc") / len(far)
    return Claim(
        "section 6",
        "CS-TS / CS-UCB are the better choice where means are well differentiated, CS-ETC where they are close to one another",
        verdict(near_etc == 1.0 and far_naive == 1.0, IMPRECISE),
        f"CS-ETC wins {near_etc:.0%} of the cells within 0.02 of the floor; CS-TS or CS-UCB win {far_naive:.0%} of those "
        f"0.10 and more away (CS-UCB {far.count('cs-ucb')}, CS-TS {far.count('cs-ts')}, "
        f"CS-ETC {far.count('cs-etc')} of {len(far)})",
    )


EXPERIMENT = Experiment(
    "regimes", "The regime map", "One free arm at a distance from the floor, K - 1 dear ones.", settings, conclude
)
