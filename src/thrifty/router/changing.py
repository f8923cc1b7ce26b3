"""Changing: changes of arms and settings are tried on a copy, then logged and applied; old rows are pruned."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thrifty.router.engine import Engine
from thrifty.router.rehearsal import Change, try_changes
from thrifty.router.state import State
from thrifty.store.log import CHANGE, Row

if TYPE_CHECKING:
    from thrifty.router.router import Router


def make_changes(router: "Router", wanted: Callable[[State], list[Change]]) -> None:
    """Try changes on a copy, without the lock; if all work, log and apply them, unless something else was changed meanwhile."""
    while True:
        with router.lock:
            router.refresh()
            version, changes = router.state.version, wanted(router.state)
            arms, settings = router.state.arms.copy(), router.state.settings
        engine = try_changes(arms, settings, changes)
        with router.lock:
            if router.state.version != version:
                continue
            if not changes:
                return
            action, body = changes[0] if len(changes) == 1 else ("changes", {"changes": changes})
            position = add_change(router, action, body, engine)
        router.wait(position)
        return


def add_change(router: "Router", action: str, body: dict[str, Any], engine: Engine | None) -> int:
    """Log and apply a change that was tried; what to wait for. Called under the lock."""
    state, arm = router.state, body.get("arm")
    row = Row(CHANGE, state.replica, state.sequence, state.clock.time(), None, None, arm, None, None, action, json.dumps(body))
    position = router.log.add_change(state, row, engine)
    router.moved_on()
    return position


def prune(router: "Router", before: float, *, by: str = "") -> int:
    """Delete decisions made before a time (seconds since 1970) and their outcomes from the log; the number of rows deleted.

    The statistics stay as they are, kept in snapshots. Decisions that may still wait for an outcome stay too. Outcomes of
    deleted decisions are refused from now on. Changes are never deleted, and this becomes one more.
    """
    journal = router.log.journal
    if journal is None:
        raise ValueError("a router without a store has no log to prune")
    router.history_keeper.check_complete(router)
    router.expire()
    router.log.flush()
    with router.lock:
        state = router.state
        oldest = state.deadlines.oldest_waiting(state.records, state.clock)
        before = min(before, state.clock.time() - state.settings.deadline_s, oldest)
        position = add_change(router, "prune", {"before": before, "by": by}, None)
    router.wait(position)
    covered = router.snapshots.take_now(router)
    rows = journal.prune(before=before, upto=covered)
    with router.lock:
        position = add_change(router, "pruned", {"before": before, "rows": rows, "by": by}, None)
    router.wait(position)
    router.snapshots.take_now(router)
    return rows
