"""The twin's guardrail: lists of decisions in the order of the log, cut into batches; a batch counts when nobody in it waits."""

import json
from typing import Any

from thrifty.floor_test import NOTHING, FloorTest, GroupSums
from thrifty.router.rollout import explain_break
from thrifty.store.log import Row

ROUTED = ("exploit", "explore", "newcomer", "budget")


class TwinTest:
    """One test. What a batch adds is the same code: `tests/test_floor_test.py` has its twin."""

    def __init__(self, terms: tuple[str, float, float], level: float) -> None:
        self.compared, self.test = terms[0], FloorTest(*terms[1:], level=level)
        self.counted: list[Row] = []
        self.left_out: list[Row] = []
        self.buckets: set[int] = set()  # of the keys that were counted
        self.batches: list[list[Row]] = []  # of decisions
        self.closed: list[bool] = []  # for each batch, whether it takes no more decisions
        self.outcomes: dict[tuple[int, int], Row] = {}
        self.broken = False  # after any batch

    def decided(self, row: Row) -> None:
        """A decision counts if it has no key, or one that was not counted."""
        bucket = bucket_of(row)
        if bucket in self.buckets:
            self.left_out.append(row)
            return
        self.buckets |= set() if bucket is None else {bucket}
        if not self.batches or self.closed[-1]:
            self.batches.append([])
            self.closed.append(False)
        self.batches[-1].append(row)
        self.counted.append(row)
        self.closed[-1] = len(self.batches[-1]) >= max(16, len(self.counted) // 32)

    def settled(self, row: Row) -> None:
        """The first outcome of a decision is in the log."""
        key = row.replica, row.sequence
        for n, batch in enumerate(self.batches):
            if any((each.replica, each.sequence) == key for each in batch):
                self.outcomes[key] = row
                self.closed[n] = self.closed[n] or not self._waits(batch)
        while self.batches and self.closed[0] and not self._waits(self.batches[0]):
            self.closed.pop(0)
            batch = self.batches.pop(0)
            self.test.add(self._sums(batch, ROUTED), self._sums(batch, (self.compared,)))
            self.broken = self.broken or self.test.broken

    def _waits(self, batch: list[Row]) -> bool:
        return any((each.replica, each.sequence) not in self.outcomes for each in batch)

    def _sums(self, batch: list[Row], codes: tuple[str, ...]) -> GroupSums:
        found = NOTHING
        for each in batch:
            if each.code in codes:
                found = found.plus(self.outcomes[each.replica, each.sequence].value)
        return found

    @property
    def size(self) -> int:
        """Decisions that it saw."""
        return len(self.counted) + len(self.left_out)


class TwinGuardrail:
    """Follows the same rows as a guardrail."""

    def __init__(self) -> None:
        self.stage = 1
        self.watch({"guardrail": "off"})

    def watch(self, settings: dict[str, Any]) -> None:
        """Begin a test for these settings, or none."""
        self._begin(terms_of(settings), 0.05)

    def _begin(self, terms: tuple[str, float, float] | None, level: float) -> None:
        self.stage += 1
        self.terms, self.keyed, self.broken, self.blocks = terms, level < 0.05, False, 0
        self.tests = [] if terms is None else [TwinTest(terms, level)]

    def stop(self) -> None:
        """Take in nothing more."""
        self.terms, self.broken = None, False
        for each in self.tests:
            each.batches, each.closed = [], []

    def decided(self, row: Row) -> None:
        """A decision is in the log."""
        if self.terms is None or row.code not in (*ROUTED, self.terms[0]):
            return
        if bucket_of(row) is not None and not self.keyed and not self.broken:
            self._begin(self.terms, 0.04)
        for each in self.tests:
            each.decided(row)
        main, last = self.tests[0], self.tests[-1]
        known = last.test.routed.settled + last.test.compared.settled
        often = last.size >= 1000 and len(last.left_out) >= 2 * len(last.counted) and 8 * last.size >= main.size
        if self.keyed and not self.broken and often and 16 * known >= 15 * len(last.counted):
            self.blocks += 1
            self.tests = [main, TwinTest(self.terms, 0.01 / (self.blocks * (self.blocks + 1)))]

    def settled(self, row: Row) -> None:
        """The first outcome of a decision is in the log."""
        if self.terms is not None:
            for each in self.tests:
                each.settled(row)
                self.broken = self.broken or each.broken

    def body(self, at: float, version: int) -> dict[str, Any]:
        """What a row says that writes a fallback."""
        most = min(self.tests, key=lambda each: each.test.p)
        text = explain_break(most.test, most.compared, late=most is not self.tests[0])
        return {"at": at, "text": text, "by": "guardrail", "if_version": version}

    def facts(self) -> dict[str, Any]:
        """What a guardrail knows."""
        main, block = [*self.tests, None, None][:2]
        return {
            "stage": self.stage,
            "tests": [None if each is None else each.test.dump() for each in (main, block)],
            "waiting": 0 if main is None else sum(map(len, main.batches)),
            "left_out": 0 if main is None else len(main.left_out),
        }


def bucket_of(row: Row) -> int | None:
    """What the row of a decision says of its key."""
    found: int | None = json.loads(row.detail or "{}").get("bucket")
    return found


def terms_of(settings: dict[str, Any]) -> tuple[str, float, float] | None:
    """What is compared: a code, alpha, and the share that is routed."""
    if settings["guardrail"] == "off":
        return None
    if settings["mode"] == "canary":
        return "baseline", settings["alpha"], settings["canary_share"]
    if settings["mode"] == "live" and settings["guardrail"] == "on" and settings["holdout"]:
        return "holdout", settings["alpha"], 1.0 - settings["holdout"]
    return None
