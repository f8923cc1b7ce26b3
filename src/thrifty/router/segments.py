"""Segments: "DE/vodafone" below "DE" below all of them, each with its statistics and its rules."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from thrifty.compiled import interpreted
from thrifty.router.arms import Arms, ArmsAndPrices
from thrifty.router.engine import Engine
from thrifty.router.kernels import toss
from thrifty.router.rule_instance import RuleInstance, RuleTemplate
from thrifty.router.segment_sums import SegmentSums
from thrifty.router.settings import Settings, path_of
from thrifty.streams import spread_seed

MAX_RULES = 32
"""Rules kept per segment for eligible sets other than all arms; the one made first goes first."""

MOST_BYTES = 1 << 30
"""Of the statistics of all segments of a router, at most: further segments are counted in the one above."""

_toss = interpreted(toss)


class Segment:
    """One kind of request. Its rules are made when they are needed, and made anew after a change of arms or settings."""

    __slots__ = ("generation", "main", "name", "number", "others", "parent", "provisional")

    def __init__(self, name: str, number: int, parent: "Segment | None") -> None:
        self.name, self.number, self.parent = name, number, parent
        self.provisional = False  # True while the log has no decision in it, or below it
        self.generation = -1
        self.main: RuleInstance | None = None
        self.others: dict[ArmsAndPrices, RuleInstance] = {}


class Segments:
    """All segments of a router, made on first use. Existing ones stay, whatever becomes of the limits."""

    def __init__(self, settings: Settings, arms: Arms, engine: Engine, replica: int) -> None:
        self._replica = replica
        self._stream = np.zeros(4, np.uint64)
        self.sums = SegmentSums(len(arms.names), engine.forgetting)
        self._by_name: dict[str, Segment] = {}  # parents before their children
        self.by_number: list[Segment] = []
        self.known = self._by_name.get  # a segment that exists, or None
        self.generation = 0
        self._take_over(settings, arms, engine)
        self.add("")

    def _take_over(self, settings: Settings, arms: Arms, engine: Engine) -> None:
        self._settings, self._arms, self.engine = settings, arms, engine
        self._words = spread_seed(settings.seed, (self._replica,))
        self.all_arms = arms.active_at_prices()
        self._templates: dict[ArmsAndPrices, RuleTemplate] = {}
        self.generation += 1

    def change(self, settings: Settings, arms: Arms, engine: Engine) -> None:
        """Other settings or arms: the statistics stay, and every rule begins again from them when it is next asked."""
        if len(arms.names) > self.sums.n_arms:
            self.sums.add_arms(len(arms.names))
        if engine.forgetting.label != self.sums.forgetting.label:
            self.sums.forget_by(engine.forgetting)
        self._take_over(settings, arms, engine)

    def reset(self, arms: list[int]) -> None:
        """Let the statistics of these arms begin again."""
        self.sums.reset(arms)
        self.generation += 1

    @property
    def root(self) -> Segment:
        """All segments together."""
        return self.by_number[0]

    @property
    def limit(self) -> int:
        """How many segments there may be: by the setting, and by what their statistics take."""
        return min(self._settings.max_segments, MOST_BYTES // self.sums.n_bytes)

    def names(self) -> list[str]:
        """Every segment that the log knows, the root first."""
        return sorted(name for name, segment in self._by_name.items() if not segment.provisional)

    def __len__(self) -> int:
        return len(self.by_number)

    def obtain(self, name: str) -> Segment:
        """The segment of this name, made if need be; where there are too many, the nearest one above that exists."""
        found = self._by_name.get(name)
        if found is not None:
            return found
        missing = sum(each not in self._by_name for each in path_of(name))
        return self.nearest(name) if len(self._by_name) + missing > self.limit else self.make(name)

    def make(self, name: str) -> Segment:
        """The segment of this name, made with all above it if need be, however many there are. The log knows it."""
        for each in reversed(path_of(name)):
            if each not in self._by_name:
                self.add(each)
        found = self._by_name[name]
        self.confirm(found)
        return found

    def confirm(self, segment: Segment) -> None:
        """The log has a decision in a segment."""
        above: Segment | None = segment
        while above is not None and above.provisional:
            above.provisional = False
            above = above.parent

    def take_back(self, count: int) -> None:
        """Let there be so many segments again: the newest ones were made for a decision that failed."""
        for segment in self.by_number[count:]:
            del self._by_name[segment.name]
        del self.by_number[count:]
        self.sums.count = count

    def nearest(self, name: str) -> Segment:
        """The segment of this name, or the first one above it that the log knows."""
        found = (self._by_name.get(each) for each in path_of(name))
        return next(segment for segment in found if segment is not None and not segment.provisional)

    def add(self, name: str) -> Segment:
        """Make a segment whose parent exists."""
        parent = self._by_name[name.rpartition("/")[0]] if name else None
        number = self.sums.add(-1 if parent is None else parent.number)
        made = self._by_name[name] = Segment(name, number, parent)
        self.by_number.append(made)
        return made

    def look(self, segment: Segment, eligible: ArmsAndPrices | None = None) -> RuleInstance:
        """The rule of a segment after a look, for reading only: one that was not asked before is not kept."""
        known = segment.others.get(eligible) if eligible is not None and segment.generation == self.generation else None
        is_main = eligible is None or eligible == self.all_arms
        rule = (
            self.rule(segment)
            if is_main
            else known or self.template(eligible or self.all_arms).instance(segment.name, segment.number)
        )
        rule.look(self.sums)
        return rule

    def rule(self, segment: Segment, eligible: ArmsAndPrices | None = None) -> RuleInstance:
        """The rule of a segment for all arms, or for an eligible set."""
        if segment.generation != self.generation:
            segment.generation, segment.main = self.generation, None
            segment.others.clear()
        if eligible is None or eligible == self.all_arms:
            if segment.main is None:
                segment.main = self._make_rule(segment, self.all_arms)
            return segment.main
        found = segment.others.get(eligible)
        if found is None:
            if len(segment.others) >= MAX_RULES:
                del segment.others[next(iter(segment.others))]
            found = segment.others[eligible] = self._make_rule(segment, eligible)
        return found

    def rules(self) -> Iterator[tuple[ArmsAndPrices | None, RuleInstance]]:
        """All rules that were asked since the last change, with the eligible arms; None stands for all arms."""
        for segment in self.by_number:
            if segment.generation == self.generation:
                if segment.main is not None:
                    yield None, segment.main
                if segment.others:
                    yield from segment.others.items()

    def _make_rule(self, segment: Segment, choice: ArmsAndPrices) -> RuleInstance:
        return self.template(choice).instance(segment.name, segment.number)

    def template(self, choice: ArmsAndPrices) -> RuleTemplate:
        """What rules over these arms are copied from; a ValueError where the policy cannot work with them."""
        template = self._templates.get(choice)
        if template is None:
            if len(self._templates) >= MAX_RULES:
                self._templates.clear()
            template = RuleTemplate(self.engine, self._settings, choice, names=self._arms.names, words=self._words)
            self._templates[choice] = template
        return template

    def toss(self, key: int) -> float:
        """A number in [0, 1) that depends on the seed, the replica and `key` alone."""
        with np.errstate(over="ignore"):
            return float(_toss(self._words, key, self._stream))

    def statistics(self, number: int) -> list[tuple[Any, ...]]:
        """Per arm (sent, pending, seen, sums of rewards and costs, of their squares, priced) of a segment and all below it."""
        return [row[:8] for row in self.sums.sums[number].tolist()]
