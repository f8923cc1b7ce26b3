"""Export: the log as one line per decision, for offline evaluation; docs/reference/log-columns.md describes the columns."""

import csv
import json
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
"""Decisions that are read, and lines that are flushed to the disk, at a time: some milliseconds of work."""

LONGEST_GAP = 100
"""Numbers of decisions that may be missing in a range whose outcomes are read together."""


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
    holdout: float | None


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


def line_schema(polars: Any) -> dict[str, Any]:
    """The columns of a frame of lines, by the module polars."""
    kinds = {str: polars.String, float: polars.Float64, bool: polars.Boolean, int: polars.Int64}
    return {name: kinds[(get_args(kind) or (kind,))[0]] for name, kind in Line.__annotations__.items()}


def _write_parquet(lines: Iterable[Line], path: Path) -> int:
    try:
        import polars
    except ImportError:
        raise ValueError("Parquet needs polars: pip install 'thrifty[replay]', or write a .csv") from None
    schema = line_schema(polars)
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

    Of the log as it is when the first line is asked for. It is read in pages of decisions, and the outcomes of a page by an
    index: nothing is kept in memory or in a file for longer than a page.
    """
    end, known = journal.end(), Configuration({}, {})
    rows = (row for _, row in journal.scan(end) if row.kind != OUTCOME)
    while page := list(islice(rows, PIECE)):
        yield from _lines(page, name, known, _last_outcomes(journal, page, end))


def recent_decisions_of(journal: Journal, name: str, count: int) -> list[Line]:
    """The lines of the newest decisions, so many at most, in the order of the log. Memory is bounded by their number."""
    end, known = journal.end(), Configuration({}, {})
    placed = [each for each in journal.recent(count, upto=end) if each[1].kind == DECISION]
    after = 0
    while changes := journal.changes(after):
        placed += [each for each in changes if each[0] <= end]
        after = changes[-1][0]
    rows = [row for _, row in sorted(placed, key=lambda each: each[0])]
    found: list[Line] = []
    for first in range(0, len(rows), PIECE):
        page = rows[first : first + PIECE]
        found += _lines(page, name, known, _last_outcomes(journal, page, end))
    return found


class _Outcome(NamedTuple):
    """The last outcome of a decision, as columns of a line."""

    outcome: str = "none"
    outcome_at: float | None = None
    used_arm: str | None = None
    reward: float | None = None
    cost: float | None = None
    void: bool = False
    corrections: int = 0


_NONE = _Outcome()


def _last_outcomes(journal: Journal, page: list[Row], end: int) -> dict[tuple[int, int], _Outcome]:
    """The last outcomes of the decisions among some rows. A default never replaces a reported outcome."""
    found: dict[tuple[int, int], _Outcome] = {}
    for replica, first, last in _runs(page):
        for _, row in journal.outcomes(replica, first, last, upto=end):
            key = row.replica, row.sequence
            before = found.get(key)
            if before is None or row.code != "default":
                corrections = (before.corrections if before else 0) + (row.code == "corrected")
                void = row.value is None and row.code != "default"
                found[key] = _Outcome(row.code, row.at, row.arm, row.value, row.cost, void, corrections)
    return found


def _runs(page: list[Row]) -> Iterator[tuple[int, int, int]]:
    """The decisions among some rows as ranges of numbers of one replica, without long gaps: replica, first and last number."""
    keys = sorted((row.replica, row.sequence) for row in page if row.kind == DECISION)
    first = 0
    for n, (replica, sequence) in enumerate(keys, start=1):
        if n == len(keys) or keys[n][0] != replica or keys[n][1] > sequence + LONGEST_GAP:
            yield replica, keys[first][1], sequence
            first = n


def _lines(rows: list[Row], name: str, known: Configuration, outcomes: dict[tuple[int, int], _Outcome]) -> Iterator[Line]:
    """Lines of some rows; `known` is the configuration before them, and after them at the end."""
    eligible = _eligible(known)
    for row in rows:
        detail = json.loads(row.detail) if row.detail else {}
        if row.kind == CHANGE:
            for action, body in single_changes(row.code, detail, known.version):
                known.apply(action, body)
            eligible = _eligible(known)
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
                *outcomes.get((row.replica, row.sequence), _NONE),
                known.values.get("holdout"),
            )


def _eligible(known: Configuration) -> str:
    arms = known.arms
    return json.dumps({arm: arms.prices[arms.index(arm)] for arm in arms.active()})
