"""A decision as the router remembers it: what it counts for in the statistics now, and what it would after an outcome."""

from typing import NamedTuple

from thrifty.store.row import Row


class Share(NamedTuple):
    """What one decision adds to the sums of its arm."""

    sent: int
    seen: int
    reward: float
    cost: float


_new = tuple.__new__  # half the time of calling the class

PENDING, NOTHING = Share(1, 0, 0.0, 0.0), Share(0, 0, 0.0, 0.0)
"""Sent and not seen; and what a void outcome, an ignored one, or a shadow decision without a report counts for."""


class Sent:
    """One remembered decision: its row of the log, and what has become of it."""

    __slots__ = ("arm", "degraded", "due", "forgotten", "id", "outcome", "position", "row", "share", "version", "waiting")

    def __init__(self, id: str, row: Row, arm: int, due: float, version: int, share: Share) -> None:
        self.id = id
        self.row = row
        self.arm = arm
        self.due = due  # by the monotonic clock
        self.version = version  # of the router when it was made
        self.share = share
        self.outcome: Row | None = None  # the last row that settled it
        self.waiting = True  # for an outcome, or the deadline
        self.forgotten = False  # what it counted for was, when the arm's statistics were reset
        self.position = 0  # of its last row in the log
        self.degraded = False

    @property
    def arrived(self) -> Row | None:
        """The outcome, if one came, rather than the deadline."""
        return None if self.outcome is None or self.outcome.code == "default" else self.outcome


def share_of(reward: float | None, cost: float) -> Share:
    """What an outcome counts for; a reward of None is void."""
    return NOTHING if reward is None else _new(Share, (1, 1, reward, cost))
