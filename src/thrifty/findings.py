"""Findings: what a question to a log returns. All of them are shown, converted, drawn and saved in the same way."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thrifty.table import Table, aligned


class Findings(ABC):
    """The result of a question to a log: polars frames, a sentence, and a table for people.

    In a notebook the last line of a cell shows the table. `to_polars()` has all columns and all digits.
    """

    @property
    @abstractmethod
    def frames(self) -> dict[str, Any]:
        """The polars frames of the result by name, the main one first."""

    @abstractmethod
    def headline(self) -> str:
        """The result in one sentence."""

    @abstractmethod
    def table(self) -> Table:
        """The numbers that people read first, as texts."""

    def to_polars(self, name: str | None = None) -> Any:
        """A polars frame of the result: the main one, or that of a `name`; `frames` lists them."""
        frames = self.frames
        wanted = next(iter(frames)) if name is None else name
        if wanted not in frames:
            raise ValueError(f"the result has the frames {', '.join(frames)}, got {wanted!r:.80}")
        return frames[wanted]

    def to_pandas(self, name: str | None = None) -> Any:
        """The same as `to_polars`, as a pandas frame."""
        import pandas

        return pandas.DataFrame(self.to_polars(name).to_dict(as_series=False))

    def to_markdown(self) -> str:
        """The table in Markdown."""
        return self.table().to_markdown()

    def to_latex(self) -> str:
        """The table in LaTeX; it needs the package booktabs."""
        return self.table().to_latex()

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A matplotlib figure of the result. With a `path` it is written there instead: PNG, SVG or PDF by its ending."""
        from thrifty.reports.notebook import draw_findings, save_figure

        figure = draw_findings(self)
        return figure if path is None else save_figure(figure, path)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the files that the command of this question writes with `--out` into a folder; returns their paths."""
        from thrifty.files import write_files
        from thrifty.reports.notebook import findings_files

        return write_files(Path(folder), findings_files(self))

    def to_text(self) -> str:
        """The sentence and the table with all its rows, as text."""
        table = self.table()
        return f"{self.headline()}\n{aligned([tuple(table.columns), *table.rows()])}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def __str__(self) -> str:
        return f"{self.headline()}\n{self.table()}"

    def _repr_html_(self) -> str:
        return self.table().to_html(caption=self.headline())


def interval_table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Rows as a table of texts: `columns` has the format of each. A value that has an interval stands before it.

    >>> row = {"arm": "Elm", "cost": 0.5, "cost_low": 0.4, "cost_high": 0.6}
    >>> print(interval_table([row], {"arm": "", "cost": ".2f"}))
    arm               cost
    Elm  0.50 [0.40, 0.60]
    """
    listed = list(rows)
    return Table({name.replace("_", " "): np.array([_text(row, name, form) for row in listed]) for name, form in columns.items()})


def _text(row: Mapping[str, Any], name: str, form: str) -> str:
    value = row[name]
    if value is None or value != value:
        return ""
    ends = [row[f"{name}{end}"] for end in ("_low", "_high") if row.get(f"{name}{end}") is not None]
    interval = f" [{ends[0]:{form}}, {ends[1]:{form}}]" if len(ends) == 2 else ""
    return f"{value:{form}}{interval}"
