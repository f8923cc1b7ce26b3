"""The regime map that section 6 recommends in words: which policy wins, by gap, horizon and number of arms [Sinha2021]."""

import numpy as np

from thrifty.experiments.experiment import POLICIES, Experiment, Finding, Scale
from thrifty.experiments.measures import Row, columns_of, final, samples
from thrifty.experiments.verdict import Claim, Judge, Means
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
    cells = [(n_arms, t, gap, policy) for n_arms in _ARMS for t in horizons for gap in _GAPS for policy in POLICIES]
    judge = Judge({cell: samples(runs, "total") for cell, runs in zip(cells, results, strict=True)})
    return Finding(columns_of(rows), figure, (_claim(judge, horizons),))


def _claim(judge: Judge, horizons: tuple[int, ...]) -> Claim:
    parts = {
        f"{where}: {better} beats {worse}": (better, worse, gaps)
        for where, pairs, gaps in (
            ("0.10 and more below the floor", (("cs-ucb", "cs-etc"), ("cs-ts", "cs-etc")), [-0.15, -0.10]),
            ("0.10 and more above", (("cs-ucb", "cs-etc"), ("cs-ts", "cs-etc")), [0.10, 0.15]),
            ("0.02 below", (("cs-etc", "cs-ucb"), ("cs-etc", "cs-ts")), [-0.02]),
            ("0 to 0.02 above", (("cs-etc", "cs-ucb"), ("cs-etc", "cs-ts")), [0.0, 0.02]),
        )
        for better, worse in pairs
    }

    def share(means: Means, name: str) -> float:
        """The share of cells, over K, T and gap, in which a part of the sentence is true."""
        better, worse, gaps = parts[name]
        cells = [(n_arms, t, gap) for n_arms in _ARMS for t in horizons for gap in gaps]
        return float(np.mean([means[*cell, better] < means[*cell, worse] for cell in cells]))

    return judge.claim(
        "section 6",
        "use CS-TS / CS-UCB when the mean rewards are well differentiated, and CS-ETC when they are close to one another",
        lambda means: [share(means, name) > 0.5 for name in parts],
        "shares of cells, each of which should be above one half: "
        + "; ".join(f"{name} in {share(judge.means, name):.0%}" for name in parts),
    )


EXPERIMENT = Experiment(
    "regimes", "The regime map", "One free arm at a distance from the floor, K - 1 dear ones.", settings, conclude
)
