"""A circuit breaker: after several failed calls in a row, no call goes out for a while; then a single one tries.

Why not a library: pybreaker supports synchronous calls and Tornado, aiobreaker asyncio only. This one knows neither: it is
asked before a call and informed after it, so that both clients share it.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

log = logging.getLogger("thrifty.client")


class Admission(NamedTuple):
    """Permission for one call; `trial` if it is the one that tries whether the service is back."""

    trial: bool


class Breaker:
    """Counts consecutive failures of calls. Thread-safe.

    Parameters
    ----------
    failures : consecutive failures that open the breaker
    cooldown_s : seconds for which it stays open; then one trial call closes it or opens it again
    name : of the service, for log messages
    clock : seconds, monotonic

    >>> breaker = Breaker(failures=2, cooldown_s=60)
    >>> for _ in range(2):
    ...     breaker.fail(breaker.admit())
    >>> breaker.admit() is None, breaker.state
    (True, 'open')

    """

    def __init__(
        self, *, failures: int, cooldown_s: float, name: str = "the service", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._cooldown_s, self._name, self._clock = failures, cooldown_s, name, clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_at: float | None = None
        self._trying = False

    @property
    def state(self) -> str:
        """closed, open, or trial (the cool-down is over)."""
        with self._lock:
            if self._opened_at is None:
                return "closed"
            return "open" if self._wait_s(self._opened_at) > 0 else "trial"

    @property
    def failures(self) -> int:
        """Consecutive failures so far."""
        return self._failures

    @property
    def wait_s(self) -> float:
        """Seconds until a trial call may go out; 0 if calls may go out now."""
        with self._lock:
            return 0.0 if self._opened_at is None else self._wait_s(self._opened_at)

    def admit(self) -> Admission | None:
        """Permission for a call, which must end with `succeed`, `fail` or `abandon`; None if it must not go out."""
        with self._lock:
            if self._opened_at is None:
                return Admission(trial=False)
            if self._trying or self._wait_s(self._opened_at) > 0:
                return None
            self._trying = True
            return Admission(trial=True)

    def succeed(self, admission: Admission) -> None:
        """The service answered."""
        with self._lock:
            was_open, self._opened_at, self._failures = self._opened_at is not None, None, 0
            self._trying = self._trying and not admission.trial
        if was_open:
            log.info("%s answers again; the circuit breaker is closed", self._name)

    def fail(self, admission: Admission | None) -> None:
        """The service was not available."""
        assert admission is not None, "a call that was not admitted cannot fail"
        with self._lock:
            self._failures += 1
            opens = admission.trial or (self._opened_at is None and self._failures >= self._limit)
            if opens:
                self._opened_at = self._clock()
            self._trying = self._trying and not admission.trial
            failures = self._failures
        if opens and not admission.trial:
            log.warning("%s: %d calls in a row failed; none goes out for %g s", self._name, failures, self._cooldown_s)

    def abandon(self, admission: Admission) -> None:
        """The call ended without an answer about the service: it was cancelled, or failed here."""
        with self._lock:
            self._trying = self._trying and not admission.trial

    def _wait_s(self, opened_at: float) -> float:
        return max(0.0, opened_at + self._cooldown_s - self._clock())
