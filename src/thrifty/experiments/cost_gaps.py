"""Section 6, a sentence commented out in the paper's source: what happens if the difference of costs varies? [Sinha2021]"""

import numpy as np

from thrifty.experiments.experiment import POLICIES, Experiment, Finding, Scale
from thrifty.experiments.fig2 import HORIZON
from thrifty.experiments.measures import Row, band, columns_of, regret_columns, samples
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_GAPS = (0.1, 0.2, 0.5, 1.0)
_MEANS = (0.30, 0.46, 0.60)

Found = dict[tuple[float, float, str], Runs]


def _points() -> list[tuple[float, float, str]]:
    return [(mean, gap, policy) for mean in _MEANS for gap in _GAPS for policy in POLICIES]


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(scale.pick(200, 1_000))


def settings(scale: Scale) -> list[Setting]:
    """Table 1's arms with the dear arm's cost from 0.1 to 1."""
    return [
        Setting(Instance([0.5, mean], [gap, 0.0], 0.1), policy, HORIZON, _runs(scale), scale.seed)
        for mean, gap, policy in _points()
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Total regret against the difference of costs, and whether the order of the policies changes."""
    found = dict(zip(_points(), results, strict=True))
    panels = [
        Panel(
            f"mu_2 = {mean:.2f}",
            "difference of costs",
            f"quality + cost regret at T = {HORIZON:,}",
            {policy: band(_GAPS, [samples(found[mean, gap, policy], "total") for gap in _GAPS], "se") for policy in POLICIES},
            "log",
            "log",
            marked=POLICIES,
        )
        for mean in _MEANS
    ]
    figure = PanelFigure(
        panels,
        title="Table 1's arms with other differences of costs",
        caption=f"mean of {_runs(scale)} runs; bands are two standard errors either way. Cost regret grows in proportion to the "
        "difference of costs; pulls and quality regret do not change",
    )
    rows: list[Row] = [
        {"mu_2": mean, "cost_gap": gap, "policy": policy} | regret_columns(runs) for (mean, gap, policy), runs in found.items()
    ]
    return Finding(columns_of(rows), figure, (_claim(found),))


def _claim(found: Found) -> Claim:
    columns = [(gap, policy) for gap in _GAPS for policy in POLICIES]  # the same streams at every gap: one group
    judge = Judge(
        {mean: np.column_stack([samples(found[mean, gap, policy], "total") for gap, policy in columns]) for mean in _MEANS}
    )

    def orders(means: Means, mean: float) -> list[list[int]]:
        """The policies from best to worst, at every difference of costs."""
        totals = np.reshape(means[mean], (len(_GAPS), len(POLICIES)))
        return [np.argsort(np.round(row, 9), kind="stable").tolist() for row in totals]

    def condition(means: Means) -> bool:
        return all(order == orders(means, mean)[0] for mean in _MEANS for order in orders(means, mean))

    same = all(
        np.array_equal(runs.results[0].pulls, found[mean, _GAPS[0], policy].results[0].pulls)
        for (mean, _gap, policy), runs in found.items()
    )
    best = {mean: POLICIES[orders(judge.means, mean)[-1][0]] for mean in _MEANS}
    return judge.claim(
        "section 6, commented out",
        "if the difference in qualities is kept, varying the difference in costs does not change which algorithm performs well",
        condition,
        f"the order of the policies by total regret, at differences of cost from {_GAPS[0]} to {_GAPS[-1]}; the best is "
        + ", ".join(f"{policy} at mu_2 = {mean:.2f}" for mean, policy in best.items())
        + f". With known costs every run pulls {'the same arms' if same else 'other arms'} at every difference",
    )


EXPERIMENT = Experiment(
    "cost-gaps", "Section 6: other differences of costs", "Table 1's arms; the dear one costs 0.1 to 1.", settings, conclude
)
