"""The OpenAPI document: bodies from the message types, paths written out."""

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from thrifty.router import ACTIONS
from thrifty.service.messages import (
    ArmRequest,
    DecisionAnswer,
    DecisionRequest,
    Failure,
    KeyAnswer,
    KeyList,
    KeyRequest,
    OutcomeAnswer,
    OutcomeRequest,
    RouterList,
    RouterRequest,
)

_TYPES = (
    ArmRequest, DecisionAnswer, DecisionRequest, Failure, KeyAnswer, KeyList, KeyRequest, OutcomeAnswer, OutcomeRequest,
    RouterList, RouterRequest,
)  # fmt: skip
_OBJECT = {"type": "object"}


@cache
def describe() -> dict[str, Any]:
    """The document.

    >>> describe()["openapi"]
    '3.1.0'
    """
    _, schemas = msgspec.json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}}
    segment = {"name": "segment", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    change = {
        "name": "change", "in": "path", "required": True, "description": "ARM:ACTION",
        "schema": {"type": "string", "pattern": f"^[^/:]{{1,200}}:({'|'.join(ACTIONS)})$"},
    }  # fmt: skip
    router = {"404": "there is no such router"}
    quarantined = {"409": "the router is quarantined; the message has the remedy"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "thrifty", "version": version("thrifty"), "description": "The cheapest arm that is good enough."},
        "paths": {
            "/v1/decisions": {
                "post": _operation(
                    "decide", _one_or_many("DecisionAnswer"), body=_one_or_many("DecisionRequest"), errors=router, role="decide"
                )
            },
            "/v1/outcomes": {
                "post": _operation(
                    "record outcomes", _one_or_many("OutcomeAnswer"), body=_one_or_many("OutcomeRequest"),
                    errors={"404": "there is no such decision"}, role="outcome",
                )
            },
            "/v1/keys": {
                "post": _operation(
                    "make a key, which is shown once", None, body=_ref("KeyRequest"), created=_ref("KeyAnswer"), role="admin"
                ),
                "get": _operation("list the names and roles of keys", _ref("KeyList")),
            },
            "/v1/keys/{key_name}": {
                "parameters": [{"name": "key_name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}],
                "delete": _operation("revoke all keys of a name", None, errors={"404": "there is no such key"}, role="admin"),
            },
            "/v1/routers": {"get": _operation("list routers", _ref("RouterList"))},
            "/v1/routers/{name}": {
                "parameters": [name],
                "put": _operation(
                    "make a router, or make it as wanted", _OBJECT, body=_ref("RouterRequest"), created=_OBJECT,
                    errors=quarantined, role="admin",
                ),
                "get": _operation("show a router", _OBJECT, errors=router),
                "delete": _operation("take a router out of service", None, errors={**router, **quarantined}, role="admin"),
            },
            "/v1/routers/{name}/segments": {
                "parameters": [name], "get": _operation("list segments, and explain all of them together", _OBJECT, errors=router)
            },
            "/v1/routers/{name}/segments/{segment}": {
                "parameters": [name, segment],
                "get": _operation("explain a segment", _OBJECT, errors={"404": "there is no such router or segment"}),
            },
            "/v1/routers/{name}/arms/{change}": {
                "parameters": [name, change],
                "post": _operation(
                    "change an arm", _OBJECT, body=_ref("ArmRequest"), errors=router, optional_body=True, role="admin"
                ),
            },
            "/healthz": {"get": _plain("alive")},
            "/readyz": {"get": _plain("ready to decide, or degraded while the store is away; names quarantined routers")},
            "/metrics": {"get": _plain("Prometheus metrics")},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}, {}],
    }  # fmt: skip


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
    summary: str, answer: dict[str, Any] | None, *, body: dict[str, Any] | None = None, errors: dict[str, str] | None = None,
    role: str = "view", created: dict[str, Any] | None = None, optional_body: bool = False,
) -> dict[str, Any]:  # fmt: skip
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
    said: dict[str, Any] = {"description": text, "content": _content(_ref("Failure"))}
    if code in ("429", "503"):
        said["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}, "required": True}}
    if code == "401":
        said["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}
    return said


def _plain(summary: str) -> dict[str, Any]:
    plain = {"text/plain": {"schema": {"type": "string"}}}
    errors = {code: _failure(code, text) for code, text in _ALWAYS.items() if code not in ("401", "429")}
    errors["403"] = _failure("403", "a foreign Origin")
    responses = {"200": {"description": "done", "content": plain}, **errors}
    return {"summary": summary, "responses": responses, "security": [{}]}
