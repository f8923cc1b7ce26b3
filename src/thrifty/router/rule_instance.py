"""A rule instance: one rule at work on some arms of a segment, at given prices."""

import math
from typing import Any

import numpy as np

from thrifty.compiled import interpreted
from thrifty.policies.contract import next_horizon
from thrifty.problem import Terms
from thrifty.router.arms import ArmsAndPrices
from thrifty.router.engine import Engine
from thrifty.router.kernels import AFRESH, CODE, HORIZON, PROPENSITY, REACH, Frame, empty_frame
from thrifty.router.packing import Layout
from thrifty.router.records import EXPLORE
from thrifty.router.segment_sums import SegmentSums
from thrifty.router.settings import Settings
from thrifty.streams import Stream

_next_horizon = interpreted(next_horizon)


class RuleInstance:
    """One rule over `arms_and_prices` in one segment. It sees the statistics of now whenever it is asked.

    `facts` are the numbers of its last look, at the places that `thrifty.router.kernels` names.
    """

    __slots__ = (
        "_begun", "_frame", "_layout", "_memory", "_numbers", "_saved", "_terms", "_view",
        "arms", "code", "facts", "names", "number", "prices", "segment",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        arms_and_prices: ArmsAndPrices,
        *,
        names: list[str],
        words: Stream,
        segment: str = "",
        number: int = 0,
        decisions: int = 0,
    ) -> None:
        self.arms, self.prices = arms_and_prices
        self.segment, self.number, self.names = segment, number, tuple(names[arm] for arm in self.arms)
        n_arms, known = len(self.arms), not any(price is None for price in self.prices)
        self.code = engine.code(known)
        costs = np.array(self.prices, dtype=np.float64) if known else np.full(n_arms, math.nan)
        self._terms = Terms(n_arms=n_arms, costs=costs if known else None, alpha=settings.alpha, horizon=None)
        self._numbers = self.code.policy.numbers(self._terms)
        frame = empty_frame(n_arms, len(self._numbers))
        frame.scalars[:] = settings.alpha, engine.forgetting.span, float(settings.leaning), float(engine.forgetting.forgets)
        frame.numbers[:], frame.costs[:], frame.arms[:] = tuple(self._numbers.values()), costs, self.arms
        frame.by_cost[:], frame.words[:] = np.argsort(costs, kind="stable"), words
        frame.progress[[REACH, AFRESH]] = n_arms, 1
        while frame.progress[REACH] <= decisions:
            frame.progress[REACH] = _next_horizon(int(frame.progress[REACH]), n_arms)
        frame.progress[HORIZON] = engine.forgetting.horizon(int(frame.progress[REACH]), n_arms)
        layout = Layout(frame)
        self._frame = layout.pack(frame)
        self._view: Frame = layout.views(self._frame)
        self.facts: memoryview = self._view.facts.data  # reading one from Python is five times faster than from the array
        memory = self._new_memory()
        self._layout = Layout(memory)
        self._memory = self._layout.pack(memory)
        self._saved = self._memory.copy()
        self._begun = 0

    def _new_memory(self) -> Any:
        return self.code.new_memory(self._terms, self._numbers, int(self._view.progress[HORIZON]))

    def look(self, sums: SegmentSums) -> None:
        """Fill in the facts without asking the rule."""
        if sums.forgets:
            sums.remember(self.number)
        self.code.counting.look.call(self._frame, *sums.tables(), self.number)

    def choose(self, sums: SegmentSums, sequence: int, draws: int) -> int:
        """The place of the arm that is taken in the decision of this number; nothing is counted."""
        self.look(sums)
        if sums.forgets:
            place = self._probe(sums)
            if place >= 0:
                self._view.facts[[PROPENSITY, CODE]] = 1.0, EXPLORE
                return place
        return self.code.choose.call(self._frame, self._memory, self._saved, sequence, draws, -1)  # type: ignore[no-any-return]

    def _probe(self, sums: SegmentSums) -> int:
        """The place of an arm that is looked at whatever the rule says, or -1; the rule begins again where an arm has changed."""
        restarts = int(sums.restarts[self.number])
        if restarts != self._begun:
            self._begun = restarts
            self._memory[:] = self._layout.pack(self._new_memory())
            self._view.progress[AFRESH] = 1
        probe = self.code.counting.probe
        if probe is None or len(self.arms) == 1:
            return -1
        arm = probe.call(sums.sums, sums.recent, sums.recollections, self.number)
        return self.arms.index(arm) if arm in self.arms else -1

    def weigh(self, sums: SegmentSums, sequence: int, draws: int, place: int) -> float:
        """The probability that the rule, asked now, would take the arm of a place."""
        self.look(sums)
        kept = bytes(self.facts)
        self.code.choose.call(self._frame, self._memory, self._saved, sequence, draws, place)
        propensity = float(self.facts[PROPENSITY])
        self.facts.cast("B")[:] = kept
        return propensity

    def observe(self, arm: int, reward: float, propensity: float) -> None:
        """Hand an outcome of an arm, numbered as in the segment, to a rule that weighs outcomes by their probability."""
        if self.code.observe is not None and arm in self.arms:
            self.code.observe.call(self._frame, self._memory, self.arms.index(arm), reward, propensity)

    def effective(self) -> dict[int, tuple[int, int, float, float, float]]:
        """Per arm (sent, pending, seen, reward sum, cost sum) as the rule saw them at the last look, borrowed ones included."""
        return dict(zip(self.arms, self._view.effective.tolist(), strict=True))

    def dump(self) -> list[bytes]:
        """What the rule remembers, bit for bit."""
        return [
            self._begun.to_bytes(8, "little"),
            self._view.progress.tobytes(),
            self._view.stats.tobytes(),
            self._memory.tobytes(),
        ]

    def load(self, dumped: list[bytes]) -> None:
        """Remember what was dumped; a ValueError where it is of another layout."""
        begun, progress, stats, memory = dumped
        header = self._memory[:8].tobytes()
        if len(memory) != self._memory.size or memory[:8] != header or len(stats) != self._view.stats.nbytes:
            raise ValueError("the rule's memory has another layout")
        self._begun = int.from_bytes(begun, "little")
        self._view.progress[:] = np.frombuffer(progress, np.int64)
        self._view.stats.view(np.uint8)[:] = np.frombuffer(stats, np.uint8)
        self._memory[:] = np.frombuffer(memory, np.uint8)
