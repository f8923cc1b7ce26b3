"""What the compiler refuses, in one line that names the file, the line and the remedy.

Set THRIFTY_TRACE=1 to see the whole message of the compiler too: it is then the cause of the error, and commands print it.
"""

import dis
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import numba
import numpy as np

from thrifty.statistics import ArmStatistics

_NOT_USERS = ("<thrifty_", *(f"{folder}{os.sep}" for folder in (Path(__file__).parents[1], *numba.__path__, *np.__path__)))
_ALLOCATING = "zeros|empty|ones|full|array|arange|linspace|asarray|copy|sort|argsort|concatenate|stack|where|unique|cumsum|repeat"

_UNKNOWN_GLOBAL = r"Untyped global name '(\w+)': Cannot determine Numba type of "
_NO_FUNCTION = r"No implementation of function Function\("
_KNOWN_FUNCTIONS = "use math, numpy, thrifty.streams, or a function of your own with @kernel above it"
_SAME_TYPE = "give it one type on every path"

_REASONS = {
    rf"NRT required but not enabled|{_NO_FUNCTION}<[\w -]*?\b(?:{_ALLOCATING})(?:_like)?\b": (
        "allocates memory, which a kernel must not: make the array in init, which is a @builder, and keep it in the memory; "
        "use no list, dict, set or string"
    ),
    rf"{_NO_FUNCTION}int64\) found for signature:\s*>>> <unknown function>\((.+?)\)\n": (
        r"choose returns \1 on some path: return the number of an arm, a whole number, on every path"
    ),
    r">>> and_\((float\d+), Literal\[int\]\(9223372036854775807\)\)": (
        r"choose returns a \1 on some path: return the number of an arm, int(...), on every path"
    ),
    r"Can't unify return type from the following types: (.+)": r"returns values of several types, \1: " + _SAME_TYPE,
    r"exception_match|Exception matching is limited|unsupported .*try|`except`": (
        "catches an exception, which compiled code cannot: test for the case before it arises"
    ),
    rf"{_UNKNOWN_GLOBAL}<class 'function'>": r"calls \1, which is not compiled: put @kernel above it",
    rf"{_UNKNOWN_GLOBAL}<class '(\S+)'>": r"reads the global \1, a \2, which compiled code cannot: use numbers, arrays or tuples",
    r"assigned to variable '(\w+)' in globals, is not supported": (
        r"reads the global \1, a list, which compiled code cannot: use a tuple or an array"
    ),
    r'lowering "\S+ = freevar\((\w+): ': r"reads \1 of the function around it, which compiled code cannot: use a number or a tuple",
    r"NameError: name '(\w+)' is not defined": r"uses \1, which is not defined: define it above, or import it",
    r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'": (
        rf"uses \2.\1, which compiled code does not know: {_KNOWN_FUNCTIONS}"
    ),
    r"Unknown attribute '(\w+)' of type Parameters": (
        r"reads the parameter \1, which the policy does not have: name it in parameters=, as a Number"
    ),
    r"Unknown attribute '(\w+)' of type RuleTerms": (
        r"reads terms.\1, which there is not: there are costs, by_cost, alpha, horizon, parameters and parts"
    ),
    r"Unknown attribute '(\w+)' of type (\w+)": r"reads the attribute \1, which a \2 does not have: look for its name in the docs",
    r"Cannot unify (.+?) and (.+?) for '(\w+)(?:\.\d+)?'": r"gives \3 values of two types, \1 and \2: use one",
    r"runaway recursion": "calls itself without end: write a loop",
    r"due to \"TypeError: (.+?)\"": r"calls a function with other arguments than it takes: \1",
    r"too many positional arguments|missing a required argument": "is called with other arguments than it takes: add or drop some",
    r"yield in a closure|generator": "uses a generator: write a plain loop",
    r"[Cc]ontext manager": "uses a with statement, which compiled code cannot: leave it out",
    r"del found at: del (\w+)": r"deletes \1, which compiled code cannot: leave it out",
    r"opcode \(LOAD_BUILD_CLASS\)": "defines a class in a kernel: define it above, as a NamedTuple of arrays and numbers",
    r"opcode \(IMPORT_\w+\)": "imports in a kernel: import at the top of the file",
    r"opcode \((?:STORE|DELETE)_GLOBAL\)": "changes a global, which compiled code cannot: keep it in the memory, in an array",
    r"opcode \((\w+)\)": r"uses a construct that numba does not compile (\1): write a plain loop over numbers",
    rf"{_NO_FUNCTION}.+?\) found for signature:\s*>>> ([\w<> ]+\(.*?\))\n": (
        rf"calls \1, which compiled code does not know: {_KNOWN_FUNCTIONS}"
    ),
    rf"{_NO_FUNCTION}(.+?)\) found": rf"calls \1 in a manner that compiled code does not know: {_KNOWN_FUNCTIONS}",
    r"Type of variable '.+?' cannot be determined": "has an expression whose type numba cannot find: write it in smaller steps",
}
"""What to say about a message of the compiler; the first that fits is said."""

