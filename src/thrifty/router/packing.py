"""Packing: a tree of tuples, arrays and numbers in one array of bytes, which Python and compiled code both own by reference.

Compiled code takes 2 us to accept a named tuple of arrays from Python, more when it is nested, and 0.2 us for one array. So the
state of a rule is packed into one array of bytes: a header with the layout's checksum and the offsets, then the leaves. A generated
kernel turns the array back into the same tuples of views. No address is involved: an array of another layout is refused by its
checksum, an array of another type by numba, and an array that is in use cannot be freed.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import driver, kernel

Bytes = NDArray[np.uint8]

GENERATED = "thrifty_generated"
"""The module of generated functions. It holds none of them: they belong to whoever asked for them, and are freed with them.

It must exist all the same: numba imports the module of every function when it reads its cache.
"""

sys.modules.setdefault(GENERATED, ModuleType(GENERATED, "Functions that thrifty.router.packing generates say they are of here."))


class Layout:
    """Where the leaves of a tree lie in an array of bytes. Trees of the same shape share their kernels, whatever the array sizes.

    >>> layout = Layout((np.zeros(3), np.arange(2)))
    >>> packed = layout.pack((np.full(3, 0.5), np.arange(2)))
    >>> [leaf.tolist() for leaf in layout.views(packed)]
    [[0.5, 0.5, 0.5], [0, 1]]
    """

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        leaves = [np.asarray(leaf) for leaf in flatten(tree)]
        for leaf in leaves:
            if leaf.ndim != 1:
                raise ValueError(f"a rule's memory must be made of arrays of one dimension, got shape {leaf.shape}")
        self._dtypes = [leaf.dtype for leaf in leaves]
        self._ends: list[int] = []  # first byte and end of every leaf, which begins at a multiple of eight
        self.n_bytes = 8 * (2 * len(leaves) + 1)
        for leaf in leaves:
            self._ends += [self.n_bytes, self.n_bytes + leaf.nbytes]
            self.n_bytes += (leaf.nbytes + 7) // 8 * 8
        self.checksum = shape_checksum(tree)

    def pack(self, tree: Any) -> Bytes:
        """A new array of bytes with the content of `tree`."""
        packed = np.zeros(self.n_bytes, np.uint8)
        packed[: 8 * (len(self._ends) + 1)].view(np.int64)[:] = [self.checksum, *self._ends]
        for view, leaf in zip(self.leaves(packed), flatten(tree), strict=True):
            view[:] = leaf
        return packed

    def leaves(self, packed: Bytes) -> list[NDArray[Any]]:
        """The leaves in an array of bytes, as arrays that share its memory."""
        return [packed[first:end].view(dtype) for (first, end), dtype in zip(self.extents(), self._dtypes, strict=True)]

    def extents(self) -> list[tuple[int, int]]:
        """First byte and end of every leaf."""
        return list(zip(self._ends[::2], self._ends[1::2], strict=True))

    def views(self, packed: Bytes) -> Any:
        """The tree in an array of bytes, made of arrays that share its memory."""
        return _rebuild(self._tree, iter(self.leaves(packed)))

    def unpacker(self) -> Callable[..., Any]:
        """The kernel that turns an array of bytes into the tree; it raises a ValueError where the checksum is another one."""
        return unpacker(self._tree)


def flatten(tree: Any) -> tuple[Any, ...]:
    """The arrays of a tree, from left to right.

    >>> flatten((1, (2.5, ()), (3,)))
    (1, 2.5, 3)
    """
    if isinstance(tree, tuple):
        return tuple(leaf for part in tree for leaf in flatten(part))
    return () if tree is None else (tree,)


def shape_checksum(tree: Any) -> int:
    """A number that differs between trees of different shapes or types; sizes of arrays do not matter."""
    return int.from_bytes(hashlib.sha256(_describe(tree).encode()).digest()[:7], "big")


def unpacker(tree: Any) -> Callable[..., Any]:
    """See `Layout.unpacker`; for arrays of any size."""
    scope: dict[str, Any] = {"integers": np.dtype(np.int64)}
    n_leaves = len(flatten(tree))
    expression = _expression(tree, scope, iter(range(n_leaves)))
    source = (
        f"def unpack(packed):\n"
        f"    header = packed[: {8 * (2 * n_leaves + 1)}].view(integers)\n"
        f"    if header.size != {2 * n_leaves + 1} or header[0] != {shape_checksum(tree)}:\n"
        f'        raise ValueError("the state of a rule has another layout than the kernel")\n'
        f"    return {expression}\n"
    )
    return _generate(driver, "unpack", source, scope)


def tuple_maker(kind: Any) -> Callable[..., Any]:
    """The kernel that makes a named tuple of this kind from an array of numbers."""
    numbers = ", ".join(f"numbers[{n}]" for n in range(len(kind._fields)))
    source = f"def make(numbers):\n    return kind({numbers})\n"
    return _generate(kernel, "make", source, {"kind": kind}, identity=repr(kind._fields))


def _generate(
    compiler: Callable[..., Any], name: str, source: str, scope: dict[str, Any], identity: str = ""
) -> Callable[..., Any]:
    text = f"{source}{identity or [repr(value) for value in scope.values()]}"
    exec(compile(source, f"<{name} the state of a rule>", "exec"), scope)
    function = scope[name]
    function.__module__, function.__qualname__ = GENERATED, f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return compiler(function)  # type: ignore[no-any-return]


def _expression(tree: Any, scope: dict[str, Any], numbers: Iterator[int]) -> str:
    if tree is None:
        return "None"
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
    return f"packed[header[{2 * n + 1}] : header[{2 * n + 2}]].view({name})"


def _rebuild(tree: Any, leaves: Iterator[NDArray[Any]]) -> Any:
    if tree is None:
        return None
    if not isinstance(tree, tuple):
        return next(leaves)
    parts = [_rebuild(part, leaves) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def _describe(tree: Any) -> str:
    if isinstance(tree, tuple):
        return f"{type(tree).__name__}({', '.join(_describe(part) for part in tree)})"
    return "None" if tree is None else str(np.asarray(tree).dtype)
