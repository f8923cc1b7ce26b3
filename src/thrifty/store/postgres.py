"""PostgreSQL: several replicas on one database, each of them a process that writes to and follows the same log."""

import hashlib
import logging
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from thrifty.store.exchange import CHANNEL, PATIENCE_S, Exchange
from thrifty.store.row import CHANGE, DECISION, KEPT_SNAPSHOTS, OUTCOME, Listener, Row, StoreError, check_covered
from thrifty.store.schema import migrate

_FIELDS = ", ".join(Row._fields)
_FORGETTING = f"kind = '{CHANGE}' AND code IN ('create', 'reset')"
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
        self._url = url
        self._side: Any = None
        self._closing = threading.Event()
        self._side_lock = threading.Lock()
        self._errands = ThreadPoolExecutor(1, thread_name_prefix="thrifty-errand")
        try:
            with self._connect() as connection:
                self.replica = 0
                if not reading:
                    migrate(connection)
                    (self.replica,) = connection.execute("SELECT nextval('replicas')").fetchone()
                (head,) = connection.execute("SELECT position FROM head").fetchone()
                ended = f"SELECT router, max(life) FROM log WHERE kind = '{CHANGE}' AND position <= %s GROUP BY router"
                lives = dict(connection.execute(ended, (head,)).fetchall())
        except (psycopg.Error, StoreError, ValueError) as error:
            self._errands.shutdown()
            raise StoreError(f"cannot open {shown(url)}: {str(error).strip()}") from error
        self._reads_only = reading
        if reading:
            return
        self.writer = Exchange(self._connect, replica=self.replica, position=head, lives=lives, degraded_s=degraded_s)
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

    def journal(self, router: str) -> "PostgresJournal":
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
            raise StoreError(f"{shown(self._url)} does not answer") from None
        except psycopg.Error as error:
            raise StoreError(f"cannot use {shown(self._url)}: {str(error).strip()}") from error

    def _run_errand(self, run: Callable[[Any], Any]) -> Any:
        for again in (True, False):
            if self._side is None or self._side.closed:
                self._side = self._connect()
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

    def _connect(self) -> Any:
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
                with self._connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    while not self._closing.is_set():
                        for said in connection.notifies(timeout=1.0, stop_after=1):
                            if said.payload != str(self.replica):
                                self.writer.call()
            except psycopg.Error:
                self._closing.wait(1.0)


