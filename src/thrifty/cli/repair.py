"""`thrifty repair`: open every router of a store, show the rows that cannot be applied, and void one."""

import sys
from datetime import UTC, datetime
from typing import Any

from thrifty.store.log import CHANGE, DECISION, OUTCOME, Row

_KINDS = {DECISION: "decision", OUTCOME: "outcome", CHANGE: "change"}


def repair(store: Any, names: list[str], *, void: int | None, reason: str | None, ask: bool) -> None:
    """Void a row if one is named, then try to open the routers; a ValueError if some of them cannot be opened."""
    if void is not None:
        names = [_void(store, names, position=void, reason=str(reason), ask=ask)]
    failed = [name for name in names if not _opens(store, name)]
    if failed:
        raise ValueError(
            f"{len(failed)} of {len(names)} routers cannot be opened: {', '.join(failed)}. Restore what a row needs "
            "(a policy file, a newer thrifty), or leave the row out with --void POSITION --reason TEXT"
        )


def _opens(store: Any, name: str) -> bool:
    """True if the log of a router can be applied; prints what it finds."""
    from thrifty.router import Router

    try:
        Router.reopen(name, store)
    except Exception as error:  # whatever a row or a policy file of the user raises is what this command is to show
        position, row = getattr(error, "position", None), getattr(error, "row", None)
        if not isinstance(row, Row):
            print(f"{name}: cannot be opened: {_described(error)}")
            return False
        cause = getattr(error, "cause", None) or error.__cause__ or error
        print(f"{name}: row {position} cannot be applied: {_described(cause)}")
        _show(row, position)
        return False
    finally:
        store.journal(name).ignore()
    print(f"{name}: ok{_note(store.journal(name).voided())}")
    return True


def _void(store: Any, names: list[str], *, position: int, reason: str, ask: bool) -> str:
    """Void a row, after asking on a terminal; returns the name of its router."""
    found = store.row_at(position)
    if found is None or found[0] not in names:
        raise ValueError(f"there is no row {position} in the log of {', '.join(names)}; `thrifty repair` shows the row to void")
    name, row = found
    print(f"{name}: row {position} is to be voided")
    _show(row, position)
    if ask:
        if not sys.stdin.isatty():
            raise ValueError("nothing was voided: there is no terminal to ask on, add --yes")
        if input("void this row? [y/N] ").strip().lower() not in ("y", "yes"):
            raise ValueError("nothing was voided")
    store.journal(name).void(position, reason=reason)
    return str(name)


def _show(row: Row, position: int | None) -> None:
    try:
        at = datetime.fromtimestamp(row.at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):  # the row is shown because something is wrong with it
        at = str(row.at)
    print(f"  position {position}, kind {_KINDS.get(row.kind, row.kind)}, code {row.code}, time {at}")
    print(f"  detail {row.detail or 'none'}")


def _note(voided: dict[int, str]) -> str:
    return "".join(f"\n  row {position} is void: {reason}" for position, reason in voided.items())


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
