"""Figure 2: quality and cost regret as the cheap arm's mean goes from 0.3 to 0.6 [Sinha2021] section 6."""

import math

import numpy as np

from thrifty.environments.families import table_1
from thrifty.experiments.experiment import POLICIES, Experiment, Finding, Scale
from thrifty.experiments.measures import band, broken_at, by_name, columns_of, regret_columns, regret_label, samples
from thrifty.experiments.verdict import Claim, Judge, Means
from thrifty.figures import Panel, PanelFigure
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import paper_tau

HORIZON = 5000
MEANS = tuple(round(0.30 + 0.01 * step, 2) for step in range(31))
FLOOR = 0.45
_QUOTED = (0.30, 0.46, 0.60)  # the claims name numbers at these means, so they get more runs
_PLACE = "section 6"
_ABOVE = tuple(at for at in MEANS if at >= FLOOR)

Found = dict[str, list[Runs]]


def settings(scale: Scale) -> list[Setting]:
    """31 means, three policies. The paper has 50 runs; with so few, another seed prints another first digit for CS-TS."""
    return [Setting(table_1(mean), policy, HORIZON, _runs(scale, mean), scale.seed) for policy in POLICIES for mean in MEANS]


def _runs(scale: Scale, mean: float) -> int:
    quoted, others = scale.pick((4_000, 200), (40_000, 2_000))
    return scale.number_of_runs(quoted if mean in _QUOTED else others)


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Both panels, and what section 6 says about them."""
    found = by_name(results, POLICIES)
    figure = PanelFigure(
        [regret_panel(found, MEANS, metric, "sd") for metric in ("quality", "cost")],
        title="Figure 2: varying the mean of the cheap arm",
        caption=f"mean of {_runs(scale, FLOOR):,} runs (the paper: 50), {_runs(scale, _QUOTED[0]):,} where numbers are quoted: "
        f"{', '.join(f'{mean:.2f}' for mean in _QUOTED)}; bands are one standard deviation of a run either way, as in the "
        "paper; CS-TS has a Beta(1, 1) prior, which section 2 names and section 6 does not; below the floor of 0.45 cost regret "
        "is exactly 0",
    )
    rows = [
        {"policy": policy, "mu_2": mean} | regret_columns(runs)
        for policy, each in found.items()
        for mean, runs in zip(MEANS, each, strict=True)
    ]
    judge = Judge(_groups(found))
    claims = (
        _naive_are_close(judge),
        _naive_lose_less(judge),
        _exploration_is_why(judge, found),
        _no_cost_regret_below(judge),
        _etc_is_cheap(judge),
        _etc_is_right(judge),
    )
    return Finding(columns_of(rows), figure, claims)


def regret_panel(found: Found, means: tuple[float, ...], metric: str, width: str) -> Panel:
    """A regret against the cheap arm's mean; cost regret jumps at the floor, and is drawn as a jump."""
    curves = {policy: band(means, [samples(runs, metric) for runs in each], width) for policy, each in found.items()}
    if metric == "cost":
        curves = {policy: broken_at(curve, FLOOR, left=0.0) for policy, curve in curves.items()}
    return Panel(f"{metric.capitalize()} regret", "mean reward of the cheap arm, mu_2", regret_label(metric, HORIZON), curves)


def _groups(found: Found) -> dict[tuple[str, str, float], np.ndarray]:
    """Both regrets by policy, name and mean; `right` is whether a run of CS-ETC plays only the optimal arm after exploring."""
    regrets = {
        (policy, metric, at): samples(runs, metric)
        for policy, each in found.items()
        for at, runs in zip(MEANS, each, strict=True)
        for metric in ("quality", "cost")
    }
    right = {
        ("cs-etc", "right", at): runs.results[0].pulls[:, -1, 1 - runs.instance.optimal_arm] == _tau()
        for at, runs in zip(MEANS, found["cs-etc"], strict=True)
    }
    return regrets | right


def _tau() -> int:
    return math.ceil(paper_tau(HORIZON, 2))


