"""Play the leaderboard, and rank."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thrifty.leaderboard.instances import Entry
from thrifty.policies import Policy, distinct_policies
from thrifty.simulation import simulate

CONTENDERS = (
    "cs-ids",
    "cs-ts",
    "cs-ucb",
    "cs-ucb:interval=kl",
    "cs-etc",
    "cs-etc:interval=kl",
    "one-shot-etc",
    "cs-direct",
    "pe-cs",
    "pe-cs:limit=1",
)
"""Policies that learn the optimal arm. Baselines do not compete: `cheapest` cannot be beaten where the cheapest arm is feasible."""


@dataclass(frozen=True, eq=False)
class Board:
    """Total regret of every policy on every instance: (entries, policies) arrays, NaN where a policy cannot play."""

    entries: tuple[Entry, ...]
    policies: tuple[str, ...]
    total: NDArray[np.float64]
    error: NDArray[np.float64]  # standard errors
    quality: NDArray[np.float64]
    cost: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Regret relative to the best policy's; 1 is added to both, so that a regret of zero can be divided by."""
        best = np.nanmin(self.total, axis=1, keepdims=True)
        return np.asarray((self.total + 1.0) / (best + 1.0))

    def rows(self, half: str | None = None) -> list[int]:
        """The numbers of the entries of one half, or of all."""
        return [number for number, entry in enumerate(self.entries) if half in (None, entry.half)]

    def ranking(self, half: str | None = None) -> list[tuple[str, float, float]]:
        """(policy, geometric mean of its ratios, worst ratio), best first. Only instances that a policy can play count for it."""
        ratios = self.ratios[self.rows(half)]
        played = {name: column[~np.isnan(column)] for name, column in zip(self.policies, ratios.T, strict=True)}
        rows = [(name, float(np.exp(np.log(column).mean())), float(column.max())) for name, column in played.items() if column.size]
        return sorted(rows, key=lambda row: row[1])


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
    >>> board.ranking()[0][0]
    'cs-etc'

    """
    chosen = distinct_policies(contenders)
    shape = (len(entries), len(chosen))
    found = {metric: np.full(shape, np.nan) for metric in ("total", "error", "quality", "cost")}
    for number, entry in enumerate(entries):
        if progress is not None:
            progress(number, len(entries))
        able = [column for column, each in enumerate(chosen) if entry.world.costs_known or each.rule_for_unknown_costs]
        runs = max(2, round(share * entry.runs))
        final = simulate(
            entry.world, [chosen[column] for column in able], horizon=entry.horizon, runs=runs, seed=seed, checkpoints=1
        ).final()
        for column in able:
            summary = final[chosen[column].label]
            found["total"][number, column] = summary["total"]["mean"]
            found["error"][number, column] = summary["total"]["se"]
            found["quality"][number, column] = summary["quality"]["mean"]
            found["cost"][number, column] = summary["cost"]["mean"]
    return Board(tuple(entries), tuple(each.label for each in chosen), **found)
