"""The frontier of a running router, from its own log: what `thrifty serve` hands to the service."""

from typing import Any

from thrifty.router.export import Line, recent_decisions_of
from thrifty.store.log import Journal

MOST_DECISIONS = 20_000
"""The newest decisions of a log that are read: enough for intervals of a percent, and a bounded piece of memory."""

_SHOWN = ("alpha", "arm", "rows", "given_up", "given_up_low", "given_up_high", "floor_held")
_WITH_ENDS = tuple(f"{name}{end}" for name in ("quality", "cost", "saving") for end in ("", "_low", "_high"))


def router_frontier(journal: Journal, name: str, segment: str) -> list[dict[str, Any]]:
    """A row per alpha, of a segment and those below it; a ValueError where the log does not allow an estimate."""
    import polars

    from thrifty.logs import Log, frontier
    from thrifty.logs.evidence import OVERALL, finite
    from thrifty.router.export import line_schema

    lines = [line for line in recent_decisions_of(journal, name, MOST_DECISIONS) if _is_within(line, segment)]
    if not lines:
        raise ValueError("the log has no decisions there yet")
    points = frontier(Log(polars.DataFrame(lines, schema=line_schema(polars), orient="row"))).points
    alone = points.filter(polars.col("segment") != OVERALL)["segment"].n_unique() == 1
    rows = points.filter((polars.col("segment") != OVERALL) if alone else (polars.col("segment") == OVERALL)).to_dicts()
    return [finite({**{key: row[key] for key in (*_SHOWN, *_WITH_ENDS)}, "arm": row["arm"] or None}) for row in rows]


def _is_within(line: Line, segment: str) -> bool:
    return not segment or line.segment == segment or line.segment.startswith(f"{segment}/")
