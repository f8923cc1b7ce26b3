"""Play candidates in one world of a segment, and score them: quality, cost, both regrets, and what they are worth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thrifty.advice.fit import Course, SegmentFit
from thrifty.arrays import Floats
from thrifty.policies import Policy
from thrifty.simulation import Runs, simulate

EXCHANGE = 3.0
"""How many per cent of cost one per cent of quality is worth, unless said otherwise."""


@dataclass(frozen=True)
class Score:
    """What one candidate did in one world, a decision on average.

    `quality_regret` and `cost_regret` count against the optimal arm of each moment at the candidate's own alpha [Sinha2021].
    `worth` is the share of cost saved against always taking the best fixed arm, less `exchange` times the share of quality
    given up against it; `regret` is what the most worthy fixed arm of that world has more.
    """

    quality: float
    cost: float
    quality_regret: float
    cost_regret: float
    worth: float
    regret: float


def worth(quality: Floats | float, cost: Floats | float, course: Course, exchange: float) -> Floats:
    """What a mean quality and a mean cost are worth in a world; 0 is always taking the best fixed arm.

    >>> course = Course(np.array([[0.9, 0.8]]), np.array([[1.0, 0.5]]), np.ones(1))
    >>> worth(0.9, 1.0, course, 3.0).round(3).tolist(), worth(0.8, 0.5, course, 3.0).round(3).tolist()
    (0.0, 0.167)
    """
    means, costs = course.overall
    best = int(np.argmax(means))
    saved = 1.0 - np.asarray(cost) / max(float(costs[best]), 1e-300)
    return np.asarray(saved - exchange * (1.0 - np.asarray(quality) / max(float(means[best]), 1e-300)))


def play(
    fit: SegmentFit,
    course: Course,
    alpha: float,
    policies: Sequence[Policy],
    *,
    rounds: int,
    seed: int,
    exchange: float,
    runs: int = 1,
) -> dict[str, list[Score]]:
    """Play every policy in one world: policy -> one score per run. The same seed gives the same scores on any number of threads."""
    means, costs = course.overall
    target = float(worth(means, costs, course, exchange).max())
    found = simulate(
        fit.world(course, alpha, rounds), list(policies), horizon=rounds, feedback=fit.feedback, runs=runs, seed=seed,
        checkpoints=1, threads=1
    )  # fmt: skip
    return {result.policy: _scores(found, result.policy, course, target, exchange) for result in found}


def _scores(found: Runs, policy: str, course: Course, target: float, exchange: float) -> list[Score]:
    pulls = np.diff(found[policy].pulls, axis=1, prepend=0)
    piece_of = np.searchsorted([start for start, _ in found.pieces], np.r_[0, found.checkpoints[:-1]], side="right") - 1
    means = np.array([instance.means for _, instance in found.pieces])[piece_of]
    costs = np.array([instance.costs for _, instance in found.pieces])[piece_of]
    quality = np.einsum("rck,ck->r", pulls, means) / found.horizon
    cost = np.einsum("rck,ck->r", pulls, costs) / found.horizon
    values = worth(quality, cost, course, exchange)
    regrets = found.samples(policy)
    return [
        Score(
            float(quality[run]), float(cost[run]), float(regrets["quality"][run, -1]) / found.horizon,
            float(regrets["cost"][run, -1]) / found.horizon, float(values[run]), target - float(values[run]),
        )
        for run in range(quality.size)
    ]  # fmt: skip
