"""Play the leaderboard, and rank."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.leaderboard.entry import Entry
from thrifty.policies import Policy, distinct_policies
from thrifty.simulation import simulate

CONTENDERS = (
    "cs-balance",
    "cs-ids",
    "cs-ts",
    "cs-ucb",
    "cs-ucb:interval=kl",
    "cs-etc",
    "cs-etc:interval=kl",
    "one-shot-etc",
    "cs-direct",
    "cof",
    "pe-cs",
    "pe-cs:limit=1",
)
"""Policies that learn the optimal arm. Baselines do not compete: `cheapest` cannot be beaten where the cheapest arm is feasible."""

METRICS = ("total", "error", "quality", "cost", "median", "high", "stuck")

Table = NDArray[np.float64]


class Rank(NamedTuple):
    """The place of a policy: the geometric mean of its ratios with a standard error, and the worst ratio."""

    policy: str
    mean: float
    error: float
    worst: float


class MinimaxRank(NamedTuple):
    """The place of a policy by regret over K^(1/3) T^(2/3): the largest, where that is, and the mean."""

    policy: str
    largest: float
    where: str
    mean: float


class Duel(NamedTuple):
    """Against one other policy: instances won and lost by more than two standard errors, and the others."""

    policy: str
    won: int
    lost: int
    even: int


@dataclass(frozen=True, eq=False)
class Board:
    """Total regret of every policy on every instance: (entries, policies) arrays, NaN where a policy cannot play."""

    entries: tuple[Entry, ...]
    policies: tuple[str, ...]
    total: Table
    error: Table  # standard errors
    quality: Table
    cost: Table  # divided by the unit of the entry
    median: Table
    high: Table  # the 95% quantile
    stuck: Table  # the share of runs that end on a wrong arm that matters: see `stuck_runs`

    @property
    def ratios(self) -> Table:
        """Regret relative to the best policy's; 1 is added to both, so that a regret of zero can be divided by."""
        best = np.nanmin(self.total, axis=1, keepdims=True)
        return np.asarray((self.total + 1.0) / (best + 1.0))

    def rows(self, half: str | None = None) -> list[int]:
        """The numbers of the entries of one half, or of all."""
        return [number for number, entry in enumerate(self.entries) if half in (None, entry.half)]

    def ranking(self, half: str | None = None, *, first: int | None = None) -> list[Rank]:
        """Policies by the geometric mean of their ratios, best first; of one half, or of the `first` entries alone.

        Only instances that a policy can play count for it. The standard error takes the best policy's as the policy's own.
        """
        rows = self.rows(half)[:first]
        found = []
        for column, name in enumerate(self.policies):
            played = [row for row in rows if not np.isnan(self.total[row, column])]
            if played:
                ratios = self.ratios[played, column]
                relative = self.error[played, column] / (self.total[played, column] + 1.0)
                mean = float(np.exp(np.log(ratios).mean()))
                error = mean * math.sqrt(2.0 * float((relative**2).sum())) / len(played)
                found.append(Rank(name, mean, error, float(ratios.max())))
        return sorted(found, key=lambda rank: rank.mean)

    def minimax_ranking(self, half: str | None = None) -> list[MinimaxRank]:
        """Policies by their largest regret over K^(1/3) T^(2/3), smallest first."""
        rows = self.rows(half)
        scales = np.array(
            [self.entries[row].world.instance.n_arms ** (1 / 3) * self.entries[row].horizon ** (2 / 3) for row in rows]
        )
        shares = self.total[rows] / scales[:, None]
        found = []
        for column, name in enumerate(self.policies):
            if not np.isnan(shares[:, column]).all():
                worst = int(np.nanargmax(shares[:, column]))
                mean = float(np.nanmean(shares[:, column]))
                found.append(MinimaxRank(name, float(shares[worst, column]), self.entries[rows[worst]].name, mean))
        return sorted(found, key=lambda rank: rank.largest)

    def duels(self, policy: str) -> list[Duel]:
        """How often a policy wins against each other."""
        own = self.policies.index(policy)
        found = []
        for column, name in enumerate(self.policies):
            if column != own:
                better = self.total[:, column] - self.total[:, own]
                doubt = 2.0 * np.hypot(self.error[:, column], self.error[:, own])
                won, lost = int((better > doubt).sum()), int((better < -doubt).sum())
                found.append(Duel(name, won, lost, int((~np.isnan(better)).sum()) - won - lost))
        return found


def play(
    entries: Sequence[Entry],
    contenders: Sequence[str | Policy] = CONTENDERS,
    *,
    seed: int = 1,
    share: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Board:
    """Play every contender on every entry.

    Parameters
    ----------
    entries : what to play
    contenders : names, files or policies
    seed : of the simulations
    share : of the runs of a full board; 0.1 for a quick look
    progress : called with (entries played, entries in all)

    >>> from thrifty.leaderboard import entries
    >>> board = play(entries()[:1], ["cs-etc"], share=0.02)
    >>> board.ranking()[0].policy
    'cs-etc'

    """
    chosen = distinct_policies(contenders)
    found = {metric: np.full((len(entries), len(chosen)), np.nan) for metric in METRICS}
    for number, entry in enumerate(entries):
        if progress is not None:
            progress(number, len(entries))
        able = [column for column, each in enumerate(chosen) if _can_play(each, entry)]
        played = simulate(
            entry.world,
            [chosen[column] for column in able],
            horizon=entry.horizon,
            runs=max(2, round(share * entry.runs)),
            seed=seed,
            checkpoints=sorted({max(entry.horizon - entry.horizon // 10, 1), entry.horizon}),
        )
        for column, result in zip(able, played, strict=True):
            for metric, value in _measure(entry, result.pulls).items():
                found[metric][number, column] = value
    return Board(tuple(entries), tuple(each.label for each in chosen), **found)


def _can_play(policy: Policy, entry: Entry) -> bool:
    return entry.world.costs_known or policy.rule_for_unknown_costs is not None


def _measure(entry: Entry, pulls: NDArray[np.int64]) -> dict[str, float]:
    """Every metric, from pull counts (runs, 2, K) a tenth before the end and at the end."""
    instance = entry.world.instance
    quality, cost = instance.quality_regret(pulls[:, -1]), instance.cost_regret(pulls[:, -1]) / entry.unit
    total = quality + cost
    return {
        "total": float(total.mean()),
        "error": float(total.std(ddof=1) / math.sqrt(total.size)),
        "quality": float(quality.mean()),
        "cost": float(cost.mean()),
        "median": float(np.median(total)),
        "high": float(np.quantile(total, 0.95)),
        "stuck": float(stuck_runs(entry, pulls).mean()),
    }


def stuck_runs(entry: Entry, pulls: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(runs,) whether a run is stuck: it plays one wrong arm in more than half of its last tenth, and that arm matters.

    An arm matters if playing it for ever would cost more than 5 K^(1/3) T^(2/3).
    """
    instance, horizon = entry.world.instance, entry.horizon
    gaps = instance.quality_gaps + instance.cost_gaps / entry.unit
    matters = gaps * horizon > 5.0 * instance.n_arms ** (1 / 3) * horizon ** (2 / 3)
    late = pulls[:, -1] - pulls[:, 0]
    return np.asarray(((2 * late > late.sum(axis=1, keepdims=True)) & matters).any(axis=1))
