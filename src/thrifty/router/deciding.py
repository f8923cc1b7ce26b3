"""Deciding: a request becomes a decision, counted and handed to the log."""

import json
from collections.abc import Iterable, Mapping
from math import nan
from typing import TYPE_CHECKING, Any

from thrifty.router.arms import ArmsAndPrices
from thrifty.router.changing import add_change
from thrifty.router.choice import bucket_of, choose, toss_of
from thrifty.router.decision import Decision
from thrifty.router.records import CODES, Key
from thrifty.router.rows import note_of
from thrifty.router.settings import checked_segment, checked_text
from thrifty.store.log import DECISION, Row

if TYPE_CHECKING:
    from thrifty.router.router import Router

LONGEST_CONTEXT = 10_000
"""Characters of JSON."""

Eligible = Iterable[str] | Mapping[str, float | None]

_new = tuple.__new__  # half the time of calling the class


def decide_soon(
    router: "Router",
    segment: str = "",
    *,
    eligible: Eligible | None = None,
    request_id: str | None = None,
    context: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Decision:
    """Like `decide`, but the decision is durable only once `wait(decision.position)` returns."""
    with router.lock:
        router.refresh()
        router.log.admit()
        state = router.state
        if state.configuration.deleted:
            raise ValueError(f"router {router.name!r} was deleted")
        if request_id is not None:
            known = state.records.answered(checked_text("request_id", request_id))
            if known is not None:
                return repeat(router, known)
        choice = text = None
        if (
            type(segment) is not str
            or state.segments.known(segment) is None
            or eligible is not None
            or context is not None
            or key is not None
        ):
            choice, text = check_request(router, segment, eligible=eligible, context=context, key=key)
        return _decide(router, segment, choice, text, request_id, key)


def _decide(
    router: "Router",
    segment: str,
    choice: ArmsAndPrices | None,
    context: dict[str, Any] | None,
    request_id: str | None,
    group_key: str | None,
) -> Decision:
    """Decide for a request that was checked."""
    state, settings, clock = router.state, router.state.settings, router.state.clock
    key, segments = (state.replica, state.sequence + 1), state.segments
    count, node = segments.sums.count, segments.known(segment) or segments.obtain(segment)
    in_canary, bucket = True, None
    if settings.mode == "canary":
        in_canary = toss_of(state.name, group_key or state.own_id(key[1])) < settings.canary_share
        bucket = None if group_key is None else bucket_of(state.name, group_key)
    try:
        place, why, likely, rule, graduates = choose(state, key[1], node, choice, in_canary=in_canary)
    except Exception:
        segments.take_back(count)
        raise
    if segments.sums.count > count:
        router.log.made_segments(state, count)
    name, price, code, arm = rule.names[place], rule.prices[place], CODES[why], rule.arms[place]
    at, shadow, detail = clock.time(), settings.mode == "shadow", None
    if choice is not None or context is not None or shadow or node.name != segment or bucket is not None:
        names, counted = state.arms.names, None if node.name == segment else node.name
        detail = _detail(names, choice, context=context, shadow=shadow, counted=counted, bucket=bucket)
    propensity = None if likely != likely else likely  # NaN
    row = _new(Row, (DECISION, *key, at, segment, request_id, name, propensity, price, code, detail))
    note = None if request_id is None and detail is None else note_of(row)
    due, cost, version = clock.monotonic() + settings.deadline_s, nan if price is None else price, state.configuration.version
    slot = state.apply_decision(key, (node.number, arm, arm, why, version, at, due, likely, cost, not shadow), note)
    decision = Decision(state.own_id(key[1]), name, code, likely, segment, version, rule)
    decision.position = router.log.add_decision(state, row, slot)
    router.log.answered(decision)
    for each in graduates:
        add_change(router, "graduate", {"arm": state.arms.names[each]}, None)
    router.moved_on()
    return decision


def check_request(
    router: "Router",
    segment: str = "",
    *,
    eligible: Eligible | None = None,
    request_id: str | None = None,
    context: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> tuple[ArmsAndPrices | None, dict[str, Any] | None]:
    """The eligible arms and the context; a ValueError for a wrong request. Nothing may go wrong once the rule has chosen."""
    if request_id is not None:
        checked_text("request_id", request_id)
    if key is not None:
        checked_text("key", key)
    state = router.state
    choice = None if eligible is None else state.arms.eligible(eligible)
    if not isinstance(segment, str) or state.segments.known(segment) is None:
        checked_segment(segment)
    return choice, None if context is None else _checked_context(context)


def _detail(
    names: list[str], choice: ArmsAndPrices | None, *, context: Any, shadow: bool, counted: str | None, bucket: int | None
) -> str:
    found: dict[str, Any] = {}
    if choice is not None:
        found["eligible"] = [[names[arm], price] for arm, price in zip(*choice, strict=True)]
    if shadow:
        found["shadow"] = True
    if counted is not None:
        found["counted"] = counted
    if context is not None:
        found["context"] = context
    if bucket is not None:
        found["bucket"] = bucket  # the last one: `note_of` relies on it
    return json.dumps(found)


def repeat(router: "Router", key: Key) -> Decision:
    """The same decision once more; its reason and fallbacks are of what is known now."""
    state, slot = router.state, router.state.records.slot(key)
    assert slot is not None
    records, note = state.records, state.records.note(key)
    detail = json.loads(note.detail) if note is not None and note.detail is not None else {}
    node = state.segments.by_number[records.get(slot, "segment")]
    segment = node.name if note is None else note.segment
    try:
        eligible = state.arms.eligible(dict(detail["eligible"])) if "eligible" in detail else None
    except ValueError:  # none of those arms is active any more
        eligible = None
    rule = state.segments.look(node, eligible)
    decision = Decision(
        state.id_of(key),
        state.arms.names[records.get(slot, "made")],
        CODES[records.get(slot, "code")],
        records.get(slot, "propensity"),
        segment,
        records.get(slot, "version"),
        rule,
    )
    decision.position, decision.repeated = router.log.latest(state, slot)[1], True
    router.log.answered(decision)
    return decision


def _checked_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """`context`, or a ValueError where JSON cannot express it or it is too long for the log."""
    try:
        text = json.dumps(dict(context), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"context must be made of what JSON can express, got {context!r:.80}") from None
    if len(text) > LONGEST_CONTEXT:
        raise ValueError(f"context must be at most {LONGEST_CONTEXT} characters of JSON, got {len(text)}")
    return dict(context)
