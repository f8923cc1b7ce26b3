"""Rows of the log: what was decided, what came back, what was changed. The log is the truth; everything else is its fold."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

DECISION, OUTCOME, CHANGE = "d", "o", "c"

KEPT_SNAPSHOTS = 2
"""Snapshots of a router that are kept: the last one, and one more in case that is broken."""


class Row(NamedTuple):
    """One line of the log of one router.

    A decision carries its segment, request_id, arm, propensity (`value`), price (`cost`), reason code, and in `detail` what else
    it was made from (JSON). An outcome carries the sequence of its decision, the arm, the reward (`value`; None for void) and the
    cost. A change carries the action (`code`) and its body (`detail`).
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


class StoreError(Exception):
    """The store cannot do what was asked; what was not acknowledged is not there."""


class Listener(Protocol):
    """Who follows the log of one router that several replicas write to: the router."""

    def take(self, position: int, row: Row, ticket: int | None) -> None:
        """The next row of the log; its ticket when it is one's own."""

    def refuse(self, ticket: int, known: Row) -> None:
        """A decision of one's own is not going to be written, because its request_id was decided before."""

    def catch_up(self, upto: int) -> None:
        """Read what the log has up to a position."""


class Journal(Protocol):
    """The log of one router, as the router sees it."""

    replica: int
    shared: bool  # whether other replicas write to the same log

    def append(self, row: Row, *, keep: bool = False) -> int:
        """Hand a row to the writer; what to `wait` for. Rows become durable in this order.

        In a log that is not shared that is the row's position. While a shared log is away, it keeps rows that say `keep` and
        refuses others.
        """

    def admit(self, *, keep: bool) -> None:
        """Raise a StoreError when a shared log would refuse a row."""

    def wait(self, position: int) -> None:
        """Return when everything up to `position` is durable or kept; raise StoreError when it is not going to be."""

    def is_durable(self, position: int) -> bool:
        """Whether `wait` would return at once because everything is durable; raises like it."""

    def is_degraded(self, position: int) -> bool:
        """Whether a row is kept for a shared log that is away."""

    def listen(self, listener: Listener) -> None:
        """Hand all rows of a shared log to `listener` from now on, in order, one's own included."""

    def ignore(self) -> None:
        """Hand over no more rows."""

    def recover(self) -> None:
        """Say that the loss of rows was noticed, and that the fold begins again from what is durable."""

    def read(self, after: int, upto: int | None = None) -> Iterator[tuple[int, Row]]:
        """Durable rows after a position and up to another, in order."""

    def scan(self) -> Iterator[tuple[int, Row]]:
        """All durable rows there still are, in order; not enough for a fold when older ones were pruned."""

    def find(self, replica: int, sequence: int, *, before: int | None = None) -> list[Row]:
        """The decision, and then in order its outcomes and the changes that created or reset anything, before a position.

        Nothing when there is no such decision.
        """

    def recent(self, decisions: int, *, upto: int) -> list[Row]:
        """The last so many decisions up to a position, in order, with all outcomes and all creations and resets in between."""

    def save_snapshot(self, position: int, body: bytes) -> None:
        """Keep a snapshot of the fold of everything up to `position`, once that is durable."""

    def prune(self, *, before: float, upto: int) -> int:
        """Delete decisions and outcomes up to the first decision that was not made before a time; the number of rows deleted.

        Only what a whole snapshot covers is deleted, of the position `upto` or later, and a fold must begin there from now on.
        """

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """Snapshots that are whole, newest first."""


class Committer(Protocol):
    """What commits rows, as the service sees it."""

    failure: StoreError | None  # why the last commit failed, if it did
    commits: int
    callbacks: list[Callable[[], None]]  # called after every commit


class Store(Protocol):
    """Where logs, snapshots and keys are kept, as routers and the service see it."""

    shared: bool  # whether other processes use it too

    @property
    def turnover(self) -> int:
        """How often other processes made or deleted a router."""

    @property
    def writer(self) -> Committer:
        """What commits rows."""

    def journal(self, router: str) -> Journal:
        """The log of one router."""

    def routers(self) -> list[str]:
        """The names of the routers that have a log and were not deleted."""

    def logged(self) -> list[str]:
        """The names of the routers that have a log, deleted ones included."""

    def keys(self) -> list[tuple[str, str, str]]:
        """Digest, roles and name of every API key."""

    def add_key(self, digest: str, name: str, role: str) -> None:
        """Keep the digest of an API key."""

    def remove_keys(self, name: str) -> int:
        """Forget all API keys of a name; how many there were."""

    def check(self) -> str:
        """Say "ready", or "degraded" while it is away; a StoreError when it takes no decisions."""

    def close(self) -> None:
        """Commit what was appended, and let go."""


def check_covered(router: str, upto: int, snapshots: Iterator[tuple[int, bytes]]) -> None:
    """Raise a StoreError unless one of the snapshots covers everything up to a position."""
    if not any(position >= upto for position, _ in snapshots):
        raise StoreError(f"no whole snapshot of {router!r} covers the rows up to {upto}: nothing was pruned")
