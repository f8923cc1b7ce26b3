"""Section 4: does committing once, after the exploration, do worse than CS-ETC? [Sinha2021]"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.families import figure_1, table_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.fig2 import HORIZON, MEANS
from thrifty.experiments.measures import band, columns_of, final, half_decades, samples
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_PAIR = ("cs-etc", "one-shot-etc")


def _horizons(scale: Scale) -> list[int]:
    return half_decades(7, scale.pick(12, 14))


def settings(scale: Scale) -> list[Setting]:
    """Both published experiments, and mu_2 = 0.3 at longer horizons."""
    runs, published = scale.number_of_runs(20), scale.number_of_runs(50)
    return [
        *(Setting(figure_1(), policy, 10_000, published, scale.seed, checkpoints=100) for policy in _PAIR),
        *(Setting(table_1(mean), policy, HORIZON, published, scale.seed) for mean in MEANS for policy in _PAIR),
        *(Setting(table_1(0.3), policy, t, runs, scale.seed) for t in _horizons(scale) for policy in _PAIR),
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """How many runs differ where the paper looked, and by how much beyond."""
    horizons = _horizons(scale)
    pairs = list(zip(results[::2], results[1::2], strict=True))
    published, beyond = pairs[: 1 + len(MEANS)], pairs[1 + len(MEANS) :]
    curves = {
        policy: band(horizons, [samples(pair[number], "quality") for pair in beyond], "se") for number, policy in enumerate(_PAIR)
    }
    figure = PanelFigure(
        [Panel("", "horizon T (rounds)", "quality regret at T (reward units)", curves, "log", "log", marked=_PAIR)],
        title="Section 4: committing once against CS-ETC, mu_2 = 0.30",
        caption=f"mean of {scale.number_of_runs(20)} runs; bands are two standard errors either way",
    )
    rows = [
        {"T": t, "cs_etc": final(a, "quality")["mean"], "one_shot": final(b, "quality")["mean"], "runs_that_differ": _differ(a, b)}
        for t, (a, b) in zip(horizons, beyond, strict=True)
    ]
    return Finding(columns_of(rows), figure, (_claim(published, beyond, horizons),))


Pair = tuple[Runs, Runs]


def _totals(pair: Pair) -> NDArray[np.float64]:
    """(runs, 2) the total regret of CS-ETC and of committing once, on the same streams."""
    return np.column_stack([samples(runs, "total") for runs in pair])


def _is_worse(both: Sequence[float]) -> bool:
    """True if committing once loses a tenth more and over."""
    return both[1] > 1.1 * both[0]


def _claim(published: list[Pair], beyond: list[Pair], horizons: list[int]) -> Claim:
    judge = Judge(
        {("published", number): _totals(pair) for number, pair in enumerate(published)}
        | {("beyond", t): _totals(pair) for t, pair in zip(horizons, beyond, strict=True)}
    )

    def condition(means: Means) -> list[bool]:
        return [
            any(_is_worse(means["published", number]) for number in range(len(published))),
            any(_is_worse(means["beyond", t]) for t in horizons),
        ]

    differing = sum(_differ(a, b) for a, b in published)
    total = sum(a.results[0].pulls.shape[0] for a, _ in published)
    settings_worse = sum(_is_worse(judge.means["published", number]) for number in range(len(published)))
    worse = [f"{t:,}" for t in horizons if _is_worse(judge.means["beyond", t])]
    return judge.claim(
        "section 4",
        "empirically, the non-asymptotic performance of committing once is worse than CS-ETC's",
        condition,
        f"in both published experiments it is worse at {settings_worse} of {len(published)} settings ({differing} of {total:,} "
        f"runs differ at all); at mu_2 = 0.30 it is worse for T = {', '.join(worse) or 'none of those tried'}. "
        "Worse means a tenth more total regret",
    )


def _differ(a: Runs, b: Runs) -> int:
    return int(np.sum((a.results[0].pulls != b.results[0].pulls).any(axis=(1, 2))))


EXPERIMENT = Experiment(
    "one-shot", "Section 4: committing once", "CS-ETC and its one-shot variant, same streams.", settings, conclude
)
