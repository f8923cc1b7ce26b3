"""Play a scenario: simulate every policy in every segment, and add up quality and money over the segments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.policies import DEFAULT_POLICY, Policy, distinct_policies, list_policies
from thrifty.scenarios.worlds import Scenario
from thrifty.simulation import Runs, simulate

BEST_KNOWN = "best-known"
"""The policy that others are compared with: it takes the arm with the best mean so far, whatever that arm costs."""

WHAT_PEOPLE_DO = ("cheapest", BEST_KNOWN, "round-robin", "scalarised")
"""What is done today: always the cheapest, always the best known, every arm in turn, reward minus lambda times cost."""


def usual_policies(scenario: Scenario) -> list[str]:
    """The default policy with `+restart`, then every policy there is that can play this world, in the order of the registry.

    >>> from thrifty.scenarios import checked_scenario
    >>> usual_policies(checked_scenario("llm"))[:2]
    ['cs-ids+restart', 'cs-ids']
    """
    without = left_out(scenario)
    specs = {name: _spec(name, each, scenario) for name, each in list_policies().items() if name not in without}
    return [f"{specs[DEFAULT_POLICY]}+restart", *specs.values()]


def left_out(scenario: Scenario) -> dict[str, str]:
    """The policies that cannot play this world, and why.

    >>> from thrifty.scenarios import checked_scenario
    >>> list(left_out(checked_scenario("sms")))
    ['oracle']
    """
    reasons = {}
    for name, each in list_policies().items():
        if each.known_truths:
            reasons[name] = "knows the optimal arm; regret is measured against it"
        elif not scenario.costs_known and each.rule_for_unknown_costs is None:
            reasons[name] = "needs to know the costs, and here they are unknown"
    return reasons


def _spec(name: str, known: Policy, scenario: Scenario) -> str:
    """The policy with the settings that this world asks for."""
    if "weight" in known.parameters:
        return f"{name}:weight={scenario.weight:g}"
    # As published, eliminations may compare two equal arms for ever.
    return f"{name}:limit=1" if "kappa" in known.parameters else name


@dataclass(frozen=True)
class PolicyResult:
    """One policy in one scenario: means over runs, per decision, with standard errors."""

    policy: str
    quality: float
    quality_se: float
    money: float
    money_se: float
    quality_regret: float
    cost_regret: float
    saved: float  # the share of the money of `best-known`
    quality_change: float  # relative to the quality of `best-known`


@dataclass(frozen=True, eq=False)
class ScenarioResult:
    """What every policy delivered and spent. Arrays are (runs,): sums over the segments, per decision."""

    scenario: Scenario
    runs: int
    rounds: int
    policies: tuple[str, ...]
    quality: dict[str, NDArray[np.float64]]
    money: dict[str, NDArray[np.float64]]
    quality_regret: dict[str, NDArray[np.float64]]
    cost_regret: dict[str, NDArray[np.float64]]

    def lines(self) -> list[PolicyResult]:
        """One per policy, cheapest first."""
        usual_money, usual_quality = self.money[BEST_KNOWN].mean(), self.quality[BEST_KNOWN].mean()
        lines = [
            PolicyResult(
                name,
                float(self.quality[name].mean()),
                _error(self.quality[name]),
                float(self.money[name].mean()),
                _error(self.money[name]),
                float(self.quality_regret[name].mean()),
                float(self.cost_regret[name].mean()),
                float(1.0 - self.money[name].mean() / usual_money),
                float(self.quality[name].mean() / usual_quality - 1.0),
            )
            for name in self.policies
        ]
        return sorted(lines, key=lambda line: line.money)


def play(
    scenario: Scenario,
    policies: Sequence[str] | None = None,
    *,
    rounds: int | None = None,
    runs: int = 20,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> ScenarioResult:
    """Play every policy in every segment. No policy knows the horizon.

    Parameters
    ----------
    scenario : the world
    policies : names as on the command line; by default all that can play it. `best-known` is always played.
    rounds : decisions in all; default the scenario's own number
    runs : independent runs
    seed : a non-negative integer
    progress : called with (segments played, segments in all)

    >>> from thrifty.scenarios import checked_scenario
    >>> result = play(checked_scenario("payments"), ["cheapest"], rounds=1000, runs=2)
    >>> [line.policy for line in result.lines()]
    ['cheapest', 'best-known']

    """
    names = list(policies or usual_policies(scenario))
    chosen = distinct_policies(names if BEST_KNOWN in names else [*names, BEST_KNOWN])
    segments = scenario.segments(rounds)
    total = sum(segment.rounds for segment in segments)
    sums = {metric: {each.label: np.zeros(runs) for each in chosen} for metric in ("quality", "money", "lost", "overpaid")}
    for number, segment in enumerate(segments):
        if progress is not None:
            progress(number, len(segments))
        played = simulate(
            segment.world, chosen, rounds=segment.rounds, feedback=segment.feedback, runs=runs, seed=seed + number, checkpoints=1
        )
        for result in played:
            quality, money = _delivered(played, result.policy)
            samples = played.samples(result.policy)
            for metric, values in zip(sums, (quality, money, samples["quality"][:, -1], samples["cost"][:, -1]), strict=True):
                sums[metric][result.policy] += values / total
    return ScenarioResult(scenario, runs, total, tuple(sums["money"]), *sums.values())


def _delivered(runs: Runs, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(runs,) expected reward and expected cost of the pulls, each at the rates and prices of its time."""
    pulls = np.diff(runs[name].pulls, axis=1, prepend=0)
    times = np.r_[0, runs.checkpoints[:-1]]
    piece = np.searchsorted([start for start, _ in runs.pieces], times, side="right") - 1
    means, costs = (np.array([getattr(each, what) for _, each in runs.pieces])[piece] for what in ("means", "costs"))
    return np.einsum("rck,ck->r", pulls, means), np.einsum("rck,ck->r", pulls, costs)


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
