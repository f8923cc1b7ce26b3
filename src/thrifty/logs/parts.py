"""Parts of a log: a file, a stretch of rows of a Parquet file, or a frame. A log is its parts, one after the other.

A part that is a file can be sent to another process: it holds paths and numbers, no rows.
"""

import glob
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.arrays import Integers
from thrifty.logs.polars_extra import first_line, require_polars

if TYPE_CHECKING:
    import polars

PART_ROWS = 1 << 20
"""The most rows of a Parquet file in one part."""


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a log.

    Parameters
    ----------
    name : as people know it, for messages
    kind : "csv", "jsonl", "parquet", "arrow" or "frame"
    rows : how many rows it has
    path : its file
    separator : of a CSV file
    folders : columns that the names of its folders hold, as in country=DE
    late : columns of JSON lines that none of its first lines has
    start : its first row in the file
    whole : whether it is the whole file
    ragged : (n, 3) row, line and fields of lines of a CSV file that do not fit its header
    frame : the rows, if they are in memory

    """

    name: str
    kind: str
    rows: int
    path: Path | None = None
    separator: str = ","
    folders: tuple[tuple[str, str | None], ...] = ()
    late: tuple[str, ...] = ()
    start: int = 0
    whole: bool = True
    ragged: Integers | None = None
    frame: Any = None

    def scan(self) -> "polars.LazyFrame":
        """The rows as a lazy frame; every column of a text file is text."""
        pl = require_polars()
        frame = _scan(pl, self)
        if self.folders:
            known = frame.collect_schema().names()
            named = {name: pl.lit(value, pl.String) for name, value in self.folders if name not in known}
            frame = frame.with_columns(**named)
        return frame if self.whole else frame.slice(self.start, self.rows)  # type: ignore[no-any-return]

    def names(self) -> list[str]:
        """The columns."""
        return list(self.scan().collect_schema().names())

    def split(self) -> list["Part"]:
        """The part in stretches of `PART_ROWS` rows, if it is a Parquet file."""
        if self.kind != "parquet" or self.rows <= PART_ROWS:
            return [self]
        starts = range(0, self.rows, PART_ROWS)
        return [replace(self, start=start, rows=min(PART_ROWS, self.rows - start), whole=False) for start in starts]


def _scan(pl: Any, part: Part) -> Any:
    """The file of a part as a lazy frame."""
    if part.kind == "frame":
        return part.frame
    if part.kind == "parquet":
        return pl.scan_parquet(part.path, hive_partitioning=False, glob=False)
    if part.kind == "arrow":
        return pl.scan_ipc(part.path, glob=False)
    if part.kind == "jsonl":
        path = glob.escape(str(part.path))  # polars takes every name as a pattern
        schema = pl.scan_ndjson(path, infer_schema_length=1000).collect_schema()
        as_text = {name: kind if kind.is_nested() else pl.String for name, kind in schema.items()}
        return pl.scan_ndjson(path, schema=as_text | dict.fromkeys(part.late, pl.String))
    return pl.scan_csv(part.path, infer_schema=False, separator=part.separator, truncate_ragged_lines=True, glob=False)


def late_names(part: Part, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted columns that only later lines of JSON lines have: programs leave out what is not known yet."""
    missing = set(wanted) - set(part.names())
    found: set[str] = set()
    if missing and part.path is not None:
        with part.path.open("rb") as file:
            for line in file:
                likely = [name for name in missing - found if json.dumps(name).encode() in line or not name.isascii()]
                found |= set(likely) & _keys(line) if likely else set()
                if found == missing:
                    break
    return tuple(sorted(found))


def _keys(line: bytes) -> set[str]:
    try:
        return set(json.loads(line))
    except (ValueError, TypeError):
        return set()


def checked_scan(part: Part) -> "polars.LazyFrame":
    """The rows of a part; a ValueError if its file is not what its name says."""
    pl = require_polars()
    try:
        frame = part.scan()
        frame.collect_schema()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"cannot read {part.name} as {part.kind}: {explain_fault(part, error)}") from None
    return frame


def explain_fault(part: Part, error: BaseException) -> str:
    """What is wrong with a file that polars cannot read: for JSON lines, the first line that is none."""
    if part.kind == "jsonl" and part.path is not None:
        with part.path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if wrong := _what_is_wrong(line):
                    return f"line {number:,} {wrong}"
    return f"{first_line(error)}{_REMEDIES.get(part.kind, '')}"


def _what_is_wrong(line: str) -> str:
    """Why a line is no line of JSON lines; empty if it is one, or blank."""
    odd: list[str] = []
    try:
        broken = bool(line.strip()) and not isinstance(json.loads(line, parse_constant=odd.append), dict)
    except json.JSONDecodeError:
        broken = True
    if broken:
        return f"is not a JSON object, {line.strip()!r:.60}: correct or remove it"
    return f"holds {odd[0]}, which is not valid JSON: write null, or leave the name out" if odd else ""


_REMEDIES = {
    "parquet": " (a Parquet file ends with a footer; one that was cut off while it was written or copied has none: make it again)"
}
