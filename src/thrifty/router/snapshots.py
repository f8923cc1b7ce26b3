"""When snapshots are taken: every so many rows, in the background, and at the end."""

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

from thrifty.router.snapshot import Capture, capture, encode
from thrifty.router.state_log import StateLog
from thrifty.store.log import StoreError

if TYPE_CHECKING:
    from thrifty.router.router import Router

SNAPSHOT_EVERY = 50_000
"""Rows of the log between two snapshots."""

log = logging.getLogger("thrifty.router")


class Snapshots:
    """Takes snapshots of one router: copied under its lock little by little, written without."""

    def __init__(self, state_log: StateLog, name: str) -> None:
        self._log, self._name = state_log, name
        self._saving = threading.Lock()
        self._thread: threading.Thread | None = None
        self._taken_at = state_log.snapshot_position
        self.due_at = self._taken_at + SNAPSHOT_EVERY  # position of the log

    def take_soon(self, router: "Router") -> None:
        """Begin a snapshot in the background, unless one is under way. Called under the lock."""
        if self._log.journal is None or self._log.stale or (self._thread is not None and self._thread.is_alive()):
            return
        taken = self._capture(router)
        self._thread = threading.Thread(target=self._save, args=(router, taken), name="thrifty-snapshot", daemon=True)
        self._thread.start()

    def take_now(self, router: "Router") -> int:
        """Take a snapshot and return when it is durable; its position."""
        with router.lock:
            taken = self._capture(router)
        self._write(router, taken)
        return taken.position

    def take_last(self, router: "Router") -> None:
        """Take a snapshot at the end, if there is anything new."""
        if self._thread is not None:
            self._thread.join()
        if self._log.journal is not None and self._log.position > self._taken_at and not self._log.stale and not self._log.failed:
            self.take_now(router)

    def _capture(self, router: "Router") -> "_Taken":
        position = self._taken_at = self._log.position
        self.due_at = position + SNAPSHOT_EVERY
        self._log.before_capture(router.state)
        try:
            captured = capture(router.state)
        finally:
            self._log.after_capture(router.state)
        return _Taken(position, captured)

    def _save(self, router: "Router", taken: "_Taken") -> None:
        try:
            self._write(router, taken)
        except StoreError as error:  # the next one will do; without any, a start reads more of the log
            log.warning("no snapshot", extra={"facts": {"router": self._name, "error": str(error)}})

    def _write(self, router: "Router", taken: "_Taken") -> None:
        journal = self._log.journal
        assert journal is not None
        with self._saving:
            body = encode(taken.captured, router.lock)
            if not journal.shared:
                journal.wait(taken.position)  # a snapshot must not count rows that are going to be lost
            router.history_keeper.write(router)  # it reaches as far as the snapshot then: a restart begins there
            journal.save_snapshot(taken.position, body)


class _Taken(NamedTuple):
    """A snapshot that is not written yet."""

    position: int
    captured: Capture
