"""The calendar of outcomes that are on their way: put one in and take the due ones out, in constant time.

A hashed wheel: slot r mod S lists, first come first served, what falls due in round r. What is due a whole turn of the wheel
later stays in its slot until then.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import builder, index, kernel, record

Due = record(
    [
        ("round", np.int64),  # after whose decision it arrives
        ("arm", np.int64),
        ("seen", np.float64),  # 1 for an outcome, 0 for the correction of one
        ("reward", np.float64),
        ("cost", np.float64),
        ("propensity", np.float64),
        ("next", np.int64),  # in the same slot, or the next free entry; -1 at the end
    ]
)
NONE = -1


class Calendar(NamedTuple):
    """Lists of entries, one per slot, and one of the free ones."""

    first: NDArray[np.int64]  # (S,) the first entry of every slot
    last: NDArray[np.int64]  # (S,)
    entries: NDArray[np.void]
    free: NDArray[np.int64]  # the first free entry, and how many are free


@builder
def new_calendar(slots, room):
    """An empty calendar of `slots`, a power of two, with room for so many entries."""
    calendar = Calendar(np.full(slots, NONE), np.full(slots, NONE), np.zeros(room, Due), np.zeros(2, np.int64))
    _set_free(calendar, 0)
    return calendar


@builder
def with_room(calendar, room):
    """The same calendar with at least `room` free entries."""
    if calendar.free[1] >= room:
        return calendar
    known = calendar.entries.size
    entries = np.zeros(2 * known + room, Due)
    entries[:known] = calendar.entries
    grown = Calendar(calendar.first, calendar.last, entries, calendar.free)
    _set_free(grown, known)
    return grown


@kernel
def _set_free(calendar, start):
    """Add the entries from `start` on to the free ones."""
    for place in range(start, calendar.entries.size):
        calendar.entries[place].next = place + 1
    calendar.entries[calendar.entries.size - 1].next = calendar.free[0] if calendar.free[1] > 0 else NONE
    calendar.free[0] = start
    calendar.free[1] += calendar.entries.size - start


@kernel
def enter(calendar, due, arm, seen, reward, cost, propensity):
    """Put in what arrives after the decision of round `due`. There must be room."""
    place = index(calendar.free[0])
    entry = calendar.entries[place]
    calendar.free[0] = entry.next
    calendar.free[1] -= 1
    entry.round, entry.arm, entry.seen, entry.reward, entry.cost, entry.propensity = due, arm, seen, reward, cost, propensity
    _append(calendar, index(due & (calendar.first.size - 1)), place)


@kernel
def _append(calendar, slot, place):
    calendar.entries[place].next = NONE
    if calendar.first[slot] == NONE:
        calendar.first[slot] = place
    else:
        calendar.entries[index(calendar.last[slot])].next = place
    calendar.last[slot] = place


@kernel
def take_due(calendar, t):
    """Open the slot of round `t`: the first of its entries, to be followed by `next`; NONE when there is none."""
    slot = index(t & (calendar.first.size - 1))
    place = calendar.first[slot]
    calendar.first[slot] = NONE
    return place


@kernel
def is_due(calendar, place, t):
    """Whether the entry falls due now; one that does not goes back into its slot."""
    if calendar.entries[place].round == t:
        return True
    _append(calendar, index(t & (calendar.first.size - 1)), place)
    return False


@kernel
def release(calendar, place):
    """The entry has been dealt with."""
    calendar.entries[place].next = calendar.free[0]
    calendar.free[0] = place
    calendar.free[1] += 1
