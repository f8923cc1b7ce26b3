"""An adversary: a world made to order against one policy."""

from collections.abc import Sequence

import numpy as np

from thrifty.environments import Changing
from thrifty.problem import Instance, checked_count
from thrifty.simulation.runner import simulate


def turned_against(policy: str, costs: Sequence[float], alpha: float, *, rounds: int, runs: int = 10, seed: int = 0) -> Changing:
    """A world in which an arm rewards 1 whenever `policy` leaves it alone, and 0 in the rounds in which it would play it.

    In every round the arm that most of `runs` runs of the policy are about to play gives nothing, and every other arm 1. The
    world is then fixed, so that any policy can be played in it. Over time every arm is good, but not when the one it was made
    against plays it: averages of what was seen are no guide to what an arm is worth. Importance-weighted sums are.

    >>> world = turned_against("cs-ucb", [0.0, 1.0], 0.1, rounds=6)
    >>> [each.instance.means.tolist() for _, each in world.pieces][:3]
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]

    """
    n_arms = len(costs)
    kind = Instance(np.ones(n_arms), costs, alpha)
    pieces: list[tuple[int, Instance]] = []
    for t in range(checked_count("rounds", rounds)):
        rounds_played = max(t + 1, n_arms)
        trace = simulate(
            Changing([*pieces, (t, kind)]), policy, rounds=rounds_played, runs=runs, seed=seed, checkpoints=1, trace=True
        )
        played = np.asarray(trace.results[0].trace)[:, t]
        means = np.ones(n_arms)
        means[np.bincount(played, minlength=n_arms).argmax()] = 0.0
        pieces.append((t, Instance(means, costs, alpha)))
    same = [t > 0 and (pieces[t][1].means == pieces[t - 1][1].means).all() for t in range(len(pieces))]
    return Changing([piece for piece, repeated in zip(pieces, same, strict=True) if not repeated])
