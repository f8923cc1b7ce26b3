"""Docstrings in the house form, made into the form of numpydoc.

The house form writes `name : meaning` in a section of parameters, because the types stand in the signature; griffe would take the
meaning for a type. Examples stand at the end without a heading; Markdown would take `>>>` for a quotation.
"""

import re

_SECTIONS = ("Parameters", "Attributes")
_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*) : (?P<meaning>.+)$")


def rewrite(text: str) -> str:
    """A docstring of the house form in the form of numpydoc, with a heading above its examples."""
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
