"""Query strings, checked like bodies: a parameter that is unknown, given twice or out of range is refused with one line."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from thrifty.router.segment_table import SORTS
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import Name

Limit = Annotated[int, Meta(ge=1, le=500)]
Path = Annotated[str, Meta(max_length=200)]
_SORTS = tuple(f"{sign}{name}" for name in SORTS for sign in ("", "-"))
Query = TypeVar("Query", bound=Struct)


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


def given_once(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The parameters of a query string by name, or a ServiceProblemError if one is given twice."""
    names = [name for name, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ServiceProblemError(422, "value", f"the parameter {twice!r:.80} must be given once")
    return dict(pairs)


def parsed(kind: type[Query], pairs: Sequence[tuple[str, str]]) -> Query:
    """A query string as `kind`, or a ServiceProblemError of one line that names the parameter."""
    found = given_once(pairs)
    try:
        return convert(found, kind, strict=False)
    except ValidationError as error:
        raise ServiceProblemError(422, "value", " ".join(str(error).split())[:300]) from None
