"""Figure 1: cost regret where the optimal arm is very close to the floor [Sinha2021] section 2."""

from thrifty.environments.families import figure_1
from thrifty.experiments.experiment import POLICIES, Claim, Experiment, Finding, Scale, verdict
from thrifty.experiments.measures import band, columns_of, final
from thrifty.figures import Panel, PanelFigure
from thrifty.simulation import Runs, summarise
from thrifty.sweep import Setting

_HORIZON = 10_000


def settings(scale: Scale) -> list[Setting]:
    """Two arms, T = 10,000, the paper's 50 runs."""
    runs = scale.number_of_runs(50)
    return [Setting(figure_1(_HORIZON), policy, _HORIZON, runs, scale.seed, checkpoints=100) for policy in POLICIES]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """The curves, and whether both naive policies pay while CS-ETC does not."""
    by_policy = dict(zip(POLICIES, results, strict=True))
    curves, rows = {}, []
    for policy, runs in by_policy.items():
        cost = runs.samples(policy)["cost"]
        curves[policy] = band(runs.checkpoints, cost.T, "sd")
        summary = summarise(cost)
        rows += [
            {"policy": policy, "t": int(t), "cost_mean": float(mean), "cost_sd": float(sd)}
            for t, mean, sd in zip(runs.checkpoints, summary["mean"], summary["sd"], strict=True)
        ]
    figure = PanelFigure(
        [Panel("", "round t", "cumulative cost regret (cost units)", curves)],
        title="Figure 1: the optimal arm lies 1/sqrt(T) above the floor",
        caption=f"mean of {scale.number_of_runs(50)} runs; bands are one standard deviation either way, as in the paper",
    )
    return Finding(columns_of(rows), figure, _claims(by_policy))


def _claims(by_policy: dict[str, Runs]) -> tuple[Claim, ...]:
    at_end = {policy: final(runs, "cost") for policy, runs in by_policy.items()}
    shown = ", ".join(f"{policy} {value['mean']:,.0f} (sd {value['sd']:,.0f})" for policy, value in at_end.items())
    gap = float(by_policy["cs-etc"].instance.quality_gaps.max())
    return (
        Claim(
            "Figure 1",
            "CS-TS and CS-UCB incur significant cost regret, and CS-ETC attains low cost regret",
            verdict(min(at_end["cs-ucb"]["mean"], at_end["cs-ts"]["mean"]) > 5 * at_end["cs-etc"]["mean"]),
            f"cost regret at T = {_HORIZON:,}: {shown}",
        ),
        Claim(
            "section 2",
            "quality regret is zero irrespective of which arm is played",
            verdict(gap == 0.0),
            f"the largest quality gap of an arm is {gap:g}",
        ),
    )


EXPERIMENT = Experiment(
    "fig1", "Figure 1: cost regret close to the floor", "Two Bernoulli arms, T = 10,000, alpha = 0.1.", settings, conclude
)
