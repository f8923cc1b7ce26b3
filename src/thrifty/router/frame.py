"""Arrays that the router's kernels work on: the sums of a segment, and the frame of a rule."""

from typing import Any, NamedTuple

import numpy as np

from thrifty.borrowing import SPREAD_FIELDS
from thrifty.compiled import record
from thrifty.router.packing import unpacker
from thrifty.statistics import ArmStatistics

ArmSums = record(
    [
        ("sent", np.int64),  # decisions
        ("pending", np.int64),  # decisions without an outcome
        ("seen", np.float64),  # outcomes that count
        ("reward_sum", np.float64),
        ("cost_sum", np.float64),
        ("reward_squares", np.float64),
        ("cost_squares", np.float64),
        ("priced", np.float64),  # outcomes whose cost is known: not those of a deadline where the price is unknown
        *SPREAD_FIELDS,  # how the segments below this one differ
    ]
)
"""What a segment counts per arm, of its own decisions and of all segments below it. One layout for every policy."""

STREAMS = 4
"""Streams of a decision: its choice, its probability, its group, and whether newcomers are offered."""

ARM, PROPENSITY, GREEDY, BEST, FLOOR, CODE, FACTS = 0, 1, 2, 3, 4, 5, 6
"""Places in `Frame.facts`; from FACTS on come the mean, the number of outcomes and the cost of every arm."""

DECISIONS, REACH, HORIZON, AFRESH = 0, 1, 2, 3
"""Places in `Frame.progress`: decisions so far, where the horizon grows next, the horizon, and whether everything is new."""

ALPHA, SPAN, BORROWS, FORGETS = 0, 1, 2, 3
"""Places in `Frame.scalars`: alpha, outcomes remembered, and whether segments borrow and statistics forget (0 or 1)."""


class Frame(NamedTuple):
    """What a rule works with, whatever the policy: the arms it may choose from and what is known about them."""

    scalars: Any
    progress: Any
    numbers: Any  # the policy's parameters
    costs: Any  # NaN where unknown: all or none
    by_cost: Any
    arms: Any  # place in this rule -> arm of the segment
    words: Any  # the seed of all streams
    stream: Any
    facts: Any
    effective: Any  # the segment's statistics of these arms, plus what it borrows
    stats: Any  # the same when the rule was last asked
    changed: Any  # one for every arm of which these differ
    levels: Any  # room for two records


def empty_frame(n_arms: int, n_numbers: int) -> Frame:
    """A frame of this size, full of zeros."""
    arms, words, statistics = np.zeros(n_arms, np.int64), np.zeros(4, np.uint64), np.zeros(n_arms, ArmStatistics)
    return Frame(
        scalars=np.zeros(4),
        progress=np.zeros(4, np.int64),
        numbers=np.zeros(n_numbers),
        costs=np.zeros(n_arms),
        by_cost=arms,
        arms=arms.copy(),
        words=words,
        stream=words.copy(),
        facts=np.zeros(FACTS + 3 * n_arms),
        effective=statistics,
        stats=statistics.copy(),
        changed=arms.copy(),
        levels=np.zeros(2, ArmStatistics),
    )


unpack_frame: Any = unpacker(empty_frame(1, 1))