class PostgresJournal:
    """The log of one router in a PostgresStore; see `Journal`."""

    shared = True

    def __init__(self, store: PostgresStore, router: str) -> None:
        self._store, self._router = store, router
        self.replica = store.replica

    def append(self, row: Row, *, keep: bool = False) -> int:
        """See `Journal`."""
        return self._store.writer.append(self._router, row, keep=keep)

    def admit(self, *, keep: bool) -> None:
        """See `Journal`."""
        self._store.writer.admit(keep=keep)

    def wait(self, position: int) -> None:
        """See `Journal`."""
        self._store.writer.wait(position)

    def is_durable(self, position: int) -> bool:
        """See `Journal`."""
        return self._store.writer.is_durable(position)

    def is_degraded(self, position: int) -> bool:
        """See `Journal`."""
        return self._store.writer.is_degraded(position)

    def listen(self, listener: Listener) -> None:
        """See `Journal`."""
        self._store.writer.listen(self._router, listener)

    def ignore(self) -> None:
        """See `Journal`."""
        self._store.writer.ignore(self._router)

    def recover(self) -> None:
        """See `Journal`."""

    def read(self, after: int, upto: int | None = None) -> Iterator[tuple[int, Row]]:
        """See `Journal`."""
        yield from self._rows(after, 2**62 if upto is None else upto, fold=True)

    def scan(self) -> Iterator[tuple[int, Row]]:
        """See `Journal`."""
        yield from self._rows(0, 2**62, fold=False)

    def _rows(self, after: int, upto: int, *, fold: bool) -> Iterator[tuple[int, Row]]:
        """In one view of the database, so that nothing can be pruned away meanwhile."""
        try:
            with self._store._connect() as connection, connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                pruned = connection.execute("SELECT upto FROM pruned WHERE router = %s", (self._router,)).fetchone()
                if fold and pruned and pruned[0] > after:
                    raise StoreError(
                        f"rows up to {pruned[0]} of {self._router!r} were pruned, and no snapshot that covers them is whole"
                    )
                with connection.cursor("log") as cursor:
                    cursor.itersize = 10_000
                    cursor.execute(
                        f"SELECT position, {_FIELDS} FROM log WHERE router = %s AND position > %s AND position <= %s "
                        "ORDER BY position",
                        (self._router, after, upto),
                    )
                    for position, *fields in cursor:
                        yield position, Row(*fields)
        except psycopg.Error as error:
            raise StoreError(f"cannot read {shown(self._store._url)}: {str(error).strip()}") from error

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Row]:
        """See `Journal`."""
        rows = self._store.query(
            f"WITH decision AS (SELECT position FROM log WHERE router = %(router)s AND replica = %(replica)s "
            f"AND sequence = %(sequence)s AND kind = '{DECISION}') "
            f"SELECT position, {_FIELDS} FROM log WHERE position = (SELECT position FROM decision) AND position < %(before)s "
            f"UNION ALL SELECT position, {_FIELDS} FROM log WHERE router = %(router)s AND replica = %(replica)s "
            f"AND sequence = %(sequence)s AND kind = '{OUTCOME}' AND position < %(before)s "
            f"UNION ALL SELECT position, {_FIELDS} FROM log WHERE router = %(router)s AND {_FORGETTING} "
            f"AND position > (SELECT position FROM decision) AND position < %(before)s ORDER BY position",
            {"router": self._router, "replica": replica, "sequence": sequence, "before": 2**62 if before is None else before},
        )
        return [Row(*row[1:]) for row in rows] if rows and rows[0][1] == DECISION else []

    def recent(self, decisions: int, *, upto: int) -> list[Row]:
        """See `Journal`."""
        found = self._store.query(
            f"SELECT position FROM log WHERE router = %s AND kind = '{DECISION}' AND position <= %s "
            "ORDER BY position DESC LIMIT 1 OFFSET %s",
            (self._router, upto, decisions - 1), patience_s=60.0,
        )  # fmt: skip
        rows = self._store.query(
            f"SELECT {_FIELDS} FROM log WHERE router = %s AND position BETWEEN %s AND %s AND (kind <> '{CHANGE}' OR {_FORGETTING}) "
            "ORDER BY position",
            (self._router, found[0][0] if found else 0, upto), patience_s=60.0,
        )  # fmt: skip
        return [Row(*row) for row in rows]

    def save_snapshot(self, position: int, body: bytes) -> None:
        """See `Journal`."""
        packed = zlib.compress(body, 1)
        values = (self._router, position, packed, hashlib.sha256(packed).hexdigest())

        def save(connection: Any) -> None:
            with connection.transaction():
                connection.execute("INSERT INTO snapshots VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", values)
                connection.execute(
                    "DELETE FROM snapshots WHERE router = %(router)s AND position NOT IN "
                    "(SELECT position FROM snapshots WHERE router = %(router)s ORDER BY position DESC LIMIT %(kept)s)",
                    {"router": self._router, "kept": KEPT_SNAPSHOTS},
                )

        self._store.errand(save, patience_s=60.0)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """See `Journal`."""
        rows = self._store.query(
            "SELECT position, body, digest FROM snapshots WHERE router = %s ORDER BY position DESC",
            (self._router,),
            patience_s=60.0,
        )
        for position, packed, digest in rows:
            if hashlib.sha256(packed).hexdigest() == digest:
                yield position, zlib.decompress(packed)

    def prune(self, *, before: float, upto: int) -> int:
        """See `Journal`."""
        check_covered(self._router, upto, self.snapshots())

        def prune(connection: Any) -> int:
            with connection.transaction():
                (first,) = connection.execute(
                    f"SELECT min(position) FROM log WHERE router = %s AND kind = '{DECISION}' AND at >= %s", (self._router, before)
                ).fetchone()
                last = upto if first is None else min(upto, first - 1)
                count = connection.execute(
                    f"DELETE FROM log WHERE router = %s AND position <= %s AND kind <> '{CHANGE}'", (self._router, last)
                ).rowcount
                if count:
                    connection.execute(
                        "INSERT INTO pruned VALUES (%s, %s) ON CONFLICT (router) DO UPDATE "
                        "SET upto = greatest(pruned.upto, excluded.upto)",
                        (self._router, upto),
                    )
                return int(count)

        return int(self._store.errand(prune, patience_s=3600.0))


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
