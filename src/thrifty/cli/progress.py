"""A progress bar on standard error, drawn only for a person."""

import sys
import time


class ProgressBar:
    """Call it with (done, total); it redraws one line. Silent when standard error is not a terminal.

    >>> ProgressBar("playing", "round")(1, 2)
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Show how far it is."""
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

    def close(self) -> None:
        """Clear the line."""
        if self._visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
