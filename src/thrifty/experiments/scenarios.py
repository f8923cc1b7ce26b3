"""The two scenarios of the introduction: quality and money lost in SMS regions and ad audiences [Sinha2021] section 1."""

from thrifty.environments.families import ad_audiences, sms_regions
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.measures import Row, columns_of, final
from thrifty.figures import Curve, Panel, PanelFigure
from thrifty.problem import Instance
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_POLICIES = ("cs-ucb", "cs-ts", "cs-etc", "ucb1", "cheapest")
_LABELS = ("quality regret per 1,000 rounds (deliveries or clicks)", "cost regret per 1,000 rounds (dollars)")
_SMALLEST = 1e-3  # on logarithmic axes


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
    """Quality lost and dollars lost per thousand rounds. The rates are ours, so they say nothing about the paper."""
    rest = iter(results)
    rows: list[Row] = [
        {"world": world, "policy": policy}
        | {
            f"{metric}_per_1000{ending}": 1000 * final(runs, metric)[name] / runs.rounds
            for metric in ("quality", "cost")
            for name, ending in (("mean", ""), ("se", "_se"))
        }
        for world in _worlds()
        for policy in _POLICIES
        for runs in [next(rest)]
    ]
    sms = [name for name in _worlds() if name.startswith("SMS")]
    figure = PanelFigure(
        [_panel(rows, "SMS regions (one point each)", sms), _panel(rows, "Ad audiences", ["ad audiences"])],
        title="The cost-quality plane of the two scenarios",
        caption=f"mean of {scale.number_of_runs(10)} runs of {_horizon(scale):,} rounds; lower left is better; "
        "values below 0.001 are drawn there; rates and prices are made up by us",
    )
    return Finding(columns_of(rows), figure)


def _panel(rows: list[Row], title: str, worlds: list[str]) -> Panel:
    """One point for each policy and world."""

    def values(policy: str, metric: str) -> list[float]:
        chosen = [row[f"{metric}_per_1000"] for row in rows if row["policy"] == policy and row["world"] in worlds]
        return [max(value, _SMALLEST) for value in chosen]

    curves = {policy: Curve.line(values(policy, "quality"), values(policy, "cost")) for policy in _POLICIES}
    return Panel(title, *_LABELS, curves, "log", "log", marked=_POLICIES, loose=True)


EXPERIMENT = Experiment(
    "scenarios",
    "The two scenarios of the introduction",
    "Delivery rates, click rates and prices are made up by us; nothing here judges the paper.",
    settings,
    conclude,
)
