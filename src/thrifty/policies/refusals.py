"""What the compiler refuses, in one line that names the file, the line and the remedy."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import numpy as np

_NOT_USERS = ("<thrifty_", *(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *numba.__path__, *np.__path__)))
_ALLOCATING = "zeros|empty|ones|full|array|arange|linspace|asarray|copy|sort|argsort|concatenate|stack|where|unique|cumsum|repeat"

_UNKNOWN_GLOBAL = r"Untyped global name '(\w+)': Cannot determine Numba type of "

_REASONS = {
    rf"NRT required but not enabled|No implementation of function Function\(<[\w -]*?\b(?:{_ALLOCATING})(?:_like)?\b": (
        "allocates memory, which a kernel must not: make the array in init, which is a @builder, and keep it in the memory"
    ),
    rf"{_UNKNOWN_GLOBAL}<class 'function'>": r"calls \1, which is not compiled: put @kernel above it",
    rf"{_UNKNOWN_GLOBAL}<class '(\S+)'>": r"reads the global \1, a \2, which compiled code cannot: use numbers, arrays or tuples",
    r"NameError: name '(\w+)' is not defined": r"uses \1, which is not defined",
    r"Unknown attribute '(\w+)' of type (\w+)": r"reads the attribute \1, which a \2 does not have",
    r"Cannot unify (.+?) and (.+?) for '(\w+)(?:\.\d+)?'": r"gives \3 values of two types, \1 and \2: use one",
    r"too many positional arguments|missing a required argument": "is called with other arguments than it takes",
    r"No implementation of function Function\((.+?)\) found": r"calls \1 in a manner that numba does not know: write a plain loop",
    r"Use of unsupported opcode \((\w+)\)": r"uses a construct that numba does not compile (\1): write a plain loop over numbers",
}
"""What to say about a message of the compiler."""


def place_of(code: CodeType, line: int | None = None) -> str:
    """`file:line`, the file as one would type it here."""
    return f"{shown_path(code.co_filename)}:{line or code.co_firstlineno}"


def shown_path(path: str) -> str:
    """A path below the folder of now as it would be typed there; any other as it is."""
    try:
        return str(Path(path).relative_to(os.getcwd()))
    except (ValueError, OSError):
        return path


def is_users_file(path: str) -> bool:
    """Whether a file is neither of the package, nor of numpy or numba, nor made by them."""
    return not path.startswith(_NOT_USERS)


def explain_refusal(error: BaseException, choose: Callable[..., Any]) -> str:
    """One line about an error of the compiler; `choose` is named where the error names no line of a user."""
    text = str(error)
    found = re.findall(r'(?:\bat |File ")([^\s"][^\n"]*?)(?: \(|", line )(\d+)', text)  # the innermost comes first
    absolute = [(path if path.startswith("<") else os.path.abspath(path), line) for path, line in found]
    users = [(path, line) for path, line in absolute if is_users_file(path)]
    code = getattr(choose, "py_func", choose).__code__
    where = f"{shown_path(users[0][0])}:{users[0][1]}" if users else place_of(code)
    for pattern, reason in _REASONS.items():
        match = re.search(pattern, text)
        if match:
            return f"{where}: {match.expand(reason)}"
    if not type(error).__module__.startswith("numba"):
        return f"{where}: the compiled rule raises {type(error).__name__}: {text:.200}"
    skipped = ("Failed in", "During", "File", "Traceback")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(skipped)]
    return f"{where}: numba cannot compile it: {(lines or [type(error).__name__])[0]:.200}"
