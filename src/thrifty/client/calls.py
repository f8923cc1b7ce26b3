"""One description of each call, shared by both clients: what to send, how to read the answer, and what to do without one.

These are the calls of traffic, decisions and outcomes; `thrifty.client.admin_calls` has the others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from thrifty.client.call import Call
from thrifty.client.choice import Choice, Eligible, KnownArms
from thrifty.client.errors import LocalChoiceError, ServiceError, ServiceUnavailableError, error_of_item
from thrifty.client.messages import (
    DecisionItem,
    OutcomeItem,
    Status,
    choice_of,
    decision_body,
    local_choice,
    outcome_body,
)


def decide(
    router: str,
    segment: str = "",
    *,
    request_id: str | None = None,
    eligible: Eligible | None = None,
    context: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Call[Choice]:
    """Choose an arm. Falls back to a local choice if the service is not available and the client has `fallback` prices.

    Parameters
    ----------
    segment : the kind of request, a path such as "DE/vodafone"
    request_id : one request_id gets one decision, however often it is sent; made up if not given
    eligible : the arms that may be chosen, with a price for this call or None
    context : kept in the log of the service
    key : in a canary, requests with the same key (a customer, a card) are all routed, or none; default: each by itself

    >>> decide("sms", "DE", request_id="m-17").body
    {'router': 'sms', 'segment': 'DE', 'request_id': 'm-17'}

    """
    body = decision_body(router, segment, request_id, eligible, context, key)

    def finish(known: KnownArms, choice: Choice) -> Choice:
        known.learn(router, segment, eligible, choice)
        return choice

    return Call(
        "POST",
        "/v1/decisions",
        lambda answer: choice_of(answer, body),
        body,
        budget="decide",
        local=lambda known, _error: local_choice(known, body),
        finish=finish,
    )


def decide_many(items: Sequence[DecisionItem]) -> Call[list[Choice | ServiceError]]:
    """Choose arms for several requests at once: for each item, mappings with the parameters of `decide`, a choice or an error.

    >>> decide_many([{"router": "sms", "request_id": "m-17"}]).body
    [{'router': 'sms', 'segment': '', 'request_id': 'm-17'}]
    """
    bodies = [decision_body(**item) for item in items]

    def read(answer: Any) -> list[Choice | ServiceError]:
        return [
            error_of_item(each["error"], url="/v1/decisions") if "error" in each else choice_of(each, body)
            for each, body in zip(answer, bodies, strict=True)
        ]

    def finish(known: KnownArms, results: list[Choice | ServiceError]) -> list[Choice | ServiceError]:
        finished: list[Choice | ServiceError] = []
        for item, body, result in zip(items, bodies, results, strict=True):
            if isinstance(result, Choice):
                known.learn(body["router"], body["segment"], item.get("eligible"), result)
            elif isinstance(result, ServiceUnavailableError):
                result = local_choice(known, body) or result
            finished.append(result)
        return finished

    def local(known: KnownArms, error: ServiceError) -> list[Choice | ServiceError] | None:
        choices = [local_choice(known, body) for body in bodies]
        return [choice or error for choice in choices] if any(choices) else None

    return Call("POST", "/v1/decisions", read, bodies, budget="decide", local=local, finish=finish)


def record(
    decision_id: str | None = None,
    reward: float | None = None,
    *,
    status: Status | None = None,
    cost: float | None = None,
    arm: str | None = None,
    occurred_at: float | None = None,
    router: str | None = None,
    request_id: str | None = None,
) -> Call[str]:
    """Report an outcome. Returns "recorded", "corrected", "duplicate" or "stale"; the same outcome sent again counts once.

    Parameters
    ----------
    decision_id : of the choice; or else give `router` and `request_id`
    reward : in [0, 1]; or else give `status`
    status : "success" (reward 1), "failure" (reward 0) or "void" (the decision was not used)
    cost : what was paid, if not the price
    arm : the arm that was used, if not the chosen one
    occurred_at : when it happened, in seconds since 1970

    >>> record("sms.0.1", 1.0).body
    {'decision_id': 'sms.0.1', 'reward': 1.0}
    >>> record(router="sms", request_id="m-17", status="void").body
    {'router': 'sms', 'reference': 'm-17', 'status': 'void'}

    """
    body = outcome_body(decision_id, reward, status, cost, arm, occurred_at, router, request_id)
    if body is None:
        raise LocalChoiceError
    return Call("POST", "/v1/outcomes", lambda answer: str(answer["result"]), body)


def record_many(items: Sequence[OutcomeItem]) -> Call[list[str | ServiceError]]:
    """Report several outcomes at once: for each item, mappings with the parameters of `record`, a result or an error.

    >>> record_many([{"decision_id": "sms.0.1", "status": "success"}]).body
    [{'decision_id': 'sms.0.1', 'status': 'success'}]
    """
    bodies = [outcome_body(**item) for item in items]
    sent = [body for body in bodies if body is not None]
    if items and not sent:
        raise LocalChoiceError("every decision_id is None: the client made these choices without the service")

    def read(answer: Any) -> list[str | ServiceError]:
        if len(answer) != len(sent):
            raise ValueError(f"{len(answer)} results for {len(sent)} outcomes")
        results = iter(answer)
        return [LocalChoiceError() if body is None else _result(next(results)) for body in bodies]

    return Call("POST", "/v1/outcomes", read, sent)


def _result(answer: Any) -> str | ServiceError:
    return error_of_item(answer["error"], url="/v1/outcomes") if "error" in answer else str(answer["result"])
