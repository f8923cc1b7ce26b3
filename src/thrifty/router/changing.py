"""Changing: changes of arms and settings are tried on a copy, then logged and applied; old rows are pruned."""

import json
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from thrifty.router.change_log import ConflictError
from thrifty.router.engine import Engine
from thrifty.router.rehearsal import Change, try_changes
from thrifty.router.settings import Settings
from thrifty.router.state import State
from thrifty.store.log import CHANGE, Row

if TYPE_CHECKING:
    from thrifty.router.router import Router


PATIENCE_S = 2.0
"""How long an undo waits until the state of the router and its log say the same."""


def make_changes(
    router: "Router",
    wanted: Callable[[State], list[Change]],
    *,
    version: int | None = None,
    notes: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Try changes on a copy, without the lock; if all work, log and apply them, unless something else was changed meanwhile.

    Parameters
    ----------
    wanted : is given the state, and returns the changes
    version : of the router that they are meant for; a ConflictError if it is another by now, here or on another replica
    notes : what the row says besides the changes

    """
    while True:
        with router.lock:
            router.refresh()
            before = router.state.version
            if router.state.configuration.deleted:  # one of this name may have been made since, and has the same log
                raise ConflictError(f"router {router.name!r} was deleted meanwhile: look again")
            check_version(router.name, before, version)
            changes = wanted(router.state)
            arms, settings = router.state.arms.copy(), router.state.settings
            configuration = router.state.configuration
            fallen_back, apart, left = configuration.fallback is not None, configuration.known is not None, configuration.known_left
        engine = try_changes(arms, settings, changes, fallen_back=fallen_back, apart=apart, known=left)
        with router.lock:
            if router.state.version != before:
                continue
            if not changes:
                return
            action, body = changes[0] if len(changes) == 1 else ("changes", {"changes": changes})
            meant = {} if version is None else {"if_version": version}
            position = add_change(router, action, {**body, **notes, **meant}, engine)
        router.wait(position)
        if router.log.was_overtaken(position) and version is not None:
            raise ConflictError(f"router {router.name!r} was changed at the same time on another replica: look again")
        return


def check_version(name: str, found: int, wanted: int | None) -> None:
    """Raise a ConflictError unless a router has the version that a change is meant for."""
    if wanted not in (None, found):
        raise ConflictError(f"router {name!r} has version {found} by now, and the change was meant for {wanted}: look again")


def adjust(router: "Router", *, by: str = "", version: int | None = None, **values: Any) -> None:
    """Change some settings and keep all others; logged, and durable when this returns.

    Parameters
    ----------
    by : who asked, for the log
    version : of the router that the change is meant for; a ConflictError if it has changed since
    values : settings by name, such as alpha=0.08

    """
    unknown = set(values) - set(Settings.names())
    if unknown:
        raise ValueError(f"a router has no setting {min(unknown)!r}; it has {', '.join(Settings.names())}")

    def wanted(state: State) -> list[Change]:
        settings = Settings(**{**state.settings.to_dict(), **values})
        return [] if settings == state.settings else [("settings", {**settings.to_dict(), "by": by})]

    make_changes(router, wanted, version=version)


def delete(router: "Router", *, by: str = "", version: int | None = None) -> None:
    """Write into the log that the router is no more; the log stays. With a `version`, a ConflictError if it has changed since.

    In a shared log a row that deletes holds whatever came before it: stores list routers by it. So the version is taken first, by a
    row that writes the settings as they are. What is changed without a version between the two is deleted as well.
    """
    if version is not None and router.log.journal is not None and router.log.journal.shared:
        make_changes(router, lambda state: [("settings", {**state.settings.to_dict(), "by": by})], version=version)
        version = None
    make_changes(router, lambda _state: [("delete", {"by": by})], version=version)


def undo(router: "Router", position: int, *, by: str = "", version: int | None = None) -> None:
    """Undo one change of the log, by another change; a ConflictError where later changes make that meaningless.

    Parameters
    ----------
    position : of the change in the log, as `changes` shows it
    by : who asked, for the log
    version : of the router that the person looked at; a ConflictError if it has changed since

    """
    until = time.monotonic() + PATIENCE_S
    while True:
        inverse, known = router.change_log.inverse(position)
        check_version(router.name, known, version)
        if router.version == known:
            break
        if time.monotonic() > until:  # the state and its log differ as long as a change is being written
            raise ConflictError(f"router {router.name!r} is being changed: look again")
        time.sleep(0.002)

    def wanted(state: State) -> list[Change]:
        changes: list[Change] = [(action, {"arm": arm, "price": price, "by": by}) for action, arm, price in inverse.arms]
        if inverse.settings:
            settings = Settings.from_dict({**state.settings.to_dict(), **inverse.settings})
            changes.append(("settings", {**settings.to_dict(), "by": by}))
        return changes

    try:
        make_changes(router, wanted, version=known, notes={"by": by, "undoes": position})
    except ConflictError:
        raise
    except ValueError as error:  # the last active arm would go, say
        raise ConflictError(f"change {position} cannot be undone now: {error}") from None


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
    router.history_keeper.check_complete(router, patient=not router.background)
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
