"""The frontier of a running router, from its own log: what `thrifty serve` hands to the service."""

from collections import Counter
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
    _check(lines)
    try:
        points = frontier(Log(polars.DataFrame(lines, schema=line_schema(polars), orient="row"))).points
    except ValueError as error:
        raise ValueError(_for_router(str(error))) from error
    alone = points.filter(polars.col("segment") != OVERALL)["segment"].n_unique() == 1
    rows = points.filter((polars.col("segment") != OVERALL) if alone else (polars.col("segment") == OVERALL)).to_dicts()
    return [finite({**{key: row[key] for key in (*_SHOWN, *_WITH_ENDS)}, "arm": row["arm"] or None}) for row in rows]


def _check(lines: list[Line]) -> None:
    """Raise a ValueError that says what is missing, in the words of a router; the log has no names of columns for its reader."""
    from thrifty.logs.estimators import FEWEST_ROWS

    known = Counter(line.used_arm or line.arm for line in lines if line.reward is not None)
    newest = f"the newest {len(lines):,} decisions"
    if not lines:
        raise ValueError("there are no decisions yet")
    if not known:
        raise ValueError(f"none of {newest} has an outcome that counts yet")
    if not any(line.reward for line in lines):
        raise ValueError(f"none of {newest} was a success")
    enough = sorted(arm for arm, count in known.items() if count >= FEWEST_ROWS)
    if len(enough) < 2:
        which = f"only {enough[0]} has" if enough else "no arm has"
        raise ValueError(f"two arms need {FEWEST_ROWS} outcomes each, and among {newest} {which} so many")


def _for_router(reason: str) -> str:
    """Why the log allows no estimate; what a flag of a command would change is left out.

    >>> _for_router("every row used the arm 'a': nothing to compare; check --arm")
    "every row used the arm 'a': nothing to compare"
    """
    clauses = reason.split("; ")
    return "; ".join(each for each in clauses if " --" not in f" {each}" and "(--" not in each) or "it allows no estimate yet"


def _is_within(line: Line, segment: str) -> bool:
    return not segment or line.segment == segment or line.segment.startswith(f"{segment}/")
