"""Figure 2: quality and cost regret as the cheap arm's mean goes from 0.3 to 0.6 [Sinha2021] section 6."""

import math

from thrifty.environments.families import table_1
from thrifty.experiments.experiment import (
    FAILS,
    IMPRECISE,
    POLICIES,
    Claim,
    Experiment,
    Finding,
    Scale,
    band,
    columns_of,
    final,
    samples,
    verdict,
)
from thrifty.pictures import Panel, draw_panels
from thrifty.simulation import Runs
from thrifty.sweep import Setting
from thrifty.theory import paper_tau

HORIZON = 5000
MEANS = tuple(round(0.30 + 0.01 * step, 2) for step in range(31))
_PLACE = "section 6"


def settings(scale: Scale) -> list[Setting]:
    """31 means, three policies, the paper's 50 runs."""
    runs = scale.number_of_runs(50)
    return [Setting(table_1(mean), policy, HORIZON, runs, scale.seed) for policy in POLICIES for mean in MEANS]


def conclude(scale: Scale, results: list[Runs]) -> Finding:
    """Both panels, and what section 6 says about them."""
    found = {policy: results[number * len(MEANS) : (number + 1) * len(MEANS)] for number, policy in enumerate(POLICIES)}
    panels = [
        Panel(
            f"{metric.capitalize()} regret",
            "mean reward of the cheap arm, mu_2",
            f"{metric} regret at T = {HORIZON:,} ({'reward' if metric == 'quality' else 'cost'} units)",
            {policy: band(MEANS, [samples(runs, metric) for runs in each], "sd") for policy, each in found.items()},
        )
        for metric in ("quality", "cost")
    ]
    figure = draw_panels(
        panels,
        title="Figure 2: varying the mean of the cheap arm",
        caption=f"mean of {scale.number_of_runs(50)} runs; bands are one standard deviation either way, as in the paper",
    )
    rows = [
        {"policy": policy, "mu_2": mean}
        | {f"{metric}_{name}": value for metric in ("quality", "cost") for name, value in final(runs, metric).items()}
        for policy, each in found.items()
        for mean, runs in zip(MEANS, each, strict=True)
    ]
    return Finding(columns_of(rows), figure, _claims(found))


def _claims(found: dict[str, list[Runs]]) -> tuple[Claim, ...]:
    def mean(policy: str, metric: str, at: float) -> float:
        return final(found[policy][MEANS.index(at)], metric)["mean"]

    worst_quality = max(mean("cs-ucb", "quality", at) / mean("cs-ts", "quality", at) for at in MEANS[:11])
    worst_cost = max(mean("cs-ucb", "cost", at) / mean("cs-ts", "cost", at) for at in MEANS[-11:])
    tau = math.ceil(paper_tau(HORIZON, 2))
    etc = found["cs-etc"]
    explored = tau * float(etc[0].instance.quality_gaps.max())
    left = max(int(runs.results[0].pulls[:, -1, 0].max()) for runs in etc)
    below = max(final(runs, "cost")["mean"] for each in found.values() for at, runs in zip(MEANS, each, strict=True) if at < 0.45)
    ratio = min(mean("cs-etc", "quality", at) / mean("cs-ucb", "quality", at) for at in (0.30, 0.35))
    naive_cost = min(mean(policy, "cost", 0.46) for policy in ("cs-ucb", "cs-ts"))
    beta = math.sqrt(2 * math.log(HORIZON) / tau)
    return (
        Claim(
            _PLACE,
            "the performance of CS-TS and CS-UCB are close to each other for the entire range of mean reward values",
            verdict(max(worst_quality, worst_cost) < 1.5),
            f"CS-UCB's quality regret is up to {worst_quality:.1f} times CS-TS's for mu_2 <= 0.40 "
            f"({mean('cs-ucb', 'quality', 0.30):.0f} against {mean('cs-ts', 'quality', 0.30):.0f} at 0.30), its cost regret up to "
            f"{worst_cost:.1f} times for mu_2 >= 0.50 ({mean('cs-ucb', 'cost', 0.60):.0f} against "
            f"{mean('cs-ts', 'cost', 0.60):.0f} at 0.60)",
        ),
        Claim(
            _PLACE,
            "when mu_2 is much smaller than 0.45, CS-TS and CS-UCB have much lower quality regret than CS-ETC",
            verdict(ratio > 2),
            f"at 0.30: CS-ETC {mean('cs-etc', 'quality', 0.30):.0f}, CS-UCB {mean('cs-ucb', 'quality', 0.30):.0f}, "
            f"CS-TS {mean('cs-ts', 'quality', 0.30):.0f}",
        ),
        Claim(
            _PLACE,
            "this is because the number of exploration rounds in CS-ETC is fixed",
            verdict(explored > 0.5 * mean("cs-etc", "quality", 0.30)),
            f"exploring costs {explored:.0f} of the {mean('cs-etc', 'quality', 0.30):.0f} at 0.30; the rest "
            f"comes from staying on the cheap arm, which with tau = {tau} and beta = {beta:.3f} cannot be rejected",
        ),
        Claim(
            _PLACE,
            "when mu_2 is close to (and less than) 0.45, CS-TS and CS-UCB incur much higher cost regret than CS-ETC",
            verdict(below > 0, FAILS),
            f"below 0.45 the largest cost regret of any policy is {below:g}; just above, at 0.46, it is at least "
            f"{naive_cost:,.0f} for both and {mean('cs-etc', 'cost', 0.46):.0f} for CS-ETC: read 'greater'",
        ),
        Claim(
            _PLACE,
            "CS-ETC, after the exploration rounds, can correctly identify the second arm as the optimal arm",
            verdict(left > tau, IMPRECISE),
            f"the most pulls of the dear arm in any CS-ETC run at any mu_2 is {left}, tau is {tau}: it stays on the cheap arm "
            "whether that is optimal or not",
        ),
    )


EXPERIMENT = Experiment(
    "fig2",
    "Figure 2: both regrets against the cheap arm's mean",
    "Table 1's sweep in steps of 0.01, T = 5,000.",
    settings,
    conclude,
)
