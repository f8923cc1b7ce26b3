"""The two scenarios of the introduction, in the plane of quality and money lost: SMS regions and ad audiences [Sinha2021] section
1.
"""

import numpy as np

from thrifty.environments.families import ad_audiences, sms_regions
from thrifty.experiments.experiment import (
    IMPRECISE,
    POLICIES,
    Claim,
    Experiment,
    Finding,
    Row,
    Scale,
    columns_of,
    final,
    line,
    verdict,
)
from thrifty.pictures import Panel, draw_panels
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_POLICIES = ("cs-ucb", "cs-ts", "cs-etc", "ucb1", "cheapest")


def _worlds() -> dict[str, Instance]:
    return {**{f"SMS, {name}": region for name, region in sms_regions().items()}, "ad audiences": ad_audiences()}


def _horizon(scale: Scale) -> int:
    horizon: int = scale.pick(50_000, 1_000_000)
    return horizon


def settings(scale: Scale) -> list[Setting]:
    """Five policies in all regions and over the audiences."""
    runs = scale.number_of_runs(10)
    return [Setting(world, policy, _horizon(scale), runs, scale.seed) for world in _worlds().values() for policy in _POLICIES]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Quality lost and dollars lost per thousand rounds."""
    rest = iter(results)
    rows: list[Row] = [
        {"world": world, "policy": policy}
        | {f"{metric}_per_1000": 1000 * final(runs, metric)["mean"] / runs.horizon for metric in ("quality", "cost")}
        for world in _worlds()
        for policy in _POLICIES
        for runs in [next(rest)]
    ]
    sms = [name for name in _worlds() if name.startswith("SMS")]
    panels = []
    for title, worlds in (("SMS regions (one point each)", sms), ("Ad audiences", ["ad audiences"])):
        chosen = {policy: [row for row in rows if row["policy"] == policy and row["world"] in worlds] for policy in _POLICIES}
        floor = 1e-3
        curves = {
            policy: line(
                np.maximum([row["quality_per_1000"] for row in each], floor),
                np.maximum([row["cost_per_1000"] for row in each], floor).tolist(),
            )
            for policy, each in chosen.items()
        }
        labels = ("quality regret per 1,000 rounds (deliveries or clicks)", "cost regret per 1,000 rounds (dollars)")
        panels.append(Panel(title, *labels, curves, "log", "log", marked=_POLICIES, loose=True))
    figure = draw_panels(
        panels,
        title="The cost-quality plane of the two scenarios",
        caption=f"mean of {scale.number_of_runs(10)} runs of {_horizon(scale):,} rounds; lower left is better; "
        "values below 0.001 are drawn there",
    )
    best = {}
    for world, instance in _worlds().items():
        scale_of_cost = float(instance.costs.max())
        scores = {
            str(row["policy"]): float(row["quality_per_1000"]) + float(row["cost_per_1000"]) / scale_of_cost
            for row in rows
            if row["world"] == world and row["policy"] in POLICIES
        }
        best[world] = min(scores, key=lambda policy: scores[policy])
    won = sum(best[name] == "cs-etc" for name in sms)
    claims = (
        Claim(
            "section 6",
            "use CS-ETC when mean rewards are close to one another, as is often the case in the SMS application",
            verdict(won == len(sms), IMPRECISE),
            f"lowest quality regret plus cost regret in units of the dearest arm, T = {_horizon(scale):,}: "
            + "; ".join(f"{world}: {policy}" for world, policy in best.items()),
        ),
    )
    return Finding(columns_of(rows), figure, claims)


EXPERIMENT = Experiment(
    "scenarios",
    "The two scenarios of the introduction",
    "Made-up but plausible delivery rates, click rates and prices.",
    settings,
    conclude,
)
