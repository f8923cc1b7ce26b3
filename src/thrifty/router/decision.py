"""A decision: which arm, what to try next, and why."""

import math
from struct import unpack
from typing import Any, NamedTuple

from thrifty.router.kernels import BEST, FACTS, FLOOR
from thrifty.router.sent import Sent

CODES = {
    "exploit": "the cheapest arm whose mean reward clears the floor",
    "explore": "the rule wants to know more about this arm",
    "newcomer": "an arm that was added while running is being tried",
    "holdout": "this decision belongs to the holdout share, which takes the best arm whatever it costs",
    "pinned": "an operator pinned this arm",
    "only": "no other arm is eligible",
}
"""Why an arm was chosen."""


class ArmFacts(NamedTuple):
    """What was known about an arm when a decision was made."""

    arm: str
    mean: float | None
    outcomes: int
    cost: float
    feasible: bool


class Reason(NamedTuple):
    """Why this arm, in words and numbers. `saving` is what it costs less than the best arm."""

    code: str
    best_arm: str | None
    floor: float
    estimates: tuple[ArmFacts, ...]
    saving: float | None
    segment: str

    def __str__(self) -> str:
        best = f"; the best arm known is {self.best_arm}, the floor {self.floor:.4g}" if self.best_arm else "; nothing is known yet"
        saved = f", saving {self.saving:.4g}" if self.saving else ""
        return f"{self.code}: {CODES[self.code]}{best}{saved} (statistics of {self.segment or 'all segments'})"


class Decision:
    """One decision of a router.

    Attributes
    ----------
    id : to be given back with the outcome
    arm : the arm to use
    propensity : the probability of this arm, given what was known and the group the decision belongs to
    explored : whether it was chosen to learn rather than for what is known
    code : why, in one word; one of `CODES`
    version : how often the router's arms had been changed
    repeated : whether this answers a request_id that was seen before
    degraded : whether the decision is not durable, because the store is away

    """

    __slots__ = ("_facts", "_names", "_reason", "_segment", "_sent", "repeated")

    def __init__(self, sent: Sent, facts: bytes, names: tuple[str, ...], decided_by: str) -> None:
        self._sent, self._facts, self._names, self._segment = sent, facts, names, decided_by
        self._reason: Reason | None = None
        self.repeated = False

    @property
    def id(self) -> str:
        """To be given back with the outcome."""
        return self._sent.id

    @property
    def arm(self) -> str:
        """The arm to use."""
        return str(self._sent.row.arm)

    @property
    def propensity(self) -> float:
        """The probability of this arm."""
        value = self._sent.row.value
        return math.nan if value is None else value

    @property
    def code(self) -> str:
        """Why, in one word."""
        return self._sent.row.code

    @property
    def segment(self) -> str:
        """What the decision is for."""
        return self._sent.row.segment or ""

    @property
    def version(self) -> int:
        """How often the router's arms had been changed."""
        return self._sent.version

    @property
    def position(self) -> int:
        """Of the decision in the log."""
        return self._sent.position

    @property
    def degraded(self) -> bool:
        """Whether it is not durable."""
        return self._sent.degraded

    def become(self, other: "Decision") -> None:
        """Be the other decision, for whoever holds this one."""
        for name in self.__slots__:
            setattr(self, name, getattr(other, name))

    @property
    def explored(self) -> bool:
        """Whether the arm was chosen to learn rather than for what is known."""
        return self.code in ("explore", "newcomer")

    @property
    def reason(self) -> Reason:
        """Why this arm."""
        if self._reason is None:
            self._reason = self._work_out_reason()
        return self._reason

    def _work_out_reason(self) -> Reason:
        n_arms = len(self._names)
        facts = unpack(f"{FACTS + 3 * n_arms}d", self._facts)
        floor, best = facts[FLOOR], int(facts[BEST])
        outcomes, costs = facts[FACTS + n_arms : FACTS + 2 * n_arms], facts[FACTS + 2 * n_arms :]
        estimates = tuple(
            ArmFacts(name, mean if seen else None, int(seen), cost, seen > 0 and mean >= floor)
            for name, mean, seen, cost in zip(self._names, facts[FACTS:], outcomes, costs, strict=False)
        )
        known = outcomes[best] > 0
        saving = costs[best] - costs[self._names.index(self.arm)] if known and self.arm in self._names else None
        return Reason(self.code, self._names[best] if known else None, floor, estimates, saving, self._segment)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What to try if the arm fails: the other feasible arms from the cheapest, then the rest from the best."""

        def order(facts: ArmFacts) -> Any:
            mean = -1.0 if facts.mean is None else facts.mean
            return (0, facts.cost, -mean) if facts.feasible else (1, -mean, facts.cost)

        return tuple(facts.arm for facts in sorted(self.reason.estimates, key=order) if facts.arm != self.arm)

    def __repr__(self) -> str:
        return f"Decision({self.id!r}, arm={self.arm!r}, {self.code}, propensity={self.propensity:.3g})"
