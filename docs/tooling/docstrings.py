"""A griffe extension: docstrings in the house form become what mkdocstrings can show.

The house form writes `name : meaning` in a section of parameters, because the types stand in the signature; griffe would take the
meaning for a type. Examples stand at the end without a heading; Markdown would take `>>>` for a quotation.
"""

import re
from typing import Any

from griffe import Extension, Object

_SECTIONS = ("Parameters", "Attributes")
_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<meaning>.+)$")


class HouseDocstrings(Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring; griffe calls this once for each object."""
        if obj.docstring is not None:
            obj.docstring.value = rewrite(obj.docstring.value)


def rewrite(text: str) -> str:
    """A docstring of the house form in the form of numpydoc, its examples fenced.

    >>> print(rewrite("One.\\n\\nParameters\\n----------\\na, b : two numbers\\n\\n>>> 1 + 1\\n2"))
    One.
    <BLANKLINE>
    Parameters
    ----------
    a, b
        two numbers
    <BLANKLINE>
    Examples
    --------
    >>> 1 + 1
    2
    """
    lines, section = [], ""
    source = text.splitlines()
    for number, line in enumerate(source):
        following = source[number + 1] if number + 1 < len(source) else ""
        if following.startswith("---") and line.strip():
            section = line.strip()
        elif line.startswith(">>>") and section != "Examples":
            section = "Examples"
            lines += ["Examples", "--------"]
        entry = _ENTRY.match(line) if section in _SECTIONS else None
        lines += [entry["names"], f"    {entry['meaning']}"] if entry else [line]
    return "\n".join(lines)
