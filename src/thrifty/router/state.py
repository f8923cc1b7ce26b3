"""The state of a router: what the fold of its log has come to."""

import time
from collections.abc import Callable
from typing import Any

from thrifty.router.ledger import Ledger
from thrifty.router.roster import Roster
from thrifty.router.settings import Settings
from thrifty.router.tree import Tree


class State:
    """Everything that rows of the log change, and nothing else. `replica` is who decides here."""

    def __init__(
        self,
        name: str,
        arms: dict[str, float | None],
        settings: Settings,
        *,
        replica: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self.replica, self.settings, self.clock = name, replica, settings, clock
        self.roster = Roster(arms)
        self.tree = Tree(settings, self.roster, replica)
        self.ledger = Ledger()
        self.version = 0  # how often something was changed
        self.deleted = False
        self.pruned_before = 0.0  # decisions made before this time are no longer known
        self.sequence = 0  # of the last decision made here
        # outcomes, reward sum and cost sum of both groups, while there is a holdout
        self.groups: dict[str, list[Any]] = {"routed": [0, 0.0, 0.0], "holdout": [0, 0.0, 0.0]}
        self.decided = self.arrived = self.expired = 0  # decisions, outcomes, and deadlines that spoke
        self.prefix = f"{name}.{replica:x}."  # of the ids of decisions made here

    def create(self, arms: dict[str, float | None], settings: Settings) -> None:
        """Begin anew with other arms; numbers of decisions go on, so that an id never means two of them."""
        self.settings, self.deleted = settings, False
        self.roster = Roster(arms)
        self.tree = Tree(settings, self.roster, self.replica)
        self.ledger = Ledger()

    def id_of(self, replica: int, sequence: int) -> str:
        """The id of a decision."""
        return f"{self.name}.{replica:x}.{sequence:x}"
