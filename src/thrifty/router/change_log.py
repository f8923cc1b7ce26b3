"""The changes of a router as its log has them: who did what, what undoes it, and what was undone.

A change touches *aspects* of the configuration: the status or the price of an arm, the pin, one setting. Its inverse gives each of
them the value it had before. It makes sense as long as no other change has touched the same aspect since, undone ones apart.
"""

import json
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from thrifty.described import described
from thrifty.router.change_texts import Aspect, Values, aspect_text, change_text, inverse_text
from thrifty.router.configuration import Configuration, single_changes
from thrifty.router.settings import Settings
from thrifty.store.log import PAGE_ROWS, Journal, Row

MOST_CHANGES = 2000
"""The newest changes that are kept in memory, and can be undone."""

RESET_STAYS = "the statistics that a reset forgot are kept nowhere but in rows of the log, which may be pruned"

_NO_INVERSE = {
    "reset": RESET_STAYS,
    "create": "the making of a router cannot be undone: delete the router instead",
    "delete": "a deleted router is made anew by PUT",
    "fallback": "a fallback ends when a person moves the rollout on",
    "graduate": "that an arm is a newcomer no more follows from its outcomes",
}
FALLBACK = ("fallback", None)
"""Whether the guardrail has made the router fall back: an aspect that no undo can give back."""

_ORDER = {"resume": 0, "price": 1, "pause": 2, "retire": 2, "pin": 3, "unpin": 3}


class ConflictError(ValueError):
    """A change was meant for another version of the router, or can no longer be undone: look again, then ask again."""


ArmChange = tuple[str, str | None, float | None]
"""An action, an arm and a price."""


class Step(NamedTuple):
    """From which state of an aspect a change led to which; a state is named by the change that made it first, 0 the one before all.

    A change `enters` a state, and its undo leaves it again; the undo of an undo enters the same state again.
    """

    before: int
    after: int
    enters: bool


