"""Recent decisions, from memory: what was decided, why, and what came of it."""

from typing import TYPE_CHECKING, Any

from thrifty.router.decision import MEANINGS
from thrifty.router.records import ARRIVED, CODES, DEFAULTED, number_or_none

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

MOST_LOOKED_AT = 20_000
"""Decisions that are looked at for those of a segment."""

AT_ONCE = 500
"""Decisions that are looked at while the lock is held once."""


def recent_decisions(router: "RouterView", limit: int = 50, *, segment: str = "") -> list[dict[str, Any]]:
    """The newest decisions in memory, newest first; of a segment and those below it, among the newest 20,000."""
    found: dict[Any, dict[str, Any]] = {}  # by key: a decision that comes meanwhile moves the others by one
    with router.lock:
        state, segments = router.state, list(router.state.segments.by_number) if segment else []
    below, skipped = f"{segment}/", 0
    inside = {each.number for each in segments if each.name == segment or each.name.startswith(below)}
    while len(found) < limit and skipped < MOST_LOOKED_AT:
        with router.lock:
            if router.state is not state:
                break
            keys, more = state.records.newest(skipped, AT_ONCE)
            if segment:
                keys = [key for key in keys if state.records.get(state.records.at(key), "segment") in inside]
            found |= {key: _shown(router, key) for key in keys[: limit - len(found)]}
        skipped += AT_ONCE
        if not more:
            break
    return list(found.values())


def _shown(router: "RouterView", key: Any) -> dict[str, Any]:
    state = router.state
    records, arms = state.records, state.arms.names
    slot, note = records.at(key), records.note(key)
    code, settled = CODES[records.get(slot, "code")], records.get(slot, "settled")
    outcome = None
    if settled in (ARRIVED, DEFAULTED):
        outcome = {
            "at": records.get(slot, "outcome_at"),
            "arm": arms[records.get(slot, "arm")],
            "reward": number_or_none(records.get(slot, "outcome_value")),
            "cost": number_or_none(records.get(slot, "outcome_cost")),
            "default": settled == DEFAULTED,
        }
    return {
        "decision_id": state.id_of(key),
        "at": records.get(slot, "at"),
        "segment": state.segments.by_number[records.get(slot, "segment")].name if note is None else note.segment,
        "request_id": None if note is None else note.request_id,
        "arm": arms[records.get(slot, "made")],
        "code": code,
        "text": MEANINGS[code],
        "propensity": number_or_none(records.get(slot, "propensity")),
        "price": number_or_none(records.get(slot, "price")),
        "outcome": outcome,
    }
