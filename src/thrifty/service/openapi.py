"""The OpenAPI document: bodies from the message types, paths written out."""

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from thrifty.router import ACTIONS
from thrifty.service import messages
from thrifty.store.history import FIELDS, STEPS

_TYPES = (
    messages.AlertList,
    messages.ArmRequest,
    messages.DecisionAnswer,
    messages.DecisionRequest,
    messages.DriftAnswer,
    messages.Failure,
    messages.KeyAnswer,
    messages.KeyList,
    messages.KeyRequest,
    messages.OutcomeAnswer,
    messages.OutcomeRequest,
    messages.RouterList,
    messages.RouterRequest,
)
_OBJECT = {"type": "object"}
_NO_ROUTER = {"404": "there is no such router"}
_QUARANTINED = {"409": "the router is quarantined; the message has the remedy"}


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
        "paths": {**_hot_paths(), **_key_paths(), **_alert_paths(), **_router_paths(), **_status_paths()},
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
    }


def _hot_paths() -> dict[str, Any]:
    decide = _operation(
        "decide", _one_or_many("DecisionAnswer"), body=_one_or_many("DecisionRequest"), errors=_NO_ROUTER, role="decide"
    )
    record = _operation(
        "record outcomes",
        _one_or_many("OutcomeAnswer"),
        body=_one_or_many("OutcomeRequest"),
        errors={"404": "there is no such decision"},
        role="outcome",
    )
    return {"/v1/decisions": {"post": decide}, "/v1/outcomes": {"post": record}}


def _key_paths() -> dict[str, Any]:
    make = _operation("make a key, which is shown once", None, body=_ref("KeyRequest"), created=_ref("KeyAnswer"), role="admin")
    revoke = _operation("revoke all keys of a name", None, errors={"404": "there is no such key"}, role="admin")
    return {
        "/v1/keys": {"post": make, "get": _operation("list keys: names, roles, when made, last used, expiring", _ref("KeyList"))},
        "/v1/keys/{key_name}": {"parameters": [_parameter("key_name", minLength=1)], "delete": revoke},
    }


def _alert_paths() -> dict[str, Any]:
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}, "required": False}
    show = _operation("list the newest alerts", _ref("AlertList"), errors={"422": "a limit that is not allowed"})
    test = _operation("send a test alert", None, errors={"409": "there is no webhook"}, role="admin")
    del test["responses"]["204"]
    test["responses"]["202"] = {"description": "queued", "content": _content(_OBJECT)}
    return {"/v1/alerts": {"get": {**show, "parameters": [limit]}}, "/v1/alerts/test": {"post": test}}


def _router_paths() -> dict[str, Any]:
    name = _parameter("name", pattern="^[A-Za-z0-9_-]{1,64}$")
    change = {**_parameter("change", pattern=f"^[^/:]{{1,200}}:({'|'.join(ACTIONS)})$"), "description": "ARM:ACTION"}
    put = _operation(
        "make a router, or make it as wanted",
        _OBJECT,
        body=_ref("RouterRequest"),
        created=_OBJECT,
        errors=_QUARANTINED,
        role="admin",
    )
    delete = _operation("take a router out of service", None, errors={**_NO_ROUTER, **_QUARANTINED}, role="admin")
    explain = _operation("explain a segment", _OBJECT, errors={"404": "there is no such router or segment"})
    change_arm = _operation("change an arm", _OBJECT, body=_ref("ArmRequest"), errors=_NO_ROUTER, optional_body=True, role="admin")
    history = _operation(
        "decisions, outcomes, rewards and costs per minute, hour or day",
        _OBJECT,
        errors={**_NO_ROUTER, "422": "a parameter that is not allowed, or too many rows; the message has the remedy"},
    )
    segments = _operation("list segments, and explain all of them together", _OBJECT, errors=_NO_ROUTER)
    return {
        "/v1/drift": {"get": _operation("show how routers differ from the configuration file", _ref("DriftAnswer"))},
        "/v1/routers": {"get": _operation("list routers", _ref("RouterList"))},
        "/v1/routers/{name}": {
            "parameters": [name],
            "put": put,
            "get": _operation("show a router", _OBJECT, errors=_NO_ROUTER),
            "delete": delete,
        },
        "/v1/routers/{name}/history": {"parameters": [name, *_history_parameters()], "get": history},
        "/v1/routers/{name}/segments": {"parameters": [name], "get": segments},
        "/v1/routers/{name}/segments/{segment}": {"parameters": [name, _parameter("segment", minLength=1)], "get": explain},
        "/v1/routers/{name}/arms/{change}": {"parameters": [name, change], "post": change_arm},
    }


