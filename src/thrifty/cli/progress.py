"""Progress on standard error: a bar on a terminal, else a line every half minute."""

import sys
import time
from types import TracebackType
from typing import Self

_BETWEEN_LINES_S = 30.0


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(44.6), duration(1500), duration(9000)
    ('45 s', '25 min', '2.5 h')
    """
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


class ProgressBar:
    """Call it with (done, total); it redraws one line, and clears it at the end of a `with` block.

    If standard error is not a terminal, it writes a line of its own every 30 seconds, so that a log shows where the work is.

    >>> with ProgressBar("playing", "round") as bar:
    ...     bar(1, 2)
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._visible = sys.stderr.isatty()
        self._last = time.monotonic()
        self._first: tuple[float, int] | None = None  # when something was done for the first time, and how much

    def __call__(self, done: int, total: int) -> None:
        """Show the share that is done, and the time that is left."""
        if not self._visible and time.monotonic() - self._last < _BETWEEN_LINES_S:
            return
        if done == 0:
            line = f"{self._what}: compiling (kernels are kept for the next time)"
        else:
            filled = 30 * done // total
            bar = f" [{'#' * filled}{'.' * (30 - filled)}]" if self._visible else ""
            line = f"{self._what}{bar} {done:,}/{total:,} {self._unit}s{self._left(done, total)}"
        if self._visible:
            self.say(line)
        else:
            self._last = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def _left(self, done: int, total: int) -> str:
        """The time that is left at the pace since the first piece was done, which may have waited for the compiler."""
        now = time.monotonic()
        since, start = self._first = self._first or (now, done)
        return f", {duration((now - since) * (total - done) / (done - start))} left" if done > start else ""

    def say(self, line: str) -> None:
        """Show a line in place of the last one."""
        if self._visible:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.say("")
