"""A small table: named columns that print, and that pandas and polars take over."""

import csv
import io
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length by name.

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

    def __str__(self) -> str:
        shown = self.rows() if len(self) <= 40 else [*self.rows()[:20], ("...",) * len(self.columns), *self.rows()[-20:]]
        return aligned([tuple(self.columns), *(tuple(_cell(value) for value in row) for row in shown)])

    __repr__ = __str__


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


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
