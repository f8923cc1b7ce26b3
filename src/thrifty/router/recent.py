"""Recent decisions: what was decided, why, and what came of it. From memory, and from the log where memory does not reach.

How many decisions are in memory depends on `memory_bytes`, on late outcomes and on the last restart. What is listed does not.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from thrifty.router.decision import MEANINGS
from thrifty.router.records import ARRIVED, CODES, DEFAULTED, Key, Note, number_or_none
from thrifty.router.restore import recall
from thrifty.router.rows import counted_name
from thrifty.router.state import State
from thrifty.store.log import CHANGE, DECISION, Placed, StoreError

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

MOST_LOOKED_AT = 20_000
"""Decisions that are looked at for those of a segment."""

AT_ONCE = 500
"""Decisions that are looked at while the lock is held once."""

OUT_OF_ORDER = 100
"""Decisions that a replica may remember in another order than the log has them: those that were made at the same time."""

Listed = dict[Key, tuple[float, dict[str, Any]]]
"""Decisions with their positions in the log; infinity where one is on its way there."""


def recent_decisions(router: "RouterView", limit: int = 50, *, segment: str = "") -> list[dict[str, Any]]:
    """The newest decisions, newest first; of a segment and those below it, among the newest 20,000. May take milliseconds.

    Without a store, and while the store is away, there are those in memory.
    """
    with router.lock:
        state, segments = router.state, list(router.state.segments.by_number) if segment else []
    inside = {each.number for each in segments if _is_within(each.name, segment)} if segment else None
    journal = router.log.journal
    most = limit + OUT_OF_ORDER if journal is not None and journal.shared else limit
    found, enough = _in_memory(router, state, most, inside)
    if not enough and journal is not None:
        with suppress(StoreError):
            rows = journal.recent(MOST_LOOKED_AT if segment else most, upto=router.log.position)
            found = _with_older(state, _newest(rows, most, segment), found, most)
    ordered = sorted(found.values(), key=lambda each: -each[0])  # as the log has them, which is the same on every replica
    return [shown for _, shown in ordered[:limit]]


def _is_within(name: str, segment: str) -> bool:
    return not segment or name == segment or name.startswith(f"{segment}/")


def _in_memory(router: "RouterView", state: State, limit: int, inside: set[int] | None) -> tuple[Listed, bool]:
    """Those in memory, and whether there is no need to look further."""
    found: Listed = {}  # by key: a decision that comes meanwhile moves the others by one
    skipped, seen, more = 0, 0, True
    while more and len(found) < limit and skipped < MOST_LOOKED_AT:
        with router.lock:
            if router.state is not state:
                break
            keys, more = state.records.newest(skipped, AT_ONCE)
            seen += len(keys)
            if inside is not None:
                keys = [key for key in keys if state.records.get(state.records.at(key), "segment") in inside]
            found |= {key: _placed(state, key) for key in keys[: limit - len(found)]}
        skipped += AT_ONCE
    return found, len(found) >= limit or seen >= min(state.decided, MOST_LOOKED_AT)


def _newest(rows: list[Placed], limit: int, segment: str) -> list[Placed]:
    """The rows of the newest decisions of a segment, so many at most, and all that are about no decision."""
    made = [(row.replica, row.sequence) for _, row in rows if row.kind == DECISION and _is_within(counted_name(row), segment)]
    kept = set(made[-limit:])
    return [each for each in rows if each[1].kind == CHANGE or (each[1].replica, each[1].sequence) in kept]


def _with_older(state: State, rows: list[Placed], found: Listed, limit: int) -> Listed:
    """Decisions with older ones from the log."""
    older: Listed = {}
    for each in reversed(recall(state, rows)):
        if len(found) + len(older) < limit and each.key not in found and each.numbers["at"] >= state.pruned_before:
            get = partial(_number, each.numbers)
            older[each.key] = get("logged"), _shown(state, each.key, get, each.note)
    return {**found, **older}


def _number(numbers: Any, field: str) -> Any:
    return numbers[field].item()


def _placed(state: State, key: Key) -> tuple[float, dict[str, Any]]:
    """A decision in memory, and its position."""
    get = partial(state.records.get, state.records.at(key))
    return get("logged") or inf, _shown(state, key, get, state.records.note(key))


def _shown(state: State, key: Key, get: Callable[[str], Any], note: Note | None) -> dict[str, Any]:
    arms, code, settled = state.arms.names, CODES[get("code")], get("settled")
    outcome = None
    if settled in (ARRIVED, DEFAULTED):
        outcome = {
            "at": get("outcome_at"),
            "arm": arms[get("arm")],
            "reward": number_or_none(get("outcome_value")),
            "cost": number_or_none(get("outcome_cost")),
            "default": settled == DEFAULTED,
        }
    return {
        "decision_id": state.id_of(key),
        "at": get("at"),
        "segment": state.segments.by_number[get("segment")].name if note is None else note.segment,
        "request_id": None if note is None else note.request_id,
        "arm": arms[get("made")],
        "code": code,
        "text": MEANINGS[code],
        "propensity": number_or_none(get("propensity")),
        "price": number_or_none(get("price")),
        "outcome": outcome,
    }
