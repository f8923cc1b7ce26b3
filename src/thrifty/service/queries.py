"""Query strings, checked like bodies: a parameter that is unknown, given twice or out of range is refused with one line.

Every route has a type of query here, and is asked through `asking`: no handler reads a query string by itself.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, field, inspect
from starlette.requests import Request
from starlette.responses import Response

from thrifty.router.segment_table import SORTS
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import Name, Version
from thrifty.service.wrong_values import wrong_value
from thrifty.store.history import FARTHEST_S, FIELDS, STEPS

Handler = Callable[[Request], Awaitable[Response]]

Limit = Annotated[int, Meta(ge=1, le=500)]
Path = Annotated[str, Meta(max_length=200)]
Time = Annotated[float, Meta(gt=-FARTHEST_S, lt=FARTHEST_S)]
_SORTS = tuple(f"{sign}{name}" for name in SORTS for sign in ("", "-"))
_SECONDS = "seconds since 1970; "
_WHOLE, _TRUTH = re.compile(r"-?[0-9]{1,20}"), re.compile(r"true|false|1|0")
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
Field = Literal[FIELDS]  # type: ignore[valid-type]
Query = TypeVar("Query", bound=Struct)


class NoQuery(Struct, forbid_unknown_fields=True):
    """Of a route without parameters."""


class VersionQuery(Struct, forbid_unknown_fields=True):
    """Of a change whose body has no place for it."""

    version: Version | None = None


class AlertsQuery(Struct, forbid_unknown_fields=True):
    """How many alerts to list."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class HistoryParameters(Struct, forbid_unknown_fields=True):
    """Which part of the history, and what is kept apart in it."""

    step: Literal[tuple(STEPS)] = "minute"  # type: ignore[valid-type]
    since: Annotated[Time, Meta(description=f"{_SECONDS}by default the last 120 minutes, 72 hours or 90 days")] | None = None
    until: Annotated[Time, Meta(description=f"{_SECONDS}by default now")] | None = None
    segment: Annotated[Path, Meta(description="only this segment and those below it")] = ""
    by: Annotated[list[Field], Meta(description="what is kept apart; all else is added up")] = field(
        default_factory=lambda: ["arm"]
    )


class SegmentPageQuery(Struct, forbid_unknown_fields=True):
    """A segment whose name cannot stand in a path."""

    segment: Path = ""


class ServicePartQuery(Struct, forbid_unknown_fields=True):
    """A part of a page. `moment` is the digest of the last event: pages that saw the same one share what is made."""

    part: Path = ""
    size: Literal["wide", "narrow"] = "wide"
    moment: Annotated[str, Meta(max_length=64)] = ""


class RouterPartQuery(ServicePartQuery, forbid_unknown_fields=True):
    """Parts of the page of a router or segment, separated by commas, and which rows of a table or which span."""

    segment: Path = ""
    sort: Path | None = None
    search: Path = ""
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    range: Literal["live", "hours", "day", "month", "year"] = "live"


class ChangesQuery(Struct, forbid_unknown_fields=True):
    """Which changes to list."""

    limit: Limit = 50
    before: Annotated[int, Meta(ge=0, le=2**53, description="only those before this position of the log")] | None = None


class SegmentsQuery(Struct, forbid_unknown_fields=True):
    """Which segments to list; with `details` as a table."""

    details: bool = False
    search: Path = ""
    sort: Literal[_SORTS] = "-decisions"  # type: ignore[valid-type]
    limit: Limit = 50
    offset: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class FrontierQuery(Struct, forbid_unknown_fields=True):
    """Of which segment, and those below it."""

    segment: Path = ""


class EventsQuery(Struct, forbid_unknown_fields=True):
    """Which router to follow besides the overview."""

    router: Name | None = None


class DecisionsQuery(Struct, forbid_unknown_fields=True):
    """Which decisions to list."""

    limit: Limit = 50
    segment: Path = ""


def asking(handle: Handler, kind: type[Struct]) -> Handler:
    """`handle`, with the query string as `request.state.asked`; one that is not of this kind is refused."""

    async def ask(request: Request) -> Response:
        request.state.asked = parsed(kind, request.query_params.multi_items())
        return await handle(request)

    return ask


def parsed(kind: type[Query], pairs: Sequence[tuple[str, str]]) -> Query:
    """A query string as `kind`, or a ServiceProblemError of one line that names the parameter.

    >>> parsed(ChangesQuery, [("limit", "20")])
    ChangesQuery(limit=20, before=None)
    """
    types = _types(kind)
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name not in types:
            there = f"name one of: {', '.join(types)}" if types else "there is none here"
            raise ServiceProblemError(422, "value", f"there is no parameter {name!r:.80}; {there}")
        if name in found:
            raise ServiceProblemError(422, "value", f"the parameter {name!r:.80} must be given once")
        found[name] = _value(types[name], name, text)
    try:
        return convert(found, kind)
    except ValidationError as error:
        raise ServiceProblemError(422, "value", wrong_value(error, kind, found)) from None


@cache
def _types(kind: type[Struct]) -> dict[str, inspect.Type]:
    """The types of the parameters by name; of those that may be left out, what they are if given: a query has no null."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return {each.name: _given(each.type) for each in described.fields}


def _given(kind: inspect.Type) -> inspect.Type:
    if isinstance(kind, inspect.Metadata):
        return _given(kind.type)
    if isinstance(kind, inspect.UnionType):
        (kind,) = (_given(each) for each in kind.types if not isinstance(each, inspect.NoneType))
    return kind


def _value(kind: inspect.Type, name: str, text: str) -> Any:
    """What a text says, in the one way of writing that OpenAPI and JSON have; `convert` checks the rest."""
    if isinstance(kind, inspect.IntType):
        return int(_fitting(_WHOLE, "a whole number in plain digits", name, text))
    if isinstance(kind, inspect.FloatType):
        return float(_fitting(_NUMBER, "a number", name, text))
    if isinstance(kind, inspect.BoolType):
        return _fitting(_TRUTH, "true or false, 1 or 0", name, text) in ("true", "1")
    if isinstance(kind, inspect.ListType):
        return [_value(kind.item_type, name, each) for each in text.split(",")] if text else []
    if isinstance(kind, inspect.LiteralType) and text not in kind.values:
        raise ServiceProblemError(422, "value", f"{name} must be one of {', '.join(map(str, kind.values))}, got {text!r:.80}")
    return text


def _fitting(pattern: re.Pattern[str], what: str, name: str, text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ServiceProblemError(422, "value", f"{name} must be {what}, got {text!r:.80}")
    return text
