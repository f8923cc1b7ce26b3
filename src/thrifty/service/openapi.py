"""The OpenAPI document: bodies from the message types, paths written out."""

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from thrifty.router import ACTIONS
from thrifty.service import lever_messages, messages, queries
from thrifty.service.openapi_parts import content, one_or_many, operation, parameter, plain, ref

_TYPES = (
    lever_messages.AlphaRequest,
    messages.AlertList,
    messages.ArmRequest,
    lever_messages.ChangeList,
    messages.DecisionAnswer,
    messages.DecisionRequest,
    messages.DriftAnswer,
    messages.Failure,
    messages.KeyAnswer,
    messages.KeyList,
    messages.KeyRequest,
    messages.OutcomeAnswer,
    messages.OutcomeRequest,
    lever_messages.PreviewAnswer,
    lever_messages.PreviewRequest,
    lever_messages.RolloutAnswer,
    lever_messages.RolloutRequest,
    messages.RouterList,
    messages.RouterRequest,
    lever_messages.UndoRequest,
)
_OBJECT = {"type": "object"}
_NAME = parameter("name", pattern="^[A-Za-z0-9_-]{1,64}$")
_NO_ROUTER = {"404": "there is no such router"}
_QUARANTINED = {"409": "the router has changed since it had this version, or is quarantined; the message has the remedy"}


@cache
def describe() -> dict[str, Any]:
    """The document.

    >>> describe()["openapi"]
    '3.1.0'
    """
    _, schemas = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "thrifty", "version": version("thrifty"), "description": "The cheapest arm that is good enough."},
        "paths": {
            **_hot_paths(),
            **_key_paths(),
            **_alert_paths(),
            **_router_paths(),
            **_lever_paths(),
            **_reading_paths(),
            **_status_paths(),
        },
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
    }


def _hot_paths() -> dict[str, Any]:
    decide = operation(
        "decide", one_or_many("DecisionAnswer"), body=one_or_many("DecisionRequest"), errors=_NO_ROUTER, role="decide"
    )
    record = operation(
        "record outcomes",
        one_or_many("OutcomeAnswer"),
        body=one_or_many("OutcomeRequest"),
        errors={"404": "there is no such decision"},
        role="outcome",
    )
    return {"/v1/decisions": {"post": decide}, "/v1/outcomes": {"post": record}}


def _key_paths() -> dict[str, Any]:
    make = operation("make a key, which is shown once", None, body=ref("KeyRequest"), created=ref("KeyAnswer"), role="admin")
    wrong = {"404": "there is no such key", "409": "it is the last admin key that does not expire"}
    revoke = operation("revoke all keys of a name", None, errors=wrong, role="admin")
    return {
        "/v1/keys": {"post": make, "get": operation("list keys: names, roles, when made, last used, expiring", ref("KeyList"))},
        "/v1/keys/{key_name}": {"parameters": [parameter("key_name", minLength=1)], "delete": revoke},
    }


def _alert_paths() -> dict[str, Any]:
    show = operation("list the newest alerts", ref("AlertList"), asked=queries.AlertsQuery)
    test = operation("send a test alert", None, errors={"409": "there is no webhook"}, role="admin")
    del test["responses"]["204"]
    test["responses"]["202"] = {"description": "queued", "content": content(_OBJECT)}
    return {"/v1/alerts": {"get": show}, "/v1/alerts/test": {"post": test}}


