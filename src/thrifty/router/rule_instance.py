"""A rule instance: one rule at work on some arms of a segment, at given prices."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from thrifty.problem import Terms
from thrifty.router.arms import ArmsAndPrices
from thrifty.router.engine import Engine
from thrifty.router.frame import AFRESH, CODE, FACTS, GREEDY, HORIZON, PROPENSITY, REACH, Frame, empty_frame
from thrifty.router.packing import Bytes, Layout
from thrifty.router.records import EXPLORE
from thrifty.router.segment_sums import SegmentSums
from thrifty.router.settings import Settings
from thrifty.statistics import ArmStatistics
from thrifty.streams import Stream

LEARNT = 100.0
"""Outcomes of the cheapest feasible arm before any other is dispensable: to learn first costs less in the end."""

SURE = 2.0
"""Standard errors above its mean up to which an arm may be better than it looks."""


def upper_bound(n: float, mean: float) -> float:
    """The upper end of Wilson's interval, SURE standard errors wide, for the mean of n rewards in [0, 1]; 1 if there are none.

    >>> round(upper_bound(100.0, 0.9), 3), upper_bound(0.0, -1.0)
    (0.945, 1.0)
    """
    if n <= 0.0:
        return 1.0
    z = SURE * SURE / n
    return (mean + z / 2 + math.sqrt(z * mean * (1.0 - mean) + z * z / 4)) / (1.0 + z)


def frame_for(engine: Engine, settings: Settings, arms_and_prices: ArmsAndPrices, n_numbers: int) -> Frame:
    """A frame in which `look` can look at these arms at these prices."""
    arms, prices = arms_and_prices
    unknown = any(price is None for price in prices)
    frame = empty_frame(len(arms), n_numbers)
    frame.scalars[:] = settings.alpha, engine.forgetting.span, float(settings.leaning), float(engine.forgetting.forgets)
    frame.costs[:], frame.arms[:] = math.nan if unknown else np.array(prices, dtype=np.float64), arms
    frame.by_cost[:] = np.argsort(frame.costs, kind="stable")
    return frame


class RuleTemplate:
    """A rule before its first decision, from which the rules of all segments are copied.

    Parameters
    ----------
    engine : the policy
    settings : of the router
    arms_and_prices : what it chooses from
    names : of all arms
    words : the seed of its random streams

    """

    def __init__(
        self, engine: Engine, settings: Settings, arms_and_prices: ArmsAndPrices, *, names: list[str], words: Stream
    ) -> None:
        self.arms, self.prices = arms_and_prices
        self.names, self.alpha = tuple(names[arm] for arm in self.arms), settings.alpha
        n_arms, known = len(self.arms), not any(price is None for price in self.prices)
        self.code = engine.code(known)
        costs = np.array(self.prices, dtype=np.float64) if known else np.full(n_arms, math.nan)
        terms = Terms(n_arms=n_arms, costs=costs if known else None, alpha=settings.alpha, horizon=None)
        numbers = self.code.policy.numbers(terms)
        frame = frame_for(engine, settings, arms_and_prices, len(numbers))
        frame.numbers[:], frame.words[:] = tuple(numbers.values()), words
        frame.progress[[REACH, HORIZON, AFRESH]] = n_arms, n_arms, 1
        layout = Layout(frame)
        self.frame = layout.pack(frame)
        extents = dict(zip(Frame._fields, layout.extents(), strict=True))
        self.progress, self.facts, self.effective, self.stats = (
            slice(*extents[name]) for name in ("progress", "facts", "effective", "stats")
        )
        memory = self.code.new_memory(terms, numbers, n_arms)
        self.memory = Layout(memory).pack(memory)
        self.saved = self.memory.copy()  # room for kernels; a router has one call at a time

    def instance(self, segment: str = "", number: int = 0) -> "RuleInstance":
        """A rule for a segment."""
        return RuleInstance(self, segment, number)


class RuleInstance:
    """One rule at work in one segment. It sees the statistics of now whenever it is asked.

    `facts` are the numbers of its last look, at the places that `thrifty.router.frame` names. A `watcher` is called once, before
    what the rule remembers changes.
    """

    __slots__ = (
        "_begun",
        "_frame",
        "_memory",
        "_progress",
        "_saved",
        "_template",
        "arms",
        "code",
        "facts",
        "names",
        "number",
        "prices",
        "segment",
        "watcher",
    )

    def __init__(self, template: RuleTemplate, segment: str, number: int) -> None:
        self._template, self.segment, self.number = template, segment, number
        self.arms, self.prices, self.names, self.code = template.arms, template.prices, template.names, template.code
        self._frame, self._memory, self._saved = template.frame.copy(), template.memory.copy(), template.saved
        self.facts: memoryview = self._frame[template.facts].view(np.float64).data  # read five times faster than from the array
        self._progress = self._frame[template.progress].view(np.int64)
        self._begun = 0
        self.watcher: Callable[[RuleInstance], None] | None = None

    def look(self, sums: SegmentSums) -> None:
        """Fill in the facts without asking the rule."""
        if self.watcher is not None:
            self.watcher(self)
        if sums.forgets:
            sums.remember(self.number)
        self.code.counting.look.call(self._frame, *sums.tables, self.number)

    def choose(self, sums: SegmentSums, sequence: int, draws: int, *, tight: bool = False) -> int:
        """The place of the arm that is taken in the decision of this number; nothing is counted.

        With `tight` no arm is looked at for having changed that the budget can do without.
        """
        self.look(sums)
        if sums.forgets:
            place = self._probe(sums)
            if place >= 0 and not (tight and self.is_dispensable(place)):
                self._frame[self._template.facts].view(np.float64)[[PROPENSITY, CODE]] = 1.0, EXPLORE
                return place
        return self.code.choose.call(self._frame, self._memory, self._saved, sequence, draws, -1)  # type: ignore[no-any-return]

    def _probe(self, sums: SegmentSums) -> int:
        """The place of an arm that is looked at whatever the rule says, or -1; the rule begins again where an arm has changed."""
        restarts = int(sums.restarts[self.number])
        if restarts != self._begun:
            self._begun = restarts
            self._memory[:] = self._template.memory
            self._progress[AFRESH] = 1
        probe = self.code.counting.probe
        if probe is None or len(self.arms) == 1:
            return -1
        arm = probe.call(sums.sums, sums.recent, sums.recollections, self.number)
        return self.arms.index(arm) if arm in self.arms else -1

    def is_dispensable(self, place: int) -> bool:
        """Whether an arm costs more than the cheapest feasible one, and is surely not so good that that one is not feasible.

        By the last look. An arm of which little is known may be the best one and raise the floor: it is not dispensable.
        """
        facts, k, greedy = self.facts, len(self.arms), int(self.facts[GREEDY])
        if greedy < 0 or facts[FACTS + k + greedy] < LEARNT or facts[FACTS + 2 * k + place] <= facts[FACTS + 2 * k + greedy]:
            return False
        highest = upper_bound(facts[FACTS + k + place], facts[FACTS + place])
        return bool((1.0 - self._template.alpha) * highest <= facts[FACTS + greedy])

    def weigh(self, sums: SegmentSums, sequence: int, draws: int, place: int) -> float:
        """The probability that the rule, asked now, would take the arm of a place."""
        self.look(sums)
        kept = bytes(self.facts)
        self.code.choose.call(self._frame, self._memory, self._saved, sequence, draws, place)
        propensity = float(self.facts[PROPENSITY])
        self.facts.cast("B")[:] = kept
        return propensity

    def chance(self, sums: SegmentSums, sequence: int, draws: int, place: int) -> float:
        """The probability that `choose`, asked now, would take the arm of a place; NaN without draws. Nothing moves on.

        A rule that weighs outcomes states its probabilities, and is never told NaN.
        """
        if sums.forgets:
            self.look(sums)
            kept = sums.recollections[self.number].copy()
            probed = self._probe(sums)
            sums.recollections[self.number] = kept
            if probed >= 0:
                return float(probed == place)
        return self.weigh(sums, sequence, draws, place) if draws or self.code.observe is not None else math.nan

    def observe(self, arm: int, reward: float, propensity: float) -> None:
        """Hand an outcome of an arm, numbered as in the segment, to a rule that weighs outcomes by their probability."""
        if self.watcher is not None:
            self.watcher(self)
        if self.code.observe is not None and arm in self.arms:
            self.code.observe.call(self._frame, self._memory, self.arms.index(arm), reward, propensity)

    def effective(self) -> dict[int, tuple[Any, ...]]:
        """Per arm the `ArmStatistics` as a tuple, as the rule saw them at the last look, borrowed outcomes included."""
        return dict(zip(self.arms, self._frame[self._template.effective].view(ArmStatistics).tolist(), strict=True))

    @property
    def n_bytes(self) -> int:
        """The size of a dump."""
        return 8 + self._progress.nbytes + self._stats.size + self._memory.size

    @property
    def _stats(self) -> Bytes:
        return self._frame[self._template.stats]

    def dump(self) -> bytes:
        """What the rule remembers, bit for bit."""
        return b"".join((self._begun.to_bytes(8, "little"), self._progress.data, self._stats.data, self._memory.data))

    def load(self, dumped: bytes) -> None:
        """Remember what was dumped; a ValueError where it is of another layout."""
        content = np.frombuffer(dumped, np.uint8)
        begun, progress, stats, memory = np.split(content, np.cumsum([8, self._progress.nbytes, self._stats.size]))
        if content.size != self.n_bytes or not np.array_equal(memory[:8], self._memory[:8]):
            raise ValueError("the rule's memory has another layout")
        self._begun = int(begun.view(np.int64)[0])
        self._progress[:] = progress.view(np.int64)
        self._stats[:], self._memory[:] = stats, memory
