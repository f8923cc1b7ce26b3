"""Changing worlds: one world after another. Rewards that drift, arms that die and come back, prices that move."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.environments.laws import Bernoulli, Law
from thrifty.environments.world import World
from thrifty.problem import Instance, Terms, checked_count


@dataclass(frozen=True)
class Changing:
    """Worlds that follow each other, each from its own round on.

    A decider sees a change of known costs at once. It must learn a change of rewards.

    Parameters
    ----------
    pieces : (first round, world) in order, the first from round 0. All have the same arms and the same alpha.

    >>> good, bad = World([0.9, 0.5], [0.0, 1.0], 0.1), World([0.0, 0.5], [0.0, 1.0], 0.1)
    >>> [each.instance.optimal_arm for _, each in Changing([(0, good), (500, bad), (700, good)]).pieces]
    [0, 1, 0]

    """

    pieces: tuple[tuple[int, World], ...]

    def __init__(self, pieces: Sequence[tuple[int, World | Instance]]) -> None:
        whole = tuple(_checked_piece(piece) for piece in _checked_list(pieces))
        starts = [start for start, _ in whole]
        if starts[0] != 0 or any(later <= earlier for earlier, later in itertools.pairwise(starts)):
            raise ValueError(f"pieces must begin at round 0 and follow each other, got the rounds {starts}")
        first = whole[0][1]
        for start, each in whole:
            if each.instance.n_arms != first.instance.n_arms or each.alpha != first.alpha or each.costs_known != first.costs_known:
                raise ValueError(
                    f"all pieces must have the same number of arms, the same alpha and the same knowledge of costs; "
                    f"the one from round {start} differs"
                )
        object.__setattr__(self, "pieces", whole)

    @property
    def alpha(self) -> float:
        """The subsidy factor."""
        return self.pieces[0][1].alpha

    @property
    def costs_known(self) -> bool:
        """Whether the decider knows the costs beforehand."""
        return self.pieces[0][1].costs_known

    @property
    def instance(self) -> Instance:
        """The expected rewards and costs at the beginning."""
        return self.pieces[0][1].instance

    def terms(self, horizon: int | None) -> Terms:
        """What a decider knows at the beginning."""
        return self.pieces[0][1].terms(horizon)

    def to_dict(self) -> dict[str, Any]:
        """The pieces as plain numbers, ready for JSON."""
        return {"pieces": [{"from": start, **each.to_dict()} for start, each in self.pieces]}

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> "Changing":
        """The world that `to_dict` described."""
        return cls(
            [(piece["from"], World.from_dict({k: v for k, v in piece.items() if k != "from"})) for piece in described["pieces"]]
        )


def checked_world(world: object) -> World | Changing:
    """A world to simulate in; an instance stands for Bernoulli rewards and known costs.

    >>> checked_world(Instance([0.5, 0.46], [1.0, 0.0], 0.1)).costs_known
    True
    >>> checked_world({"means": [0.5, 0.46], "costs": [1, 0], "alpha": 0.1})
    Traceback (most recent call last):
    ValueError: a world must be an Instance, a World or a Changing world, got a dict: World.from_dict reads one
    """
    if isinstance(world, (World, Changing)):
        return world
    if isinstance(world, Instance):
        return World.of(world)
    remedy = "World.from_dict reads one" if isinstance(world, dict) else "write Instance(means, costs, alpha)"
    raise ValueError(f"a world must be an Instance, a World or a Changing world, got a {type(world).__name__}: {remedy}")


def _checked_list(pieces: object) -> Sequence[object]:
    if not isinstance(pieces, (list, tuple)):
        raise ValueError(f"a changing world is a list of (first round, world), got a {type(pieces).__name__}")
    if not pieces:
        raise ValueError("a changing world needs at least one piece, got none")
    return pieces


def _checked_piece(piece: object) -> tuple[int, World]:
    if not isinstance(piece, (list, tuple)) or len(piece) != 2:
        raise ValueError(f"a piece of a changing world is (first round, world), got {piece!r:.80}")
    world = checked_world(piece[1])
    if isinstance(world, Changing):
        raise ValueError("a piece of a changing world must not change itself: list its pieces instead")
    return checked_count("the first round of a piece", piece[0], low=0), world


def outage(world: World | Instance, arm: int, *, start: int, end: int) -> Changing:
    """An outage: `arm` has reward 0 from round `start` to round `end - 1`, then it is as before.

    >>> [float(each.instance.means[0]) for _, each in outage(Instance([0.9, 0.5], [0, 1], 0.1), 0, start=100, end=200).pieces]
    [0.9, 0.0, 0.9]
    """
    alive = world if isinstance(world, World) else World.of(world)
    rewards = list(alive.rewards)
    rewards[_checked_arm(arm, alive)] = Bernoulli(0.0)
    return Changing([(0, alive), (start, World(rewards, alive.costs, alive.alpha)), (end, alive)])


def drifting(
    means: Callable[[float], Sequence[float] | NDArray[np.float64]],
    costs: Sequence[float],
    alpha: float,
    *,
    rounds: int,
    steps: int = 100,
) -> Changing:
    """Bernoulli arms whose means follow a curve: `means(x)` for x from 0 to 1 over `rounds`, in `steps` equal steps.

    >>> world = drifting(lambda x: [0.5, 0.3 + 0.4 * x], [1, 0], 0.1, rounds=1000, steps=4)
    >>> [each.instance.optimal_arm for _, each in world.pieces]
    [0, 1, 1, 1]
    """
    steps = min(checked_count("steps", steps), checked_count("rounds", rounds))
    edges = [rounds * step // steps for step in range(steps)]
    return Changing([(edge, Instance(means((step + 0.5) / steps), costs, alpha)) for step, edge in enumerate(edges)])


def abrupt(before: World | Instance, after: World | Instance, *, at: int) -> Changing:
    """One world until round `at`, another from then on.

    >>> len(abrupt(Instance([0.9, 0.5], [1, 0], 0.1), Instance([0.5, 0.9], [1, 0], 0.1), at=50).pieces)
    2
    """
    return Changing([(0, before), (at, after)])


def gradual(before: Instance, after: Instance, *, rounds: int, steps: int = 100) -> Changing:
    """Means that move in a straight line from one instance to the other over `rounds`.

    >>> world = gradual(Instance([0.5, 0.3], [1, 0], 0.1), Instance([0.5, 0.7], [1, 0], 0.1), rounds=1000, steps=2)
    >>> [each.instance.means.round(2).tolist() for _, each in world.pieces]
    [[0.5, 0.4], [0.5, 0.6]]
    """
    line = after.means - before.means
    return drifting(lambda x: before.means + x * line, before.costs.tolist(), before.alpha, rounds=rounds, steps=steps)


def periodic(instance: Instance, arm: int, *, swing: float, period: int, rounds: int, steps_each: int = 24) -> Changing:
    """The mean of `arm` follows a sine of height `swing` and length `period`, as between day and night.

    >>> world = periodic(Instance([0.5, 0.5], [1, 0], 0.1), 1, swing=0.2, period=100, rounds=200, steps_each=4)
    >>> [round(float(each.instance.means[1]), 2) for _, each in world.pieces][:4]
    [0.64, 0.64, 0.36, 0.36]
    """
    _checked_arm(arm, World.of(instance))
    waves = checked_count("rounds", rounds) / checked_count("period", period)

    def means(x: float) -> NDArray[np.float64]:
        moved = instance.means.copy()
        moved[arm] = min(max(moved[arm] + swing * math.sin(2.0 * math.pi * waves * x), 0.0), 1.0)
        return moved

    steps = max(1, round(waves * steps_each))
    return drifting(means, instance.costs.tolist(), instance.alpha, rounds=rounds, steps=steps)


def repriced(world: World | Instance, costs: Sequence[Law | float], *, at: int) -> Changing:
    """Other prices from round `at` on, the same rewards.

    >>> [each.instance.optimal_arm for _, each in repriced(Instance([0.5, 0.5], [1, 0], 0.1), [0, 1], at=10).pieces]
    [1, 0]
    """
    whole = world if isinstance(world, World) else World.of(world)
    return Changing([(0, whole), (at, World(whole.rewards, costs, whole.alpha))])


def _checked_arm(arm: int, world: World) -> int:
    if not 0 <= arm < world.instance.n_arms:
        raise ValueError(f"arm must be one of 0 to {world.instance.n_arms - 1}, got {arm}")
    return arm
