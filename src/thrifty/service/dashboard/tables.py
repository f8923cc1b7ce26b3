"""Tables in pages: sorted, searched and cut on the server, so that a table of ten thousand rows costs what it shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thrifty.service.errors import ServiceProblemError
from thrifty.service.queries import RouterPartQuery

LIMITS = {"wide": 50, "narrow": 12}
"""Rows of a page of a table."""


@dataclass(frozen=True)
class TableView:
    """Which rows of a table are shown: sorted by a column (`-` first for descending), those with a text, from an offset on."""

    sort: str
    search: str
    offset: int
    limit: int = 50
    total: int = 0
    shown: int = 0


def table_view(query: RouterPartQuery, *, columns: Sequence[str], sort: str) -> TableView:
    """What the parameters of a request ask for, or a ServiceProblemError.

    >>> table_view(RouterPartQuery(sort="-price", offset=50), columns=("arm", "price"), sort="arm")
    TableView(sort='-price', search='', offset=50, limit=50, total=0, shown=0)
    """
    wanted = sort if query.sort is None else query.sort
    if wanted.removeprefix("-") not in columns:
        raise ServiceProblemError(
            422, "value", f"sort must be one of {', '.join(columns)}, with - for descending, got {wanted!r:.80}"
        )
    return TableView(wanted, query.search, query.offset, LIMITS[query.size])


def cut(rows: Sequence[Mapping[str, Any]], view: TableView, *, name: str) -> tuple[list[Mapping[str, Any]], TableView]:
    """The rows of a view, and the view with its numbers. Unknown values come last, whatever the order.

    >>> rows = [{"arm": "b", "price": 2.0}, {"arm": "a", "price": None}, {"arm": "c", "price": 1.0}]
    >>> [row["arm"] for row in cut(rows, TableView("-price", "", 0), name="arm")[0]]
    ['b', 'c', 'a']
    """
    key, text = view.sort.removeprefix("-"), view.search.strip().casefold()
    found = [row for row in rows if text in str(row[name]).casefold()]
    known = [row for row in found if row[key] is not None]
    known.sort(key=lambda row: row[key].casefold() if isinstance(row[key], str) else row[key], reverse=view.sort.startswith("-"))
    ordered = known + [row for row in found if row[key] is None]
    shown = ordered[view.offset : view.offset + view.limit]
    return shown, TableView(view.sort, view.search, view.offset, view.limit, len(found), len(shown))
