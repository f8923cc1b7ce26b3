"""Figures 1 and 2 with other posteriors in CS-TS: Beta(1/2, 1/2), Gaussian and shrunk Gaussian [Sinha2021] section 2."""

from thrifty.environments.families import figure_1, table_1
from thrifty.experiments.experiment import Experiment, Finding, Scale
from thrifty.experiments.fig2 import HORIZON, MEANS, regret_panel
from thrifty.experiments.measures import Row, band, columns_of, regret_columns, samples
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting

_HORIZON_1 = 10_000
_BETA, _GAUSSIAN = "Beta(1, 1)", "N(mean, 1/n)"
_PRIORS = {
    _BETA: "cs-ts",
    "Beta(1/2, 1/2)": "cs-ts:a=0.5,b=0.5",
    _GAUSSIAN: "cs-ts:prior=gaussian",
    "shrunk, sigma 1": "cs-ts:prior=shrunk",
    "shrunk, sigma_n 1/2": "cs-ts:prior=shrunk,sigma_n=0.5",
}
_ETC = "cs-etc"
_POLICIES = {**_PRIORS, _ETC: _ETC}
_MEANS = MEANS[::3]


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(scale.pick(200, 2_000))


def settings(scale: Scale) -> list[Setting]:
    """Five posteriors and CS-ETC on Figure 1's instance and on eleven points of Figure 2's sweep."""
    runs = _runs(scale)
    return [
        *(Setting(figure_1(_HORIZON_1), policy, _HORIZON_1, runs, scale.seed, checkpoints=20) for policy in _POLICIES.values()),
        *(Setting(table_1(mean), policy, HORIZON, runs, scale.seed) for policy in _POLICIES.values() for mean in _MEANS),
    ]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """All three panels, by posterior."""
    first = dict(zip(_POLICIES, results, strict=False))
    rest = iter(results[len(_POLICIES) :])
    swept = {name: [next(rest) for _ in _MEANS] for name in _POLICIES}
    curves = {name: band(runs.checkpoints, runs.samples(runs.results[0].policy)["cost"].T, "se") for name, runs in first.items()}
    panels = [
        Panel("Figure 1", "round t", "cumulative cost regret (cost units)", curves),
        *(regret_panel(swept, _MEANS, metric, "se") for metric in ("quality", "cost")),
    ]
    figure = PanelFigure(
        panels,
        title="Figures 1 and 2: CS-TS with five posteriors",
        caption=f"mean of {_runs(scale):,} runs; bands are two standard errors either way. The shrunk posterior has the prior "
        "N(0, sigma_0^2), sigma_0 = 1, and rewards of standard deviation sigma_n",
    )
    rows: list[Row] = [{"figure": 1, "posterior": name, "mu_2": 0.46} | regret_columns(runs) for name, runs in first.items()]
    rows += [
        {"figure": 2, "posterior": name, "mu_2": mean} | regret_columns(runs)
        for name, each in swept.items()
        for mean, runs in zip(_MEANS, each, strict=True)
    ]
    judge = Judge(
        {("figure 1", name): samples(runs, "cost") for name, runs in first.items()}
        | {(at, name): samples(swept[name][_MEANS.index(at)], metric) for name in _PRIORS for at, metric in _ENDS.items()}
    )
    return Finding(columns_of(rows), figure, (_not_only_gaussian(judge),), (_prior_matters(judge),))


_ENDS = {0.30: "quality", 0.60: "cost"}


def _not_only_gaussian(judge: Judge) -> Claim:
    return judge.claim(
        "section 2",
        "the poor performance of CS-TS is not limited to the usage of Gaussian priors",
        lambda means: all(means["figure 1", name] > 5 * means["figure 1", _ETC] for name in _PRIORS),
        f"cost regret on Figure 1's instance at T = {_HORIZON_1:,}: "
        + ", ".join(f"{name} {judge.shown(('figure 1', name))}" for name in _POLICIES)
        + "; poor means five times CS-ETC's",
    )


def _prior_matters(judge: Judge) -> Claim:
    def spread(means: Means, at: float) -> float:
        each = [float(means[at, name]) for name in _PRIORS]
        return max(each) / min(each)

    return judge.claim(
        "section 6",
        "which posterior CS-TS has, of which section 6 says nothing, changes its regret by a factor of two and more",
        lambda means: all(spread(means, at) > 2 for at in _ENDS),
        "; ".join(
            f"{metric} regret at mu_2 = {at:.2f}: " + ", ".join(f"{name} {judge.shown((at, name))}" for name in _PRIORS)
            for at, metric in _ENDS.items()
        ),
    )


EXPERIMENT = Experiment(
    "priors", "Figures 1 and 2 with other posteriors", "CS-TS with five posteriors, and CS-ETC.", settings, conclude
)
