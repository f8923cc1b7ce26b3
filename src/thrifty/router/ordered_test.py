"""A floor test that follows the log of a router, in the order of decisions, and counts each key once.

Outcomes come late and in any order, and quick ones are not like slow ones: an arm may report failures at once and successes after
a minute. So decisions are taken in in their own order, in batches, each when all its outcomes are known: those that came, and the
default ones of the deadline. The first outcome of a decision counts; corrections change the statistics and not the test.

A key falls to one group for good. Its first decision tosses a coin, its later ones do not, so the later ones are left out. A key
is known by its bucket, some bits of a hash. Where two keys share a bucket the second one is left out: by its hash alone, so the
others are still a fair sample.
"""

from dataclasses import dataclass, field
from typing import Any

from thrifty.floor_test import NOTHING, FloorTest, GroupSums
from thrifty.router.bit_set import BitSet
from thrifty.router.records import Key

SMALLEST_BATCH, BATCHES = 16, 32
"""A batch ends when nobody in it waits any more, or with so many decisions, or with this part of all, if that is more."""


@dataclass(slots=True)
class Batch:
    """Decisions that follow one another, and what is known of them."""

    ends: dict[int, int] = field(default_factory=dict)  # per replica, the number of the last decision
    ended: bool = False
    size: int = 0
    waiting: int = 0
    routed: GroupSums = NOTHING
    compared: GroupSums = NOTHING
    members: dict[int, BitSet] = field(default_factory=dict)  # per replica, numbers of the decisions; only if keys count once

    def dump(self) -> list[Any]:
        """Plain values; `Batch.load` takes them back."""
        members = [[replica, *numbers.dump()] for replica, numbers in self.members.items()]
        return [list(self.ends.items()), self.ended, self.size, self.waiting, list(self.routed), list(self.compared), members]

    @classmethod
    def load(cls, dumped: list[Any]) -> "Batch":
        """The batch that was dumped."""
        ends, ended, size, waiting, routed, compared, *rest = dumped  # older versions had no members
        members = {replica: BitSet.load(numbers) for replica, *numbers in (rest[0] if rest else ())}
        return cls(dict(ends), ended, size, waiting, GroupSums(*routed), GroupSums(*compared), members)


class OrderedTest:
    """A floor test and the decisions that it waits for.

    Parameters
    ----------
    test : what takes in the batches
    keyed : whether keys count once; if not, every decision counts

    """

    def __init__(self, test: FloorTest, *, keyed: bool) -> None:
        self.test, self.keyed = test, keyed
        self.taken = self.left_out = 0  # decisions that count, and those of keys that were counted before
        self.n_keys, self._buckets = 0, BitSet()  # keys that were counted
        self._done: dict[int, int] = {}  # per replica, the last decision that is too early for the first batch
        self._batches: list[Batch] = []

    @property
    def waiting(self) -> int:
        """Decisions that the test waits for, and those that wait behind them."""
        return sum(batch.size for batch in self._batches)

    def stop(self) -> None:
        """Wait for nothing more; the test can still be read."""
        self._batches, self._buckets = [], BitSet()

    def decided(self, key: Key, bucket: int | None) -> None:
        """A decision is in the log; `bucket` is that of the key of its request, or None if it has none."""
        replica, sequence = key
        if sequence <= self._done.setdefault(replica, sequence - 1):
            return
        if self.keyed and bucket is not None:
            if not self._buckets.add(bucket):
                self.left_out += 1
                return
            self.n_keys += 1
        batch = self._find(replica, sequence)
        if batch is None:
            if not self._batches or self._batches[-1].ended:
                self._batches.append(Batch())
            batch = self._batches[-1]
            batch.ends[replica] = sequence
        if self.keyed:
            batch.members.setdefault(replica, BitSet()).add(sequence)
        batch.size += 1
        batch.waiting += 1
        self.taken += 1
        batch.ended = batch.ended or batch.size >= max(SMALLEST_BATCH, self.taken // BATCHES)

    def settled(self, key: Key, reward: float | None, *, routed: bool) -> bool:
        """The first outcome of a decision is in the log; whether a batch that it completed broke the floor beyond doubt."""
        replica, sequence = key
        batch = self._find(replica, sequence) if sequence > self._done.get(replica, sequence) else None
        if batch is None or not batch.waiting or (self.keyed and sequence not in batch.members.get(replica, ())):
            return False
        batch.waiting -= 1
        if routed:
            batch.routed = batch.routed.plus(reward)
        else:
            batch.compared = batch.compared.plus(reward)
        if batch.waiting:
            return False
        batch.ended = True
        return self._take_in()

    def _find(self, replica: int, sequence: int) -> Batch | None:
        """The batch of a decision, unless it is to begin or to extend the last one."""
        return next((batch for batch in self._batches if sequence <= batch.ends.get(replica, -1)), None)

    def _take_in(self) -> bool:
        """Take in the batches in front in which nobody waits; whether the floor was broken after any of them."""
        broken = False
        while self._batches and self._batches[0].ended and not self._batches[0].waiting:
            batch = self._batches.pop(0)
            self._done |= batch.ends
            self.test.add(batch.routed, batch.compared)
            broken = broken or self.test.broken
        return broken

    def dump(self) -> dict[str, Any]:
        """Plain values; `OrderedTest.load` takes them back."""
        return {
            "test": self.test.dump(),
            "keyed": self.keyed,
            "taken": self.taken,
            "left_out": self.left_out,
            "keys": [self.n_keys, *self._buckets.dump()],
            "done": list(self._done.items()),
            "batches": [batch.dump() for batch in self._batches],
        }

    @classmethod
    def load(cls, dumped: dict[str, Any]) -> "OrderedTest":
        """What was dumped; older versions left out no decision."""
        found = cls(FloorTest.load(dumped["test"]), keyed=dumped.get("keyed", False))
        found.taken, found.left_out = dumped["taken"], dumped.get("left_out", 0)
        found.n_keys, *buckets = dumped.get("keys", [0, 0, ""])
        found._buckets = BitSet.load(buckets)
        found._done, found._batches = dict(dumped["done"]), [Batch.load(each) for each in dumped["batches"]]
        return found
