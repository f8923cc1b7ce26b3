"""Recording: an outcome becomes a row, counted and handed to the log."""

import time
from typing import TYPE_CHECKING, Any

from thrifty.router.outcome import checked_outcome, checked_time, outcome_row
from thrifty.router.replicated_log import ReplicatedLog
from thrifty.router.restore import ColdDecisionError, DecisionInFlightError, remember

if TYPE_CHECKING:
    from thrifty.router.router import Router

LANDING_S = 1.0
"""How long an outcome waits for its decision, which was given out before it was stored."""


def record_soon(
    router: "Router",
    decision_id: str,
    reward: float | None = None,
    *,
    status: str | None = None,
    cost: float | None = None,
    arm: str | None = None,
    occurred_at: float | None = None,
    cold: bool = False,
) -> tuple[str, int]:
    """Like `record`, with the position of the log to wait for.

    A decision that is not in memory is a ColdDecisionError; with `cold` it is looked up in the log, which takes milliseconds.
    """
    value, at = checked_outcome(reward, status, cost), None if occurred_at is None else checked_time(occurred_at)
    cost = None if cost is None else float(cost)
    while True:
        with router.lock:
            router.refresh()
            state = router.state
            key = state.key_of(decision_id)
            slot = state.records.slot(key)
            if slot is not None:
                router.log.admit_outcome(key)
                known, position = router.log.latest(state, slot)
                row = outcome_row(state, known, value, cost, arm, at)
                if isinstance(row, str):
                    return row, position
                position = router.log.add_outcome(state, row, slot)
                if router.rewards is not None and row.code == "recorded" and row.value is not None:
                    router.rewards.add(str(row.arm), row.value)
                router.moved_on()
                return row.code, position
        if not cold and router.log.journal is not None:
            raise ColdDecisionError(decision_id)
        load(router, decision_id)


def record_when_stored(router: "Router", decision_id: str, reward: float | None, **outcome: Any) -> tuple[str, int]:
    """Like `record_soon`, but wait a moment for a decision that is on its way to the log."""
    until = time.monotonic() + LANDING_S
    while True:
        try:
            return router.record_soon(decision_id, reward, cold=True, **outcome)
        except DecisionInFlightError:
            if time.monotonic() > until:
                raise
        time.sleep(0.002)


def load(router: "Router", decision_id: str) -> None:
    """Bring a decision back into memory from the log; a KeyError where it is not there either. May take milliseconds."""
    key = router.state.key_of(decision_id)
    while True:
        state = router.state
        if not isinstance(router.log, ReplicatedLog):
            router.wait(state.reset_at)  # what a reset forgot must be in the log before it is looked for there
        records, version, removals = state.records, state.version, state.records.removals
        found = router.log.find(state, key)
        with router.lock:
            if key in router.state.records:
                return
            if records is not router.state.records or removals != records.removals or version != router.state.version:
                continue  # it may have been here and gone since it was read
            if not found or found[0].numbers["at"] < router.state.pruned_before:
                raise KeyError(f"no decision {decision_id!r:.80} is known: it is wrong, or older than what is remembered")
            remember(router.state, found[0])
            return