def _status_paths() -> dict[str, Any]:
    return {
        "/healthz": {"get": _plain("alive")},
        "/readyz": {"get": _plain("ready to decide, or degraded while the store is away; names quarantined routers")},
        "/metrics": {"get": _plain("Prometheus metrics")},
    }


def _parameter(name: str, **limits: Any) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", **limits}}


def _history_parameters() -> list[dict[str, Any]]:
    shapes: dict[str, dict[str, Any]] = {
        "step": {"type": "string", "enum": list(STEPS)},
        "since": {"type": "number"},
        "until": {"type": "number"},
        "segment": {"type": "string"},
        "by": {"type": "array", "items": {"type": "string", "enum": list(FIELDS)}},
    }
    meanings = {
        "since": "seconds since 1970; by default so that the last 120 minutes, 72 hours or 90 days are shown",
        "until": "seconds since 1970; by default now",
        "segment": "only this segment and those below it",
        "by": "what is kept apart; all else is added up",
    }
    return [
        {"name": name, "in": "query", "description": meanings.get(name, ""), "schema": shape, "explode": False}
        for name, shape in shapes.items()
    ]


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _one_or_many(name: str) -> dict[str, Any]:
    items = [_ref(name)] if name.endswith("Request") else [_ref(name), _ref("Failure")]
    return {"anyOf": [_ref(name), {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"anyOf": items}}]}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


_ALWAYS = {
    "400": "not a valid request",
    "401": "no valid key",
    "403": "a foreign Origin, or a key without the role {role}",
    "408": "the request did not come in time",
    "413": "too large",
    "415": "a body that is not application/json",
    "421": "a Host that is not served here",
    "429": "too many requests with this key",
    "431": "headers that are too many or too long",
    "500": "an internal error; the log has it under the request_id",
    "503": "not now: the store is away, the router is being opened or quarantined, or too many requests wait",
}


def _operation(
    summary: str,
    answer: dict[str, Any] | None,
    *,
    body: dict[str, Any] | None = None,
    errors: dict[str, str] | None = None,
    role: str = "view",
    created: dict[str, Any] | None = None,
    optional_body: bool = False,
) -> dict[str, Any]:
    texts = {code: text.format(role=role) for code, text in _ALWAYS.items()} | (errors or {})
    if body is not None:
        texts |= {"422": "a value that is not allowed; the message names the field"}
    responses = {code: _failure(code, text) for code, text in texts.items()}
    if answer is not None:
        responses["200"] = {"description": "done", "content": _content(answer)}
    elif created is None:
        responses["204"] = {"description": "done"}
    if created is not None:
        responses["201"] = {"description": "made", "content": _content(created)}
    operation: dict[str, Any] = {"summary": summary, "responses": responses}
    if body is not None:
        operation["requestBody"] = {"required": not optional_body, "content": _content(body)}
    return operation


def _failure(code: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": text, "content": _content(_ref("Failure"))}
    if code in ("429", "503"):
        answer["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}, "required": True}}
    if code == "401":
        answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}
    return answer


def _plain(summary: str) -> dict[str, Any]:
    plain = {"text/plain": {"schema": {"type": "string"}}}
    errors = {code: _failure(code, text) for code, text in _ALWAYS.items() if code not in ("401", "429")}
    errors["403"] = _failure("403", "a foreign Origin")
    responses = {"200": {"description": "done", "content": plain}, **errors}
    return {"summary": summary, "responses": responses, "security": [{}]}
