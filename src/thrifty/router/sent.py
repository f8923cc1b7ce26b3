"""A decision as the router remembers it: what it counts for in the statistics now, and what it would after an outcome."""

from dataclasses import dataclass
from typing import NamedTuple


class Share(NamedTuple):
    """What one decision adds to the sums of its arm."""

    sent: int
    seen: int
    reward: float
    cost: float


PENDING, NOTHING = Share(1, 0, 0.0, 0.0), Share(0, 0, 0.0, 0.0)
"""Sent and not seen; and what a void outcome, an ignored one, or a shadow decision without a report counts for."""


@dataclass(slots=True)
class Sent:
    """One remembered decision."""

    id: str
    sequence: int
    segment: str
    arm: int
    at: float  # by the wall clock
    due: float  # by the monotonic clock
    price: float | None
    propensity: float
    code: str
    version: int
    request_id: str | None
    share: Share = PENDING
    waiting: bool = True  # for an outcome, or the deadline
    outcome_at: float = float("-inf")
    arrived: bool = False  # an outcome came, rather than the deadline
    void: bool = False
    position: int = 0
    replica: int = 0
    degraded: bool = False


def share_of(reward: float | None, cost: float) -> Share:
    """What an outcome counts for; a reward of None is void."""
    return NOTHING if reward is None else Share(1, 1, reward, cost)
