"""Fingerprints of compiled functions: a digest of what the code is, not of what it is called.

The digest of a function covers its bytecode, constants, defaults and closure, how it is compiled, and in the same manner everything
it refers to: functions it calls, global numbers and arrays, record types. Two functions with the same fingerprint compile to
the same kernel, so a cache that is named by fingerprints is never stale. Comments, line numbers and names of files do not count.
"""

import builtins
import hashlib
import secrets
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

_FIXED_MODULES = {"numpy", "numba", *sys.stdlib_module_names}
"""Modules that only another version changes."""

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...), np.generic, np.dtype, range)


def fingerprint(*values: Any) -> str:
    """Sixteen hexadecimal digits for compiled functions, and for tuples, arrays, numbers and classes of named tuples.

    A value that cannot be understood gets other digits each time, so that nothing is kept under them.

    >>> from thrifty.compiled import kernel
    >>> one, two = kernel(lambda x: x + 1), kernel(lambda x: x + 2)
    >>> fingerprint(one) == fingerprint(kernel(lambda x: x + 1)), fingerprint(one) == fingerprint(two)
    (True, False)
    """
    digest = hashlib.sha256(_versions().encode())
    for token in _Walk().tokens(values):
        digest.update(token.encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


@cache
def _versions() -> str:
    return f"{sys.version_info[:3]} {numba.__version__} {np.__version__}"


def referred_names(code: CodeType) -> Iterator[str]:
    """Names that a function may look up in its globals, those of functions inside it included.

    >>> sorted(referred_names((lambda x: max(x, abs(x))).__code__))
    ['abs', 'max']
    """
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from referred_names(constant)


class _Walk:
    """One walk through everything that some values refer to. What was met before is named by its number."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def tokens(self, value: Any) -> Iterator[str]:
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {value!r}"
            return
        if id(value) in self._met:
            yield f"met {self._met[id(value)]}"
            return
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        yield type(value).__name__
        yield from self._parts(value)

    def _parts(self, value: Any) -> Iterator[str]:
        if isinstance(value, (tuple, list)):
            yield from self._each(getattr(value, "_fields", ()), *value)
        elif isinstance(value, (set, frozenset)):
            yield from self._each(*sorted(value, key=repr))
        elif isinstance(value, dict):
            yield from self._each(*value.keys(), *value.values())
        elif isinstance(value, np.ndarray):
            yield from self._each(value.dtype, value.shape, value.tobytes())
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif hasattr(value, "py_func"):
            yield from self._each(sorted((name, repr(option)) for name, option in value.targetoptions.items()), value.py_func)
        elif isinstance(value, numba.core.extending._Intrinsic):
            yield from self.tokens(value._defn)
        elif isinstance(value, (type, ModuleType, np.ufunc, BuiltinFunctionType, numba.types.Type)):
            yield from self._each(_named(value), getattr(value, "_fields", ()))
        else:
            yield secrets.token_hex(16)

    def _each(self, *values: Any) -> Iterator[str]:
        yield str(len(values))
        for value in values:
            yield from self.tokens(value)

    def _code(self, code: CodeType) -> Iterator[str]:
        yield code.co_code.hex()
        signature = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        yield from self._each(signature, code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)

    def _function(self, function: FunctionType) -> Iterator[str]:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        yield from self._each(function.__code__, function.__defaults__, function.__kwdefaults__, cells)
        names = dict.fromkeys(referred_names(function.__code__))
        for name in names:
            if name in function.__globals__:
                yield name
                yield from self._global(function.__globals__[name], names)

    def _global(self, value: Any, names: dict[str, None]) -> Iterator[str]:
        """A global; of a module that may change, what a function with these names may take from it."""
        yield from self.tokens(value)
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _FIXED_MODULES:
            for name in names:
                if hasattr(value, name):
                    yield name
                    yield from self._global(getattr(value, name), names)


def _named(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or str(value)
    return f"{getattr(value, '__module__', '')}.{name}"


Remake = Callable[[FunctionType, Any], Any]
"""Gets a plain copy of a function, whose globals are those of now, and what was compiled of it."""


class Rebuilder:
    """Makes compiled functions anew from their sources, and everything that they call likewise.

    Parameters
    ----------
    remake : what becomes of a function
    wanted : which compiled functions are made anew; all by default
    rest : what becomes of everything else; by default it stays as it is
    module : the name of the module that the new functions are said to be in; by default that of the old ones

    """

    def __init__(
        self,
        remake: Remake,
        *,
        wanted: Callable[[Any], bool] = lambda _: True,
        rest: Callable[[Any], Any] = lambda value: value,
        module: str | None = None,
    ) -> None:
        self._remake, self._wanted, self._rest, self._module = remake, wanted, rest, module
        self._made: dict[int, tuple[Any, Any]] = {}  # old and new by the id of the old one, which is kept: no id is used twice

    def rebuild(self, value: Any) -> Any:
        """A compiled function made anew; tuples of them likewise."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        if isinstance(value, tuple):
            parts = [self.rebuild(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        source = getattr(value, "py_func", None)
        return self._rest(value) if source is None or not self._wanted(value) else self._rebuild_function(value, source)

    def _rebuild_function(self, value: Any, source: FunctionType) -> Any:
        module = self._module or source.__module__ or "__main__"  # a function that was made by `exec` may have none
        scope: dict[str, Any] = {"__builtins__": builtins, "__name__": module}
        cells = tuple(CellType(self.rebuild(cell.cell_contents)) for cell in source.__closure__ or ())
        copy = FunctionType(source.__code__, scope, source.__name__, source.__defaults__, cells)
        copy.__module__, copy.__qualname__, copy.__kwdefaults__ = module, source.__qualname__, source.__kwdefaults__
        made = self._remake(copy, value)
        self._made[id(value)] = value, made  # before what it calls: a function may call itself
        known = source.__globals__
        scope.update({name: self.rebuild(known[name]) for name in dict.fromkeys(referred_names(source.__code__)) if name in known})
        return made
