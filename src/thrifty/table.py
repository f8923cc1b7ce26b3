"""A small table: named columns that print, and that convert to CSV, HTML, pandas and polars."""

import csv
import io
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from numpy.typing import NDArray

_LONGEST = 20  # rows of a table that is printed whole
_AT_EACH_END = 8  # rows printed of a longer one


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length by name. A long table prints its first and last rows; conversions always have all rows.

    >>> import numpy as np
    >>> print(Table({"arm": np.array([0, 1]), "mean": np.array([0.5, 0.25])}))
    arm  mean
      0   0.5
      1  0.25
    """

    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of plain values."""
        return list(zip(*(column.tolist() for column in self.columns.values()), strict=True))

    def to_csv(self) -> str:
        """Comma-separated text with a header line; numbers keep all their digits."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows())
        return buffer.getvalue()

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self.columns)

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        import polars

        return polars.DataFrame(self.columns)

    def to_html(self, caption: str = "") -> str:
        """An HTML table, every name and value escaped; a long one has its first and last rows, as in print."""
        table = ElementTree.Element("table")
        if caption:
            ElementTree.SubElement(table, "caption").text = caption
        for kind, row in [("th", tuple(self.columns)), *(("td", row) for row in self._shown_rows())]:
            line = ElementTree.SubElement(table, "tr")
            for value in row:
                ElementTree.SubElement(line, kind).text = value
        if len(self) > _LONGEST:
            ElementTree.SubElement(ElementTree.SubElement(table, "tr"), "td", colspan=f"{len(self.columns)}").text = self._size()
        return ElementTree.tostring(table, encoding="unicode", method="html")

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        text = aligned([tuple(self.columns), *self._shown_rows()])
        return text if len(self) <= _LONGEST else f"{text}\n{self._size()}"

    __repr__ = __str__

    def _shown_rows(self) -> list[tuple[str, ...]]:
        rows = self.rows()
        if len(rows) <= _LONGEST:
            return [_texts(row) for row in rows]
        head, tail = rows[:_AT_EACH_END], rows[-_AT_EACH_END:]
        return [*map(_texts, head), ("...",) * len(self.columns), *map(_texts, tail)]

    def _size(self) -> str:
        return f"{len(self):,} rows, {2 * _AT_EACH_END} of them shown"


def aligned(rows: list[tuple[str, ...]]) -> str:
    """Rows of text as right-aligned columns, the first column left-aligned if it holds words."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    words = not rows[-1][0].replace(".", "").isdigit()
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if words and column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _texts(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row)
