"""The last minutes of every router in steps of a few seconds: the history in the store has minutes and more."""

import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from thrifty.router import Router
from thrifty.service.dashboard.series import Cell, Timeline

STEP_S = 5.0
STEPS = 120
FEWEST = 24
"""Steps that are shown at least: a router that was just made has no long empty stretch before it."""


class Sample(NamedTuple):
    """The sums of a router at a moment: decisions, outcomes, rewards and costs by arm."""

    at: float
    sums: dict[str, tuple[int, int, float, float]]


class Pulse:
    """Samples of all routers, taken by the service four times a second or less; reading one is a lock and a copy.

    >>> router, pulse = Router({"a": 1.0}, alpha=0.1), Pulse()
    >>> pulse.sample([("r", router)], now=0.0)
    >>> _ = router.decide()
    >>> pulse.sample([("r", router)], now=5.0)
    >>> pulse.timeline("r", ["a"]).arms["a"][-1].decisions
    1.0
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._samples: dict[str, deque[Sample]] = {}
        self._due = 0.0

    def sample(self, routers: Iterable[tuple[str, Router]], now: float | None = None) -> None:
        """Take a sample of every router, if it is time for one."""
        now = time.time() if now is None else now
        if self._due and self._due - STEP_S <= now < self._due:
            return
        step = now // STEP_S * STEP_S
        self._due = step + STEP_S
        taken = {name: router.statistics() for name, router in routers}
        with self._guard:
            for name in self._samples.keys() - taken.keys():
                del self._samples[name]
            for name, sums in taken.items():
                self._samples.setdefault(name, deque(maxlen=STEPS + 1)).append(Sample(step, sums))

    def totals(self, name: str) -> list[Cell]:
        """All arms of a router together, by step, the newest last."""
        with self._guard:
            samples = list(self._samples.get(name, ()))
        sums = [[sum(column) for column in zip(*sample.sums.values(), strict=True)] for sample in samples]
        moved = [Cell(*(max(new - old, 0) for new, old in zip(after, before, strict=True))) for before, after in pairwise(sums)]
        return [Cell()] * (FEWEST - len(moved)) + moved

    def timeline(self, name: str, arms: Iterable[str]) -> Timeline:
        """What happened between the samples of a router; arms in this order. What a reset took away is no traffic."""
        with self._guard:
            samples = list(self._samples.get(name, ()))
        end = samples[-1].at if samples else time.time() // STEP_S * STEP_S
        steps = min(max(len(samples) - 1, FEWEST), STEPS)
        start = end - steps * STEP_S
        cells = {arm: [Cell()] * steps for arm in arms}
        for before, after in pairwise(samples):
            step = int((before.at - start) // STEP_S)
            for arm, sums in after.sums.items():
                if arm in cells and 0 <= step < steps:
                    last = before.sums.get(arm, (0, 0, 0.0, 0.0))
                    fell = any(new < old for new, old in zip(sums[:2], last[:2], strict=True))
                    moved = Cell() if fell else Cell(*(max(new - old, 0) for new, old in zip(sums, last, strict=True)))
                    cells[arm][step] = cells[arm][step].plus(moved)
        return Timeline(start, STEP_S, cells)
