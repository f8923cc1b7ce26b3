"""Progress on standard error: a bar on a terminal, else a line every half minute."""

import sys
import time
from types import TracebackType
from typing import Self

_BETWEEN_LINES_S = 30.0


class ProgressBar:
    """Call it with (done, total); it redraws one line, and clears it at the end of a `with` block.

    If standard error is not a terminal, it writes a line of its own every 30 seconds, so that a log shows where the work is.

    >>> with ProgressBar("playing", "round") as bar:
    ...     bar(1, 2)
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._visible = sys.stderr.isatty()
        self._started = self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Show the share that is done, and the time that is left."""
        if not self._visible and time.monotonic() - self._last < _BETWEEN_LINES_S:
            return
        if done == 0:
            line = f"{self._what}: compiling (kernels are kept for the next time)"
        else:
            seconds = time.monotonic() - self._started
            filled = 30 * done // total
            left = seconds * (total - done) / done
            bar = f" [{'#' * filled}{'.' * (30 - filled)}]" if self._visible else ""
            line = f"{self._what}{bar} {done:,}/{total:,} {self._unit}s, {left:.0f} s left"
        if self._visible:
            self.say(line)
        else:
            self._last = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Show a line in place of the last one."""
        if self._visible:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.say("")
