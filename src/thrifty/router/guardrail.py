"""The guardrail: floor tests that follow the log of a router.

One test takes in all decisions from the beginning of a stage on, each key once. Decisions that no coin could send elsewhere
(pinned, or with one eligible arm) are left out.

Keys that come again are seen by that test once, so harm that comes after their first visit needs another test: a *block* counts
every key anew, from its first decision on. A block begins when the test before it sees hardly any new keys. Blocks share a part
of the level, `LATE_LEVEL`: the first has half of it, the next a sixth, then a twelfth. Where no request has a key there is no
block, and the one test has the whole level.
"""

from typing import Any, NamedTuple

from thrifty.floor_test import LEVEL, FloorTest
from thrifty.router.ordered_test import OrderedTest
from thrifty.router.records import GROUPS, Key
from thrifty.router.settings import LEAST_SHARE, Settings

LATE_LEVEL = LEVEL / 5.0
"""The part of the level that blocks have together."""

SMALLEST_BLOCK, REPEATS, BLOCKS = 1000, 2, 8
"""A block ends when it left out this many times as many decisions as it counted, with so many decisions, an eighth of all."""

SETTLED = 15.0 / 16.0
"""It ends when this part of the decisions that it counted have outcomes."""

_NOT_ROUTED = frozenset(("only", "pinned", *GROUPS))


class Contrast(NamedTuple):
    """What is compared: the routed decisions with those of a code, "baseline" or "holdout"."""

    compared: str
    alpha: float
    share: float  # the probability of being routed


class Pace(NamedTuple):
    """How far a test was at a time: decisions that it saw, and those that it counted."""

    at: float
    seen: int
    counted: int


def contrast_of(settings: Settings) -> Contrast | None:
    """What the guardrail of a router with these settings compares; None if nothing."""
    if settings.guardrail == "off":
        return None
    if settings.mode == "canary":
        return Contrast("baseline", settings.alpha, settings.canary_share)
    if settings.mode == "live" and settings.guardrail == "on" and settings.holdout >= LEAST_SHARE:
        return Contrast("holdout", settings.alpha, 1.0 - settings.holdout)
    return None


class Guardrail:
    """The floor tests of a router, or none. Only rows of the log change them, so all replicas have the same.

    `stage` counts how often a test over all decisions was begun. `main` is that test, and `block` the one that counts keys anew.
    `broken_by` is the replica whose decision settled that the floor is broken beyond doubt; None before, and once the fallback is
    in the log.
    """

    def __init__(self) -> None:
        self.stage = 0
        self.watch(None, 0.0)

    def watch(self, contrast: Contrast | None, at: float, *, keyed: bool = False) -> None:
        """Begin a test at a time, or none."""
        self.contrast, self.began_at = contrast, at
        self.compared = "" if contrast is None else contrast.compared
        self.stage += 1
        self.main = self._test(LEVEL - LATE_LEVEL if keyed else LEVEL, keyed=keyed)
        self.block: OrderedTest | None = None
        self.blocks = 0  # how many were begun
        self.broken_by: int | None = None
        self._paces: list[Pace] = []  # of the test over all decisions, when the decisions had doubled; the last two

    def _test(self, level: float, *, keyed: bool) -> OrderedTest | None:
        contrast = self.contrast
        return None if contrast is None else OrderedTest(FloorTest(contrast.alpha, contrast.share, level=level), keyed=keyed)

    def stop(self) -> None:
        """Take in nothing more; the tests can still be read."""
        self.contrast = self.broken_by = None
        for each in self._tests():
            each.stop()

    def _tests(self) -> list[OrderedTest]:
        return [each for each in (self.main, self.block) if each is not None]

    @property
    def waiting(self) -> int:
        """Decisions that the test waits for, and those that wait behind them."""
        return 0 if self.main is None else self.main.waiting

    @property
    def pace(self) -> Pace | None:
        """How far the test was when the last half of the decisions, or some more, had not come."""
        return self._paces[0] if self._paces else None

    def decided(self, key: Key, code: str, *, bucket: int | None = None, at: float = 0.0) -> None:
        """A decision is in the log; `bucket` is that of the key of its request, if it has one."""
        main = self.main
        if self.contrast is None or main is None or (code != self.compared and code in _NOT_ROUTED):
            return
        if bucket is not None and not main.keyed and self.broken_by is None:
            self.watch(self.contrast, at, keyed=True)  # its level must be known beforehand
            main = self.main
            assert main is not None
        for each in self._tests():
            each.decided(key, bucket)
        seen = main.taken + main.left_out
        if not self._paces or seen >= 2 * self._paces[-1].seen:
            self._paces = [*self._paces[-1:], Pace(at, seen, main.taken)]
        if main.keyed and self.broken_by is None and _is_exhausted(self.block or main, seen):
            self.blocks += 1
            self.block = self._test(LATE_LEVEL / (self.blocks * (self.blocks + 1)), keyed=True)

    def settled(self, key: Key, code: str, reward: float | None) -> None:
        """The first outcome of a decision is in the log."""
        if self.contrast is None or (code != self.compared and code in _NOT_ROUTED):
            return
        for each in self._tests():
            if each.settled(key, reward, routed=code != self.compared) and self.broken_by is None:
                self.broken_by = key[0]

    def dump(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "stage": self.stage,
            "began_at": self.began_at,
            "contrast": None if self.contrast is None else list(self.contrast),
            "compared": self.compared,
            "broken_by": self.broken_by,
            "main": None if self.main is None else self.main.dump(),
            "block": None if self.block is None else self.block.dump(),
            "blocks": self.blocks,
            "paces": [list(each) for each in self._paces],
        }

    def load(self, dumped: dict[str, Any]) -> None:
        """Take over what was dumped. Older versions had one test, whose values stood beside the others."""
        self.watch(None if dumped["contrast"] is None else Contrast(*dumped["contrast"]), dumped["began_at"])
        self.stage, self.broken_by, self.compared = dumped["stage"], dumped["broken_by"], dumped["compared"]
        main = dumped["main"] if "main" in dumped else dumped if dumped["test"] is not None else None
        self.main = None if main is None else OrderedTest.load(main)
        self.block = None if dumped.get("block") is None else OrderedTest.load(dumped["block"])
        self.blocks, self._paces = dumped.get("blocks", 0), [Pace(*each) for each in dumped.get("paces", ())]


def _is_exhausted(test: OrderedTest, seen: int) -> bool:
    """Whether a test sees hardly any new keys and has the outcomes of those it counted; `seen` are all decisions of the stage."""
    size = test.taken + test.left_out
    if size < SMALLEST_BLOCK or BLOCKS * size < seen or test.left_out < REPEATS * test.taken:
        return False
    return test.test.decisions >= SETTLED * test.taken
