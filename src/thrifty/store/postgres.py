"""PostgreSQL: several replicas on one database. Each is a process that writes to the same log and follows it."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from thrifty.store.alerts import AlertTable
from thrifty.store.history import History, HistoryQuery
from thrifty.store.log import CHANGE, KEYS, LOGGED, Row, StoredKey, StoreError
from thrifty.store.open_decisions import OpenDecisions
from thrifty.store.postgres_history import prune
from thrifty.store.postgres_journal import PostgresJournal
from thrifty.store.postgres_outbox import COMMIT_TIMEOUT_S
from thrifty.store.postgres_schema import check_version, migrate
from thrifty.store.postgres_sync import CHANNEL, PostgresSync
from thrifty.store.postgres_worker import PostgresWorker

LONG_TIMEOUT_S = 60.0
"""For work that is known to take long: a page of a long read, a snapshot, a piece of a prune."""

LEASE_S = 15
"""Seconds for which a replica leads after it last said so."""

_LEAD = (
    "INSERT INTO leases (name, holder, until) VALUES (%s, %s, now() + make_interval(secs => %s)) ON CONFLICT (name) DO UPDATE "
    "SET holder = excluded.holder, until = excluded.until WHERE leases.holder = excluded.holder OR leases.until < now() RETURNING 1"
)
_SETTINGS = (
    "SET search_path = thrifty; SET default_transaction_isolation = 'read committed'; "
    "SET idle_in_transaction_session_timeout = '5s'; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_LIMITS: dict[str, Any] = {"connect_timeout": 3, "tcp_user_timeout": 3000, "keepalives_idle": 5, "application_name": "thrifty"}
_FIELDS = ", ".join(Row._fields)

log = logging.getLogger("thrifty.store")


class PostgresStore:
    """The store in a database that other replicas use too.

    Parameters
    ----------
    url : postgresql://USER:PASSWORD@HOST:PORT/DATABASE
    degraded_s : for how long decisions are taken while the database cannot be reached
    reading : open it for reading only
    create : make the tables if there are none; otherwise a StoreError

    """

    shared = True

    def __init__(self, url: str, *, degraded_s: float = 60.0, reading: bool = False, create: bool = True) -> None:
        self._url, self.place, self.reads_only = url, shown(url), reading
        self._closing = threading.Event()
        self.open_decisions: defaultdict[str, OpenDecisions] = defaultdict(OpenDecisions)
        try:
            with self.connect() as connection:
                self.replica = 0
                if reading or not create:
                    check_version(connection, self.place, reading=reading)
                if not reading:
                    migrate(connection)
                    (self.replica,) = connection.execute("SELECT nextval('replicas')").fetchone()
                (head,) = connection.execute("SELECT position FROM head").fetchone()
                ended = f"SELECT router, max(life) FROM log WHERE kind = '{CHANGE}' AND position <= %s GROUP BY router"
                lives = dict(connection.execute(ended, (head,)).fetchall())
        except (psycopg.Error, StoreError, ValueError) as error:
            raise StoreError(f"cannot open {self.place}: {str(error).strip()}") from error
        self._lookups = PostgresWorker(self.connect, place=self.place, name="thrifty-lookups")
        self._long_work = PostgresWorker(self.connect, place=self.place, name="thrifty-long-work")
        self.alerts = AlertTable(self._run, self._run)
        if reading:
            return
        self.writer = PostgresSync(self.connect, replica=self.replica, position=head, lives=lives, degraded_s=degraded_s)
        self._notified = threading.Thread(target=self._follow_notifications, name="thrifty-notifications", daemon=True)
        self._notified.start()

    @property
    def turnover(self) -> int:
        """How many times any process created or deleted a router."""
        return self.writer.changed

    def check(self) -> str:
        """Return "ready", or "degraded" if the database cannot be reached; a StoreError if that has lasted for too long."""
        self.writer.admit(keep=True)
        return "ready" if self.writer.failure is None else "degraded"

    def lead(self, name: str) -> bool:
        """True if this replica does the work called `name`: one does, and another takes over when it says so no more."""
        return not self.reads_only and bool(self.query(_LEAD, (name, self.replica, LEASE_S)))

    def _run(self, text: str, values: tuple[Any, ...]) -> list[Any]:
        return self.query(text.replace("?", "%s"), values)

    def journal(self, router: str) -> PostgresJournal:
        """The log of one router."""
        return PostgresJournal(self, router)

    def routers(self) -> list[str]:
        """Names of the routers that have a log and are not deleted."""
        rows = self.query(
            f"SELECT DISTINCT ON (router) router, code FROM log WHERE kind = '{CHANGE}' AND code IN ('create', 'delete') "
            "AND position <> ALL (ARRAY(SELECT position FROM voided)) ORDER BY router, position DESC"
        )
        return [name for name, code in rows if code != "delete"]

    def logged(self) -> list[str]:
        """Names of the routers that have a log, including deleted ones. One index search for each name."""
        return [name for (name,) in self.query(LOGGED)]

    def row_at(self, position: int) -> tuple[str, Row] | None:
        """The router and the row of a position, voided or not; None if there is no row."""
        found = self.query(f"SELECT router, {_FIELDS} FROM log WHERE position = %s", (position,))
        return (found[0][0], Row(*found[0][1:])) if found else None

    @property
    def keys_required(self) -> bool:
        """True once any API key was added, even if all keys are revoked by now."""
        return bool(self.query("SELECT EXISTS (SELECT FROM keys)")[0][0])

    def keys(self) -> list[StoredKey]:
        """Every API key that was not revoked, expired ones included."""
        return [StoredKey(*row) for row in self.query(KEYS)]

    def add_key(self, digest: str, name: str, role: str, *, expires_at: float | None = None) -> None:
        """Store the digest of an API key."""
        text = (
            "INSERT INTO keys (digest, name, role, expires_at, made_at) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (digest) DO UPDATE SET name = excluded.name, role = excluded.role, expires_at = excluded.expires_at, "
            "made_at = excluded.made_at, used_at = NULL, revoked = false"
        )
        self.query(text, (digest, name, role, expires_at, time.time()))

    def note_uses(self, used_at: Mapping[str, float]) -> None:
        """Store when keys were last used, by digest; earlier times than the known ones change nothing."""
        text = (
            "UPDATE keys SET used_at = greatest(keys.used_at, used.at) "
            "FROM unnest(%s::text[], %s::double precision[]) AS used (digest, at) WHERE keys.digest = used.digest"
        )
        self.query(text, (list(used_at), list(used_at.values())))

    def remove_keys(self, name: str) -> int:
        """Revoke all API keys of a name; returns how many there were. Their rows stay, marked as revoked."""
        return len(self.query("UPDATE keys SET revoked = true WHERE name = %s AND NOT revoked RETURNING digest", (name,)))

    def backup(self, path: str) -> int:
        """Refused: PostgreSQL has a tool for it."""
        raise StoreError(f"{self.place} is not copied to {path}: use pg_dump --schema=thrifty, which copies a running database")

    def history(self, router: str, **asked: Any) -> History:
        """See `Store`."""
        wanted = HistoryQuery(**asked)
        upto, (text, values) = self.journal(router).history.position(), wanted.select(router, "%s")
        return wanted.answer(router, upto, self.query_long(text, values))

    def prune_history(self, before: Mapping[str, float]) -> None:
        """See `Store`."""
        prune(self, before)

    def query(self, text: str, values: Any = (), *, timeout_s: float = COMMIT_TIMEOUT_S) -> list[Any]:
        """All rows of a short statement, on a connection beside the writer's; a StoreError if no answer comes in time."""
        found: list[Any] = self._lookups.run(lambda connection: _fetch(connection.execute(text, values)), timeout_s=timeout_s)
        return found

    def query_long(self, text: str, values: Any = ()) -> list[Any]:
        """All rows of a statement that may take long, on a connection of its own: short queries do not wait for it."""
        found: list[Any] = self.run_long(lambda connection: _fetch(connection.execute(text, values)))
        return found

    def run_long(self, work: Callable[[Any], Any]) -> Any:
        """The result of `work(connection)` that may take long; a StoreError if it does not come in time."""
        return self._long_work.run(work, timeout_s=LONG_TIMEOUT_S)

    def close(self) -> None:
        """Write what was appended, and close all connections."""
        self._closing.set()
        if not self.reads_only:
            unwritten = self.writer.close()
            if unwritten:
                log.error("rows were not written, because the database is away", extra={"facts": {"rows": unwritten}})
            self._notified.join(5)
        self._lookups.close()
        self._long_work.close()

    def connect(self) -> Any:
        """A connection with the settings that all connections have here."""
        connection = psycopg.connect(self._url, autocommit=True, **_LIMITS)
        try:
            connection.execute(_SETTINGS)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def _follow_notifications(self) -> None:
        """Wake the synchronisation when another replica has written. It also polls, so an error here only delays it."""
        while not self._closing.is_set():
            try:
                with self.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    while not self._closing.is_set():
                        for notice in connection.notifies(timeout=1.0, stop_after=1):
                            if notice.payload != str(self.replica):
                                self.writer.call()
            except psycopg.Error:
                self._closing.wait(1.0)


def shown(url: str) -> str:
    """A URL without its user and password.

    >>> shown("postgresql://ann:secret@db.example:5433/routes?sslmode=require")
    'postgresql://db.example:5433/routes'
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://..."
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


def _fetch(cursor: Any) -> list[Any]:
    return cursor.fetchall() if cursor.description else []