def _worst_ratio(means: Means, metric: str, at: tuple[float, ...]) -> float:
    ratios = [float(means["cs-ucb", metric, mean] / means["cs-ts", metric, mean]) for mean in at]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _naive_are_close(judge: Judge) -> Claim:
    def both(metric: str, at: float) -> str:
        return f"({judge.shown(('cs-ucb', metric, at))} against {judge.shown(('cs-ts', metric, at))} at {at:.2f})"

    def worst(means: Means) -> tuple[float, float]:
        return _worst_ratio(means, "quality", MEANS[:11]), _worst_ratio(means, "cost", MEANS[-11:])

    quality, cost = worst(judge.means)
    return judge.claim(
        _PLACE,
        "the performance of CS-TS and CS-UCB are close to each other for the entire range of mean reward values",
        lambda means: max(worst(means)) < 1.5,
        f"quality regrets differ by a factor of up to {quality:.1f} for mu_2 <= 0.40 {both('quality', 0.30)}, "
        f"cost regrets by up to {cost:.1f} for mu_2 >= 0.50 {both('cost', 0.60)}; close means a factor below 1.5",
    )


def _naive_lose_less(judge: Judge) -> Claim:
    def condition(means: Means) -> bool:
        return all(
            means["cs-etc", "quality", at] > 2 * means[policy, "quality", at]
            for at in (0.30, 0.35)
            for policy in ("cs-ucb", "cs-ts")
        )

    shown = ", ".join(f"{policy} {judge.shown((policy, 'quality', 0.30))}" for policy in POLICIES)
    return judge.claim(
        _PLACE,
        "when mu_2 is much smaller than 0.45, CS-TS and CS-UCB have much lower quality regret than CS-ETC",
        condition,
        f"quality regret at 0.30: {shown}; much lower means less than half, at 0.30 and 0.35",
    )


def _exploration_is_why(judge: Judge, found: Found) -> Claim:
    tau = _tau()
    explored = tau * float(found["cs-etc"][0].instance.quality_gaps.max())
    fewest = min(int(runs.results[0].pulls[:, -1].min()) for runs in found["cs-etc"])
    beta = math.sqrt(2 * math.log(HORIZON) / tau)
    return judge.claim(
        _PLACE,
        "this is because the number of exploration rounds in CS-ETC is fixed, which leads to higher quality regret",
        lambda means: [fewest == tau, explored > 0.5 * means["cs-etc", "quality", 0.30]],
        f"it is fixed: tau = {tau} at every mu_2. But exploring costs {explored:.0f} of the "
        f"{judge.shown(('cs-etc', 'quality', 0.30))} at 0.30; the rest comes from staying on the cheap arm, which with "
        f"beta = {beta:.3f} cannot be rejected",
    )


def _no_cost_regret_below(judge: Judge) -> Claim:
    below = [(policy, "cost", at) for policy in POLICIES for at in MEANS if at < FLOOR]
    return judge.claim(
        _PLACE,
        "when mu_2 is much smaller than 0.45, the cost regret of all algorithms is 0",
        lambda means: all(means[name] == 0.0 for name in below),
        f"the largest mean cost regret of any policy below 0.45 is {max(judge.means[name] for name in below):g}",
    )


def _etc_is_cheap(judge: Judge) -> Claim:
    near = [at for at in MEANS if FLOOR - 0.05 <= at < FLOOR]

    def condition(means: Means) -> bool:
        return all(means[policy, "cost", at] > 2 * means["cs-etc", "cost", at] for policy in ("cs-ucb", "cs-ts") for at in near)

    shown = ", ".join(f"{policy} {judge.shown((policy, 'cost', 0.46))}" for policy in POLICIES)
    return judge.claim(
        _PLACE,
        "when mu_2 is close to (and less than) 0.45, CS-TS and CS-UCB incur much higher cost regret than CS-ETC",
        condition,
        f"from {near[0]:.2f} to {near[-1]:.2f} every cost regret is "
        f"{max(judge.means[policy, 'cost', at] for policy in POLICIES for at in near):g}; "
        f"just above the floor, at 0.46: {shown}. Read 'greater'",
    )


def _etc_is_right(judge: Judge) -> Claim:
    def share(means: Means, at: tuple[float, ...]) -> float:
        return float(np.mean([means["cs-etc", "right", mean] for mean in at]))

    below = MEANS[: -len(_ABOVE)]
    return judge.claim(
        _PLACE,
        "CS-ETC, after the exploration rounds, can correctly identify the second arm as the optimal arm",
        lambda means: [share(means, _ABOVE) > 0.95, share(means, below) > 0.95],
        f"after exploring, {share(judge.means, _ABOVE):.0%} of the runs with mu_2 >= 0.45 play only the optimal arm, and "
        f"{share(judge.means, below):.0%} of those below: CS-ETC stays on the cheap arm whether that is optimal or not",
    )


EXPERIMENT = Experiment(
    "fig2",
    "Figure 2: both regrets against the cheap arm's mean",
    "Table 1's sweep in steps of 0.01, T = 5,000.",
    settings,
    conclude,
)
