"""PostgreSQL: several replicas on one database, each of them a process that writes to and follows the same log."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from thrifty.store.log import CHANGE, StoreError
from thrifty.store.postgres_journal import PostgresJournal
from thrifty.store.postgres_outbox import PATIENCE_S
from thrifty.store.postgres_sync import CHANNEL, PostgresSync
from thrifty.store.schema import migrate

_SETTINGS = (
    "SET search_path = thrifty; SET default_transaction_isolation = 'read committed'; "
    "SET idle_in_transaction_session_timeout = '5s'; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_LIMITS: dict[str, Any] = {"connect_timeout": 3, "tcp_user_timeout": 3000, "keepalives_idle": 5, "application_name": "thrifty"}

log = logging.getLogger("thrifty.store")


class PostgresStore:
    """The store in a database that other replicas use too.

    Parameters
    ----------
    url : postgresql://USER:PASSWORD@HOST:PORT/DATABASE
    degraded_s : for how long decisions are taken while the database is away
    reading : to look at the log only

    """

    shared = True

    def __init__(self, url: str, *, degraded_s: float = 60.0, reading: bool = False) -> None:
        self._url, self.place = url, shown(url)
        self._side: Any = None
        self._closing = threading.Event()
        self._side_lock = threading.Lock()
        self._errands = ThreadPoolExecutor(1, thread_name_prefix="thrifty-errand")
        try:
            with self.connect() as connection:
                self.replica = 0
                if not reading:
                    migrate(connection)
                    (self.replica,) = connection.execute("SELECT nextval('replicas')").fetchone()
                (head,) = connection.execute("SELECT position FROM head").fetchone()
                ended = f"SELECT router, max(life) FROM log WHERE kind = '{CHANGE}' AND position <= %s GROUP BY router"
                lives = dict(connection.execute(ended, (head,)).fetchall())
        except (psycopg.Error, StoreError, ValueError) as error:
            self._errands.shutdown()
            raise StoreError(f"cannot open {self.place}: {str(error).strip()}") from error
        self._reads_only = reading
        if reading:
            return
        self.writer = PostgresSync(self.connect, replica=self.replica, position=head, lives=lives, degraded_s=degraded_s)
        self._ear = threading.Thread(target=self._hear, name="thrifty-listener", daemon=True)
        self._ear.start()

    @property
    def turnover(self) -> int:
        """How often a router was made or deleted, by anybody."""
        return self.writer.changed

    def check(self) -> str:
        """Say "ready", or "degraded" while the database is away; a StoreError when it has been away for too long."""
        self.writer.admit(keep=True)
        return "ready" if self.writer.failure is None else "degraded"

    def journal(self, router: str) -> PostgresJournal:
        """The log of one router."""
        return PostgresJournal(self, router)

    def routers(self) -> list[str]:
        """The names of the routers that have a log and were not deleted."""
        rows = self.query(
            f"SELECT DISTINCT ON (router) router, code FROM log WHERE kind = '{CHANGE}' AND code IN ('create', 'delete') "
            "ORDER BY router, position DESC"
        )
        return [name for name, code in rows if code != "delete"]

    def logged(self) -> list[str]:
        """The names of the routers that have a log, deleted ones included."""
        return [name for (name,) in self.query("SELECT DISTINCT router FROM log ORDER BY router")]

    def keys(self) -> list[tuple[str, str, str]]:
        """Digest, roles and name of every API key."""
        return self.query("SELECT digest, role, name FROM keys")

    def add_key(self, digest: str, name: str, role: str) -> None:
        """Keep the digest of an API key."""
        text = "INSERT INTO keys VALUES (%s, %s, %s) ON CONFLICT (digest) DO UPDATE SET role = excluded.role"
        self.query(text, (digest, name, role))

    def remove_keys(self, name: str) -> int:
        """Forget all API keys of a name; how many there were."""
        return len(self.query("DELETE FROM keys WHERE name = %s RETURNING name", (name,)))

    def query(self, text: str, values: Any = (), *, patience_s: float = PATIENCE_S) -> list[Any]:
        """All rows of a statement, on a connection beside the writer's; a StoreError when no answer comes in time."""
        found: list[Any] = self.errand(lambda connection: _fetch(connection.execute(text, values)), patience_s=patience_s)
        return found

    def errand(self, run: Callable[[Any], Any], *, patience_s: float) -> Any:
        """Do something on the connection beside the writer's, for so many seconds at most."""
        if self._closing.is_set():
            raise StoreError("the store is closed")
        try:
            return self._errands.submit(self._run_errand, run).result(patience_s)
        except TooLate:
            raise StoreError(f"{self.place} does not answer") from None
        except psycopg.Error as error:
            raise StoreError(f"cannot use {self.place}: {str(error).strip()}") from error

    def _run_errand(self, run: Callable[[Any], Any]) -> Any:
        for again in (True, False):
            if self._side is None or self._side.closed:
                self._side = self.connect()
            try:
                return run(self._side)
            except psycopg.OperationalError:
                self._side.close()
                if not again:
                    raise
        return None

    def close(self) -> None:
        """Write what was appended, and let go of the database."""
        self._closing.set()
        if not self._reads_only:
            unwritten = self.writer.close()
            if unwritten:
                log.error("rows were not written, because the database is away", extra={"facts": {"rows": unwritten}})
            self._ear.join(5)
        self._errands.shutdown(wait=False, cancel_futures=True)
        if self._side is not None:
            self._side.close()

    def connect(self) -> Any:
        """A connection that is set up as all are here."""
        connection = psycopg.connect(self._url, autocommit=True, **_LIMITS)
        try:
            connection.execute(_SETTINGS)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def _hear(self) -> None:
        """Wake the exchange when another replica has written. Whatever goes wrong here, it also looks by itself."""
        while not self._closing.is_set():
            try:
                with self.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    while not self._closing.is_set():
                        for said in connection.notifies(timeout=1.0, stop_after=1):
                            if said.payload != str(self.replica):
                                self.writer.call()
            except psycopg.Error:
                self._closing.wait(1.0)


def shown(url: str) -> str:
    """A URL without its password.

    >>> shown("postgresql://ann:secret@db.example:5433/routes?sslmode=require")
    'postgresql://db.example:5433/routes'
    """
    try:
        said = conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://..."
    port = f":{said['port']}" if said.get("port") else ""
    return f"postgresql://{said.get('host', '')}{port}/{said.get('dbname', '')}"


def _fetch(cursor: Any) -> list[Any]:
    return cursor.fetchall() if cursor.description else []
