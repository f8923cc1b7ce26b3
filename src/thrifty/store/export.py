"""Export: the log as one row per decision, with what offline evaluation needs."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thrifty.store.row import CHANGE, DECISION, Journal

COLUMNS = (
    "decision_id", "at", "segment", "request_id", "arm", "propensity", "price", "code", "shadow", "eligible",
    "outcome", "outcome_at", "used_arm", "reward", "cost",
)  # fmt: skip
"""`eligible` is JSON, prices by arm; `outcome` is recorded, corrected, default, or empty while none has come."""


def export_log(journal: Journal, name: str, path: str | Path) -> int:
    """Write the decisions of a router to a .csv or .parquet file, each with its last outcome; the number written."""
    path = Path(path)
    rows = list(decisions(journal, name))
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        import polars

        polars.DataFrame(rows, schema=list(COLUMNS), orient="row", infer_schema_length=None).write_parquet(path)
    else:
        raise ValueError(f"the file must end in .csv or .parquet, got {path.name!r}")
    return len(rows)


def decisions(journal: Journal, name: str) -> Iterator[tuple[Any, ...]]:
    """One tuple of `COLUMNS` per decision, in order."""
    prices: dict[str, float | None] = {}
    away: set[str] = set()
    found: dict[tuple[int, int], list[Any]] = {}
    for _, row in journal.read(0):
        detail = json.loads(row.detail) if row.detail else {}
        if row.kind == CHANGE:
            _follow(row.code, detail, prices, away)
        elif row.kind == DECISION:
            here = {arm: price for arm, price in prices.items() if arm not in away}
            eligible = dict(detail["eligible"]) if "eligible" in detail else here
            found[row.replica, row.sequence] = [
                f"{name}.{row.replica:x}.{row.sequence:x}", row.at, row.segment, row.request_id, row.arm, row.value, row.cost,
                row.code, bool(detail.get("shadow")), json.dumps(eligible), None, None, None, None, None,
            ]  # fmt: skip
        else:
            found[row.replica, row.sequence][10:] = [row.code, row.at, row.arm, row.value, row.cost]
    for values in found.values():
        yield tuple(values)


def _follow(action: str, body: dict[str, Any], prices: dict[str, float | None], away: set[str]) -> None:
    if action == "create":
        prices.update(body["arms"])
    elif action in ("add", "price"):
        prices[body["arm"]] = body["price"]
    if action in ("add", "resume"):
        away.discard(body["arm"])
    elif action in ("retire", "pause"):
        away.add(body["arm"])
