"""The tables in a SQLite file: numbered migrations. `user_version` of a file is the number of migrations it has had."""

import sqlite3
from pathlib import Path

from thrifty.store.log import StoreError

MIGRATIONS = (
    """
    CREATE TABLE log (
        position INTEGER PRIMARY KEY, router TEXT NOT NULL, kind TEXT NOT NULL, replica INTEGER NOT NULL, sequence INTEGER NOT NULL,
        at REAL NOT NULL, segment TEXT, request_id TEXT, arm TEXT, value REAL, cost REAL, code TEXT NOT NULL, detail TEXT
    ) STRICT;
    CREATE INDEX log_sequence ON log (router, sequence);
    CREATE TABLE snapshots (
        router TEXT NOT NULL, position INTEGER NOT NULL, body BLOB NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (router, position)
    ) STRICT;
    CREATE TABLE pruned (router TEXT PRIMARY KEY, upto INTEGER NOT NULL) STRICT;
    CREATE TABLE keys (digest TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL) STRICT;
    """,
    """
    CREATE INDEX log_changes ON log (router, position) WHERE kind = 'c';
    """,
    # A row of `snapshots` with an empty body has its body in `snapshot_pieces`, under the same digest.
    """
    CREATE INDEX log_router ON log (router, position);
    CREATE TABLE voided (position INTEGER PRIMARY KEY, router TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL) STRICT;
    ALTER TABLE keys ADD COLUMN revoked INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE snapshot_pieces (
        router TEXT NOT NULL, digest TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (router, digest, number)
    ) STRICT;
    CREATE TABLE settled (router TEXT NOT NULL, block INTEGER NOT NULL, PRIMARY KEY (router, block)) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE keys ADD COLUMN expires_at REAL;
    ALTER TABLE keys ADD COLUMN made_at REAL;
    ALTER TABLE keys ADD COLUMN used_at REAL;
    """,
    # `step` in seconds, `start` in seconds since 1970; `whole` is 1 for all segments together.
    # While cells are added in pieces, those up to `done` (a place, as JSON) are complete up to `next`, the others up to `position`.
    """
    CREATE TABLE history (
        router TEXT NOT NULL, step INTEGER NOT NULL, whole INTEGER NOT NULL, start INTEGER NOT NULL, segment TEXT NOT NULL,
        arm TEXT NOT NULL, group_name TEXT NOT NULL,
        decisions INTEGER NOT NULL, outcomes INTEGER NOT NULL, rewards REAL NOT NULL, costs REAL NOT NULL,
        PRIMARY KEY (router, step, whole, start, segment, arm, group_name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE history_upto (router TEXT PRIMARY KEY, position INTEGER NOT NULL, next INTEGER, done TEXT) STRICT;
    CREATE TABLE history_kept (step INTEGER PRIMARY KEY, before INTEGER NOT NULL) STRICT;
    """,
    # `occasion` is 0 while an alert lasts, so that the unique index allows one; then it is the id.
    """
    CREATE TABLE alerts (
        id INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, router TEXT NOT NULL, segment TEXT NOT NULL, arm TEXT NOT NULL,
        severity TEXT NOT NULL, since REAL NOT NULL, until REAL, text TEXT NOT NULL, ending TEXT,
        occasion INTEGER NOT NULL, sent INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0
    ) STRICT;
    CREATE UNIQUE INDEX alerts_once ON alerts (rule, router, segment, arm, occasion);
    CREATE TABLE alert_memory (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
    """,
)


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The number of migrations that a file has had; a StoreError if it is more than this version of thrifty knows."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(f"{path} was written by a newer thrifty (schema {version}, this one knows {len(MIGRATIONS)})")
    return int(version)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables of a file up to date, each migration in a transaction of its own."""
    version = version_of(connection, path)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;")
