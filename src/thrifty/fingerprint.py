"""Fingerprints of compiled functions: a digest of what the code is, not of what it is called.

The digest of a function covers its bytecode, constants, defaults and closure, how it is compiled, and in the same manner everything
it refers to: functions it calls, global numbers and arrays, record types. Two functions with the same fingerprint compile to
the same kernel, so a cache that is named by fingerprints is never stale. Comments, line numbers and names of files do not count.

What a function may do through other means is not looked at but never the same: a plain function (an overload of numba may stand
behind it), a class that is no named tuple and no enumeration, a function of another library that was compiled elsewhere.
An overload that a user adds to a function of numpy is the one thing that is overlooked.
"""

import builtins
import hashlib
import secrets
import sys
import sysconfig
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numba
import numpy as np

_FIXED_MODULES = {"numpy", "numba", *sys.stdlib_module_names}
"""Modules that only another version changes."""

_FIXED_FOLDERS = tuple(
    Path(folder) for folder in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *np.__path__, *numba.__path__)
)

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
    checks: Any = numba.config.BOUNDSCHECK  # type: ignore[attr-defined]
    return f"{sys.version_info[:3]} {numba.__version__} {np.__version__} {checks}"


def referred_names(code: CodeType) -> Iterator[str]:
    """Names that a function may look up in its globals, those of functions inside it included.

    >>> sorted(referred_names((lambda x: max(x, abs(x))).__code__))
    ['abs', 'max']
    """
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from referred_names(constant)


_digests: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # of compiled functions of the package, which do not change


def is_of_package(compiled: Any) -> bool:
    """Whether a compiled function is one of this package. A user's is not: its globals may change while the process runs."""
    return str(compiled.py_func.__module__).partition(".")[0] == "thrifty"


def _package_digest(compiled: Any) -> str:
    """A digest of a compiled function of the package, worked out once: a walk through all that a loop calls takes 10 ms."""
    if compiled not in _digests:
        _digests[compiled] = ""  # for a function that calls itself
        tokens = "\0".join(_Walk()._compiled(compiled))
        _digests[compiled] = hashlib.sha256(tokens.encode()).hexdigest()
    return _digests[compiled]


