"""Figure 1: cost regret where the optimal arm is very close to the floor [Sinha2021] section 2."""

from thrifty.environments.families import figure_1
from thrifty.experiments.experiment import POLICIES, Experiment, Finding, Scale
from thrifty.experiments.measures import band, columns_of, samples
from thrifty.experiments.verdict import Claim, Judge, exact
from thrifty.figures import Panel, PanelFigure
from thrifty.simulation import Runs, summarise
from thrifty.sweep import Setting

_HORIZON = 10_000


def settings(scale: Scale) -> list[Setting]:
    """Two arms, T = 10,000. The paper has 50 runs; CS-TS varies so much that its mean then has a standard error of a tenth."""
    return [Setting(figure_1(_HORIZON), policy, _HORIZON, _runs(scale), scale.seed, checkpoints=100) for policy in POLICIES]


def _runs(scale: Scale) -> int:
    return scale.number_of_runs(scale.pick(4_000, 20_000))


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The curves, and whether both naive policies pay while CS-ETC does not."""
    by_policy = dict(zip(POLICIES, results, strict=True))
    curves, rows = {}, []
    for policy, runs in by_policy.items():
        cost = runs.samples(runs.results[0].policy)["cost"]
        curves[policy] = band(runs.checkpoints, cost.T, "sd")
        summary = summarise(cost)
        rows += [
            {"policy": policy, "t": int(t), "cost_mean": float(mean), "cost_sd": float(sd), "cost_se": float(se)}
            for t, mean, sd, se in zip(runs.checkpoints, summary["mean"], summary["sd"], summary["se"], strict=True)
        ]
    figure = PanelFigure(
        [Panel("", "round t", "cumulative cost regret (cost units)", curves)],
        title="Figure 1: the optimal arm lies 1/sqrt(T) above the floor",
        caption=f"mean of {_runs(scale):,} runs (the paper: 50); bands are one standard deviation of a run either way, as in the "
        "paper; CS-TS has the paper's Beta(1, 1) prior",
    )
    return Finding(columns_of(rows), figure, _claims(by_policy))


def _claims(by_policy: dict[str, Runs]) -> tuple[Claim, ...]:
    judge = Judge({policy: samples(runs, "cost") for policy, runs in by_policy.items()})
    gap = float(by_policy["cs-etc"].instance.quality_gaps.max())
    return (
        judge.claim(
            "Figure 1",
            "CS-TS and CS-UCB incur significant cost regret, and CS-ETC attains low cost regret",
            lambda means: min(means["cs-ucb"], means["cs-ts"]) > 5 * means["cs-etc"],
            f"cost regret at T = {_HORIZON:,}: "
            + ", ".join(f"{policy} {judge.shown(policy)} (sd {_sd(runs):,.0f})" for policy, runs in by_policy.items())
            + "; significant means five times CS-ETC's",
        ),
        exact(
            "section 2",
            "quality regret is zero irrespective of which arm is played",
            gap == 0.0,
            f"the largest quality gap of an arm is {gap:g}",
        ),
    )


def _sd(runs: Runs) -> float:
    return float(summarise(samples(runs, "cost"))["sd"])


EXPERIMENT = Experiment(
    "fig1", "Figure 1: cost regret close to the floor", "Two Bernoulli arms, T = 10,000, alpha = 0.1.", settings, conclude
)
