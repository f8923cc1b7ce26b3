"""The tables in PostgreSQL: numbered migrations, run by the replica that starts first."""

from typing import Any

from thrifty.store.log import StoreError

MIGRATIONS = (
    """
    CREATE TABLE head (position bigint NOT NULL);
    INSERT INTO head VALUES (0);
    CREATE TABLE log (
        position bigint PRIMARY KEY, router text NOT NULL, kind text NOT NULL, replica bigint NOT NULL, sequence bigint NOT NULL,
        at double precision NOT NULL, segment text, request_id text, arm text, value double precision, cost double precision,
        code text NOT NULL, detail text, writer bigint NOT NULL, ticket bigint NOT NULL, life integer NOT NULL
    );
    CREATE INDEX log_router ON log (router, position);
    CREATE UNIQUE INDEX log_decision ON log (router, replica, sequence) WHERE kind = 'd';
    CREATE UNIQUE INDEX log_request ON log (router, life, request_id) WHERE kind = 'd' AND request_id IS NOT NULL;
    CREATE INDEX log_change ON log (router, position) WHERE kind = 'c';
    CREATE INDEX log_outcome ON log (router, replica, sequence) WHERE kind = 'o';
    CREATE TABLE snapshots (
        router text NOT NULL, position bigint NOT NULL, body bytea NOT NULL, digest text NOT NULL, PRIMARY KEY (router, position)
    );
    CREATE TABLE pruned (router text PRIMARY KEY, upto bigint NOT NULL);
    CREATE TABLE keys (digest text PRIMARY KEY, name text NOT NULL, role text NOT NULL);
    CREATE SEQUENCE replicas;
    """,
    """
    CREATE TABLE voided (
        position bigint PRIMARY KEY, router text NOT NULL, reason text NOT NULL, at timestamptz NOT NULL DEFAULT now()
    );
    ALTER TABLE keys ADD COLUMN revoked boolean NOT NULL DEFAULT false;
    CREATE TABLE settled (router text NOT NULL, block bigint NOT NULL, PRIMARY KEY (router, block));
    """,
    """
    ALTER TABLE keys ADD COLUMN expires_at double precision, ADD COLUMN made_at double precision,
        ADD COLUMN used_at double precision;
    """,
    # `step` in seconds, `start` in seconds since 1970; `whole` is 1 for all segments together.
    """
    CREATE TABLE history (
        router text NOT NULL, step integer NOT NULL, whole smallint NOT NULL, start bigint NOT NULL,
        segment text COLLATE "C" NOT NULL, arm text COLLATE "C" NOT NULL, group_name text COLLATE "C" NOT NULL,
        decisions bigint NOT NULL, outcomes bigint NOT NULL, rewards double precision NOT NULL, costs double precision NOT NULL,
        PRIMARY KEY (router, step, whole, start, segment, arm, group_name)
    );
    CREATE TABLE history_upto (router text PRIMARY KEY, position bigint NOT NULL);
    CREATE TABLE history_kept (step integer PRIMARY KEY, before bigint NOT NULL);
    """,
    # `occasion` is 0 while an alert lasts, so that the unique index allows one; then it is the id.
    """
    CREATE TABLE alerts (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, rule text NOT NULL, router text NOT NULL, segment text NOT NULL,
        arm text NOT NULL, severity text NOT NULL, since double precision NOT NULL, until double precision, text text NOT NULL,
        ending text, occasion bigint NOT NULL, sent integer NOT NULL, attempts integer NOT NULL DEFAULT 0,
        due double precision NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX alerts_once ON alerts (rule, router, segment, arm, occasion);
    CREATE TABLE alert_memory (name text PRIMARY KEY, body text NOT NULL);
    CREATE TABLE leases (name text PRIMARY KEY, holder bigint NOT NULL, until timestamptz NOT NULL);
    """,
)
"""Numbered by their place; schema_version has a row for each that was run."""

_LOCK = 0x7468726966747900
"""The number of the advisory lock that a replica holds while it migrates."""

PRESENCE = 0x74687266
"""The first number of the advisory lock that a replica holds as long as it is connected; the second is the replica's own."""

SAVING = 0x7487_1F50
"""The first number of the advisory lock that a replica holds while it saves a snapshot; the second is of the router."""


def check_version(connection: Any, place: str, *, reading: bool) -> None:
    """Raise a StoreError unless the database has tables of thrifty and, for reading, all migrations."""
    (table,) = connection.execute("SELECT to_regclass('thrifty.schema_version')").fetchone()
    if table is None:
        raise StoreError(f"there is no store in it: check the name, or start `thrifty serve --store {place}` to make one")
    (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    if reading and version < len(MIGRATIONS):
        raise StoreError(
            f"it was set up by an older thrifty (schema {version}, this one needs {len(MIGRATIONS)}): "
            "upgrade it with `thrifty repair`"
        )


def migrate(connection: Any) -> None:
    """Bring the tables up to date, in one transaction. A second replica waits for the first and then has nothing to do."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute("CREATE SCHEMA IF NOT EXISTS thrifty")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_version (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
        )
        (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
        if version > len(MIGRATIONS):
            raise StoreError(f"the database was set up by a newer thrifty (schema {version}, this one knows {len(MIGRATIONS)})")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            connection.execute(script)
            connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (number,))
