"""A decision as the router remembers it: what it counts for in the statistics now, and what it would after an outcome."""

from dataclasses import dataclass, fields
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from thrifty.compiled import record
from thrifty.store.log import Row

CODES = ("exploit", "explore", "only", "newcomer", "holdout", "pinned")
"""Why an arm was chosen; a remembered decision keeps the number."""

EXPLOIT, EXPLORE, ONLY, HOLDOUT = 0, 1, 2, 4
OPEN, SPOKEN_FOR, ARRIVED = 0, 1, 2
"""How a decision stands: without an outcome, with that of the deadline, with one that came."""


class Note(NamedTuple):
    """What is kept of a decision that may be asked for once more."""

    request_id: str
    segment: str
    detail: str | None


@dataclass(slots=True)
class Sent:
    """One remembered decision. NaN stands for what is unknown; a `said_value` of NaN is a void outcome."""

    replica: int
    sequence: int
    segment: int  # its number in the tree
    made: int  # the arm it decided for
    arm: int  # the arm that was used, as far as is known
    code: int
    version: int  # of the router when it was made
    at: float
    due: float  # by the monotonic clock
    propensity: float
    price: float
    sent: int  # what it counts for in the sums of its arm: this and the next three
    seen: int = 0
    reward: float = 0.0
    cost: float = 0.0
    settled: int = OPEN
    said_at: float = nan  # the last outcome: when, what, and at what cost
    said_value: float = nan
    said_cost: float = nan
    waiting: int = 1  # for an outcome, or the deadline
    forgotten: int = 0  # whether what it counted for was, when the arm's statistics were reset
    position: int = 0  # of its last row in the log
    id: str = ""
    note: Note | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it counts as sent and not seen."""
        return self.sent == 1 and self.seen == 0

    def settle(self, row: Row, arm: int) -> None:
        """Let an outcome be the last word, and count for what it says."""
        self.arm, self.waiting = arm, 0
        self.settled = SPOKEN_FOR if row.code == "default" else ARRIVED
        self.said_at = row.at
        self.said_value, self.said_cost = number_or_nan(row.value), number_or_nan(row.cost)
        if row.value is None or self.forgotten:
            self.count_for_nothing()
        else:
            self.sent, self.seen, self.reward, self.cost = 1, 1, row.value, row.cost or 0.0

    def count_for_nothing(self) -> None:
        """Like a void outcome, an ignored one, or a shadow decision without a report."""
        self.sent, self.seen, self.reward, self.cost = 0, 0, 0.0, 0.0


NUMBERS = [field.name for field in fields(Sent) if field.type in (int, float)]
Entry = record([(field.name, {int: np.int64, float: np.float64}[field.type]) for field in fields(Sent) if field.name in NUMBERS])  # type: ignore[index]
"""The numbers of a `Sent` as compiled code and the ledger keep them: a record of fields of eight bytes each."""


def number_or_nan(value: float | None) -> float:
    """NaN for None."""
    return nan if value is None else value


def number_or_none(value: float) -> float | None:
    """None for NaN."""
    return None if isnan(value) else value
