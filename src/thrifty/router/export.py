"""Export: the log as one line per decision, for offline evaluation; docs/reference/log-columns.md describes the columns."""

import csv
import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, get_args

from thrifty.files import flush_gently, replacing
from thrifty.router.configuration import Configuration, single_changes
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Journal, Row

CHUNK = 20_000
"""Decisions held in memory at a time."""

PIECE = 2_000
"""Rows that are flushed to the disk at a time: some milliseconds of its work."""


class Line(NamedTuple):
    """One decision with its outcome. The fields are the columns of an export, in order."""

    router: str
    decision_id: str
    at: float
    segment: str
    request_id: str | None
    arm: str
    propensity: float | None
    price: float | None
    code: str
    shadow: bool
    degraded: bool
    alpha: float | None
    policy: str | None
    eligible: str
    context: str | None
    outcome: str
    outcome_at: float | None
    used_arm: str | None
    reward: float | None
    cost: float | None
    void: bool
    corrections: int


COLUMNS = Line._fields


def export_log(lines: Iterable[Line], path: str | Path) -> int:
    """Write lines to a .csv or .parquet file; returns their number. Memory does not grow with the log."""
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"the file must end in .csv or .parquet, got {path.name!r}")
    with replacing(path) as part:
        return _write_csv(lines, part) if path.suffix == ".csv" else _write_parquet(lines, part)


def _write_csv(lines: Iterable[Line], path: Path) -> int:
    rest, count = iter(lines), 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        while piece := list(islice(rest, PIECE)):
            writer.writerows([str(value).lower() if isinstance(value, bool) else value for value in line] for line in piece)
            file.flush()
            flush_gently(path)
            count += len(piece)
    return count


def _write_parquet(lines: Iterable[Line], path: Path) -> int:
    try:
        import polars
    except ImportError:
        raise ValueError("Parquet needs polars: pip install 'thrifty[replay]', or write a .csv") from None
    kinds = {str: polars.String, float: polars.Float64, bool: polars.Boolean, int: polars.Int64}
    schema = {name: kinds[(get_args(kind) or (kind,))[0]] for name, kind in Line.__annotations__.items()}
    rest, count = iter(lines), 0
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        parts: list[Path] = []
        while chunk := list(islice(rest, CHUNK)):
            parts.append(Path(folder) / f"{len(parts):06}.parquet")
            polars.DataFrame(chunk, schema=schema, orient="row").write_parquet(parts[-1])
            flush_gently(parts[-1])
            count += len(chunk)
        if parts:
            polars.scan_parquet(parts).sink_parquet(path)
        else:
            polars.DataFrame(schema=schema).write_parquet(path)
    return count


def decisions(journal: Journal, name: str) -> Iterator[Line]:
    """One line per decision that was not pruned or voided, in the order of the log, each with its last outcome.

    The log is read twice: first the outcomes, which are stored in a temporary file, then the decisions.
    """
    with tempfile.TemporaryDirectory() as folder:
        outcomes = _Outcomes(Path(folder) / "outcomes.db")
        try:
            outcomes.take(row for _, row in journal.scan() if row.kind == OUTCOME)
            yield from _lines((row for _, row in journal.scan() if row.kind != OUTCOME), name, outcomes)
        finally:
            outcomes.close()


class _Outcomes:
    """The last outcome of every decision, in a temporary file. A default never replaces a reported outcome."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")  # nobody needs it after a crash, and a service needs the disk
        self._file.execute(
            "CREATE TABLE last (replica INTEGER, sequence INTEGER, outcome TEXT, at REAL, arm TEXT, reward REAL, cost REAL, "
            "corrections INTEGER, PRIMARY KEY (replica, sequence)) WITHOUT ROWID"
        )

    def take(self, rows: Iterator[Row]) -> None:
        """Apply outcomes in the order of the log."""
        while piece := list(islice(rows, CHUNK)):
            self._file.execute("BEGIN")
            self._file.executemany(
                "INSERT INTO last VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET outcome = excluded.outcome, "
                "at = excluded.at, arm = excluded.arm, reward = excluded.reward, cost = excluded.cost, "
                "corrections = corrections + excluded.corrections WHERE excluded.outcome <> 'default'",
                [
                    (row.replica, row.sequence, row.code, row.at, row.arm, row.value, row.cost, int(row.code == "corrected"))
                    for row in piece
                ],
            )
            self._file.execute("COMMIT")

    def find(self, row: Row) -> tuple[Any, ...]:
        """outcome, outcome_at, used_arm, reward, cost, void, corrections of a decision."""
        found = self._file.execute(
            "SELECT outcome, at, arm, reward, cost, corrections FROM last WHERE replica = ? AND sequence = ?",
            (row.replica, row.sequence),
        ).fetchone()
        if found is None:
            return ("none", None, None, None, None, False, 0)
        *facts, corrections = found
        return (*facts, facts[3] is None and facts[0] != "default", corrections)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _lines(rows: Iterable[Row], name: str, outcomes: _Outcomes) -> Iterator[Line]:
    known = Configuration({}, {})
    eligible = "{}"
    for row in rows:
        detail = json.loads(row.detail) if row.detail else {}
        if row.kind == CHANGE:
            for action, body in single_changes(row.code, detail):
                known.apply(action, body)
            arms = known.arms
            eligible = json.dumps({arm: arms.prices[arms.index(arm)] for arm in arms.active()})
        elif row.kind == DECISION:
            yield Line(
                name,
                f"{name}.{row.replica:x}.{row.sequence:x}",
                row.at,
                row.segment or "",
                row.request_id,
                str(row.arm),
                row.value,
                row.cost,
                row.code,
                bool(detail.get("shadow")),
                bool(detail.get("degraded")),
                known.values.get("alpha"),
                known.values.get("policy"),
                json.dumps(dict(detail["eligible"])) if "eligible" in detail else eligible,
                json.dumps(detail["context"]) if "context" in detail else None,
                *outcomes.find(row),
            )
