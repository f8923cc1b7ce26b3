"""An entry of the leaderboard.

The constants of our own policies were chosen on the tuning half. The held-out half was not used for that, and is reported
separately.
"""

from dataclasses import dataclass

from thrifty.environments import World
from thrifty.problem import Instance

TUNING, HELD_OUT = "tuning", "held out"


@dataclass(frozen=True)
class Entry:
    """One line of the board: a world, how long it is played, and which half it belongs to.

    `unit` is what cost regret is divided by, so that dollars and rewards can be added.
    """

    name: str
    world: World
    horizon: int
    half: str
    unit: float = 1.0

    @property
    def runs(self) -> int:
        """How many runs a full board plays: 200, fewer where a run is very long or has very many arms."""
        return 200 if self.horizon <= 200_000 and self.world.instance.n_arms <= 100 else 40


def make_entry(name: str, instance: Instance, horizon: int, half: str) -> Entry:
    """The entry of Bernoulli rewards and known costs with these means."""
    return Entry(name, World.of(instance), horizon, half)
