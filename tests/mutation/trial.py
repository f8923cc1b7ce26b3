"""A trial: the tests of a module, run against one mutant of it in a process of its own.

The process is a fork of this one, which has numpy, numba and pytest loaded, but not thrifty. The compiler is off, so that a mutant
costs no compilation and a fault in a kernel is seen by all tests of it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from types import CodeType, ModuleType

os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ["THRIFTY_COMPILE"] = "never"
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest-xdist and others are not needed, and take time
os.environ.setdefault("THRIFTY_CACHE", tempfile.mkdtemp(prefix="mutants-"))

import hypothesis
import numba  # noqa: F401 (loaded once for all trials)
import pytest

from tests.mutation.mutants import Mutant

_MEMORY = 4 << 30
_OPTIONS = ["-o", "addopts=", "-p", "no:cacheprovider", "--noconftest", "-q", "-x", "--no-header", "--tb=short"]


class _MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the mutant where Python would find the module."""

    def __init__(self, name: str, code: CodeType, path: str) -> None:
        self.name, self.code, self.path = name, code, path

    def find_spec(self, fullname: str, _path: object, _target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def survives(mutant: Mutant | None, path: str, tests: Sequence[str], *, seconds: int) -> bool:
    """Whether all `tests` pass with the mutant in place of the module at `path`; None is the module as it is.

    A mutant that does not end within `seconds`, or takes more memory than 4 GB, is found out.
    """
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if not os.environ.get("MUTATION_SHOW"):
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        signal.alarm(seconds)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        hypothesis.settings.register_profile("trial", deadline=None, derandomize=True, database=None, max_examples=60)
        hypothesis.settings.load_profile("trial")
        if mutant is not None:
            sys.meta_path.insert(0, _MutantFinder(mutant.module, compile(mutant.tree, path, "exec"), path))
        code = int(pytest.main([*_OPTIONS, *tests]))
    except BaseException:
        traceback.print_exc()
        code = 99
    os._exit(code)


def seconds_for(path: str, tests: Sequence[str]) -> float:
    """How long the tests of the module take as it is; a RuntimeError if they do not pass."""
    begun = time.perf_counter()
    if not survives(None, path, tests, seconds=600):
        raise RuntimeError(f"the tests of {path} must pass before it is mutated: NUMBA_DISABLE_JIT=1 pytest {' '.join(tests)}")
    return time.perf_counter() - begun
