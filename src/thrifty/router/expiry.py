"""Expiry: decisions past their deadline get the default outcome, and old decisions leave memory."""

import math
from typing import TYPE_CHECKING

from thrifty.router.deadlines import Period
from thrifty.router.outcome import default_row
from thrifty.router.records import WAITING, WIDTH, Key
from thrifty.router.restore import recall, remember
from thrifty.store.log import Journal, Row

if TYPE_CHECKING:
    from thrifty.router.router import Router

ROWS_AT_ONCE = 20_000
"""Positions of the log that one look for old decisions covers, at most."""

DECISIONS_AT_ONCE = 200


def expire_in_memory(router: "Router", *, most: int) -> bool:
    """Write the default outcomes that are due, so many at most; whether there may be more. Called under the lock."""
    state = router.state
    now = state.clock.monotonic()
    found = state.deadlines.due_in_memory(state.records, now, most)
    ours = [key for key in found if router.log.may_expire(state, key, now)]
    for key in ours:
        write_default(router, key)
    return len(found) == most and bool(ours)


def write_default(router: "Router", key: Key) -> None:
    """The default outcome of a decision in memory. Called under the lock."""
    state = router.state
    slot = state.records.slot(key)
    if slot is None or not state.records.get(slot, "waiting"):
        return  # it left memory while others were written
    router.log.add_outcome(state, default_row(state, slot), slot)
    router.moved_on()


def expire_cold(router: "Router") -> None:
    """Write the default outcomes that are due of decisions that left memory. The log is read without the lock."""
    journal = router.log.journal
    if journal is None or router.failed is not None:
        return
    for period in list(router.state.deadlines.periods):
        while period.cold_due <= router.state.clock.monotonic() and period.cold_after < period.cold_upto:
            if not _expire_part(router, period, journal):
                break


def _expire_part(router: "Router", period: Period, journal: Journal) -> bool:
    """Look for decisions without an outcome in the next part of a period's range; False where the rest is not due yet."""
    records, after = router.state.records, period.cold_after
    removals, upto = records.removals, min(period.cold_upto, after + ROWS_AT_ONCE)
    rows = journal.open_decisions(after=after, upto=upto, limit=DECISIONS_AT_ONCE)
    with router.lock:
        state = router.state
        if records is not state.records or period not in state.deadlines.periods:
            return False
        if removals != records.removals or after != period.cold_after:
            return True  # one of them may have been here and gone since it was read: look again
        for position, row in rows:
            due = _expire_row(router, position, row)
            if due is not None:
                period.cold_after, period.cold_due = position - 1, due
                return False
        period.cold_after = rows[-1][0] if len(rows) == DECISIONS_AT_ONCE else upto
        if period.cold_after >= period.cold_upto:
            period.cold_due = math.inf
        return True


def _expire_row(router: "Router", position: int, row: Row) -> float | None:
    """Write the default outcome of a decision in the log; or when to try again, if it is not due or not ours to write."""
    state, key = router.state, (row.replica, row.sequence)
    slot = state.records.slot(key)
    if slot is None:
        found = recall(state, [(position, row)])
        if not found or found[0].numbers["at"] < state.pruned_before:
            return None
        slot = remember(state, found[0])
    if not state.records.get(slot, "waiting"):
        return None
    due, now = state.records.get(slot, "due"), state.clock.monotonic()
    if due > now:
        return float(due)
    if not router.log.may_expire(state, key, now):
        return float(now + 0.2)
    write_default(router, key)
    return None


def make_room(router: "Router") -> None:
    """Let old decisions leave memory. Without a log they cannot come back: one that waits gets its default outcome now."""
    state, log = router.state, router.log
    if log.journal is not None:
        state.trim(log.may_evict)
        return
    while state.records.n_bytes > state.settings.memory_bytes:
        key = state.records.oldest()
        if key is None:
            return
        slot = state.records.at(key)
        if state.records.integers[slot * WIDTH + WAITING]:
            log.add_outcome(state, default_row(state, slot), slot)
        state.records.remove(key)
