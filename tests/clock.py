"""A clock that a test moves."""


class Clock:
    """Has time() and monotonic(), like the module of that name; both move with `now`."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now, self._start = now, now

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now

    def monotonic(self) -> float:
        """Seconds since the clock was made, and then some."""
        return 1_000.0 + self.now - self._start


class WallClock(Clock):
    """A clock whose wall time may jump while the other one goes on."""

    def monotonic(self) -> float:
        """It stands still."""
        return 1_000.0