class Inverse(NamedTuple):
    """What undoes a change: changes of arms (action, arm, price), and settings by name."""

    arms: tuple[ArmChange, ...]
    settings: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values: one action, or several as `changes`."""
        found = [{"action": action, "arm": arm, "price": price} for action, arm, price in self.arms]
        if self.settings:
            found.append({"action": "settings", **self.settings})
        text = inverse_text(self.arms, self.settings)
        return {**found[0], "text": text} if len(found) == 1 else {"action": "changes", "changes": found, "text": text}


@dataclass
class LoggedChange:
    """One row of the log. `touched` has the values before and after of each aspect; `steps` the states.

    `prices` are those of the arms that it retired: an arm that was added at another price and retired again has that one since.
    """

    position: int
    at: float
    action: str
    arm: str | None
    price: float | None
    by: str
    text: str
    undoes: int | None
    applied: bool
    touched: dict[Aspect, tuple[Any, Any]]
    prices: dict[str, float | None]
    steps: dict[Aspect, Step] = field(default_factory=dict)
    undone_by: int | None = None


class ChangeLog:
    """Reads the changes of a router from its log: all of them once, then those that are new. May be slow; safe in any thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal, self._lock = journal, threading.Lock()
        self._known, self._upto = Configuration({}, {}), 0
        self._changes: OrderedDict[int, LoggedChange] = OrderedDict()
        self._states: dict[Aspect, deque[int]] = {}  # the states that were entered and not left, the present one last
        self._moved_by: dict[tuple[Aspect, int], int] = {}  # the last change that entered or left a state

    def newest(self, limit: int, before: int | None = None) -> list[dict[str, Any]]:
        """The newest changes before a position, newest first, as plain values; `undo` is None where a change cannot be undone."""
        with self._lock:
            self._read()
            found = (change for position, change in reversed(self._changes.items()) if before is None or position < before)
            return [self._shown(change) for change, _ in zip(found, range(limit), strict=False)]

    def inverse(self, position: int) -> tuple[Inverse, int]:
        """What undoes the change at a position, and the version for which that holds; a ConflictError says why nothing does."""
        with self._lock:
            self._read()
            change = self._changes.get(position)
            if change is None:
                raise KeyError(f"there is no change at position {position}: see the changes of this router")
            reason = self._obstacle(change)
            if reason is not None:
                raise ConflictError(f"change {position} cannot be undone: {reason}")
            return self._inverse(change), self._known.version

    def _shown(self, change: LoggedChange) -> dict[str, Any]:
        reason = self._obstacle(change)
        return {
            **{name: getattr(change, name) for name in ("position", "at", "action", "arm", "price", "by", "text", "undoes")},
            "undo": None if reason is not None else self._inverse(change).to_dict(),
            "why_not": reason,
            "undone_by": change.undone_by,
        }

    def _obstacle(self, change: LoggedChange) -> str | None:
        """Why a change cannot be undone; None if it can."""
        if change.action in _NO_INVERSE or not change.touched:
            return _NO_INVERSE.get(change.action, "it changed nothing")
        if FALLBACK in change.touched:
            return "it ended a fallback, and only the guardrail begins one: move the rollout instead"
        if change.undone_by is not None:
            return f"it was undone already, by change {change.undone_by}"
        for aspect in change.touched:
            later = self._later(aspect, change.steps[aspect].after)
            if later is not None:
                return f"{aspect_text(aspect)} was changed again, by change {later}: undo that first"
        return self._gone_since(change)

    def _gone_since(self, change: LoggedChange) -> str | None:
        """Why nothing undoes a change that gives something back to an arm which cannot take it since; None if each can.

        A price needs an arm that is not retired, the pin one that is active.
        """
        arms, wanted = self._known.arms, _inverse(change.touched).arms
        back = {arm for action, arm, _ in wanted if action == "resume"}
        for action, arm, _ in wanted:
            gone = {"price": ("retired",), "pin": ("retired", "paused")}.get(action, ())
            if arm not in back and gone and arms.status[arms.index(arm)] in gone:
                status = "status", arm
                return f"{aspect_text(status)} was changed again, by change {self._entered_by(status)}: undo that first"
        return None

    def _inverse(self, change: LoggedChange) -> Inverse:
        """What undoes a change; an arm that it retired comes back at the price it had."""
        arms, inverse = self._known.arms, _inverse(change.touched)
        moved = tuple(("price", arm, price) for arm, price in change.prices.items() if arms.prices[arms.index(arm)] != price)
        return Inverse(_in_order([*inverse.arms, *moved]), inverse.settings)

    def _now(self, aspect: Aspect) -> int:
        """The state of an aspect now."""
        states = self._states.get(aspect)
        return states[-1] if states else 0

    def _entered_by(self, aspect: Aspect) -> int:
        """The change that entered the state of an aspect now; 0 if none has."""
        return self._moved_by.get((aspect, self._now(aspect)), 0)

    def _later(self, aspect: Aspect, state: int) -> int | None:
        """The change to undo first on the way back to a state of an aspect; None if that is its state now."""
        while state != self._now(aspect):
            if state == 0 or state in self._states[aspect]:
                return self._entered_by(aspect)
            left_by = self._moved_by[aspect, state]
            state = self._changes[left_by].steps[aspect].after
            if state == self._now(aspect):
                return left_by
        return None

    # -- reading -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        while rows := self._journal.changes(self._upto):
            for position, row in rows:
                self._take(position, row)
                self._upto = position
            if len(rows) < PAGE_ROWS:
                return

    def _take(self, position: int, row: Row) -> None:
        """Apply a row to the configuration by the one interpreter, and keep what it changed."""
        body = json.loads(str(row.detail))
        if row.code in ("prune", "pruned"):
            return
        singles, known = single_changes(row.code, body, self._known.version), self._known
        before, version = _aspects(known, singles), known.version
        applied = [known.apply(action, its_body) for action, its_body in singles]
        if row.code == "create" and any(applied):  # of the router before it was deleted: nothing of it can be undone
            self._changes.clear()
            self._states.clear()
            self._moved_by.clear()
        after = _aspects(known, singles)
        touched = {} if row.code in ("create", "delete") else _touched(before, after)
        alone = singles[0][1] if len(singles) == 1 else {}
        change = LoggedChange(
            position,
            row.at,
            row.code,
            alone.get("arm"),
            alone.get("price"),
            str(body.get("by") or next((each["by"] for _, each in singles if each.get("by")), "")),
            change_text(row.code, singles, before, after, undoes=body.get("undoes")),
            body.get("undoes"),
            known.version != version,
            touched,
            {
                str(name): before["price", name]
                for (kind, name), (_, now) in touched.items()
                if (kind, now) == ("status", "retired")
            },
        )
        self._enter(change)

    def _enter(self, change: LoggedChange) -> None:
        undone = self._changes.get(change.undoes) if change.undoes is not None and change.applied else None
        if undone is not None:
            undone.undone_by = change.position
        for aspect in change.touched:
            change.steps[aspect] = step = self._step(aspect, change, undone)
            states = self._states.setdefault(aspect, deque(maxlen=MOST_CHANGES))
            if step.enters:
                states.append(step.after)
            else:
                states.pop()
            self._moved_by[aspect, step.after if step.enters else step.before] = change.position
        self._changes[change.position] = change
        if len(self._changes) > MOST_CHANGES:
            self._forget(*self._changes.popitem(last=False))

    def _forget(self, position: int, change: LoggedChange) -> None:
        for aspect, step in change.steps.items():
            key = aspect, step.after if step.enters else step.before
            if self._moved_by.get(key) == position:
                del self._moved_by[key]

    def _step(self, aspect: Aspect, change: LoggedChange, undone: LoggedChange | None) -> Step:
        """Where a change leads: an undo back to where the undone change led from, any other to a new state."""
        now, back = self._now(aspect), None if undone is None else undone.steps.get(aspect)
        if back is None or back.after != now:
            return Step(now, change.position, enters=True)
        return Step(now, back.before, enters=not back.enters)


