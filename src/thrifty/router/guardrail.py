"""The guardrail: a floor test that follows the log of a router, in the order of decisions.

Outcomes come late and in any order, and quick ones are not like slow ones: an arm may report failures at once and successes after
a minute. So the test takes in decisions in their own order, in batches, each when all its outcomes are known: those that came, and
the default ones of the deadline. The first outcome of a decision counts; corrections change the statistics and not the test.
Decisions that no coin could send elsewhere (pinned, or with one eligible arm) are left out.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from thrifty.floor_test import NOTHING, FloorTest, GroupSums
from thrifty.router.records import GROUPS, Key
from thrifty.router.settings import LEAST_SHARE, Settings

SMALLEST_BATCH, BATCHES = 16, 32
"""A batch ends when nobody in it waits any more, or with so many decisions, or with this part of all, if that is more."""

_NOT_ROUTED = frozenset(("only", "pinned", *GROUPS))


class Contrast(NamedTuple):
    """What is compared: the routed decisions with those of a code, "baseline" or "holdout"."""

    compared: str
    alpha: float
    share: float  # the probability of being routed


def contrast_of(settings: Settings) -> Contrast | None:
    """What the guardrail of a router with these settings compares; None if nothing."""
    if settings.guardrail == "off":
        return None
    if settings.mode == "canary":
        return Contrast("baseline", settings.alpha, settings.canary_share)
    if settings.mode == "live" and settings.guardrail == "on" and settings.holdout >= LEAST_SHARE:
        return Contrast("holdout", settings.alpha, 1.0 - settings.holdout)
    return None


@dataclass(slots=True)
class Batch:
    """Decisions that follow one another, and what is known of them."""

    ends: dict[int, int] = field(default_factory=dict)  # per replica, the number of the last decision
    ended: bool = False
    size: int = 0
    waiting: int = 0
    routed: GroupSums = NOTHING
    compared: GroupSums = NOTHING


class Guardrail:
    """The floor test of a router, or none. Only rows of the log change it, so all replicas have the same.

    `stage` counts the tests that were begun. `broken_by` is the replica whose decision settled that the floor is broken beyond
    doubt; None before, and once the fallback is in the log.
    """

    def __init__(self) -> None:
        self.stage = 0
        self.watch(None, 0.0)

    def watch(self, contrast: Contrast | None, at: float) -> None:
        """Begin a test at a time, or none."""
        self.contrast, self.began_at = contrast, at
        self.compared = "" if contrast is None else contrast.compared
        self.stage += 1
        self.test = None if contrast is None else FloorTest(contrast.alpha, contrast.share)
        self.broken_by: int | None = None
        self._done: dict[int, int] = {}  # per replica, the last decision that is too early for the first batch
        self._batches: list[Batch] = []
        self._taken = 0  # decisions in all batches so far

    def stop(self) -> None:
        """Take in nothing more; the test can still be read."""
        self.contrast, self._batches, self.broken_by = None, [], None

    @property
    def waiting(self) -> int:
        """Decisions that the test waits for, and those that wait behind them."""
        return sum(batch.size for batch in self._batches)

    def decided(self, key: Key, code: str) -> None:
        """A decision is in the log."""
        if self.contrast is None or (code != self.compared and code in _NOT_ROUTED):
            return
        replica, sequence = key
        if sequence <= self._done.setdefault(replica, sequence - 1):
            return
        batch = self._find(replica, sequence)
        if batch is None:
            if not self._batches or self._batches[-1].ended:
                self._batches.append(Batch())
            batch = self._batches[-1]
            batch.ends[replica] = sequence
        batch.size += 1
        batch.waiting += 1
        self._taken += 1
        batch.ended = batch.ended or batch.size >= max(SMALLEST_BATCH, self._taken // BATCHES)

    def settled(self, key: Key, code: str, reward: float | None) -> None:
        """The first outcome of a decision is in the log."""
        if self.contrast is None or (code != self.compared and code in _NOT_ROUTED):
            return
        replica, sequence = key
        batch = self._find(replica, sequence) if sequence > self._done.get(replica, sequence) else None
        if batch is None or not batch.waiting:
            return
        batch.waiting -= 1
        if code == self.compared:
            batch.compared = batch.compared.plus(reward)
        else:
            batch.routed = batch.routed.plus(reward)
        if not batch.waiting:
            batch.ended = True
            self._take_in(replica)

    def _find(self, replica: int, sequence: int) -> Batch | None:
        """The batch of a decision, unless it is to begin or to extend the last one."""
        return next((batch for batch in self._batches if sequence <= batch.ends.get(replica, -1)), None)

    def _take_in(self, replica: int) -> None:
        """Take in the batches in front in which nobody waits."""
        assert self.test is not None
        while self._batches and self._batches[0].ended and not self._batches[0].waiting:
            batch = self._batches.pop(0)
            self._done |= batch.ends
            self.test.add(batch.routed, batch.compared)
            if self.broken_by is None and self.test.broken:
                self.broken_by = replica

    def dump(self) -> dict[str, Any]:
        """Plain values."""
        batches = [
            [list(each.ends.items()), each.ended, each.size, each.waiting, list(each.routed), list(each.compared)]
            for each in self._batches
        ]
        return {
            "stage": self.stage,
            "began_at": self.began_at,
            "contrast": None if self.contrast is None else list(self.contrast),
            "compared": self.compared,
            "test": None if self.test is None else self.test.dump(),
            "broken_by": self.broken_by,
            "done": list(self._done.items()),
            "batches": batches,
            "taken": self._taken,
        }

    def load(self, dumped: dict[str, Any]) -> None:
        """Take over what was dumped."""
        self.watch(None if dumped["contrast"] is None else Contrast(*dumped["contrast"]), dumped["began_at"])
        self.stage, self.broken_by, self._taken = dumped["stage"], dumped["broken_by"], dumped["taken"]
        self.compared = dumped["compared"]
        self.test = None if dumped["test"] is None else FloorTest.load(dumped["test"])
        self._done = dict(dumped["done"])
        for ends, ended, size, waiting, routed, compared in dumped["batches"]:
            self._batches.append(Batch(dict(ends), ended, size, waiting, GroupSums(*routed), GroupSums(*compared)))