class _Walk:
    """One walk through everything that some values refer to. What was met before is named by its number."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used twice

    def tokens(self, value: Any) -> Iterator[str]:
        if isinstance(value, _PLAIN):
            yield f"{type(value).__name__} {_plain(value)!r}"
            return
        yield type(value).__name__
        if isinstance(value, tuple):  # equal ones may be one object in one process and two in another; what is in them is met
            yield from self._each(",".join(getattr(value, "_fields", ())), *value)
        elif id(value) in self._met:
            yield f"met {self._met[id(value)]}"
        else:
            self._met[id(value)] = len(self._met)
            self._kept.append(value)
            yield from self._parts(value)

    def _parts(self, value: Any) -> Iterator[str]:
        if isinstance(value, list):
            yield from self._each(*value)
        elif isinstance(value, (set, frozenset)):
            yield from self._each(*sorted(value, key=repr))
        elif isinstance(value, dict):
            yield from self._each(*value.keys(), *value.values())
        elif isinstance(value, np.ndarray):
            yield from self._each(value.dtype, value.shape, value.tobytes())
        elif isinstance(value, CodeType):
            yield from self._code(value)
        elif hasattr(value, "py_func"):
            yield from [_package_digest(value)] if is_of_package(value) else self._compiled(value)
        elif isinstance(value, numba.core.extending._Intrinsic):
            yield from self._function(value._defn)
        elif _is_fixed(value):
            yield _named(value)
        elif isinstance(value, FunctionType) and _may_be_plain(value):
            yield from self._function(value)
        elif isinstance(value, type):
            yield from self._class(value)
        elif not isinstance(value, ModuleType):  # of a module only that counts what is taken from it: see `_global`
            yield secrets.token_hex(16)

    def _each(self, *values: Any) -> Iterator[str]:
        yield str(len(values))
        for value in values:
            yield from self.tokens(value)

    def _code(self, code: CodeType) -> Iterator[str]:
        yield code.co_code.hex()
        signature = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable
        yield from self._each(signature, code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)

    def _compiled(self, value: Any) -> Iterator[str]:
        options = {**value.targetoptions, "locals": sorted((name, str(kind)) for name, kind in value.locals.items())}
        yield from self._each(sorted(options), *(options[name] for name in sorted(options)))
        if is_finished(value) or value._compiler.pipeline_class is not numba.core.compiler.Compiler:
            yield secrets.token_hex(16)
        yield from self._function(value.py_func)

    def _class(self, value: type) -> Iterator[str]:
        yield _named(value)
        if issubclass(value, Enum):
            yield from self._each([(member.name, member.value) for member in value])
        elif hasattr(value, "_fields"):
            yield from self._each(value._fields, getattr(value, "_field_defaults", {}))
        elif not issubclass(value, BaseException) and value.__module__.partition(".")[0] != "thrifty":
            yield secrets.token_hex(16)

    def _function(self, function: FunctionType) -> Iterator[str]:
        cells = [_content(cell) for cell in function.__closure__ or ()]
        yield from self._each(function.__code__, function.__defaults__, function.__kwdefaults__, cells)
        names = dict.fromkeys(referred_names(function.__code__))
        for name in names:
            if name in function.__globals__:
                yield name
                yield from self._global(function.__globals__[name], names, ())

    def _global(self, value: Any, names: dict[str, None], inside: tuple[Any, ...]) -> Iterator[str]:
        """A global; of a module that may change, what a function with these names may take from it."""
        yield from self.tokens(value)
        if isinstance(value, ModuleType) and not _is_fixed(value) and value not in inside:
            for name in names:
                if hasattr(value, name):
                    yield name
                    yield from self._global(getattr(value, name), names, (*inside, value))


def _plain(value: Any) -> Any:
    """The value itself; the number that it is for a subclass of a number, whose text may be anything."""
    kinds: tuple[Any, ...] = (int, float, complex)
    for kind in kinds:
        if isinstance(value, kind) and not isinstance(value, (bool, np.generic)):
            return kind(value)
    return value


_EMPTY = "an empty cell"


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return _EMPTY


def _is_fixed(value: Any) -> bool:
    """Whether only another version of Python, numpy or numba changes it: one of their modules, functions, classes or types."""
    if isinstance(value, numba.types.Type):
        return True
    if isinstance(value, np.ufunc):
        return getattr(np, value.__name__, None) is value
    module = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "builtins")
    if not isinstance(value, (ModuleType, FunctionType, BuiltinFunctionType, type)) or module is None:
        return False
    file = getattr(module, "__file__", None)  # a user's module may have the name of one of Python's
    return module.__name__.partition(".")[0] in _FIXED_MODULES and (
        file is None or any(folder in Path(file).parents for folder in _FIXED_FOLDERS)
    )


def _may_be_plain(function: FunctionType) -> bool:
    """Whether a function that is not compiled is known by its code: one of the package, or where nothing is compiled."""
    return bool(numba.config.DISABLE_JIT) or function.__module__.partition(".")[0] == "thrifty"  # type: ignore[attr-defined]


def is_finished(compiled: Any) -> bool:
    """Whether a function was compiled for given signatures when it was made: it holds what its globals were then."""
    return not compiled._can_compile


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
        cells = tuple(CellType() for _ in source.__closure__ or ())
        copy = FunctionType(source.__code__, scope, source.__name__, self.rebuild(source.__defaults__), cells)
        copy.__module__, copy.__qualname__, copy.__kwdefaults__ = module, source.__qualname__, source.__kwdefaults__
        made = self._remake(copy, value)
        self._made[id(value)] = value, made  # before what it calls: a function may call itself
        for cell, old in zip(cells, source.__closure__ or (), strict=True):
            if _content(old) is not _EMPTY:
                cell.cell_contents = self.rebuild(old.cell_contents)
        names = dict.fromkeys(referred_names(source.__code__))
        known = source.__globals__
        scope.update({name: self._rebuild_global(known[name], names, {}) for name in names if name in known})
        return made

    def _rebuild_global(self, value: Any, names: dict[str, None], inside: dict[int, ModuleType]) -> Any:
        """A global made anew; in place of a module that may change, one with what a function with these names may take from it."""
        if not isinstance(value, ModuleType) or _is_fixed(value) or value.__name__.partition(".")[0] == "thrifty":
            return self.rebuild(value)
        if id(value) not in inside:
            copy = inside[id(value)] = ModuleType(value.__name__)
            for name in names:
                if hasattr(value, name):
                    setattr(copy, name, self._rebuild_global(getattr(value, name), names, inside))
        return inside[id(value)]
