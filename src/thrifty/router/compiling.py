"""Kernels that are interpreted until they are compiled, and a child process that compiles them.

Compiling a policy takes ten seconds or more and holds the interpreter lock, so it is done in another process, which leaves its
result in the cache on disk. Until then the same functions run as plain Python: slower, with the same results to the bit.
THRIFTY_COMPILE says how: "background" (the default), "wait" (compile here and now) or "never".
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from thrifty.compiled import bind, interpreted, is_cached
from thrifty.kernel_cache import cache_folder

log = logging.getLogger("thrifty.router")

after_load: list[Callable[[], None]] = []
"""Called when a kernel was loaded or compiled that this process did not have before."""

MODES = ("background", "wait", "never")


def compile_mode() -> str:
    """What THRIFTY_COMPILE says."""
    mode = os.environ.get("THRIFTY_COMPILE", "background")
    if mode not in MODES:
        raise ValueError(f"THRIFTY_COMPILE must be one of {', '.join(MODES)}, got {mode!r:.80}")
    return mode


class Kernel:
    """A driver with its first arguments fixed: a callable that is interpreted first, and compiled once `load` was called.

    Parameters
    ----------
    drive : the driver
    constants : compiled functions, by the names of the driver's first arguments
    name : of the file in the cache

    """

    __slots__ = ("_arguments", "_drive", "call", "compiled")

    def __init__(self, drive: Callable[..., Any], constants: Mapping[str, Any], *, name: str) -> None:
        self._drive = drive
        self._arguments: dict[str, Any] = {"constants": constants, "name": name, "short": True}
        plain, fixed = interpreted(drive), tuple(interpreted(constant) for constant in constants.values())

        def run_interpreted(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):
                return plain(*fixed, *arguments)

        self.call: Callable[..., Any] = run_interpreted
        self.compiled = False

    @property
    def cached(self) -> bool:
        """Whether `load` would find it compiled."""
        return self.compiled or is_cached(self._drive, **self._arguments)

    def load(self, rehearse: Callable[[Callable[..., Any]], object]) -> None:
        """Take the compiled function from the cache, or compile it; `rehearse` calls it once with arguments of the right types.

        From then on arguments of other types are refused instead of compiled for.
        """
        if not self.compiled:
            bound: Any = bind(self._drive, **self._arguments)
            new = not getattr(bound, "signatures", True)
            rehearse(bound)
            for call in after_load if new else ():
                call()
            if hasattr(bound, "disable_compile"):
                bound.disable_compile()
            self.call, self.compiled = bound, True


class Job(threading.Event):
    """One compilation: set when it is done or has failed. `refusal` is the line that says why it failed, else None."""

    refusal: str | None = None


class Compiler:
    """Compiles policies in child processes, one at a time, and then loads them here.

    One job is a policy by its specification, whether costs are known, and whether statistics are kept apart.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[tuple[str, bool, bool], Job] = {}
        self._turn = threading.Lock()

    def start(self, what: tuple[str, bool, bool], load: Callable[[], None]) -> Job:
        """Compile in the background, then call `load`."""
        with self._lock:
            job = self._jobs.get(what)
            if job is None:
                job = self._jobs[what] = Job()
                run = threading.Thread(target=self._run, args=(what, load, job), name="thrifty-compile", daemon=True)
                run.start()
            return job

    def _run(self, what: tuple[str, bool, bool], load: Callable[[], None], job: Job) -> None:
        spec, known_costs, apart = what
        words = ["known" if known_costs else "unknown", *(["apart"] if apart else [])]
        try:
            with self._turn:
                done = subprocess.run(
                    [sys.executable, "-m", "thrifty.router.compile_policy", spec, *words],
                    env={**os.environ, "THRIFTY_CACHE": str(cache_folder().parent), "THRIFTY_COMPILE": "wait"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    check=False,
                )
            if done.returncode:
                job.refusal = (done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"])[-1]
                log.warning("the policy stays interpreted", extra={"facts": {"policy": spec, "error": job.refusal}})
                return
            load()
        except Exception:  # the interpreted rule goes on working; what went wrong must be seen
            log.exception("the policy stays interpreted", extra={"facts": {"policy": spec}})
        finally:
            job.set()
            with self._lock:
                self._jobs.pop(what, None)


COMPILER = Compiler()
