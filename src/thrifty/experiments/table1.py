"""Five points of Table 1's sweep in numbers. The table of the paper has the parameters only [Sinha2021] section 6."""

from thrifty.environments.families import table_1
from thrifty.experiments.experiment import POLICIES, Experiment, Finding, Scale
from thrifty.experiments.fig2 import HORIZON
from thrifty.experiments.measures import band, by_name, columns_of, regret_columns, regret_label, samples
from thrifty.figures import Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_MEANS = (0.30, 0.40, 0.46, 0.50, 0.60)

Found = dict[str, list[Runs]]


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(scale.pick(2_000, 20_000))


def settings(scale: Scale) -> list[Setting]:
    """Five means of the sweep with more runs than the figure has."""
    return [Setting(table_1(mean), policy, HORIZON, _runs(scale), scale.seed) for policy in POLICIES for mean in _MEANS]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The numbers with their standard errors. What section 6 says of them is judged under fig2 and regimes."""
    found = by_name(results, POLICIES)
    rows = [
        {"policy": policy, "mu_2": mean} | regret_columns(runs)
        for policy, each in found.items()
        for mean, runs in zip(_MEANS, each, strict=True)
    ]
    figure = PanelFigure(
        [
            _panel(found, "cheap arm below the floor", "quality", _MEANS[:2]),
            _panel(found, "cheap arm above the floor", "cost", _MEANS[2:]),
        ],
        title="Regret on Table 1's instances (the paper prints their parameters only)",
        caption=f"mean of {_runs(scale):,} runs; bands are two standard errors either way. Quality regret is zero above "
        "the floor but for the dear arm at 0.60, which misses it by 0.04",
    )
    return Finding(columns_of(rows), figure)


def _panel(found: Found, title: str, metric: str, means: tuple[float, ...]) -> Panel:
    at = [_MEANS.index(mean) for mean in means]
    curves = {policy: band(means, [samples(each[index], metric) for index in at], "se") for policy, each in found.items()}
    label = regret_label(metric, HORIZON)
    return Panel(title, "mean reward of the cheap arm, mu_2", label, curves, y_scale="log", marked=POLICIES)


EXPERIMENT = Experiment(
    "table1",
    "Table 1's instances: regret that we measure at five points",
    "T = 5,000, alpha = 0.1, costs 1 and 0.",
    settings,
    conclude,
)
