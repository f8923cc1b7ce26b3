"""Rare segments are pooled: "DE/vodafone" becomes "DE/other", and what is still rare becomes "other"."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from thrifty.logs.names import MOST_SEGMENTS
from thrifty.logs.parts import Part
from thrifty.logs.plan import segment_of
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.recipe import Recipe
from thrifty.logs.tally import EMPTY_LEVEL

OTHER = "other"
MOST_VALUES = 100_000
"""The most different segments of a log."""

_FEWEST = 60  # two arms of 30 rows: fewer cannot be compared


class Pooling(NamedTuple):
    """The name that each rare segment is pooled under, and a note that says so."""

    names: Mapping[str, str]
    note: str


def count_segments(parts: Sequence[Part], recipe: Recipe) -> dict[str, int]:
    """The rows of every segment, as the log has them; one pass over the columns of the segment."""
    pl = require_polars()
    counts: dict[str, int] = {}
    for part in parts:
        raw = recipe.raw(part)
        segment = segment_of(pl, recipe, raw.collect_schema()).fill_null(EMPTY_LEVEL).alias("segment")
        found = raw.select(segment).group_by("segment").len().collect(engine="streaming")
        for name, rows in found.iter_rows():
            counts[name] = counts.get(name, 0) + rows
        if len(counts) > MOST_VALUES:
            raise ValueError(
                f"--segment has more than {MOST_VALUES:,} different values ({', '.join(map(repr, list(counts)[:3]))}, ...): "
                "name a coarser column"
            )
    return counts


def pool(counts: Mapping[str, int], rare: int | None, levels: int) -> Pooling:
    """Pool the segments with fewer than `rare` rows.

    Without a number, so few are pooled that at most `MOST_SEGMENTS` remain: those below 60, 120, 240, ... rows.

    >>> pool({"DE/a": 90, "DE/b": 5, "DE/c": 6, "FR/a": 3}, 10, levels=2).names
    {'DE/b': 'DE/other', 'DE/c': 'DE/other', 'FR/a': 'other'}
    """
    fewest = _FEWEST if rare is None else rare
    while rare is None and sum(rows >= fewest for rows in counts.values()) > MOST_SEGMENTS - 1:
        fewest *= 2
    small = {name: rows for name, rows in counts.items() if rows < fewest}
    parents: dict[str, int] = {}
    for name, rows in small.items():
        parents[_parent(name, levels)] = parents.get(_parent(name, levels), 0) + rows
    kept = sorted((name for name, rows in parents.items() if rows >= fewest), key=lambda name: -parents[name])
    if rare is None:
        kept = kept[: MOST_SEGMENTS - 1 - (len(counts) - len(small))]
    named = {name: parent if (parent := _parent(name, levels)) in set(kept) else OTHER for name in small}
    rows = sum(small.values())
    where = ", ".join(dict.fromkeys(sorted(named.values(), key=lambda name: (name == OTHER, name))))
    note = (
        f"{len(small):,} of {len(counts):,} segments have fewer than {fewest:,} rows and are pooled ({rows:,} rows, --rare): "
        f"{where:.80}{_joined(counts, named)}"
        if small
        else ""
    )
    return Pooling(named, note)


def _joined(counts: Mapping[str, int], named: Mapping[str, str]) -> str:
    """Words for segments of the log that have the name of a pool, and so become part of it."""
    own = sorted(set(named.values()) & set(counts) - set(named))
    return f"; the log has a segment {own[0]!r} of its own, which is pooled with them" if own else ""


def _parent(name: str, levels: int) -> str:
    """The pool of a segment among those that share its first levels."""
    return OTHER if levels < 2 else "/".join([*name.split("/")[: levels - 1], OTHER])
