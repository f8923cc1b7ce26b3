"""Play a scenario, and add up quality and money over its segments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.policies import policy
from thrifty.scenarios.worlds import Scenario
from thrifty.simulation import Runs, simulate

BEST_KNOWN = "best-known"
"""What others are measured against: the arm that has done best so far, whatever it costs."""


def usual_policies(scenario: Scenario) -> list[str]:
    """The policies of this package, then what people do today."""
    scale = "" if scenario.cost_scale is None else f":cost_scale={scenario.cost_scale:g}"
    learners = [f"{name}{scale}" for name in ("cs-ids", "cs-ts", "cs-ucb", "cs-etc", "cs-direct")]
    if scenario.cost_scale is None:
        learners += ["cs-exp3", "pe-cs:limit=1"]  # these two need to know the costs
    return [f"cs-ids{scale}+restart", *learners, "cheapest", BEST_KNOWN, "round-robin", f"scalarised:weight={scenario.weight:g}"]


@dataclass(frozen=True)
class Line:
    """One policy in one scenario: means over runs per decision, with standard errors."""

    policy: str
    quality: float
    quality_se: float
    money: float
    money_se: float
    quality_regret: float
    cost_regret: float
    saved: float  # share of what always taking the best known arm spends
    quality_change: float  # against it, as a share of its quality


@dataclass(frozen=True, eq=False)
class Ledger:
    """What every policy delivered and spent: arrays are (runs,), summed over segments, per decision."""

    scenario: Scenario
    runs: int
    rounds: int
    policies: tuple[str, ...]
    quality: dict[str, NDArray[np.float64]]
    money: dict[str, NDArray[np.float64]]
    quality_regret: dict[str, NDArray[np.float64]]
    cost_regret: dict[str, NDArray[np.float64]]

    def lines(self) -> list[Line]:
        """One per policy, cheapest first."""
        usual_money, usual_quality = self.money[BEST_KNOWN].mean(), self.quality[BEST_KNOWN].mean()
        lines = [
            Line(
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
) -> Ledger:
    """Play every policy in every segment; none is told a horizon.

    Parameters
    ----------
    scenario : the world
    policies : names as on the command line; by default all of this package and what people do today. `best-known` is always played.
    rounds : decisions in all; default the scenario's own number
    runs : independent runs
    seed : a non-negative integer
    progress : called with (segments played, segments in all)

    >>> from thrifty.scenarios import checked_scenario
    >>> ledger = play(checked_scenario("payments"), ["cheapest"], rounds=1000, runs=2)
    >>> [line.policy for line in ledger.lines()]
    ['cheapest', 'best-known']

    """
    names = list(dict.fromkeys([*(policies or usual_policies(scenario)), BEST_KNOWN]))
    courses = scenario.courses(rounds)
    total = sum(course.rounds for course in courses)
    sums = {metric: {policy(name).label: np.zeros(runs) for name in names} for metric in ("quality", "money", "lost", "overpaid")}
    for number, course in enumerate(courses):
        if progress is not None:
            progress(number, len(courses))
        played = simulate(
            course.world, names, rounds=course.rounds, feedback=course.feedback, runs=runs, seed=seed + number, checkpoints=1
        )
        for result in played:
            quality, money = _delivered(played, result.policy)
            samples = played.samples(result.policy)
            for metric, values in zip(sums, (quality, money, samples["quality"][:, -1], samples["cost"][:, -1]), strict=True):
                sums[metric][result.policy] += values / total
    return Ledger(scenario, runs, total, tuple(sums["money"]), *sums.values())


def _delivered(runs: Runs, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(runs,) expected reward and expected cost of the pulls, each at the rates and prices of its time."""
    pulls = np.diff(runs[name].pulls, axis=1, prepend=0)
    times = np.r_[0, runs.checkpoints[:-1]]
    piece = np.searchsorted([start for start, _ in runs.pieces], times, side="right") - 1
    means, costs = (np.array([getattr(each, what) for _, each in runs.pieces])[piece] for what in ("means", "costs"))
    return np.einsum("rck,ck->r", pulls, means), np.einsum("rck,ck->r", pulls, costs)


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0
