"""The size of the WAL. Beyond a limit the writer begins it again, and our own readers pause between two reads so that it can.

The checkpoint that SQLite runs by itself does not wait for readers. So readers that follow each other closely, such as those of an
export, would let the WAL grow for ever. A checkpoint that begins the WAL again succeeds once no reader uses it, and a reader that
pauses does not. Only a transaction of a foreign process can then keep the WAL from beginning again.
"""

import logging
import os
import sqlite3
import time
from pathlib import Path

WAL_LIMIT_BYTES = 32 * 1024 * 1024
"""When the WAL is larger than this, readers pause and the writer begins it again."""

CHECKPOINT_WAIT_S = 0.02
"""How long a commit waits for readers in order to begin the WAL again."""

FIRST_RETRY_S, LAST_RETRY_S = 0.05, 1.0
"""The time until the next attempt, if that was not long enough: doubled each time."""

PAUSE_S, POLL_S = 0.5, 0.002
"""How long a reader pauses for the writer, at most, and how often it looks."""

PAUSE_AGAIN_S = 10.0
"""After a pause in vain (nobody writes, or a foreign transaction is open) a reader does not pause for this long."""

log = logging.getLogger("thrifty.store")


def wal_bytes(path: Path) -> int:
    """The size of the WAL of a file; 0 if there is none."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


class WalLimit:
    """The writer's side.

    Parameters
    ----------
    path : the file of the store
    limit : size of the WAL in bytes
    busy_s : how long statements wait for a lock at other times

    """

    def __init__(self, path: Path, limit: int, *, busy_s: float) -> None:
        self._path, self._limit, self._busy_s = path, limit, busy_s
        self._retry_s, self._retry_at = FIRST_RETRY_S, 0.0

    def keep(self, connection: sqlite3.Connection) -> None:
        """Begin the WAL again if it is too large. Call this after a commit, whose rows are durable in any case."""
        if wal_bytes(self._path) <= self._limit or time.monotonic() < self._retry_at:
            return
        if self._begin_again(connection):
            self._retry_s, self._retry_at = FIRST_RETRY_S, 0.0
        else:
            self._retry_at = time.monotonic() + self._retry_s
            self._retry_s = min(2 * self._retry_s, LAST_RETRY_S)

    def _begin_again(self, connection: sqlite3.Connection) -> bool:
        try:
            connection.execute(f"PRAGMA busy_timeout = {1000 * CHECKPOINT_WAIT_S:.0f}")
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return not busy
        except sqlite3.Error as error:
            facts = {"error": str(error), "bytes": wal_bytes(self._path)}
            log.warning("the WAL cannot be checkpointed", extra={"facts": facts})
            return False
        finally:
            connection.execute(f"PRAGMA busy_timeout = {1000 * self._busy_s:.0f}")


class ReaderPause:
    """The readers' side: `take` between two reads of a long one."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit, self._again_at = path, limit, 0.0

    def take(self) -> None:
        """Wait while the WAL is too large, if somebody is there to begin it again."""
        until = time.monotonic() + PAUSE_S
        if until - PAUSE_S < self._again_at:
            return
        while wal_bytes(self._path) > self._limit:
            if time.monotonic() > until:
                self._again_at = time.monotonic() + PAUSE_AGAIN_S
                return
            time.sleep(POLL_S)
