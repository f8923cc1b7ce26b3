"""Drift: how a router differs from what the configuration file declares, and the changes that the file asks for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from thrifty.router import Settings
from thrifty.router.arms import Arms
from thrifty.router.field_log import DECLARE, SetBy
from thrifty.router.known_start import KnownStart
from thrifty.router.rehearsal import Change
from thrifty.service.declarations import Declaration

NOT_DECLARED = "not declared"


@dataclass(frozen=True)
class Difference:
    """One field of a router that is not as declared: what it is instead, who set it, and when (seconds since 1970)."""

    field: str
    declared: Any
    actual: Any
    by: str | None
    at: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def differences(
    wanted: Declaration, arms: Arms, settings: Settings, set_by: Mapping[str, SetBy], *, known: KnownStart | None
) -> list[Difference]:
    """Every field that differs. What the file does not name is not declared, and never differs.

    A router starts once, so a file cannot change its known outcomes: they differ until the router is deleted, or the file changed
    back.
    """
    found: list[tuple[str, Any, Any]] = []
    if wanted.start is not None and wanted.start != known:
        found.append(("known", str(wanted.start), "none" if known is None else str(known)))
    for name, value in wanted.settings.items():
        found.append((name, value, getattr(settings, name)))
    for name, price in wanted.arms.items():
        arm = arms.find(name)
        status = "retired" if arm is None else arms.status[arm]
        found.append((f"arms.{name}.status", "active", status))
        if arm is not None and status != "retired":
            found.append((f"arms.{name}.price", price, arms.prices[arm]))
    for name, status in zip(arms.names, arms.status, strict=True):
        if name not in wanted.arms and status != "retired":
            found.append((f"arms.{name}.status", NOT_DECLARED, status))
    found.append(("pinned", None, None if arms.pinned is None else arms.names[arms.pinned]))
    return [_difference(*each, set_by) for each in found if each[1] != each[2]]


def _difference(field: str, declared: Any, actual: Any, set_by: Mapping[str, SetBy]) -> Difference:
    known = set_by.get(field)
    return Difference(
        field, declared, actual, (known.by or None) if known is not None else None, None if known is None else known.at
    )


def wanted_changes(
    wanted: Declaration, last: Mapping[str, Any] | None, arms: Arms, settings: Settings, *, enforce: bool, by: str
) -> list[Change]:
    """The changes that a file asks for.

    A field is changed if its value in the file is another than when the file was last read (`last`, None for never). With
    `enforce` every declared field is changed that differs. A pause and a pin are never undone.
    """
    old: dict[str, Any] = {} if last is None else {**last["settings"], **{f"arms.{n}": p for n, p in last["arms"].items()}}
    missing = object()

    def is_due(field: str, value: Any) -> bool:
        return enforce or (last is not None and old.get(field, missing) != value)

    found: list[Change] = [] if last == wanted.to_dict() else [(DECLARE, {"declared": wanted.to_dict(), "by": by})]
    for action, name, price in arms.differences(wanted.arms):
        was_declared = f"arms.{name}" in old
        if (action == "retire" and (enforce or was_declared)) or (action != "retire" and is_due(f"arms.{name}", price)):
            found.append((action, {"arm": name, "price": price, "by": by}))
    due = {name: value for name, value in wanted.settings.items() if getattr(settings, name) != value and is_due(name, value)}
    if due:
        found.append(("settings", {**settings.to_dict(), **due, "by": by}))
    return found
