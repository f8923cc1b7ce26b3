"""Sources: files, patterns, folders, pipes, queries, frames and Arrow tables as the parts of a log."""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from thrifty.logs.frames import frame_of
from thrifty.logs.parts import Part, checked_scan, late_names
from thrifty.logs.polars_extra import first_line, require_polars
from thrifty.logs.survey import SEPARATORS, find_separator, header_line, split_header, survey_csv, survey_lines
from thrifty.logs.unpacking import (
    PACKED,
    content_suffix,
    foreign_encoding,
    has_mark,
    is_piped,
    packing,
    run_query,
    spool,
    unpack,
)

__all__ = ["Query", "SourceFormat", "first_line", "open_source", "require_polars"]

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_SHOWN = ".csv, .tsv, .parquet, .jsonl or .arrow (also with .gz or .zst)"
_NO_HEADER = re.compile(r"\ufeff?(sep=.|#|//|\s*$)", re.IGNORECASE)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Query:
    """A DuckDB query as the source of a log.

    `database` is a DuckDB file, the URL of a PostgreSQL database, or None for a query that names its own files.

    >>> Query("select * from 'log.parquet'").database is None
    True
    """

    sql: str
    database: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.sql, str):
            raise ValueError(f"a query must be text such as 'select * from log', got {self.sql!r:.80}")


@dataclass(frozen=True)
class SourceFormat:
    """How text files are written: None for what the file itself tells. `wanted` are the columns that a header should have."""

    separator: str | None = None
    encoding: str | None = None
    wanted: Sequence[str] = field(default=())


def open_source(source: Any, form: SourceFormat, folder: Path) -> tuple[list[Part], list[str]]:
    """The parts of a log, and notes on files that were not read. `folder` is an empty one for what must be unpacked.

    >>> import polars
    >>> parts, _ = open_source(polars.DataFrame({"arm": ["a"]}), SourceFormat(), Path())
    >>> parts[0].names(), parts[0].rows
    (['arm'], 1)
    """
    parts, notes = _open_parts(source, form, folder)
    for flag, value, kinds in (("--separator", form.separator, ("csv",)), ("--encoding", form.encoding, ("csv", "jsonl"))):
        if value is not None and not any(part.kind in kinds for part in parts):
            raise ValueError(f"{flag} {value!r:.80} is about text files, and {parts[0].name} is none: leave it out")
    return parts, notes


def _open_parts(source: Any, form: SourceFormat, folder: Path) -> tuple[list[Part], list[str]]:
    if isinstance(source, Query):
        return _file_part(run_query(source.sql, source.database, folder), "the query", (), form, folder).split(), []
    if not isinstance(source, (str, os.PathLike)):
        frame, rows = frame_of(source)
        return [Part("the frame", "frame", rows, frame=frame)], []
    text = os.fspath(source)
    if text == "-" or is_piped(Path(text)):
        return _file_part(spool(text, folder), "what is piped in", (), form, folder).split(), []
    files, notes = find_files(text)
    parts = [_file_part(path, str(path), _folder_columns(path), form, folder) for path in files]
    return [piece for part in parts for piece in part.split()], notes


def find_files(text: str) -> tuple[list[Path], list[str]]:
    """The files that a path, a pattern or a folder stands for, in the order of their names, and a note on files left alone."""
    path = Path(text)
    if path.is_dir():
        try:
            found = [each for each in path.rglob("*") if each.is_file() and not _is_hidden(each.relative_to(path))]
        except OSError as error:
            raise ValueError(f"cannot read the folder {path}: {error.strerror} ({error.filename})") from None
        wanted = [each for each in found if _kind(each) is not None]
        if not wanted:
            raise ValueError(f"the folder {path} has no log: a log ends in {_SHOWN}")
    elif not path.exists() and glob.has_magic(text):
        found = wanted = [Path(each) for each in glob.glob(text, recursive=True) if Path(each).is_file()]
        if not wanted:
            raise ValueError(f"no file matches {text!r}")
    else:
        return [path], []
    kinds = {_kind(each) or each.suffix for each in wanted}
    if len(kinds) > 1:
        raise ValueError(f"{text} holds logs of several kinds ({', '.join(sorted(kinds))}): name one kind, such as '{text}/*.csv'")
    left = sorted(set(found) - set(wanted))
    notes = [f"{len(left)} files are not logs and were not read: {left[0].name}{', ...' if len(left) > 1 else ''}"] if left else []
    return sorted(wanted, key=_natural), notes


