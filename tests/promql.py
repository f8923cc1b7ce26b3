"""What a PromQL expression names: metrics, with the labels that are asked of each. It checks names and parentheses, not types."""

import re
from dataclasses import dataclass, field

FUNCTIONS = {
    *("sum", "max", "min", "count", "rate", "increase", "delta", "deriv", "histogram_quantile", "label_values"),
    *("by", "without", "on", "ignoring", "and", "or", "unless", "offset", "bool"),
}
TARGET = {"job", "instance", "le"}
"""Labels that Prometheus adds, and the one of buckets."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<span>\[[0-9]+[smhdw]\])|(?P<number>[0-9]+(?:\.[0-9]+)?)"""
    r"""|(?P<word>[A-Za-z_:][A-Za-z0-9_:]*)|(?P<mark>=~|!~|!=|==|>=|<=|[-+*/<>=(){},]))"""
)


@dataclass
class Named:
    """The metrics of an expression, and the labels that are asked of any of them."""

    metrics: dict[str, set[str]] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)


def tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not PromQL at {text[at : at + 20]!r}")
        found.append((str(match.lastgroup), match.group(str(match.lastgroup))))
        at = match.end()
    return found


def named(text: str) -> Named:
    """Read an expression; a ValueError where it cannot be one."""
    found, open_marks, last, listing = Named(), [], "", False
    for place, (kind, token) in enumerate(words := tokens(text)):
        if kind == "mark" and token in "({":
            open_marks.append(token)
            listing = token == "(" and place > 0 and words[place - 1][1] in ("by", "without", "on", "ignoring")
        elif kind == "mark" and token in ")}":
            if not open_marks or open_marks.pop() + token not in ("()", "{}"):
                raise ValueError(f"{token} closes nothing in {text!r}")
            listing = False
        elif kind == "word" and listing:
            found.grouped.add(token)
        elif (kind == "word" and "{" in open_marks) or (kind == "word" and words[0][1] == "label_values" and last):
            found.metrics[last].add(token)
        elif kind == "word" and token not in FUNCTIONS:
            last = token
            found.metrics.setdefault(token, set())
    if open_marks:
        raise ValueError(f"{open_marks[-1]} is not closed in {text!r}")
    return found
