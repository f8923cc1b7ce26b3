"""A small table: named columns that print, and that convert to CSV, Markdown, LaTeX, HTML, pandas and polars."""

import csv
import io
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from numpy.typing import NDArray

_LONGEST = 20  # rows of a table that is printed whole
_AT_EACH_END = 8  # rows printed of a longer one
_BAR = r"\|"
_HIDDEN = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)
}
_LATEX = {letter: rf"\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def visible(text: str) -> str:
    r"""A name with its control characters written out: raw ones would steer a terminal, break a line or a page.

    >>> print(visible("a\x1b[31mb\n"), visible("plain"))
    a\x1b[31mb\x0a plain
    """
    return text if text.isprintable() else text.translate(_HIDDEN)


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

    def to_markdown(self) -> str:
        r"""A Markdown table with all rows; the first column is left-aligned if it holds words.

        >>> import numpy as np
        >>> print(Table({"policy": np.array(["a|b"]), "mean": np.array([0.5])}).to_markdown())
        | policy | mean |
        |---|--:|
        | a\|b | 0.5 |
        """
        rows = [tuple(self.columns), *map(_texts, self.rows())]
        lines = [f"| {' | '.join(cell.replace('|', _BAR) for cell in row)} |" for row in rows]
        marks = ["---" if left else "--:" for left in self._left_aligned()]
        return "\n".join([lines[0], f"|{'|'.join(marks)}|", *lines[1:]])

    def to_latex(self) -> str:
        r"""A LaTeX tabular with all rows, special letters escaped; it needs the package booktabs.

        >>> import numpy as np
        >>> print(Table({"policy": np.array(["cs_ts"]), "mean": np.array([0.5])}).to_latex())
        \begin{tabular}{lr}
        \toprule
        policy & mean \\
        \midrule
        cs\_ts & 0.5 \\
        \bottomrule
        \end{tabular}
        """
        rows = [" & ".join(map(_escape_latex, row)) + r" \\" for row in [tuple(self.columns), *map(_texts, self.rows())]]
        columns = "".join("l" if left else "r" for left in self._left_aligned())
        begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule", end])

    def _left_aligned(self) -> list[bool]:
        rows = [tuple(self.columns), *map(_texts, self.rows())]
        return [_first_is_words(rows), *(False for _ in rows[0][1:])]

    def to_html(self, caption: str = "") -> str:
        """An HTML table, every name and value escaped; a long one has its first and last rows, as in print."""
        table = ElementTree.Element("table")
        if caption:
            ElementTree.SubElement(table, "caption").text = caption
        for kind, row in [("th", tuple(self.columns)), *(("td", row) for row in self._shown_rows())]:
            line = ElementTree.SubElement(table, "tr")
            for value in row:
                ElementTree.SubElement(line, kind).text = visible(value)
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
    words = _first_is_words(rows)
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if words and column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _first_is_words(rows: list[tuple[str, ...]]) -> bool:
    return not rows[-1][0].replace(".", "").isdigit()


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _texts(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row)
