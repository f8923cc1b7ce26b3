"""The twin's guardrail: a list of decisions in the order of the log, cut into batches; a batch counts when nobody in it waits."""

from typing import Any

from thrifty.floor_test import NOTHING, FloorTest, GroupSums
from thrifty.router.rollout import explain_break
from thrifty.store.log import Row

ROUTED = ("exploit", "explore", "newcomer", "budget")


class TwinGuardrail:
    """Follows the same rows as a guardrail. What a batch adds is the same code: `tests/test_floor_test.py` has its twin."""

    def __init__(self) -> None:
        self.stage = 1
        self.watch({"guardrail": "off"})

    def watch(self, settings: dict[str, Any]) -> None:
        """Begin a test for these settings, or none."""
        self.stage += 1
        self.terms = terms_of(settings)
        self.compared = "" if self.terms is None else self.terms[0]
        self.test = None if self.terms is None else FloorTest(*self.terms[1:])
        self.broken, self.taken = False, 0
        self.batches: list[list[Row]] = []  # of decisions
        self.closed: list[bool] = []  # for each batch, whether it takes no more decisions
        self.outcomes: dict[tuple[int, int], Row] = {}

    def stop(self) -> None:
        """Take in nothing more."""
        self.terms, self.broken, self.batches, self.closed = None, False, [], []

    def decided(self, row: Row) -> None:
        """A decision is in the log."""
        if self.terms is None or row.code not in (*ROUTED, self.compared):
            return
        if not self.batches or self.closed[-1]:
            self.batches.append([])
            self.closed.append(False)
        self.batches[-1].append(row)
        self.taken += 1
        self.closed[-1] = len(self.batches[-1]) >= max(16, self.taken // 32)

    def settled(self, row: Row) -> None:
        """The first outcome of a decision is in the log."""
        key = row.replica, row.sequence
        for n, batch in enumerate(self.batches):
            if any((each.replica, each.sequence) == key for each in batch):
                self.outcomes[key] = row
                self.closed[n] = self.closed[n] or not self._waits(batch)
        while self.batches and self.closed[0] and not self._waits(self.batches[0]):
            assert self.test is not None
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

    def body(self, at: float, version: int) -> dict[str, Any]:
        """What a row says that writes a fallback."""
        assert self.test is not None
        return {"at": at, "text": explain_break(self.test, self.compared), "by": "guardrail", "if_version": version}

    def facts(self) -> dict[str, Any]:
        """What a guardrail knows."""
        test = None if self.test is None else self.test.dump()
        return {"stage": self.stage, "test": test, "waiting": sum(map(len, self.batches))}


def terms_of(settings: dict[str, Any]) -> tuple[str, float, float] | None:
    """What is compared: a code, alpha, and the share that is routed."""
    if settings["guardrail"] == "off":
        return None
    if settings["mode"] == "canary":
        return "baseline", settings["alpha"], settings["canary_share"]
    if settings["mode"] == "live" and settings["guardrail"] == "on" and settings["holdout"]:
        return "holdout", settings["alpha"], 1.0 - settings["holdout"]
    return None
