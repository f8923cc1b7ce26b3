"""Rows of the append-only log, and two interfaces: `Journal` (the log of one router), `Store` (all logs, snapshots, API keys)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from thrifty.store.alerts import AlertTable
from thrifty.store.history import History

DECISION, OUTCOME, CHANGE = "d", "o", "c"

KEPT_SNAPSHOTS = 2
"""Snapshots kept for each router: the last one, and the one before it in case the last is broken."""

PAGE_ROWS = 5_000
"""Rows read by one query. A longer read is many short ones, so that none keeps a transaction open."""


class Row(NamedTuple):
    """One row of the log of one router.

    A decision has its segment, request_id, arm, propensity (`value`), price (`cost`), reason code, and in `detail` whatever else
    it was made from (JSON). An outcome has the sequence of its decision, the arm, the reward (`value`; None for void) and the
    cost. A change has the action (`code`) and its body (`detail`, JSON).
    """

    kind: str
    replica: int
    sequence: int
    at: float
    segment: str | None
    request_id: str | None
    arm: str | None
    value: float | None
    cost: float | None
    code: str
    detail: str | None


Placed = tuple[int, Row]
"""A row with its position in the log."""


class StoredKey(NamedTuple):
    """An API key as the store has it. Times are seconds since 1970; None where there is none, or where it is not known."""

    digest: str
    role: str
    name: str
    expires_at: float | None
    made_at: float | None
    used_at: float | None


class StoreError(Exception):
    """The store cannot do what was asked. Whatever it did not confirm is not stored."""


class Listener(Protocol):
    """Receives the rows of one router from a log that several replicas write to. The router implements it."""

    def take(self, position: int, row: Row, ticket: int | None) -> None:
        """Apply the next row of the log; `ticket` is None if another replica wrote it."""

    def refuse(self, ticket: int, known: Row) -> None:
        """Withdraw a decision of this replica: its request_id was decided before, by the row `known`."""

    def catch_up(self, upto: int) -> None:
        """Read and apply the log up to a position."""

    def fail(self, error: Exception) -> None:
        """Note that `take` or `refuse` raised `error`; no more rows will come."""


class Journal(Protocol):
    """The log of one router."""

    replica: int
    shared: bool  # True if other replicas write to the same log
    history: Any  # a LocalHistory, or a SharedHistory if `shared`; see `thrifty.store.history`

    def append(self, row: Row, *, keep: bool = False) -> int:
        """Hand a row to the writer; returns what to pass to `wait`. Rows become durable in the order of these calls.

        The number is the row's position if the log is not shared, and a ticket if it is. While a shared log cannot be reached,
        rows with `keep` wait for it and others are refused.
        """

    def admit(self, *, keep: bool) -> None:
        """Raise a StoreError if `append` would refuse a row."""

    def wait(self, position: int) -> None:
        """Return when everything up to `position` is durable or kept; raise a StoreError if it cannot become so."""

    def is_durable(self, position: int) -> bool:
        """True if everything up to `position` is durable; raises as `wait` does."""

    def is_degraded(self, position: int) -> bool:
        """True if a row is kept for a shared log that cannot be reached."""

    def listen(self, listener: Listener) -> None:
        """Pass all new rows of a shared log to `listener`, in order, including those of this replica."""

    def ignore(self) -> None:
        """Stop passing rows to the listener."""

    def recover(self) -> None:
        """Confirm that lost rows were noticed and that the state will be read again from the log; `append` works again."""

    def read(self, after: int, upto: int | None = None) -> Iterator[Placed]:
        """Durable rows with after < position <= upto, in order, without voided ones; a StoreError if some of them were pruned."""

    def end(self) -> int:
        """The position of the last durable row of the whole store."""

    def scan(self, upto: int | None = None) -> Iterator[Placed]:
        """All rows up to a position that were not pruned or voided, in order; by default up to what is the end when it begins."""

    def outcomes(self, replica: int, first: int, last: int, *, upto: int) -> list[Placed]:
        """Outcomes of the decisions that a replica numbered `first` to `last`, up to a position, in order."""

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Placed]:
        """A decision, its outcomes, and every `create` and `reset` since the decision, in order, up to a position (exclusive).

        Empty if there is no such decision.
        """

    def may_come(self, replica: int, sequence: int) -> bool:
        """True if a decision that is not in a shared log may still come: its replica is connected and has not written it yet."""

    def recent(self, decisions: int, *, upto: int) -> list[Placed]:
        """The last `decisions` decisions up to a position, with all outcomes, `create` and `reset` rows among them, in order."""

    def changes(self, after: int) -> list[Placed]:
        """Durable changes after a position, in order, without voided ones; at most PAGE_ROWS. Changes are never pruned."""

    def open_decisions(self, *, after: int, upto: int, limit: int) -> list[Placed]:
        """Decisions with after < position <= upto that have no outcome row yet, in order, at most `limit`."""

    def save_snapshot(self, position: int, body: bytes | bytearray) -> None:
        """Store a snapshot of the state after `position`; returns when it is durable. Takes long: call it from a worker thread."""

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """Snapshots, newest first. Incomplete and damaged ones are left out."""

    def prune(self, *, before: float, upto: int) -> int:
        """Delete the decisions and outcomes before the first decision that was made at `before` or later; returns the row count.

        Deletes nothing after `upto`, and raises a StoreError unless a whole snapshot of position `upto` or later exists. From
        then on a state can be read only from such a snapshot. Works in pieces: others write meanwhile.
        """

    def void(self, position: int, *, reason: str) -> None:
        """Mark a row as void: it stays in the table, and nothing reads it any more. Snapshots that contain it are deleted."""

    def voided(self) -> dict[int, str]:
        """Positions of voided rows, with the reasons."""


class Committer(Protocol):
    """Commits rows; what the service needs to know of it."""

    failure: StoreError | None  # why the last commit failed; None if it did not
    commits: int
    callbacks: list[Callable[[], None]]  # called after every commit


class Store(Protocol):
    """Keeps logs, snapshots and API keys; what routers and the service need of it."""

    shared: bool  # True if other processes use it too
    alerts: AlertTable

    @property
    def turnover(self) -> int:
        """How many times other processes created or deleted a router."""

    @property
    def writer(self) -> Committer:
        """Commits rows."""

    @property
    def keys_required(self) -> bool:
        """True once any API key was added, even if all keys are revoked by now."""

    def lead(self, name: str) -> bool:
        """True if this process does the work called `name`, which only one of all that share the store does."""

    def journal(self, router: str) -> Journal:
        """The log of one router."""

    def routers(self) -> list[str]:
        """Names of the routers that have a log and are not deleted."""

    def logged(self) -> list[str]:
        """Names of the routers that have a log, including deleted ones."""

    def row_at(self, position: int) -> tuple[str, Row] | None:
        """The router and the row of a position, voided or not; None if there is no row."""

    def keys(self) -> list[StoredKey]:
        """Every API key that was not revoked, expired ones included."""

    def add_key(self, digest: str, name: str, role: str, *, expires_at: float | None = None) -> None:
        """Store the digest of an API key."""

    def note_uses(self, used_at: Mapping[str, float]) -> None:
        """Store when keys were last used, by digest; earlier times than the known ones change nothing."""

    def remove_keys(self, name: str) -> int:
        """Revoke all API keys of a name; returns how many there were. The store remembers that they existed."""

    def history(self, router: str, **asked: Any) -> History:
        """Sums per minute, hour or day of a router; the parameters of `HistoryQuery` say which. A ValueError for wrong ones.

        As it was written last: the rows up to `upto` are counted, and perhaps some after it.
        """

    def prune_history(self, before: Mapping[str, float]) -> None:
        """Delete the cells of all routers that began before a time, by the name of the step."""

    def backup(self, path: str) -> int:
        """Write a consistent copy to a new file, while others read and write; returns the number of rows of the log in it."""

    def check(self) -> str:
        """Return "ready", or "degraded" if the store cannot be reached; raise a StoreError if it takes no decisions."""

    def close(self) -> None:
        """Commit what was appended, and close all connections."""


def check_covered(router: str, upto: int, snapshots: Iterator[tuple[int, bytes]]) -> None:
    """Raise a StoreError unless one of the snapshots is of position `upto` or later."""
    if not any(position >= upto for position, _ in snapshots):
        raise StoreError(f"no whole snapshot of {router!r} covers the rows up to {upto}: nothing was pruned")


def pruned_error(router: str, upto: int) -> StoreError:
    """The error of a read that needs rows that were pruned."""
    return StoreError(f"rows up to {upto} of {router!r} were pruned, and no snapshot that covers them is whole")


def check_voidable(position: int, *, pruned: int, snapshots: list[int]) -> None:
    """Raise a StoreError if a router could not be opened any more after voiding a row.

    Parameters
    ----------
    pruned : rows up to this position were pruned; 0 if none were
    snapshots : positions of the whole snapshots

    """
    if pruned >= position:
        raise StoreError(f"row {position} lies before the pruned position {pruned}: it is not read any more, nothing to void")
    if pruned and not any(pruned <= at < position for at in snapshots):
        raise StoreError(f"row {position} cannot be voided: every snapshot contains it, and the rows up to {pruned} were pruned")


LOGGED = (
    "WITH RECURSIVE names (name) AS (SELECT min(router) FROM log UNION ALL "
    "SELECT (SELECT min(router) FROM log WHERE router > name) FROM names WHERE name IS NOT NULL) "
    "SELECT name FROM names WHERE name IS NOT NULL"
)
"""SQL that both databases understand: the names of all routers that have a log, by one index search for each."""

KEYS = f"SELECT {', '.join(StoredKey._fields)} FROM keys WHERE NOT revoked"


def read_pages(router: str, after: int, page: Callable[[int], list[Placed]], pruned: Callable[[], int]) -> Iterator[Placed]:
    """All rows after a position, page by page; a StoreError if some of them were pruned.

    A prune commits its mark before it deletes, so a page that is read before the mark is looked for is complete without one.
    """
    while True:
        rows, mark = page(after), pruned()
        if mark > after:
            raise pruned_error(router, mark)
        if not rows:
            return
        yield from rows
        after = rows[-1][0]
