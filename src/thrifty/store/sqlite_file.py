"""Opening a SQLite file: connections with their settings, and the lock of the process that writes."""

import fcntl
import os
import sqlite3
from pathlib import Path

from thrifty.store.log import StoreError
from thrifty.store.sqlite_schema import MIGRATIONS, version_of

CHECKPOINT_PAGES = 250
"""The commit that makes the WAL this long (in pages of 4 KiB) copies it into the file. Fewer pages are a shorter wait."""

WAL_KEPT_BYTES = 4 * 1024 * 1024
"""The WAL file is cut to this size whenever it begins again."""


def connect_writing(path: Path, *, busy_s: float, statements: int) -> sqlite3.Connection:
    """A connection that may write. WAL and synchronous=FULL: a committed row survives kill -9 and the loss of power."""
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False, cached_statements=statements)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
    return connection


def connect_reading(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """A connection that cannot write, while another process may; the file must be there and have all migrations."""
    require_file(path)
    try:
        connection = sqlite3.connect(reading_uri(path), uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False)
        connection.execute("SELECT 1 FROM log LIMIT 1")
        version = version_of(connection, path)
    except sqlite3.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from error
    if version < len(MIGRATIONS):
        connection.close()
        raise StoreError(
            f"{path} was written by an older thrifty (schema {version}, this one needs {len(MIGRATIONS)}): upgrade it with "
            f"`thrifty repair sqlite:///{path}` while no service runs on it"
        )
    return connection


def reading_uri(path: Path) -> str:
    """The URI that opens a file for reading only."""
    how = "mode=ro"
    wal = Path(f"{path}-wal")
    if os.statvfs(path).f_flag & os.ST_RDONLY and not (wal.exists() and wal.stat().st_size):
        how = "immutable=1"  # on a read-only file system SQLite cannot make the files it needs for sharing, and nobody writes
    return f"{path.absolute().as_uri()}?{how}"


def require_file(path: Path) -> None:
    """Raise a StoreError unless the file of a store exists."""
    if not path.exists():
        raise StoreError(
            f"there is no store {path}: check the path, or start `thrifty serve --store sqlite:///{path}` to make a new one"
        )


def lock_file(path: Path) -> int:
    """Lock a store for this process; the descriptor of the lock. The system releases it when the process ends, however it ends."""
    try:
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError(
            f"{path} is in use by another process: stop that process, send the request to it, or use another file"
        ) from None
    return handle
