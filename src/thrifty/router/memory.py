"""State between two calls of a kernel: a tree of tuples, arrays and numbers, handed over as one address.

Compiled code takes 2 us to accept a named tuple of arrays from Python, more when it is nested, 0.2 us for one array, and next to
nothing for a number. So Python keeps the tree alive, `pack` writes down where its leaves lie, and a generated kernel, given the
address of that book, puts them back into the same tuples, which compiles to a few loads. Whoever packs a tree must keep it, and
must write into its arrays rather than replace them.
"""

import ctypes
import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import driver, kernel


class Packed(NamedTuple):
    """A tree as compiled code gets it."""

    address: int  # of the book
    book: NDArray[np.int64]  # address and number of elements of every leaf
    leaves: tuple[NDArray[Any], ...]  # kept alive as long as the book


def flatten(tree: Any) -> tuple[Any, ...]:
    """The arrays and numbers of a tree, from left to right.

    >>> flatten((1, (2.5, ()), (3,)))
    (1, 2.5, 3)
    """
    if isinstance(tree, tuple):
        return tuple(leaf for part in tree for leaf in flatten(part))
    return (tree,)


def pack(tree: Any) -> Packed:
    """Where the leaves of `tree` lie; its numbers are copied.

    >>> pack((np.zeros(3), 2.5)).book[1::2].tolist()
    [3, 1]
    """
    leaves = tuple(leaf if isinstance(leaf, np.ndarray) else np.array([leaf]) for leaf in flatten(tree))
    for leaf in leaves:
        if leaf.ndim != 1 or not leaf.flags.c_contiguous:
            raise ValueError(f"a rule's memory must be made of contiguous arrays of one dimension, got shape {leaf.shape}")
    pairs = [number for leaf in leaves for number in (leaf.ctypes.data, leaf.size)]
    book = np.array(pairs, dtype=np.int64)
    return Packed(book.ctypes.data, book, leaves)


def unpacker(tree: Any, part: Any = None) -> Callable[..., Any]:
    """The kernel that turns the address of the book of a tree of this shape back into the tree.

    Or into `part`, a class of named tuples with some of the fields of the tree: what is not needed need not be compiled.
    """
    scope: dict[str, Any] = {"array_at": array_at, "number": np.dtype(np.int64)}
    n_leaves = len(flatten(tree))
    numbers = iter(range(n_leaves))
    if part is None:
        expression = _expression(tree, scope, numbers)
    else:
        found = {name: _expression(field, scope, numbers) for name, field in zip(tree._fields, tree, strict=True)}
        scope["part"] = part
        expression = f"part({', '.join(found[name] for name in part._fields)})"
    source = f"def unpack(address):\n    book = array_at(address, {2 * n_leaves}, number)\n    return {expression}\n"
    return _generate(driver, "unpack", source, scope)


def copier(tree: Any) -> Callable[..., Any]:
    """The kernel that writes the arrays of one tree of this shape into those of another."""
    loop = "    for i in range(source{0}.size):\n        target{0}[i] = source{0}[i]\n"
    loops = [loop.format(path) for path, leaf in _paths(tree, "") if isinstance(leaf, np.ndarray)]
    return _generate(kernel, "copy", f"def copy(source, target):\n{''.join(loops) or '    pass'}\n", {})


def _generate(compiler: Callable[..., Any], name: str, source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    said = f"{source}{[repr(value) for name, value in scope.items() if name != 'array_at']}"
    exec(compile(source, f"<{name} the state of a rule>", "exec"), scope)
    function = scope[name]
    function.__module__, function.__qualname__ = __name__, f"{name}_{hashlib.sha256(said.encode()).hexdigest()[:16]}"
    return compiler(function)  # type: ignore[no-any-return]


def _expression(tree: Any, scope: dict[str, Any], numbers: Iterator[int]) -> str:
    if isinstance(tree, tuple):
        parts = "".join(f"{_expression(part, scope, numbers)}, " for part in tree)
        if not hasattr(tree, "_fields"):
            return f"({parts})"
        name = f"class_{len(scope)}"
        scope[name] = type(tree)
        return f"{name}({parts})"
    n = next(numbers)
    name = f"dtype_{n}"
    scope[name] = np.asarray(tree).dtype
    return f"array_at(book[{2 * n}], book[{2 * n + 1}], {name})" + ("" if isinstance(tree, np.ndarray) else "[0]")


def _paths(tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(tree, tuple):
        yield path, tree
        return
    for n, part in enumerate(tree):
        yield from _paths(part, f"{path}[{n}]")


def _pointer(_typing_context: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return numba.types.voidptr(address), generate


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

    def array_at(address: Any, count: Any, dtype: Any) -> Any:
        """The array of `count` elements that begins at `address`."""
        buffer = (ctypes.c_char * math.prod((int(count), dtype.itemsize))).from_address(int(address))
        return np.frombuffer(buffer, dtype=dtype)  # type: ignore[call-overload]

else:
    carray: Any = numba.carray  # type: ignore[attr-defined]
    _to_pointer: Any = numba.extending.intrinsic(_pointer)

    @driver
    def array_at(address: Any, count: Any, dtype: Any) -> Any:
        """The array of `count` elements that begins at `address`."""
        return carray(_to_pointer(address), (count,), dtype)
