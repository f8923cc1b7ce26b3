"""When the history is written: once a second, before every snapshot, and at the end. In old stores it is filled from the log."""

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from thrifty.router.engine import engine_for
from thrifty.router.history import HistoryDeltas, SharedDeltas
from thrifty.router.restore import take
from thrifty.router.settings import checked_segment
from thrifty.router.state_log import StateLog
from thrifty.store.history import History
from thrifty.store.log import StoreError

if TYPE_CHECKING:
    from thrifty.router.router import Router

FILL_ROWS = 5_000
"""Rows of the log that are counted by one commit while a history is filled."""

PIECE_ROWS = 50
"""Rows that are counted before the filling thread rests, for twice as long as they took."""

log = logging.getLogger("thrifty.router")


class HistoryKeeper:
    """Writes the history of one router to its store."""

    def __init__(self, state_log: StateLog, name: str) -> None:
        self._log, self._name = state_log, name
        self._last = 0  # what to wait for until what was written last is durable
        self._filling: threading.Thread | None = None
        self._closing = False

    def write_soon(self, router: "Router") -> int:
        """Hand everything counted so far to the writer of the log; what to wait for. Called under the lock; not for a shared log.

        It is durable only if all rows before it are; if it is lost, so are later rows, and the state will be restored.
        """
        deltas, journal = router.state.history, self._log.journal
        if deltas is None or journal is None or not deltas.complete:
            return 0
        try:
            self._last = journal.history.write(deltas.take(), self._log.position)
        except StoreError:
            self._log.stale = True
            raise
        deltas.since = self._log.position
        return self._last

    def write(self, router: "Router", *, at_once: bool = True) -> None:
        """Write what was counted so far.

        Parameters
        ----------
        at_once : return when it is durable; otherwise, in a log that is not shared, it is only on its way

        """
        journal = self._log.journal
        if journal is None or self._log.stale or self._log.failed is not None:
            return
        if journal.shared:
            self._write_shared(router, journal.history)
        else:
            with router.lock:
                if router.state.history is not None and len(router.state.history):
                    self.write_soon(router)
            if at_once:
                self._log.wait(self._last)
            elif self._last:
                self._log.is_durable(self._last)  # notices what was lost, though nobody waits
        self._fill_soon(router)

    def _write_shared(self, router: "Router", history: Any) -> None:
        with router.lock:
            deltas, upto = router.state.history, self._log.position
        if isinstance(deltas, SharedDeltas) and (len(deltas) or upto > deltas.since or not deltas.complete):
            reached = history.write(deltas, upto)
            with router.lock:
                deltas.complete = reached >= deltas.since
                deltas.drop(reached)

    def check_complete(self, router: "Router") -> None:
        """Write what was counted so far; a StoreError if rows of the log are still to be counted, so they must not be deleted."""
        self.write(router)
        if router.state.history is not None and not router.state.history.complete:
            raise StoreError("the history is being filled from the log: try again when that is done, nothing was deleted")

    def close(self) -> None:
        """Do not fill any longer."""
        self._closing = True
        if self._filling is not None:
            self._filling.join()

    # -- filling -----------------------------------------------------------------------------------------------------

    def _fill_soon(self, router: "Router") -> None:
        """Count, in the background, rows that a snapshot has and the history has not: the store was kept by an older version."""
        deltas = router.state.history
        if deltas is None or deltas.complete or self._closing or (self._filling is not None and self._filling.is_alive()):
            return
        self._filling = threading.Thread(target=self._fill, args=(router, deltas), name="thrifty-history", daemon=True)
        self._filling.start()

    def _fill(self, router: "Router", live: HistoryDeltas) -> None:
        facts: dict[str, Any] = {"router": self._name, "upto": live.since}
        journal = self._log.journal
        assert journal is not None
        try:
            log.info("the history is filled from the log", extra={"facts": facts})
            try:
                self._count_log(router, journal, live.since)
            except StoreError:
                raise
            except Exception:
                log.exception("rows of the log cannot be counted, so the history begins after them", extra={"facts": facts})
                self._commit(journal, _deltas_for(journal, live.since), live.since)
            if not self._closing:
                with router.lock:
                    live.complete = True
                log.info("the history is filled", extra={"facts": facts})
        except StoreError as error:  # `write` begins again
            log.warning("the history is not filled yet", extra={"facts": {**facts, "error": str(error)}})

    def _count_log(self, router: "Router", journal: Any, upto: int) -> None:
        """Count the rows of the log up to a position, by the same fold that restores a state. No policy is needed for it."""
        state, engine, counted = router.state.begun_anew(), engine_for("cheapest"), journal.history.position()
        state.pruned_before = router.state.pruned_before  # an outcome without a decision is no news then
        state.engine, deltas, begun = engine, _deltas_for(journal, counted), time.perf_counter()
        for number, (at, row) in enumerate(journal.scan(upto), start=1):
            deltas.position, state.history = at, deltas if at > counted else None
            take(state, row, at, journal, None, engine)
            state.trim(lambda _position: True)
            if number % PIECE_ROWS == 0:
                if self._closing:
                    return
                time.sleep(2 * (time.perf_counter() - begun))
                begun = time.perf_counter()
            if number % FILL_ROWS == 0 and at > counted:
                counted = self._commit(journal, deltas, at)
        self._commit(journal, deltas, upto)

    def _commit(self, journal: Any, deltas: HistoryDeltas, upto: int) -> int:
        """Write a part; the position up to which all is counted then, here or by another replica."""
        if isinstance(deltas, SharedDeltas):
            reached = int(journal.history.write(deltas, upto))
            deltas.drop(reached)
            return reached
        journal.wait(journal.history.write(deltas.take(), upto))
        return upto


def history(router: "Router", **asked: Any) -> History:
    """Decisions, outcomes, rewards and costs per minute, hour or day; see `thrifty.store.history.HistoryQuery` for what to ask.

    Everything that was decided and recorded here before this call is in it.
    """
    if router.store is None:
        raise ValueError("a router without a store keeps no history")
    if asked.get("segment"):
        checked_segment(asked["segment"])
    router.history_keeper.write(router)
    found: History = router.store.history(router.name, **asked)
    return found


def _deltas_for(journal: Any, since: int) -> HistoryDeltas:
    return SharedDeltas(since=since) if journal.shared else HistoryDeltas(since=since)
