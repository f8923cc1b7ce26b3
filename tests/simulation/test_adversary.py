"""Rewards of an adversary: where averages of what was seen mislead, and importance-weighted sums do not."""

import numpy as np
import pytest

from thrifty import Instance, simulate
from thrifty.environments import Changing
from thrifty.simulation.adversary import turned_against

COSTS, ALPHA, ROUNDS = [0.0, 0.5, 1.0], 0.1, 400


def averages(world: Changing) -> Instance:
    """What every arm is worth over all rounds."""
    starts = [start for start, _ in world.pieces]
    lengths = np.diff([*starts, ROUNDS])
    return Instance(lengths @ np.array([each.instance.means for _, each in world.pieces]) / ROUNDS, COSTS, ALPHA)


def earned(world: Changing, policy: str) -> float:
    runs = simulate(world, policy, rounds=ROUNDS, runs=30, seed=5, trace=True)
    trace = runs[policy].trace
    assert trace is not None
    piece = np.searchsorted([start for start, _ in world.pieces], np.arange(ROUNDS), side="right") - 1
    means = np.array([each.instance.means for _, each in world.pieces])[piece]
    return float(means[np.arange(ROUNDS), trace].mean())


@pytest.mark.parametrize("victim", ["cs-ucb", "cs-etc"])
def test_a_rule_that_can_be_foreseen_earns_nothing_where_cs_exp3_reaches_the_floor(victim: str) -> None:
    world = turned_against(victim, COSTS, ALPHA, rounds=ROUNDS, runs=1, seed=5)
    floor = averages(world).floor
    assert floor > 0.5
    assert earned(world, victim) < 0.05
    # The mean of 30 runs of 400 rounds has a standard error below 0.01.
    assert earned(world, "cs-exp3") > floor - 0.05
