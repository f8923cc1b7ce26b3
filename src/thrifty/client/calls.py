"""One description of each call, shared by both clients: what to send, how to read the answer, and what to do without one."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from thrifty.actions import Action, checked_action
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
    key : in a canary, requests with the same key (a customer, a card) are all routed, or none; default: the request_id

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


def put_router(name: str, arms: Mapping[str, float | None], alpha: float, **settings: Any) -> Call[dict[str, Any]]:
    """Create a router, or give it these arms (prices by name, None where unknown), this alpha and these settings.

    >>> put_router("sms", {"a": 0.1}, 0.05, policy="cs-ts").body
    {'arms': {'a': 0.1}, 'alpha': 0.05, 'policy': 'cs-ts'}
    """
    return Call("PUT", _router(name), _same, {"arms": dict(arms), "alpha": alpha, **settings}, budget="admin")


def router(name: str) -> Call[dict[str, Any]]:
    """A router with its arms and settings."""
    return Call("GET", _router(name), _same)


def routers() -> Call[list[str]]:
    """The names of all routers."""
    return Call("GET", "/v1/routers", lambda answer: list(answer["routers"]))


def drift() -> Call[dict[str, Any]]:
    """How routers differ from the configuration file of the service: fields, what is declared, what is, who set it and when."""
    return Call("GET", "/v1/drift", _same)


def alerts(limit: int = 100) -> Call[list[dict[str, Any]]]:
    """The newest alerts of the service, the newest first; `until` is None for those that last.

    >>> alerts(5).path
    '/v1/alerts?limit=5'
    """
    return Call("GET", f"/v1/alerts?limit={limit}", lambda answer: list(answer["alerts"]))


def budget(router: str) -> Call[dict[str, Any]]:
    """What a router has spent today (UTC), what is to be expected until midnight, and whether `daily_budget` can be kept.

    >>> budget("sms").path
    '/v1/routers/sms/budget'
    """
    return Call("GET", f"{_router(router)}/budget", _same)


def delete_router(name: str) -> Call[None]:
    """Take a router out of service; its log stays."""
    return Call("DELETE", _router(name), _nothing, budget="admin", deletes=True)


def change(router: str, action: Action, arm: str, *, price: float | None = None) -> Call[dict[str, Any]]:
    """Add, retire, pause, resume, price, reset, pin or unpin an arm; `price` is for add and price. Returns the router.

    >>> change("sms", "add", "new route", price=0.003).path
    '/v1/routers/sms/arms/new%20route:add'
    """
    checked_action(action)
    body = {} if price is None else {"price": price}
    return Call("POST", f"{_router(router)}/arms/{quote(arm, safe='')}:{action}", _same, body, idempotent=False, budget="admin")


def set_alpha(router: str, alpha: float, *, version: int | None = None) -> Call[dict[str, Any]]:
    """Change alpha and leave all other settings. With `version`, only if the router has not been changed since. Returns the router.

    >>> set_alpha("sms", 0.08, version=3).body
    {'alpha': 0.08, 'version': 3}
    """
    body = {"alpha": alpha} if version is None else {"alpha": alpha, "version": version}
    return Call("POST", f"{_router(router)}/alpha", _same, body, idempotent=False, budget="admin")


def preview(
    router: str, action: str, arm: str | None = None, *, price: float | None = None, alpha: float | None = None, segment: str = ""
) -> Call[dict[str, Any]]:
    """What a change would do to choice, quality and cost; nothing is changed. `action` is one of `change`, or "alpha".

    >>> preview("sms", "alpha", alpha=0.08).body
    {'action': 'alpha', 'segment': '', 'alpha': 0.08}
    """
    given = {"arm": arm, "price": price, "alpha": alpha}
    body = {"action": action, "segment": segment, **{name: value for name, value in given.items() if value is not None}}
    return Call("POST", f"{_router(router)}/preview", _same, body)


def changes(router: str, limit: int = 50, *, before: int | None = None) -> Call[list[dict[str, Any]]]:
    """The newest changes of a router, newest first; `before` a position of the log for older ones.

    >>> changes("sms", 10, before=400).path
    '/v1/routers/sms/changes?limit=10&before=400'
    """
    query = f"limit={limit:d}" if before is None else f"limit={limit:d}&before={before:d}"
    return Call("GET", f"{_router(router)}/changes?{query}", lambda answer: list(answer["changes"]))


def undo(router: str, position: int, *, version: int | None = None) -> Call[dict[str, Any]]:
    """Undo the change at a position, by another change. Returns the router.

    >>> undo("sms", 17).body
    {'position': 17}
    """
    body = {"position": position} if version is None else {"position": position, "version": version}
    return Call("POST", f"{_router(router)}/undo", _same, body, idempotent=False, budget="admin")


def overview() -> Call[dict[str, Any]]:
    """All routers at a glance."""
    return Call("GET", "/v1/overview", _same)


def rollout(router: str) -> Call[dict[str, Any]]:
    """How far the rollout of a router is: both groups, the floor test, and whether it fell back."""
    return Call("GET", f"{_router(router)}/rollout", _same)


def move_rollout(router: str, to: str, *, share: float | None = None, version: int | None = None) -> Call[dict[str, Any]]:
    """Move a rollout to "shadow", "canary" (of this share of keys) or "live"; this ends a fallback.

    >>> move_rollout("sms", "canary", share=0.1).body
    {'to': 'canary', 'share': 0.1}
    """
    given = {"to": to, "share": share, "version": version}
    body = {name: value for name, value in given.items() if value is not None}
    return Call("POST", f"{_router(router)}/rollout", _same, body, idempotent=False, budget="admin")


def segments(router: str) -> Call[list[str]]:
    """The segments that a router has seen."""
    return Call("GET", f"{_router(router)}/segments", lambda answer: list(answer["segments"]))


def segment_table(
    router: str, *, search: str = "", sort: str = "-decisions", limit: int = 50, offset: int = 0
) -> Call[dict[str, Any]]:
    """The segments of a router as a table: `segments` has the rows, `total` says how many there are.

    >>> segment_table("sms", search="DE/", limit=10).path
    '/v1/routers/sms/segments?details=1&search=DE%2F&sort=-decisions&limit=10&offset=0'
    """
    query = f"details=1&search={quote(search, safe='')}&sort={quote(sort, safe='')}&limit={limit:d}&offset={offset:d}"
    return Call("GET", f"{_router(router)}/segments?{query}", _same)


def explain(router: str, segment: str = "") -> Call[dict[str, Any]]:
    """What the service knows about a segment, by default about the whole router.

    >>> explain("sms", "DE/vodafone").path
    '/v1/routers/sms/segments/DE/vodafone'
    """
    path = f"{_router(router)}/segments"
    if not segment:
        return Call("GET", path, lambda answer: dict(answer["all"]))
    return Call("GET", f"{path}/{quote(segment, safe='/')}", _same)


def history(
    router: str,
    *,
    step: str = "minute",
    since: float | None = None,
    until: float | None = None,
    segment: str = "",
    by: Sequence[str] = ("arm",),
) -> Call[dict[str, Any]]:
    """Decisions, outcomes, rewards and costs of a router per minute, hour or day, as rows.

    Parameters
    ----------
    step : "minute", "hour" or "day"
    since, until : seconds since 1970; by default the last 120 minutes, 72 hours or 90 days
    segment : only this segment and those below it
    by : which of segment, arm and group to keep apart; all others are added up

    >>> history("sms", step="day", by=["arm", "group"]).path
    '/v1/routers/sms/history?step=day&by=arm%2Cgroup'

    """
    asked = {"step": step, "since": since, "until": until, "segment": segment or None, "by": ",".join(by)}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return Call("GET", f"{_router(router)}/history?{query}", _same)


def keys() -> Call[list[dict[str, Any]]]:
    """The keys that were not revoked: names, roles, and when they were made, last used and expire; never the keys themselves."""
    return Call("GET", "/v1/keys", lambda answer: list(answer["keys"]))


def add_key(name: str, role: str = "decide,outcome", *, days: float | None = None) -> Call[str]:
    """A new key, which the service shows this once and keeps as a digest.

    Parameters
    ----------
    role : roles separated by commas
    days : until it expires; None for never

    >>> add_key("shop", days=90).body
    {'name': 'shop', 'role': 'decide,outcome', 'days': 90}

    """
    body = {"name": name, "role": role} if days is None else {"name": name, "role": role, "days": days}
    return Call("POST", "/v1/keys", lambda answer: str(answer["key"]), body, idempotent=False)


def revoke_keys(name: str) -> Call[None]:
    """Make all keys of a name invalid."""
    return Call("DELETE", f"/v1/keys/{quote(name, safe='')}", _nothing, deletes=True)


def health() -> Call[str]:
    """ "ok" if the process of the service is alive."""  # noqa: D210
    return Call("GET", "/healthz", str.strip, text=True, probe=True)


def ready() -> Call[str]:
    """What the service says of itself if it can decide: "ready", or "degraded" while its store is away."""
    return Call("GET", "/readyz", str.strip, text=True, probe=True)


def metrics() -> Call[str]:
    """The metrics, as text for Prometheus."""
    return Call("GET", "/metrics", str, text=True)


def _result(answer: Any) -> str | ServiceError:
    return error_of_item(answer["error"], url="/v1/outcomes") if "error" in answer else str(answer["result"])


def _router(name: str) -> str:
    return f"/v1/routers/{quote(name, safe='')}"


def _same(answer: Any) -> dict[str, Any]:
    return dict(answer)


def _nothing(_answer: Any) -> None:
    return None
