"""The floor in posterior draws, without the luck of the highest draw.

The highest of many draws is above the highest mean, also where all arms are equally good. For an arm that was hardly tried this
luck is what makes it worth a look. For arms that were tried it only makes the floor too high, and a cheap arm that is good enough
looks as if it were not. So, with a horizon of T and K arms:

- An arm is *tried* once it has enough (T/K)^(2/3) outcomes, and 60 at least. The luck of the tried arms is the mean of their
  highest draw, less the highest of their means. Their highest draws are lowered by `sobriety` times that. 1 would bring the mean of
  the highest draw down to the highest mean, which is a lucky one itself.
- The luck of the others is the mean of the highest draw of all, less the same mean with the draws of just one of them, the most
  promising one; in both, no draw counts that is below the highest mean of all. Where there are more than a handful of them, their
  highest draws are lowered by (1 - handful / their number) times that: nobody can look at all of a hundred arms.
"""

import numpy as np

from thrifty.compiled import kernel
from thrifty.policies.selection import highest

_HANDFUL = 5.0
"""So many arms that were hardly tried may all be lucky."""

_TRIED = 60.0
"""Outcomes after which an arm may count as tried. With fewer, segments that borrow from each other stop exploring too soon."""


@kernel
def set_floors(terms, stats, memory):
    """Write the floor of every draw into `memory.floors`; `tried`, `tops` and `regret` are overwritten."""
    floors, tops, alpha = memory.floors, memory.tops, terms.alpha
    hardly_tried = _sort_out(terms, stats, memory)
    mean_top = _find_tops(memory)
    best = memory.regret[highest(memory.regret)]
    luck = lowered = 0.0
    if hardly_tried < stats.size:
        luck = terms.parameters.sobriety * max(mean_top - _best_tried(memory), 0.0)
    if hardly_tried > _HANDFUL:
        lowered = (1.0 - _HANDFUL / hardly_tried) * _luck_of_many(memory, luck, best)
    for draw in range(floors.size):
        floors[draw] = (1.0 - alpha) * max(floors[draw] - luck, tops[draw] - lowered)


@kernel
def _sort_out(terms, stats, memory):
    """Write which arms are tried; returns how many are not."""
    ahead = terms.horizon + terms.parameters.outset
    enough = max(terms.parameters.enough * (ahead / stats.size) ** (2.0 / 3.0), _TRIED)
    hardly_tried = 0
    for arm in range(stats.size):
        memory.tried[arm] = stats[arm].seen >= enough
        hardly_tried += not memory.tried[arm]
    return hardly_tried


@kernel
def _find_tops(memory):
    """Write the highest draw of the tried arms into `floors`, that of the others into `tops`, and the mean draws into `regret`.

    Returns the mean of the `floors`. Sums are made in the order of the draws, so that one tried arm alone has no luck.
    """
    n_arms, tried, means, total = memory.tried.size, memory.tried, memory.regret, 0.0
    means[:] = 0.0
    for draw in range(memory.floors.size):
        row = memory.rewards[draw * n_arms : (draw + 1) * n_arms]
        of_tried = of_others = -np.inf
        for arm in range(n_arms):
            value = row[arm]
            means[arm] += value
            if tried[arm]:
                of_tried = max(of_tried, value)
            else:
                of_others = max(of_others, value)
        memory.floors[draw], memory.tops[draw] = of_tried, of_others
        total += of_tried
    means /= memory.floors.size
    return total / memory.floors.size


@kernel
def _best_tried(memory):
    """The highest mean of a tried arm."""
    best = -np.inf
    for arm in range(memory.tried.size):
        if memory.tried[arm]:
            best = max(best, memory.regret[arm])
    return best


@kernel
def _luck_of_many(memory, luck, best):
    """The luck of the arms that were hardly tried, beside the tried ones."""
    n_draws, n_arms, room = memory.floors.size, memory.tried.size, memory.regret
    together = 0.0
    room[:] = 0.0
    for draw in range(n_draws):
        base = max(memory.floors[draw] - luck, best)
        together += max(memory.tops[draw], base)
        for arm in range(n_arms):
            if not memory.tried[arm]:
                room[arm] += max(memory.rewards[draw * n_arms + arm], base)
    return (together - room[highest(room)]) / n_draws