def _natural(path: Path) -> list[tuple[int, str]]:
    """A key that sorts part-2 before part-10."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", str(path))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) and "=" not in part for part in path.parts)


def _kind(path: Path) -> str | None:
    return KINDS.get(_plain_suffix(path))


def _plain_suffix(path: Path) -> str:
    return (path if packing(path) is None else Path(path.stem)).suffix.lower()


def _folder_columns(path: Path) -> tuple[tuple[str, str | None], ...]:
    """Columns in the names of folders, as Hive writes them: country=DE/log.parquet."""
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return tuple((unquote(name), None if value == _NO_VALUE else unquote(value)) for name, _, value in pairs if name)


def _file_part(path: Path, name: str, folders: tuple[tuple[str, str | None], ...], form: SourceFormat, folder: Path) -> Part:
    kind, suffix = _kind(path), _plain_suffix(path)
    if kind is None:
        missing = "" if path.exists() else ", and there is no such file or folder"
        raise ValueError(f"a log must end in {_SHOWN}, or be a store such as sqlite:///thrifty.db; got {name!r}{missing}")
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror}") from None
    if size == 0:
        raise ValueError(f"{name} is empty: it has no header")
    if not os.access(path, os.R_OK):
        raise ValueError(f"cannot read {name}: permission denied")
    try:
        path = _plain_file(path, name, kind, form, folder)
        part = Part(name, kind, 0, path, folders=folders)
        if kind == "csv":
            part = _surveyed(part, path, form.separator or ("\t" if suffix == ".tsv" else None), form.wanted)
        elif kind == "jsonl":
            part = replace(part, rows=survey_lines(path).rows)
        frame = checked_scan(part)
        if kind == "jsonl":
            part = replace(part, late=late_names(part, form.wanted))
    except ValueError as error:
        raise ValueError(_as_named(str(error), name, folder)) from None
    if kind in ("parquet", "arrow"):
        part = replace(part, rows=int(frame.select(require_polars().len()).collect().item()))
    return part


def _plain_file(path: Path, name: str, kind: str, form: SourceFormat, folder: Path) -> Path:
    """The file itself if it can be read as it is, else a plain copy of it in the folder."""
    if packing(path) is not None:
        path = unpack(path, folder, None)
        if content_suffix(path) in PACKED:
            raise ValueError(f"{name} is compressed twice: decompress it once")
    if kind not in ("csv", "jsonl"):
        return path
    encoding = foreign_encoding(path, form.encoding)
    if encoding is None and kind == "jsonl" and has_mark(path):
        encoding = "utf-8-sig"
    return path if encoding is None else unpack(path, folder, encoding)


def _as_named(message: str, name: str, folder: Path) -> str:
    """A message that names a file as the user does, not its plain copy."""
    for copy in folder.iterdir():
        message = message.replace(str(copy), name)
    return message


def _may_separate(sign: str) -> bool:
    """Whether a sign can stand between columns: one byte that is no letter, digit, quote or part of a number."""
    return len(sign) == 1 and sign.isascii() and sign.isprintable() and not sign.isalnum() and sign not in "\"'.-+_"


def _surveyed(part: Part, path: Path, separator: str | None, wanted: Sequence[str]) -> Part:
    line = header_line(path)
    if "\r" in line:
        raise ValueError(f"{part.name}: its lines end with a carriage return alone: convert them to newlines")
    if separator is not None and separator not in SEPARATORS and not _may_separate(separator):
        raise ValueError(f"--separator must be one sign such as , ; | ^, a space or tab, got {separator!r:.80}")
    separator = separator or find_separator(line, list(wanted))
    names = split_header(line, separator)
    for name in wanted:
        if names.count(name) > 1:
            raise ValueError(f"{part.name} has {names.count(name)} columns named {name!r}: rename all but one")
    if not set(wanted) <= set(names) and _NO_HEADER.match(line):
        raise ValueError(f"{part.name}: its first line, {line!r:.60}, is no header: remove it")
    survey = survey_csv(path, separator, len(names))
    return replace(part, separator=separator, rows=survey.rows, ragged=survey.ragged if len(survey.ragged) else None)
