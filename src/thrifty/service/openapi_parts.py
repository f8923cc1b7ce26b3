"""Parts of the OpenAPI document: operations with the answers that every route may give, and parameters."""

from typing import Any

import msgspec


def parameter(name: str, **limits: Any) -> dict[str, Any]:
    """A part of the path."""
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", **limits}}


def query(kind: Any) -> list[dict[str, Any]]:
    """The fields of a query as parameters."""
    (described,), components = msgspec.json.schema_components((kind,))
    fields = components[described["$ref"].rpartition("/")[2]]["properties"]
    found = []
    for name, field in fields.items():
        schema = {key: value for key, value in field.items() if key != "default"}
        given = [each for each in schema.pop("anyOf", []) if each != {"type": "null"}]  # a query has no null
        schema = {**schema, **(given[0] if given else {})}
        joined = {"explode": False} if schema.get("type") == "array" else {}  # one text, separated by commas
        found.append({"name": name, "in": "query", "required": False, "schema": schema, **joined})
    return found


def ref(name: str) -> dict[str, Any]:
    """A message type, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def one_or_many(name: str) -> dict[str, Any]:
    """A message, or a batch of them."""
    items = [ref(name)] if name.endswith("Request") else [ref(name), ref("Failure")]
    return {"anyOf": [ref(name), {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"anyOf": items}}]}


def content(schema: dict[str, Any]) -> dict[str, Any]:
    """A body of JSON."""
    return {"application/json": {"schema": schema}}


_ALWAYS = {
    "400": "not a valid request",
    "401": "no valid key",
    "403": "a foreign Origin, or a key without the role {role}",
    "408": "the request did not come in time",
    "413": "too large",
    "415": "a body that is not application/json",
    "421": "a Host that is not served here",
    "422": "a value that is not allowed; the message names it",
    "429": "too many requests with this key",
    "431": "headers that are too many or too long",
    "500": "an internal error; the log has it under the request_id",
    "503": "not now: the store is away, the router is being opened or quarantined, or too many requests wait",
}


def operation(
    summary: str,
    answer: dict[str, Any] | None,
    *,
    body: dict[str, Any] | None = None,
    errors: dict[str, str] | None = None,
    role: str = "view",
    created: dict[str, Any] | None = None,
    optional_body: bool = False,
    asked: Any = None,
) -> dict[str, Any]:
    """A call: its body or its query (`asked`), its answer, and what may go wrong."""
    texts = {code: text.format(role=role) for code, text in _ALWAYS.items()} | (errors or {})
    responses = {code: failure(code, text) for code, text in texts.items()}
    if answer is not None:
        responses["200"] = {"description": "done", "content": content(answer)}
    elif created is None:
        responses["204"] = {"description": "done"}
    if created is not None:
        responses["201"] = {"description": "made", "content": content(created)}
    call: dict[str, Any] = {"summary": summary, "responses": responses}
    if asked is not None:
        call["parameters"] = query(asked)
    if body is not None:
        call["requestBody"] = {"required": not optional_body, "content": content(body)}
    return call


def failure(code: str, text: str) -> dict[str, Any]:
    """An answer that is not a success."""
    answer: dict[str, Any] = {"description": text, "content": content(ref("Failure"))}
    if code in ("429", "503"):
        answer["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}, "required": True}}
    if code == "401":
        answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}}
    return answer


def plain(summary: str) -> dict[str, Any]:
    """A call that answers with text, and needs no key."""
    plain = {"text/plain": {"schema": {"type": "string"}}}
    errors = {code: failure(code, text) for code, text in _ALWAYS.items() if code not in ("401", "429")}
    errors["403"] = failure("403", "a foreign Origin")
    responses = {"200": {"description": "done", "content": plain}, **errors}
    return {"summary": summary, "responses": responses, "security": [{}]}
