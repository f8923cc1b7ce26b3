"""Section 4: does committing once, after the exploration, do worse than CS-ETC? [Sinha2021]"""

import numpy as np

from thrifty.environments.families import figure_1, table_1
from thrifty.experiments.experiment import IMPRECISE, Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.fig2 import HORIZON, MEANS
from thrifty.experiments.measures import band, columns_of, final, half_decades, samples
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
    differing = sum(_differ(a, b) for a, b in published)
    total = sum(a.results[0].pulls.shape[0] for a, _ in published)
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
    worse = [row["T"] for row in rows if row["one_shot"] > 1.1 * row["cs_etc"]]
    claims = (
        Claim(
            "section 4",
            "empirically, the non-asymptotic performance of committing once is worse than CS-ETC's",
            verdict(differing > 0, IMPRECISE),
            f"in both published experiments {differing} of {total:,} runs differ at all. At mu_2 = 0.30 it is worse "
            f"by a tenth and more for T = {', '.join(f'{t:,}' for t in worse) or 'none of those tried'}",
        ),
    )
    return Finding(columns_of(rows), figure, claims)


def _differ(a: Runs, b: Runs) -> int:
    return int(np.sum((a.results[0].pulls != b.results[0].pulls).any(axis=(1, 2))))


EXPERIMENT = Experiment(
    "one-shot", "Section 4: committing once", "CS-ETC and its one-shot variant, same streams.", settings, conclude
)
