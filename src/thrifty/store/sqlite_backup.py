"""A consistent copy of a SQLite store that others write to.

The log only grows at its end, so a copy of all rows up to a position is consistent however long it takes. It is made in pieces:
no read transaction lasts longer than one of them, and the WAL stays small. (SQLite's own backup begins again whenever another
connection writes, or keeps a transaction open until it is done.) What does change in place is compared afterwards: if rows were
pruned or voided meanwhile, the copy is made again.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from thrifty.files import flush_gently
from thrifty.store.log import Row, StoreError
from thrifty.store.packed import unpack
from thrifty.store.sqlite_file import reading_uri
from thrifty.store.sqlite_schema import migrate
from thrifty.store.sqlite_wal import ReaderPause

if TYPE_CHECKING:
    from thrifty.store.sqlite import SqliteStore

COPY_ROWS = 2_000
"""Rows copied by one statement."""

ATTEMPTS = 5

SMALL = ("keys", "alerts", "alert_memory")
"""Tables that are copied by one statement each, and do not depend on the log."""

LEFT_OUT = ("settled",)
"""Tables that are not copied: which blocks of decisions have all their outcomes is found out again."""

_COLUMNS = ", ".join(("position", "router", *Row._fields))


def back_up(store: "SqliteStore", path: Path) -> int:
    """Write a copy of a store to a new file; returns the number of rows of the log in it."""
    if path.exists():
        raise StoreError(f"{path} exists already: name a file that does not, nothing was written")
    try:
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            for attempt in range(ATTEMPTS):
                part = Path(folder) / f"{attempt}.db"
                rows = _copy(store.path, part, store.reader_pause)
                if rows is not None:
                    _move(part, path)
                    return rows
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot copy {store.path} to {path}: {error}") from error
    raise StoreError(f"cannot copy {store.path}: it was pruned or repaired during each of {ATTEMPTS} attempts, try again later")


def _move(part: Path, path: Path) -> None:
    """Give a finished copy its name, unless a file of that name was made meanwhile."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    os.replace(part, path)
    _sync(path.parent)


def _copy(source: Path, target: Path, pause: ReaderPause) -> int | None:
    """Copy everything; returns the number of rows, or None if the source was pruned or repaired meanwhile."""
    with closing(sqlite3.connect(target.absolute().as_uri(), uri=True, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        migrate(copy, target)
        copy.execute("ATTACH ? AS source", (reading_uri(source),))
        pruned, voided = marks = _marks(copy)
        _copy_snapshots(copy)
        _copy_history(copy)
        (head,) = copy.execute("SELECT coalesce(max(position), 0) FROM source.log").fetchone()
        rows = _copy_log(copy, target, head, pause)
        for table in SMALL:
            copy.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table}")
        copy.executemany("INSERT INTO main.pruned VALUES (?, ?)", pruned)
        copy.executemany("INSERT INTO main.voided VALUES (?, ?, ?, ?)", voided)
        is_whole = _marks(copy) == marks and all(_is_covered(copy, *mark) for mark in pruned)
        copy.execute("DETACH source")
        copy.execute("PRAGMA journal_mode = WAL")
    _sync(target)
    return rows if is_whole else None


def _marks(copy: sqlite3.Connection) -> tuple[list[tuple[str, int]], list[tuple[int, str, str, float]]]:
    """What was pruned and voided in the source."""
    pruned = copy.execute("SELECT router, upto FROM source.pruned ORDER BY router").fetchall()
    return pruned, copy.execute("SELECT position, router, reason, at FROM source.voided ORDER BY position").fetchall()


def _copy_log(copy: sqlite3.Connection, target: Path, head: int, pause: ReaderPause) -> int:
    rows, after = 0, 0
    while True:
        pause.take()
        ends = copy.execute(
            "SELECT position FROM source.log WHERE position > ? AND position <= ? ORDER BY position LIMIT 1 OFFSET ?",
            (after, head, COPY_ROWS - 1),
        ).fetchone()
        end = ends[0] if ends else head
        rows += copy.execute(
            f"INSERT INTO main.log ({_COLUMNS}) SELECT {_COLUMNS} FROM source.log WHERE position > ? AND position <= ?",
            (after, end),
        ).rowcount
        flush_gently(target)
        if ends is None:
            return rows
        after = end


def _copy_history(copy: sqlite3.Connection) -> None:
    """Copy the history with the position that it reaches to, of one moment: after the snapshots, which never reach further, and
    before the end of the log is known.
    """
    copy.execute("BEGIN")
    for table in ("history_upto", "history_kept", "history"):
        copy.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table}")
    copy.execute("COMMIT")


def _copy_snapshots(copy: sqlite3.Connection) -> None:
    found = copy.execute("SELECT router, position, digest FROM source.snapshots").fetchall()
    for router, position, digest in found:
        copy.execute(
            "INSERT INTO main.snapshots SELECT * FROM source.snapshots WHERE router = ? AND position = ?", (router, position)
        )
        key = "router = ? AND digest = ?"
        numbers = copy.execute(f"SELECT number FROM source.snapshot_pieces WHERE {key}", (router, digest)).fetchall()
        for (number,) in numbers:
            copy.execute(
                f"INSERT OR IGNORE INTO main.snapshot_pieces SELECT * FROM source.snapshot_pieces WHERE {key} AND number = ?",
                (router, digest, number),
            )


def _is_covered(copy: sqlite3.Connection, router: str, upto: int) -> bool:
    """True if the copy has a whole snapshot that stands for the pruned rows."""
    kept = "SELECT body, digest FROM main.snapshots WHERE router = ? AND position >= ?"
    for body, digest in copy.execute(kept, (router, upto)).fetchall():
        pieces = "SELECT body FROM main.snapshot_pieces WHERE router = ? AND digest = ? ORDER BY number"
        if unpack(body or b"".join(piece for (piece,) in copy.execute(pieces, (router, digest))), digest) is not None:
            return True
    return False


def _sync(path: Path) -> None:
    """Flush a file, or a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
