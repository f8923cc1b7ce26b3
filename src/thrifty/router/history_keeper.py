"""When the history is written: once a second, before every snapshot, and at the end. In old stores it is filled from the log."""

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from thrifty.router.engine import engine_for
from thrifty.router.history import HistoryDeltas, SharedDeltas, deltas_after, deltas_of_row
from thrifty.router.restore import take
from thrifty.router.settings import checked_segment
from thrifty.router.state_log import StateLog
from thrifty.store.history import History
from thrifty.store.log import StoreError

if TYPE_CHECKING:
    from thrifty.router.router import Router

FILL_ROWS = 5_000
"""Rows of the log that are counted by one commit while a history is filled."""

PLACES_A_SECOND, LONGEST_S = 500, 60.0
"""So many places are written in a second, on average, and none waits longer than this many seconds."""

PIECE_ROWS = 50
"""Rows that are counted before the filling thread rests, for twice as long as they took."""

log = logging.getLogger("thrifty.router")


class HistoryKeeper:
    """Writes the history of one router to its store."""

    def __init__(self, state_log: StateLog, name: str) -> None:
        self._log, self._name = state_log, name
        self._writing = threading.Lock()  # held by the one thread that writes
        self._written = time.monotonic()
        self._last = 0  # what to wait for until what was written last is durable
        self._filling: threading.Thread | None = None
        self._closing = self._closed = False

    def write(self, router: "Router", *, at_once: bool = True) -> None:
        """Write what was counted so far.

        Parameters
        ----------
        at_once : return when it is durable, and raise a StoreError if that cannot be. Otherwise many places are written seldom, so
            that more is added up in memory, and in a log that is not shared nobody waits for the last commit

        """
        journal = self._log.journal
        if journal is None or self._closed or self._log.failed is not None or not (at_once or self._is_due(router)):
            return
        with self._writing:
            if journal.shared:
                self._write_shared(router, journal.history)
            else:
                self._write_local(router, journal)
            self._written = time.monotonic()
        if at_once:
            self._log.wait(self._last)
        elif self._last:
            self._log.is_durable(self._last)  # notices what was lost, though nobody waits
        self._fill_soon(router)

    def _is_due(self, router: "Router") -> bool:
        """Whether many places were written long enough ago. Few are always due, and so are the rows of a shared log."""
        deltas = router.state.history
        if deltas is None or isinstance(deltas, SharedDeltas) or len(deltas) <= PLACES_A_SECOND:
            return True
        return time.monotonic() - self._written >= min(len(deltas) / PLACES_A_SECOND, LONGEST_S)

    def _write_local(self, router: "Router", journal: Any) -> None:
        """Take what was counted under the lock, and hand it to the writer of the log without it.

        If rows before it were lost, or are lost meanwhile, so is this: the state is restored, and counts again.
        """
        with router.lock:
            if self._log.stale:
                raise StoreError("the store lost rows: try again when they are read back from the log")
            deltas, generation, upto = router.state.history, journal.generation, self._log.position
            if deltas is None or not deltas.complete or (not len(deltas) and upto == deltas.since):
                return
            parts = deltas.take_upto(upto)
        try:
            for cells, reached in parts:
                self._last = journal.history.write(cells, reached, generation)
        except StoreError:
            with router.lock:
                self._log.stale = self._log.stale or router.state.history is deltas
            raise

    def _write_shared(self, router: "Router", history: Any) -> None:
        with router.lock:
            deltas, upto = router.state.history, self._log.position
        if isinstance(deltas, SharedDeltas) and (len(deltas) or upto > deltas.since or not deltas.complete):
            reached = history.write(deltas, upto)
            with router.lock:
                deltas.complete = reached >= deltas.since
                deltas.drop(reached)

    def check_complete(self, router: "Router", *, patient: bool) -> None:
        """Write what was counted so far; a StoreError if rows of the log are still to be counted, so they must not be deleted.

        With `patient` that is waited for.
        """
        self.write(router)
        if patient and self._filling is not None:
            self._filling.join()
        if router.state.history is not None and not router.state.history.complete:
            raise StoreError("the history is being filled from the log: try again when that is done, nothing was deleted")

    def stop_filling(self) -> None:
        """Leave what is not filled yet to the next start."""
        self._closing = True
        if self._filling is not None:
            self._filling.join()

    def close(self, router: "Router") -> None:
        """Write the rest if the store takes it, and nothing from then on: another router may have the name."""
        self.stop_filling()
        try:
            self.write(router)
        except StoreError as error:  # it is counted from the log at the next start
            log.warning("the history is not written", extra={"facts": {"router": self._name, "error": str(error)}})
        with self._writing:
            self._closed = True

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
                reached = journal.history.position()
                self._commit(journal, _nothing_since(journal, reached), live.since, _generation(router))
            if not self._closing:
                with router.lock:
                    live.complete = True
                log.info("the history is filled", extra={"facts": facts})
        except StoreError as error:  # `write` begins again
            log.warning("the history is not filled yet", extra={"facts": {**facts, "error": str(error)}})

    def _count_log(self, router: "Router", journal: Any, upto: int) -> None:
        """Count the rows of the log up to a position, by the same fold that restores a state. No policy is needed for it."""
        state, engine, begun = router.state.begun_anew(), engine_for("cheapest"), time.perf_counter()
        state.engine, state.pruned_before = engine, router.state.pruned_before
        deltas, generation = deltas_after(journal.history.reached(), snapshot=0, shared=journal.shared), _generation(router)
        for number, (at, row) in enumerate(journal.scan(upto), start=1):
            state.history = deltas_of_row(deltas, at)
            take(state, row, at, journal, None, engine)
            state.trim(lambda _position: True)
            if number % PIECE_ROWS == 0:
                if self._closing:
                    return
                time.sleep(2 * (time.perf_counter() - begun))
                begun = time.perf_counter()
            if number % FILL_ROWS == 0 and state.history is deltas:
                self._commit(journal, deltas, at, generation)
        self._commit(journal, deltas, upto, generation)

    def _commit(self, journal: Any, deltas: HistoryDeltas, upto: int, generation: int) -> None:
        """Write a part; another replica may have written it already."""
        if isinstance(deltas, SharedDeltas):
            deltas.drop(journal.history.write(deltas, upto))
            return
        for cells, reached in deltas.take_upto(upto):
            journal.wait(journal.history.write(cells, reached, generation))


def _nothing_since(journal: Any, position: int) -> HistoryDeltas:
    return SharedDeltas(since=position) if journal.shared else HistoryDeltas(since=position)


def _generation(router: "Router") -> int:
    with router.lock:
        return int(getattr(router.log.journal, "generation", 0))


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
