"""Bodies of requests and answers, as the client writes and reads them."""

import uuid
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from thrifty.client.choice import Choice, Eligible, KnownArms

Status = Literal["success", "failure", "void"]


class DecisionItem(TypedDict, total=False):
    """One item of `decide_many`: the parameters of `decide`."""

    router: str
    segment: str
    request_id: str | None
    eligible: Eligible | None
    context: Mapping[str, Any] | None
    key: str | None


class OutcomeItem(TypedDict, total=False):
    """One item of `record_many`: the parameters of `record`."""

    decision_id: str | None
    reward: float | None
    status: Status | None
    cost: float | None
    arm: str | None
    occurred_at: float | None
    router: str | None
    request_id: str | None


def decision_body(
    router: str,
    segment: str = "",
    request_id: str | None = None,
    eligible: Eligible | None = None,
    context: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> dict[str, Any]:
    """The body of a request for a decision, always with a request_id, so that it can be sent again."""
    body: dict[str, Any] = {"router": router, "segment": segment, "request_id": request_id or uuid.uuid4().hex}
    if eligible is not None:
        body["eligible"] = [{"arm": arm, "cost": cost} for arm, cost in eligible.items()]
    if context is not None:
        body["context"] = dict(context)
    if key is not None:
        body["key"] = key
    return body


def outcome_body(
    decision_id: str | None = None,
    reward: float | None = None,
    status: str | None = None,
    cost: float | None = None,
    arm: str | None = None,
    occurred_at: float | None = None,
    router: str | None = None,
    request_id: str | None = None,
) -> dict[str, Any] | None:
    """The body of an outcome; None if it names no decision."""
    if decision_id is None and (router is None or request_id is None):
        return None
    named = {"router": router, "reference": request_id} if decision_id is None else {"decision_id": decision_id}
    facts = {"reward": reward, "status": status, "cost": cost, "arm": arm, "occurred_at": occurred_at}
    return {**named, **{name: value for name, value in facts.items() if value is not None}}


def choice_of(answer: Any, body: Mapping[str, Any]) -> Choice:
    """The choice in an answer of the service."""
    return Choice(
        arm=str(answer["arm"]),
        decision_id=str(answer["decision_id"]),
        fallbacks=tuple(answer["fallbacks"]),
        propensity=answer["propensity"],
        explored=bool(answer["explored"]),
        reason=dict(answer["reason"]),
        degraded=bool(answer.get("degraded", False)),
        repeated=bool(answer.get("repeated", False)),
        request_id=body["request_id"],
    )


def local_choice(known: KnownArms, body: Mapping[str, Any]) -> Choice | None:
    """The client's own choice for a request; None if it knows no arm."""
    eligible = {each["arm"]: each["cost"] for each in body["eligible"]} if "eligible" in body else None
    arm = known.arm(body["router"], body["segment"], eligible)
    return None if arm is None else Choice(arm, None, local=True, request_id=body["request_id"])
