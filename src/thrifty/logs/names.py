"""Names of arms and segments as codes, and names that look like one another."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thrifty.logs.polars_extra import require_polars
from thrifty.table import visible

if TYPE_CHECKING:
    import polars

MOST_ARMS, MOST_SEGMENTS = 1000, 5000
"""The most arms of a log, and the most segments that are kept apart."""


class TooManyNamesError(ValueError):
    """A column has more different values than can be kept apart; `what` says which one."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what


class Names:
    """Codes for names, in the order of their first occurrence. `pooled` gives several names one code, that of another name.

    Control characters in a name are written out, see `visible`.

    >>> names = Names("arm", most=10)
    >>> import polars
    >>> names.encode(polars.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """

    def __init__(self, what: str, most: int, pooled: Mapping[str, str] | None = None) -> None:
        self.names: list[str] = []
        self._codes: dict[str, int] = {}  # of the names above
        self._seen: dict[str, int] = {}  # codes of the names of the log
        self._what, self._most, self._pooled = what, most, pooled or {}

    def code(self, name: str) -> int:
        """The code of a name, a new one if need be."""
        if name not in self._codes:
            self._codes[name] = len(self.names)
            self.names.append(name)
        return self._codes[name]

    def encode(self, column: "polars.Series") -> NDArray[np.int32]:
        """The codes of a column of text without nulls."""
        pl = require_polars()
        for name in column.unique(maintain_order=True):
            if name not in self._seen:
                self._seen[name] = self.code(visible(self._pooled.get(name, name)))
        self.check()
        codes = column.replace_strict(list(self._seen), list(self._seen.values()), return_dtype=pl.Int32)
        return np.asarray(codes.to_numpy(), dtype=np.int32)

    def check(self) -> None:
        """Raise an error if there are too many names."""
        if len(self.names) > self._most:
            raise TooManyNamesError(
                self._what,
                f"more than {self._most:,} different values for --{self._what} ({', '.join(map(repr, self.names[:3]))}, ...): "
                "is this the right column? Name a coarser one",
            )


def twins(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Names that differ only by case or spaces.

    >>> twins(["Alder", "birch", "alder ", "Birch"])
    [('Alder', 'alder '), ('birch', 'Birch')]
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault("".join(name.split()).casefold(), []).append(name)
    return [tuple(each) for each in alike.values() if len(each) > 1]


def twin_notes(arms: Iterable[str], segments: Iterable[str]) -> list[str]:
    """A note for arms, and one for segments, that differ only by case or spaces."""
    notes = []
    for what, found in (("arms", twins(arms)), ("segments", twins(segments))):
        if found:
            shown = "; ".join(" and ".join(map(repr, each)) for each in found[:3])
            notes.append(f"{what} that differ only by case or spaces are taken as different: {shown}{'; ...' if found[3:] else ''}")
    return notes
