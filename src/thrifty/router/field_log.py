"""Who set each field of a router's configuration last, and when; and what a configuration file declared last. From the log."""

import json
from typing import Any, NamedTuple

from thrifty.router.configuration import Configuration, single_changes
from thrifty.store.log import PAGE_ROWS, Journal, Row

DECLARE = "declare"
"""The action of a change that only notes what a configuration file declared."""


class SetBy(NamedTuple):
    """Who set a field, and when (seconds since 1970)."""

    by: str
    at: float


class FieldLog:
    """Reads the changes of a router: all of them once, then those that are new. Reads the log, so call it from a worker thread.

    Fields are the settings by name, `arms.NAME.price`, `arms.NAME.status` and `pinned`.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal, self._upto = journal, 0
        self._known = Configuration({}, {})
        self.set_by: dict[str, SetBy] = {}
        self.declared: dict[str, Any] | None = None

    @property
    def deleted(self) -> bool:
        """True if the router was deleted and not made again."""
        return self._known.deleted

    def read(self) -> None:
        """Take in what is new."""
        while rows := self._journal.changes(self._upto):
            for position, row in rows:
                self._take(row)
                self._upto = position
            if len(rows) < PAGE_ROWS:
                return

    def _take(self, row: Row) -> None:
        body, known = json.loads(str(row.detail)), self._known
        before = fields_of(known)
        by = str(body.get("by") or "")
        for action, its_body in single_changes(row.code, body, known.version):
            by = by or str(its_body.get("by") or "")
            if action == DECLARE:
                self.declared = its_body["declared"]
            elif action != "prune":
                known.apply(action, its_body)
        after = fields_of(known)
        for name, value in after.items():
            if name not in before or before[name] != value:
                self.set_by[name] = SetBy(by, row.at)
        if row.code == "delete":
            self.set_by["router"] = SetBy(by, row.at)


def fields_of(known: Configuration) -> dict[str, Any]:
    """Every field of a configuration, with its value."""
    arms, found = known.arms, dict(known.values)
    for name, price, status in zip(arms.names, arms.prices, arms.status, strict=True):
        found[f"arms.{name}.price"], found[f"arms.{name}.status"] = price, status
    found["pinned"] = None if arms.pinned is None else arms.names[arms.pinned]
    return found