_WORDS = {
    r"(?:unaligned |readonly )*array\(Record\([^()]*\), \dd, \w+\)": "the statistics",
    r"Record\([^()]*\)": "the statistics of an arm",
    r"Literal\[(\w+)\]\(.*?\)": r"\1",
    r"(?:unaligned |readonly )*array\((\w+), \dd, \w+\)": r"an array of \1",
    r"OptionalType\((\w+)\)": r"\1 or None",
    r"unicode_type": "str",
    r"\bnone\b": "None",
    r"thrifty_file_\w+\.": "",
    r"(?:reflected )?list\((\w+)\)(?:<iv=.*?>)?": r"a list of \1",
}
"""Types of numba, and what they are called here."""


def shows_trace() -> bool:
    """Whether THRIFTY_TRACE asks for the whole message of the compiler."""
    return os.environ.get("THRIFTY_TRACE", "") not in ("", "0")


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


def explain_refusal(error: BaseException, functions: Sequence[FunctionType]) -> str:
    """One line about an error of the compiler.

    Parameters
    ----------
    error : what it raised
    functions : of the user, as plain Python; the first is named where the error names no line

    """
    text = str(error)
    where = next(iter(_users_lines(text)), place_of(functions[0].__code__))
    if isinstance(error, KeyError):  # numba says nothing else about a field that a record does not have
        name = str(error.args[0])
        where, known = _place_using(name, functions) or where, ", ".join(ArmStatistics.names or ())
        return f"{where}: reads {name}, which the statistics of an arm do not have: there are {known}"
    for pattern, reason in _REASONS.items():
        match = re.search(pattern, text, re.DOTALL if "signature" in pattern else 0)
        if match:
            if "not defined" in reason:
                where = _place_using(match.group(1), functions) or where
            if "several types" in reason:  # numba names the returns in any order: take the last
                where = max(_users_lines(text[: text.find("During")]), default=where, key=_line_number)
            return f"{where}: {_in_words(match.expand(reason))}"
    if type(error).__module__.startswith("numba") or _arose_in_numba(error):
        complaint = _in_words(_first_sentence(text) or type(error).__name__)
        return f"{where}: numba cannot compile it: {complaint} (THRIFTY_TRACE=1 shows all)"
    return f"{where}: the compiled rule raises {type(error).__name__}: {text:.200}"


def _users_lines(text: str) -> list[str]:
    """The lines of a user that a message names, the innermost first."""
    found = re.findall(r'(?:\bat |Raised from |File ")([^\s"][^\n"]*?)(?: \(|", line )(\d+)', text)
    absolute = [(path if path.startswith("<") else os.path.abspath(path), line) for path, line in found]
    return [f"{shown_path(path)}:{line}" for path, line in absolute if is_users_file(path)]


def _line_number(place: str) -> int:
    return int(place.rpartition(":")[2])


def _place_using(name: str, functions: Sequence[FunctionType]) -> str | None:
    """The first line of these functions in which a name or an attribute is used."""
    for function in functions:
        for step in _steps(function.__code__):
            if step.argval == name and step.positions is not None:
                return place_of(function.__code__, step.positions.lineno)
    return None


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _steps(constant)


def _in_words(text: str) -> str:
    for pattern, words in _WORDS.items():
        text = re.sub(pattern, words, text)
    return " ".join(text.split())[:300]


def _first_sentence(text: str) -> str:
    skipped = ("Failed in", "During", "File", "Traceback")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith(skipped)]
    return re.split(r"(?<=\w)\. ", lines[0])[0][:200] if lines else ""


def _arose_in_numba(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(tuple(numba.__path__))
