"""The history, worked out again in the most obvious way: each decision with its last outcome, as rows of the log tell it."""

import json
from collections.abc import Iterable
from typing import Any

from thrifty.store.log import CHANGE, DECISION, Row

STEPS = {"minute": 60, "hour": 3600, "day": 86_400}
Cells = dict[tuple[float, str, str, str], list[Any]]


class Decided:
    """A decision with its last outcome."""

    def __init__(self, row: Row) -> None:
        detail = json.loads(row.detail or "{}")
        self.row, self.outcome = row, None
        self.segment = detail.get("counted", row.segment or "")
        groups = {"holdout": "holdout", "baseline": "baseline", "fallback": "baseline"}
        self.group = "shadow" if detail.get("shadow") else groups.get(row.code, "routed")


def decided(rows: Iterable[Row]) -> list[Decided]:
    """All decisions, with what became of them. Those before a prune, or before a router was made anew, get no outcomes any more."""
    every: list[Decided] = []
    known: dict[tuple[int, int], Any] = {}
    deleted, pruned_before = False, 0.0
    for row in rows:
        key = row.replica, row.sequence
        if row.kind == DECISION:
            known[key] = Decided(row)
            every.append(known[key])
        elif row.kind == CHANGE:
            if row.code == "create" and (deleted or not every):
                known, deleted = {}, False
            deleted = deleted or row.code == "delete"
            if row.code == "prune":
                pruned_before = max(pruned_before, json.loads(str(row.detail))["before"])
        elif key in known and known[key].row.at >= pruned_before and not (row.code == "default" and known[key].outcome):
            known[key].outcome = row
    return every


def cells(rows: Iterable[Row], step: str) -> Cells:
    """Decisions, outcomes, rewards and costs by begin of the step, segment, arm and group; those that are all zero are left out."""
    found: Cells = {}
    for each in decided(rows):
        at = each.row.at // STEPS[step] * STEPS[step]
        found.setdefault((at, each.segment, str(each.row.arm), each.group), [0, 0, 0.0, 0.0])[0] += 1
        if each.outcome is not None and each.outcome.value is not None:
            cell = found.setdefault((at, each.segment, str(each.outcome.arm), each.group), [0, 0, 0.0, 0.0])
            for n, value in enumerate((1, each.outcome.value, each.outcome.cost or 0.0), start=1):
                cell[n] += value
    return {place: sums for place, sums in found.items() if any(sums)}


def cells_of(store: Any, router: str, step: str) -> Cells:
    """The same as the store has them."""
    found = store.history(router, step=step, since=0.0, until=4e9, by=("segment", "arm", "group"))
    rows = [[row[name] for name in ("decisions", "outcomes", "rewards", "costs")] for row in found.rows]
    places = [(row["at"], row["segment"], row["arm"], row["group"]) for row in found.rows]
    return {place: sums for place, sums in zip(places, rows, strict=True) if any(sums)}


def check(store: Any, router: str, rows: list[Row]) -> None:
    """The store and the rows of the log tell the same, in every step of time, and all segments together are the sum of them."""
    for step in STEPS:
        wanted = cells(rows, step)
        assert cells_of(store, router, step) == wanted
        whole = store.history(router, step=step, since=0.0, until=4e9, by=()).rows
        sums: dict[float, list[Any]] = {}
        for (at, *_), counts in wanted.items():
            sums[at] = [a + b for a, b in zip(sums.get(at, [0, 0, 0.0, 0.0]), counts, strict=True)]
        found = {row["at"]: [row["decisions"], row["outcomes"], row["rewards"], row["costs"]] for row in whole}
        assert {at: each for at, each in found.items() if any(each)} == {at: each for at, each in sums.items() if any(each)}
