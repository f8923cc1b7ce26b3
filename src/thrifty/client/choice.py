"""Choices, and how the client chooses when the service cannot: the last known good arm, else the cheapest."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Eligible = Mapping[str, float | None]
"""Prices by arm, for one call; None where the router's own price holds."""

MAX_KNOWN = 10_000
"""Last known good arms that a client keeps; the one used longest ago is dropped first."""

_GOOD = ("exploit", "pinned")
"""Codes of decisions that rest on what the service knows or its operator ordered; not exploration, holdout or newcomers."""


@dataclass(frozen=True)
class Choice:
    """A decision of the service or, if `local`, of the client because the service could not be reached in time.

    Attributes
    ----------
    arm : the arm to use
    decision_id : what to report the outcome with; None if the choice is local
    fallbacks : arms to try next if this one fails
    propensity : probability of this choice; None if unknown
    explored : True if the arm was chosen to learn about it
    reason : why; `reason["text"]` is a sentence
    local : True if the client chose
    degraded : True if the service made the decision while its store was away, so that it is not durable yet
    repeated : True if the service had already decided this request_id, and answered with that decision
    request_id : what the decision was requested with

    >>> Choice("a", None, local=True).local
    True

    """

    arm: str
    decision_id: str | None
    fallbacks: tuple[str, ...] = ()
    propensity: float | None = None
    explored: bool = False
    reason: dict[str, Any] = field(default_factory=dict)
    local: bool = False
    degraded: bool = False
    repeated: bool = False
    request_id: str | None = None


class KnownArms:
    """Last known good arms by router, segment and eligible set, and the prices to fall back on. Thread-safe.

    >>> known = KnownArms({"a": 0.2, "b": 0.1})
    >>> known.arm("sms", "DE/vodafone")
    'b'
    >>> known.learn("sms", "DE", None, Choice("a", "sms.0.1", reason={"code": "exploit"}))
    >>> known.arm("sms", "DE/vodafone"), known.arm("sms", "FR"), known.arm("sms", "DE", {"b": None})
    ('a', 'b', 'b')
    """

    def __init__(self, prices: Mapping[str, float] | None) -> None:
        self.enabled = prices is not None
        self._prices = dict(prices or {})
        self._known: OrderedDict[tuple[str, str, frozenset[str] | None], str] = OrderedDict()
        self._lock = threading.Lock()

    def learn(self, router: str, segment: str, eligible: Eligible | None, choice: Choice) -> None:
        """Remember the arm of a decision, if it rests on what the service knows."""
        if not self.enabled or choice.local or choice.reason.get("code") not in _GOOD:
            return
        key = router, segment, None if eligible is None else frozenset(eligible)
        with self._lock:
            self._known[key] = choice.arm
            self._known.move_to_end(key)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def arm(self, router: str, segment: str, eligible: Eligible | None = None) -> str | None:
        """The last known good arm of the segment or of the nearest one above it, else the cheapest; None if there is none."""
        if not self.enabled:
            return None
        sets = (None,) if eligible is None else (frozenset(eligible), None)
        with self._lock:
            for above in _upwards(segment):
                for arms in sets:
                    known = self._known.get((router, above, arms))
                    if known is not None and (eligible is None or known in eligible):
                        return known
        prices = self._prices if eligible is None else {arm: eligible[arm] for arm in self._prices if arm in eligible}
        paid = {arm: self._prices[arm] if price is None else price for arm, price in prices.items()}
        return min(paid, key=paid.__getitem__) if paid else None


def _upwards(segment: str) -> Iterator[str]:
    """A segment and those above it: DE/vodafone, DE, and the whole router."""
    while segment:
        yield segment
        segment = segment.rpartition("/")[0]
    yield ""
