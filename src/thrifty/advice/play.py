"""Play candidates in one world of a segment, and score them: quality, cost, both regrets, and worth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thrifty.advice.fit import SegmentFit, SegmentTruth
from thrifty.arrays import Floats
from thrifty.logs.savings import share_saved
from thrifty.policies import Policy
from thrifty.simulation import Runs, simulate


@dataclass(frozen=True)
class Score:
    """The score of one candidate in one world; all numbers are means per decision.

    `quality_regret` and `cost_regret` count against the optimal arm of each moment at the candidate's own alpha [Sinha2021].
    `best_quality` and `best_cost` are those of always taking the best fixed arm. `worth` is the share of cost saved against it,
    less `exchange` times the share of quality given up. `regret` is the worth of the fixed arm that is worth the most in that
    world, less `worth`.
    """

    quality: float
    cost: float
    quality_regret: float
    cost_regret: float
    worth: float
    regret: float
    best_quality: float
    best_cost: float

    @property
    def given_up(self) -> float:
        """The share of the best fixed arm's quality that was given up; negative where changing arms brought more."""
        return 1.0 - self.quality / max(self.best_quality, 1e-300)


def worth(quality: Floats | float, cost: Floats | float, truth: SegmentTruth, exchange: float) -> Floats:
    """The worth of a mean quality and a mean cost in a world; always taking the best fixed arm has worth 0.

    Where that arm is free nothing is a share of its cost: what is paid then counts by the mean cost of the arms.

    >>> truth = SegmentTruth(np.array([[0.9, 0.8]]), np.array([[1.0, 0.5]]), np.ones(1))
    >>> worth(0.9, 1.0, truth, 3.0).round(3).tolist(), worth(0.8, 0.5, truth, 3.0).round(3).tolist()
    (0.0, 0.167)
    """
    means, costs = truth.overall
    best = int(np.argmax(means))
    saved = share_saved(cost, costs[best]) if costs[best] > 0.0 else -np.asarray(cost) / (float(costs.mean()) or 1.0)
    return np.asarray(saved - exchange * (1.0 - np.asarray(quality) / max(float(means[best]), 1e-300)))


def play(
    fit: SegmentFit,
    truth: SegmentTruth,
    alpha: float,
    policies: Sequence[Policy],
    *,
    rounds: int,
    seed: int,
    exchange: float,
    runs: int = 1,
    warm: bool = False,
) -> dict[str, list[Score]]:
    """Play every policy in one world: policy -> one score per run. The same seed gives the same scores on any number of threads.

    The policies do not know how many rounds there will be, as in a router. With `warm` they know what the log does, if they can.
    """
    means, costs = truth.overall
    target = float(worth(means, costs, truth, exchange).max())
    scores: dict[str, list[Score]] = {}
    for knowing in (True, False):
        mine = [each for each in policies if (warm and can_know(each)) is knowing]
        if mine:
            found = simulate(
                fit.world(truth, alpha, rounds),
                mine,
                rounds=rounds,
                feedback=fit.feedback,
                runs=runs,
                seed=seed,
                checkpoints=1,
                threads=1,
                known=fit.known if knowing else None,
            )
            scores |= {result.policy: _scores(found, result.policy, truth, target, exchange) for result in found}
    return scores


def can_know(policy: Policy) -> bool:
    """Whether a policy can start with known outcomes: not one that weighs every outcome by the probability of its decision."""
    return not policy.rule.weighs_outcomes


def _scores(found: Runs, policy: str, truth: SegmentTruth, target: float, exchange: float) -> list[Score]:
    pulls = np.diff(found[policy].pulls, axis=1, prepend=0)
    piece_of = np.searchsorted([start for start, _ in found.pieces], np.r_[0, found.checkpoints[:-1]], side="right") - 1
    means = np.array([instance.means for _, instance in found.pieces])[piece_of]
    costs = np.array([instance.costs for _, instance in found.pieces])[piece_of]
    quality = np.einsum("rck,ck->r", pulls, means) / found.rounds
    cost = np.einsum("rck,ck->r", pulls, costs) / found.rounds
    values = worth(quality, cost, truth, exchange)
    regrets = found.samples(policy)
    best = int(np.argmax(truth.overall[0]))
    best_quality, best_cost = (float(values[best]) for values in truth.overall)
    return [
        Score(
            float(quality[run]),
            float(cost[run]),
            float(regrets["quality"][run, -1]) / found.rounds,
            float(regrets["cost"][run, -1]) / found.rounds,
            float(values[run]),
            target - float(values[run]),
            best_quality,
            best_cost,
        )
        for run in range(quality.size)
    ]
