"""Expiry: decisions past their deadline get the default outcome, and old decisions leave memory."""

from typing import TYPE_CHECKING

from thrifty.router.deadlines import Period
from thrifty.router.outcome import default_row
from thrifty.router.records import Key
from thrifty.router.restore import recall, remember
from thrifty.store.log import Row

if TYPE_CHECKING:
    from thrifty.router.router import Router

ROWS_AT_ONCE = 20_000
"""Positions of the log that one look for old decisions covers, at most."""

DECISIONS_AT_ONCE = 200


def expire_in_memory(router: "Router", *, most: int) -> bool:
    """Write the default outcomes that are due, so many at most; whether there may be more. Called under the lock."""
    state = router.state
    now = state.clock.monotonic()
    for _ in range(most):
        key = state.deadlines.next_in_memory(state.records, now)
        if key is None or not router.log.may_expire(state, key, now):
            return False
        write_default(router, key)
    return True


def write_default(router: "Router", key: Key) -> None:
    """The default outcome of a decision in memory. Called under the lock."""
    state = router.state
    slot = state.records.slot(key)
    assert slot is not None
    router.log.add_outcome(state, default_row(state, slot), slot)
    router.moved_on()


def expire_cold(router: "Router") -> None:
    """Write the default outcomes that are due of decisions that left memory. The log is read without the lock."""
    journal = router.log.journal
    if journal is None or router.failed is not None:
        return
    for period in list(router.state.deadlines.periods):
        while period.cold_due <= router.state.clock.monotonic() and period.cold_after < period.cold_upto:
            after, upto = period.cold_after, min(period.cold_upto, period.cold_after + ROWS_AT_ONCE)
            rows = journal.open_decisions(after=after, upto=upto, limit=DECISIONS_AT_ONCE)
            with router.lock:
                if period not in router.state.deadlines.periods or period.cold_after != after:
                    return
                done = rows[-1][0] if len(rows) == DECISIONS_AT_ONCE else upto
                if not _expire_rows(router, period, rows):
                    return
                period.cold_after = done
                if period.cold_after >= period.cold_upto:
                    period.cold_due = float("inf")


def _expire_rows(router: "Router", period: Period, rows: list[tuple[int, Row]]) -> bool:
    """Write the default outcomes of decisions without one, in order; False at the first that is not due yet."""
    state = router.state
    now = state.clock.monotonic()
    for position, row in rows:
        key = row.replica, row.sequence
        slot = state.records.slot(key)
        if slot is None:
            found = recall(state, [(position, row)])
            if not found or found[0].numbers["at"] < state.pruned_before:
                continue
            slot = remember(state, found[0])
        if not state.records.get(slot, "waiting"):
            continue
        due = state.records.get(slot, "due")
        if due > now or not router.log.may_expire(state, key, now):
            period.cold_after, period.cold_due = position - 1, due if due > now else now + 0.2
            return False
        write_default(router, key)
    return True


def make_room(router: "Router") -> None:
    """Let old decisions leave memory. Without a log they cannot come back: one that waits gets its default outcome now."""
    state, log = router.state, router.log
    if log.journal is not None:
        state.trim(log.is_durable)
        return
    while state.records.n_bytes > state.settings.memory_bytes:
        key = state.records.oldest()
        slot = None if key is None else state.records.slot(key)
        if key is None or slot is None:
            return
        if state.records.get(slot, "waiting"):
            log.add_outcome(state, default_row(state, slot), slot)
        state.records.remove(key)
