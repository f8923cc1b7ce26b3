"""The calendar of outcomes that have not arrived yet: put one in and take the due ones out, in constant time.

A hashed wheel: slot r mod S lists, first come first served, what falls due in round r. What is due a whole turn of the wheel
later stays in its slot until then. Place s < S of the links is the head of slot s, and entries have the places from S on: an
empty list needs no case of its own, for nobody can predict which slots are empty.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Integers
from thrifty.compiled import builder, index, kernel, record

Due = record(
    [
        ("due", np.int64),  # the round after whose decision it arrives (records have a method `round`)
        ("arm", np.int32),
        ("seen", np.int32),  # 1 for an outcome, 0 for the correction of one
        ("settles", np.int32),  # 1 if a decision waits no longer, 0 if it did not wait any more
        ("reward", np.float64),
        ("cost", np.float64),
        ("reward_square", np.float64),
        ("cost_square", np.float64),
        ("propensity", np.float64),
    ]
)
NONE = -1


class Calendar(NamedTuple):
    """Lists of entries, one per slot, and one of those that were released."""

    last: Integers  # (S,) the place of the last entry of every slot, or of its head
    links: Integers  # (S + room,) the place of the following entry, NONE at the end
    entries: NDArray[np.void]  # (S + room,) of which heads have none
    free: Integers  # the place of the first released entry, or NONE; the first place that was never used


@builder
def new_calendar(slots, room):
    """An empty calendar of `slots`, a power of two, with room for so many entries."""
    links, entries = np.full(slots + room, NONE), np.empty(slots + room, Due)
    return Calendar(np.arange(slots), links, entries, np.array([NONE, slots]))


@builder
def with_room(calendar, room):
    """The same calendar with room for so many more entries."""
    used = calendar.free[1]
    if calendar.entries.size - used >= room:
        return calendar
    size = 2 * used + room
    links, entries = np.empty(size, np.int64), np.empty(size, Due)  # what is not used is not touched, and costs no memory
    links[:used] = calendar.links[:used]
    entries[:used] = calendar.entries[:used]
    return Calendar(calendar.last, links, entries, calendar.free)


@kernel
def enter(calendar, due, outcome, change, settles):
    """Put in what arrives after the decision of round `due`, and what it adds to the sums. There must be room."""
    place = index(calendar.free[1])
    if calendar.free[0] == NONE:
        calendar.free[1] = place + 1
    else:
        place = index(calendar.free[0])
        calendar.free[0] = calendar.links[place]
    entry = calendar.entries[place]
    entry.due, entry.arm, entry.seen, entry.propensity = due, outcome.arm, int(change.seen), outcome.propensity
    entry.settles = settles
    entry.reward, entry.cost = change.reward, change.cost
    entry.reward_square, entry.cost_square = change.reward_square, change.cost_square
    _append(calendar, index(due & (calendar.last.size - 1)), place)


@kernel
def _append(calendar, slot, place):
    calendar.links[index(calendar.last[slot])] = place
    calendar.links[place] = NONE
    calendar.last[slot] = place


@kernel
def take_due(calendar, t):
    """Empty the slot of round `t`: the place of its first entry, NONE when there is none."""
    slot = index(t & (calendar.last.size - 1))
    place = calendar.links[slot]
    calendar.links[slot] = NONE
    calendar.last[slot] = slot
    return place


@kernel
def following(calendar, place):
    """The place of the entry after the one at `place`, NONE at the end. To be read before that one is put elsewhere."""
    return calendar.links[place]


@kernel
def is_due(calendar, place, t):
    """Whether the entry falls due now; one that does not goes back into its slot."""
    if calendar.entries[place].due == t:
        return True
    _append(calendar, index(t & (calendar.last.size - 1)), place)
    return False


@kernel
def release(calendar, place):
    """The entry has been dealt with."""
    calendar.links[place] = calendar.free[0]
    calendar.free[0] = place
