"""Rates: how much came in the last minute, and how good it was in the last quarter of an hour, from samples of the totals."""

from collections import deque
from typing import Any, NamedTuple

from thrifty.router import Router
from thrifty.router.summary import score_interval

MINUTE_S, RECENT_S = 60.0, 900.0
"""Spans: of the rates, and of the recent quality and spend."""

COARSE_S = 15.0
"""Seconds between two samples of the longer span."""


class Sample(NamedTuple):
    """The totals of a router at one moment."""

    at: float  # monotonic
    decisions: int
    outcomes: int
    seen: float
    reward: float
    spend: float


class RouterRates:
    """Samples of one router, taken about once a second."""

    def __init__(self) -> None:
        self._life: Any = None
        self._fine: deque[Sample] = deque()
        self._coarse: deque[Sample] = deque()

    def sample(self, router: Router, now: float) -> None:
        """Take a sample if anything has changed; begin anew after a reset."""
        life, totals = router.totals()
        if life != self._life:
            self._life = life
            self._fine.clear()
            self._coarse.clear()
        if not self._fine or self._fine[-1][1:] != totals:
            self._fine.append(Sample(now, *totals))
        if not self._coarse or (now - self._coarse[-1].at >= COARSE_S and self._coarse[-1][1:] != totals):
            self._coarse.append(Sample(now, *totals))
        for samples, span in ((self._fine, MINUTE_S), (self._coarse, RECENT_S)):
            while len(samples) > 1 and samples[1].at <= now - span:
                samples.popleft()

    def shown(self) -> dict[str, Any]:
        """Decisions and outcomes of the last minute; outcomes, quality and spend of the last quarter of an hour."""
        if not self._fine:
            return {"decisions_per_minute": 0, "outcomes_per_minute": 0, "recent": None}
        first, last, begun = self._fine[0], self._fine[-1], self._coarse[0]
        seen = last.seen - begun.seen
        reward = min(max(last.reward - begun.reward, 0.0), max(seen, 0.0))
        low, high = score_interval(reward, seen)
        recent = {"seconds": RECENT_S, "outcomes": max(round(seen), 0), "quality": reward / seen if seen > 0.0 else None}
        return {
            "decisions_per_minute": last.decisions - first.decisions,
            "outcomes_per_minute": last.outcomes - first.outcomes,
            "recent": {**recent, "quality_low": low, "quality_high": high, "spend": last.spend - begun.spend},
        }
