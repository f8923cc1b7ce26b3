"""A progress bar on standard error, drawn only on a terminal."""

import sys
import time
from types import TracebackType
from typing import Self


class ProgressBar:
    """Call it with (done, total); it redraws one line, and clears it at the end of a `with` block.

    It is silent if standard error is not a terminal.

    >>> with ProgressBar("playing", "round") as bar:
    ...     bar(1, 2)
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Show the share that is done, and the time that is left."""
        if not self._visible:
            return
        if done == 0:
            line = f"{self._what}: compiling (kernels are kept for the next time)"
        else:
            seconds = time.monotonic() - self._started
            filled = 30 * done // total
            left = seconds * (total - done) / done
            line = f"{self._what} [{'#' * filled}{'.' * (30 - filled)}] {done:,}/{total:,} {self._unit}s, {left:.0f} s left"
        self.say(line)

    def say(self, line: str) -> None:
        """Show a line in place of the last one."""
        if self._visible:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.say("")
