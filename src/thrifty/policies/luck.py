"""The floor in posterior draws, without the luck of the highest draw.

The highest of many draws is above the highest mean, also where all arms are equally good. For an arm that was hardly tried this
luck is what makes it worth a look. For arms that were tried it only makes the floor too high, and a cheap arm that is good enough
looks as if it were not. So, with a horizon of T and K arms:

- An arm is *tried* once it has enough (T/K)^(2/3) outcomes, and 60 at least. The luck of the tried arms is the mean of their
  highest draw, less the highest of their means. Their highest draws are lowered by `sobriety` times that. 1 would bring the mean of
  the highest draw down to the highest mean, which is a lucky one itself.
- The luck of the others is the mean of the highest draw of all, less the same mean with the draws of just one of them, the most
  promising one; in both, no draw counts that is below the highest mean of all. Where there are more than a handful of them, their
  highest draws are lowered by sobriety (1 - handful / their number) times that: nobody can look at all of a hundred arms.
"""

import numpy as np

from thrifty.compiled import kernel
from thrifty.policies.selection import highest

_HANDFUL = 5.0
"""So many arms that were hardly tried may all be lucky."""

_TRIED = 60.0
"""Outcomes after which an arm may count as tried. With fewer, segments that borrow from each other stop exploring too soon."""


@kernel
def set_floors(terms, stats, rewards, floors, room):
    """Write the floor of every draw.

    Parameters
    ----------
    rewards : (M * K,) draws of the mean rewards, a row of K for each of the M floors
    floors : (M,)
    room : (K,) is overwritten

    """
    ahead = terms.horizon + terms.parameters.outset
    enough = max(terms.parameters.enough * (ahead / stats.size) ** (2.0 / 3.0), _TRIED)
    best, best_tried, hardly_tried = _highest_means(stats, rewards, floors.size, enough, room)
    luck = 0.0
    for draw in range(floors.size):
        floors[draw] = _highest_draw(stats, rewards, draw, enough, True)
        luck += floors[draw] - best_tried if hardly_tried < stats.size else 0.0
    floors -= terms.parameters.sobriety * max(luck, 0.0) / floors.size
    lowered = 0.0
    if hardly_tried > _HANDFUL:
        share = 1.0 - _HANDFUL / hardly_tried
        lowered = terms.parameters.sobriety * share * _luck_of_many(stats, rewards, floors, enough, best, room)
    for draw in range(floors.size):
        if hardly_tried > 0:
            floors[draw] = max(floors[draw], _highest_draw(stats, rewards, draw, enough, False) - lowered)
        floors[draw] *= 1.0 - terms.alpha


@kernel
def _highest_means(stats, rewards, n_draws, enough, room):
    """Of the means of the draws: the highest, and the highest of a tried arm; and how many arms were hardly tried."""
    room[:] = 0.0
    for draw in range(n_draws):
        for arm in range(stats.size):
            room[arm] += rewards[draw * stats.size + arm]
    best_tried, hardly_tried = -np.inf, 0
    for arm in range(stats.size):
        if stats[arm].seen >= enough:
            best_tried = max(best_tried, room[arm] / n_draws)
        else:
            hardly_tried += 1
    return room[highest(room)] / n_draws, best_tried, hardly_tried


@kernel
def _highest_draw(stats, rewards, draw, enough, tried):
    """The highest draw of the tried arms, or of the others, in one row; -inf if there are none."""
    top = -np.inf
    for arm in range(stats.size):
        if (stats[arm].seen >= enough) == tried:
            top = max(top, rewards[draw * stats.size + arm])
    return top


@kernel
def _luck_of_many(stats, rewards, floors, enough, best, room):
    """The luck of the arms that were hardly tried, beside the tried ones, whose highest draws `floors` has."""
    together = 0.0
    room[:] = 0.0
    for draw in range(floors.size):
        base = max(floors[draw], best)
        top = base
        for arm in range(stats.size):
            if stats[arm].seen < enough:
                value = max(rewards[draw * stats.size + arm], base)
                top = max(top, value)
                room[arm] += value
        together += top
    return (together - room[highest(room)]) / floors.size