def _router_paths() -> dict[str, Any]:
    name = _NAME
    put = operation(
        "make a router, or make it as wanted",
        _OBJECT,
        body=ref("RouterRequest"),
        created=_OBJECT,
        errors=_QUARANTINED,
        role="admin",
        asked=queries.VersionQuery,
    )
    gone = {**_NO_ROUTER, **_QUARANTINED}
    delete = operation("take a router out of service", None, errors=gone, role="admin", asked=queries.VersionQuery)
    explain = operation("explain a segment", _OBJECT, errors={"404": "there is no such router or segment"})
    history = operation(
        "decisions, outcomes, rewards and costs per minute, hour or day",
        _OBJECT,
        errors={**_NO_ROUTER, "422": "a parameter that is not allowed, or too many rows; the message has the remedy"},
        asked=queries.HistoryParameters,
    )
    segments = operation(
        "list segments, and explain all of them together; or a table of them",
        _OBJECT,
        errors=_NO_ROUTER,
        asked=queries.SegmentsQuery,
    )
    return {
        "/v1/drift": {"get": operation("show how routers differ from the configuration file", ref("DriftAnswer"))},
        "/v1/routers": {"get": operation("list routers", ref("RouterList"))},
        "/v1/routers/{name}": {
            "parameters": [name],
            "put": put,
            "get": operation("show a router", _OBJECT, errors=_NO_ROUTER),
            "delete": delete,
        },
        "/v1/routers/{name}/history": {"parameters": [name], "get": history},
        "/v1/routers/{name}/budget": {
            "parameters": [name],
            "get": operation("show today's spend", _OBJECT, errors=_NO_ROUTER),
        },
        "/v1/routers/{name}/segments": {"parameters": [name], "get": segments},
        "/v1/routers/{name}/segments/{segment}": {"parameters": [name, parameter("segment", minLength=1)], "get": explain},
    }


def _lever_paths() -> dict[str, Any]:
    change = {**parameter("change", pattern=f"^[^/:]{{1,200}}:({'|'.join(ACTIONS)})$"), "description": "ARM:ACTION"}
    change_arm = _lever("change an arm", "ArmRequest", optional_body=True)
    preview = operation(
        "what a change would do; nothing is changed", ref("PreviewAnswer"), body=ref("PreviewRequest"), errors=_NO_ROUTER
    )
    undo = _lever("undo a change, by another change", "UndoRequest", missing="there is no such router, or no such change")
    rollout = operation("how far a rollout is", ref("RolloutAnswer"), errors=_NO_ROUTER)
    move = _lever("move a rollout, which ends a fallback", "RolloutRequest", answer=ref("RolloutAnswer"))
    alpha = _lever("change alpha, and leave all other settings", "AlphaRequest")
    return {
        "/v1/routers/{name}/arms/{change}": {"parameters": [_NAME, change], "post": change_arm},
        "/v1/routers/{name}/alpha": {"parameters": [_NAME], "post": alpha},
        "/v1/routers/{name}/rollout": {"parameters": [_NAME], "get": rollout, "post": move},
        "/v1/routers/{name}/undo": {"parameters": [_NAME], "post": undo},
        "/v1/routers/{name}/preview": {"parameters": [_NAME], "post": preview},
    }


def _reading_paths() -> dict[str, Any]:
    changes = operation("list changes, newest first", ref("ChangeList"), errors=_NO_ROUTER, asked=queries.ChangesQuery)
    decisions = operation("recent decisions, newest first", _OBJECT, errors=_NO_ROUTER, asked=queries.DecisionsQuery)
    events = operation("a stream of events: overview, router, alert", None, errors=_NO_ROUTER, asked=queries.EventsQuery)
    stream = {"description": "server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    del events["responses"]["204"]
    events["responses"]["200"] = stream
    frontier = operation("what other alphas would give", _OBJECT, errors=_NO_ROUTER, asked=queries.FrontierQuery)
    return {
        "/v1/routers/{name}/frontier": {"parameters": [_NAME], "get": frontier},
        "/v1/overview": {"get": operation("all routers at a glance", _OBJECT)},
        "/v1/events": {"get": events},
        "/v1/routers/{name}/changes": {"parameters": [_NAME], "get": changes},
        "/v1/routers/{name}/decisions": {"parameters": [_NAME], "get": decisions},
    }


def _status_paths() -> dict[str, Any]:
    return {
        "/healthz": {"get": plain("alive")},
        "/readyz": {"get": plain("ready to decide, or degraded while the store is away; names quarantined routers")},
        "/metrics": {"get": plain("Prometheus metrics")},
    }


def _lever(
    summary: str,
    body: str,
    *,
    missing: str = "there is no such router",
    optional_body: bool = False,
    answer: dict[str, Any] = _OBJECT,
) -> dict[str, Any]:
    """An operation that changes a router, and answers with the router as it is then, or with another answer."""
    errors = {"404": missing, "409": "the router has changed since, or later changes are in the way"}
    return operation(summary, answer, body=ref(body), errors=errors, role="admin", optional_body=optional_body)
