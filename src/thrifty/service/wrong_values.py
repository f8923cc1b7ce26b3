"""What is wrong with something that was sent, in one line: the field, what it must be, and what it is."""

import re
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, MsgspecError, UnsetType, ValidationError, convert

_PLACE = re.compile(r"(?s)(.*?)(?: - at (`key` in )?`\$((?:\.\w+|\[\d+\]|\[\.\.\.\])*)`)?")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_LIMITS = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}


def wrong_value(error: ValidationError, kind: Any, sent: Any, *, null: str = "null") -> str:
    """An error of msgspec in one line of plain words.

    Parameters
    ----------
    kind : the type that was expected
    sent : what was sent instead, as plain values
    null : what stands for no value there

    >>> from thrifty.service.queries import ChangesQuery
    >>> try:
    ...     convert({"limit": 501}, ChangesQuery)
    ... except ValidationError as error:
    ...     print(wrong_value(error, ChangesQuery, {"limit": 501}))
    limit must be at most 500, got 501

    """
    found = _PLACE.fullmatch(str(error))
    assert found is not None
    what, of_key, path = found[1], found[2] is not None, found[3] or ""
    try:
        name, kind, value = _followed(path, kind, sent)
        if of_key:
            name, kind, value = f"a name in {name}", *_wrong_key(kind, value)
        return _said(what, name, kind, value, null)
    except (LookupError, StopIteration, TypeError, AttributeError, MsgspecError):  # said otherwise, or a field was sent twice
        return " ".join(str(error).split())[:300]


def _followed(path: str, kind: Any, value: Any) -> tuple[str, Any, Any]:
    """The name of what is at a path, its type and its value."""
    name = ""
    for step in _STEP.finditer(path):
        kind = _bare(kind, value)
        if step[1]:
            kind, value, name = _hints(kind)[step[1]], value[step[1]], f"{name}.{step[1]}"
        elif step[2]:
            kind, value, name = get_args(kind)[0], value[int(step[2])], f"{name}[{step[2]}]"
        else:
            kind = get_args(kind)[1]
            key = next(key for key, each in value.items() if _is_wrong(each, kind))
            value, name = value[key], f"{name}[{key!r:.60}]"
    return name.removeprefix("."), kind, value


def _wrong_key(kind: Any, value: Any) -> tuple[Any, Any]:
    kind = get_args(_bare(kind, value))[0]
    return kind, next(key for key in value if _is_wrong(key, kind))


def _is_wrong(value: Any, kind: Any) -> bool:
    try:
        convert(value, kind)
    except ValidationError:
        return True
    return False


def _metas(kind: Any) -> list[Meta]:
    """What the annotations of a type say, those of the choices of a union included."""
    if get_origin(kind) is Annotated:
        return [each for each in get_args(kind)[1:] if isinstance(each, Meta)] + _metas(get_args(kind)[0])
    return [meta for each in get_args(kind) for meta in _metas(each)] if get_origin(kind) in (Union, UnionType) else []


def _bare(kind: Any, value: Any) -> Any:
    """A type without annotations; of a union the choice that fits a value best."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0], value)
    if get_origin(kind) in (Union, UnionType):
        choices = [_bare(each, value) for each in get_args(kind) if each not in (NoneType, UnsetType)]
        return next((each for each in choices if (get_origin(each) is list) == isinstance(value, list)), choices[0])
    return kind


def _said(what: str, name: str, kind: Any, value: Any, null: str) -> str:
    """What is wrong with the value of a name."""
    must = f"{name or 'what is sent'} must"
    if found := re.fullmatch(r"Expected `(.+?)`, got `.+`", what):
        kinds = [null if each == "null" else _KINDS[each] for each in found[1].split(" | ")]
        return f"{must} be {' or '.join(kinds)}, got {_shown(value, null)}"
    if found := re.fullmatch(r"Expected `(?:int|float)` ([<>]=?) (\S+)", what):
        return f"{must} be {_LIMITS[found[1]]} {_number(found[2])}, got {_shown(value, null)}"
    if found := re.fullmatch(r"Expected `(\w+)` of length ([<>]=) (\d+)", what):
        if (found[2], found[3]) == (">=", "1"):
            return f"{must} not be empty"
        things = "entries" if found[1] != "str" else "characters"
        return f"{must} have {_LIMITS[found[2]]} {int(found[3]):,} {things}, got {len(value):,}"
    if what.startswith("Expected `str` matching regex"):
        described = next(meta.description for meta in _metas(kind) if meta.description)
        return f"{must} be {described}, got {_shown(value, null)}"
    if what.startswith("Invalid enum value"):
        words = map(str, get_args(_bare(kind, value)))
        return f"{must} be one of {', '.join(words)}, got {_shown(value, null)}"
    place, there = f" in {name}" if name else "", ", ".join(_hints(_bare(kind, value)))
    if found := re.fullmatch(r"Object missing required field `(\w+)`", what):
        return f"{found[1]} is missing{place}"
    if found := re.fullmatch(r"(?s)Object contains unknown field `(.*)`", what):
        return f"there is no {found[1]!r:.80}{place}; there are {there}"
    raise LookupError(what)


def _number(text: str) -> str:
    """A limit: a whole number in plain digits, which a float would round."""
    return text if text.lstrip("-").isdigit() else f"{float(text):.15g}"


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _shown(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return str(value).lower()
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"{value!r:.80}"