_DEFAULTS = {each.name: each.default for each in described(Settings)}


def _aspects(known: Configuration, singles: list[tuple[str, dict[str, Any]]]) -> Values:
    """The values of all aspects that some changes may touch."""
    arms, found = known.arms, Values()
    for action, body in singles:
        if action == "settings":
            found.update({("setting", name): known.values.get(name, default) for name, default in _DEFAULTS.items()})
        elif action == "rollout":
            found.update({("setting", name): known.values.get(name, _DEFAULTS[name]) for name in ("mode", "canary_share")})
            found[FALLBACK] = known.fallback is not None
        elif "price" in body:
            number = arms.find(body["arm"])
            found["status", body["arm"]] = None if number is None else arms.status[number]
            found["price", body["arm"]] = None if number is None else arms.prices[number]
            found["pin", None] = None if arms.pinned is None else arms.names[arms.pinned]
    return found


def _touched(before: Values, after: Values) -> dict[Aspect, tuple[Any, Any]]:
    """The aspects that have another value. The price of an arm that was not there is no value to go back to."""
    gone = (None, "retired")
    return {
        aspect: (value, after[aspect])
        for aspect, value in before.items()
        if value != after[aspect] and not (aspect[0] == "price" and before["status", aspect[1]] in gone)
    }


def _inverse(touched: dict[Aspect, tuple[Any, Any]]) -> Inverse:
    changes: list[ArmChange] = []
    settings: dict[str, Any] = {}
    for (kind, name), (value, now) in touched.items():
        if kind == "setting":
            settings[str(name)] = value
        elif kind == "price":
            changes.append(("price", name, value))
        elif kind == "pin":
            changes.append(("unpin", None, None) if value is None else ("pin", value, None))
        else:
            if value == "active" or (value, now) == ("paused", "retired"):
                changes.append(("resume", name, None))
            if value != "active":
                changes.append(("pause" if value == "paused" else "retire", name, None))
    return Inverse(_in_order(changes), settings)


def _in_order(changes: list[ArmChange]) -> tuple[ArmChange, ...]:
    """Changes of arms, such that none is in the way of another."""
    return tuple(sorted(changes, key=lambda change: _ORDER[change[0]]))
