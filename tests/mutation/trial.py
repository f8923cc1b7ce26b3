"""Trials: the tests of a module, run against one mutant of it after the other, each in a process of its own.

The tests are collected once. Each trial is a fork of this process, in which the code of one function is replaced by that of the
mutant. A fault outside of functions (a default, a constant) needs the module to be loaded anew, which takes longer: then the fork
is made before thrifty is loaded. The compiler is off, so that a mutant costs no compilation and a fault in a kernel is seen by all.
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"
os.environ["THRIFTY_COMPILE"] = "never"
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # pytest-xdist and others are not needed, and take time
os.environ.setdefault("THRIFTY_CACHE", tempfile.mkdtemp(prefix="mutants-"))

import hypothesis
import numba  # noqa: F401 (loaded once for all trials)
import pytest

from tests.mutation.mutants import Mutant

_MEMORY = 4 << 30
# Assertions stay plain: pytest would load a module whose doctests it runs by itself, and not the mutant of it.
_OPTIONS = [
    "-o",
    "addopts=",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:terminal",
    "-s",
    "--noconftest",
    "-p",
    "tests.plain",
]
hypothesis.settings.register_profile("trial", deadline=None, derandomize=True, database=None, max_examples=50)
hypothesis.settings.load_profile("trial")


def survivors(mutants: Sequence[Mutant], path: str, tests: Sequence[str]) -> list[Mutant]:
    """The mutants of the module at `path` with which all `tests` pass.

    A mutant that takes three times the processor time of the tests, and a second, or more memory than 4 GB, is found out.
    """
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if not _passes(lambda: _test(tests), seconds=600):
        raise RuntimeError(f"the tests of {path} must pass before it is mutated: NUMBA_DISABLE_JIT=1 pytest {' '.join(tests)}")
    seconds = 3 * (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun) + 1
    outside = [mutant for mutant in mutants if _is_outside(mutant)]
    inside = [mutant for mutant in mutants if not _is_outside(mutant)]
    found = [mutant for mutant in outside if _passes(functools.partial(_test_anew, mutant, path, tests), seconds=seconds)]
    within = _Trials(inside, path, seconds)
    if inside and not _passes(lambda: within.run(tests), seconds=3600):
        raise RuntimeError(f"the tests of {path} could not be collected: {' '.join(tests)}")
    numbers = within.survivors()
    return found + [inside[number] for number in numbers]


def _is_outside(mutant: Mutant) -> bool:
    return mutant.function == "module" or mutant.before.lstrip().startswith("def ") or mutant.function[0].isupper()


def _passes(what: Callable[[], int], *, seconds: float) -> bool:
    """Whether `what` returns 0 in a process of its own, within so many seconds of processor time."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    code = 99
    try:
        if not os.environ.get("MUTATION_SHOW"):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        code = int(what())
    finally:
        os._exit(code)


def _test(tests: Sequence[str], *plugins: object) -> int:
    return int(pytest.main([*_OPTIONS, "-x", *tests], plugins=list(plugins)))


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


def _test_anew(mutant: Mutant, path: str, tests: Sequence[str]) -> int:
    sys.meta_path.insert(0, _MutantFinder(mutant.module, compile(mutant.tree, path, "exec"), path))
    return _test(tests)


class _Trials:
    """A pytest plugin: instead of the tests once, it runs them once for every mutant."""

    def __init__(self, mutants: Sequence[Mutant], path: str, seconds: float) -> None:
        self.mutants, self.path, self.seconds = mutants, path, seconds
        self.results, self.report = os.pipe()

    def run(self, tests: Sequence[str]) -> int:
        return _test(tests, self)

    def survivors(self) -> list[int]:
        """The numbers of the mutants that lived."""
        os.close(self.report)
        with os.fdopen(self.results) as lines:
            return [int(line) for line in lines]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for number, mutant in enumerate(self.mutants):
            if _passes(functools.partial(self._try, session, mutant), seconds=self.seconds):
                os.write(self.report, f"{number}\n".encode())
        return True

    def _try(self, session: pytest.Session, mutant: Mutant) -> int:
        function = _function(sys.modules[mutant.module], mutant.function)
        function.__code__ = _code(compile(mutant.tree, self.path, "exec"), function.__code__)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return 1
        return 0


def _function(module: Any, path: str) -> FunctionType:
    """The function of a module that a mutant changes; the outer one of two."""
    found = getattr(module, path.partition(".")[0])
    assert not inspect.isclass(found)
    plain: FunctionType = inspect.unwrap(found)
    return plain


def _code(mutated: CodeType, original: CodeType) -> CodeType:
    """The code of the same function in the mutated module."""
    return next(each for each in mutated.co_consts if isinstance(each, CodeType) and each.co_name == original.co_name)
