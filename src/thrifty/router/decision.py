"""A decision: which arm, what to try next, and why."""

import math
from struct import unpack
from typing import NamedTuple

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
        return say_why(self.code, self.best_arm, self.floor, self.saving, self.segment)


def say_why(code: str, best_arm: str | None, floor: float, saving: float | None, segment: str) -> str:
    """A reason in words.

    >>> say_why("only", None, 0.0, None, "DE")
    'only: no other arm is eligible; nothing is known yet (statistics of DE)'
    """
    best = f"; the best arm known is {best_arm}, the floor {floor:.4g}" if best_arm else "; nothing is known yet"
    saved = f", saving {saving:.4g}" if saving else ""
    return f"{code}: {CODES[code]}{best}{saved} (statistics of {segment or 'all segments'})"


class Known(NamedTuple):
    """What was known when a decision was made: of every arm in turn, and about all of them."""

    arms: tuple[str, ...]
    means: tuple[float, ...]  # -1 where there was no outcome
    outcomes: tuple[float, ...]
    costs: tuple[float, ...]
    floor: float
    best_arm: str | None
    saving: float | None


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

    __slots__ = ("_facts", "_known", "_names", "_segment", "_sent", "repeated")

    def __init__(self, sent: Sent, facts: bytes, names: tuple[str, ...], decided_by: str) -> None:
        self._sent, self._facts, self._names, self._segment = sent, facts, names, decided_by
        self._known: Known | None = None
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
    def decided_by(self) -> str:
        """The segment whose statistics were used."""
        return self._segment

    @property
    def reason(self) -> Reason:
        """Why this arm."""
        arms, means, outcomes, costs, floor, best, saving = self.known
        facts = zip(arms, means, outcomes, costs, strict=True)
        estimates = tuple(ArmFacts(arm, mean if n else None, int(n), cost, mean >= floor) for arm, mean, n, cost in facts)
        return Reason(self.code, best, floor, estimates, saving, self._segment)

    @property
    def known(self) -> Known:
        """The numbers behind the reason."""
        if self._known is None:
            arms = self._names
            k = len(arms)
            facts = unpack(f"{FACTS + 3 * k}d", self._facts)
            floor, best = facts[FLOOR], int(facts[BEST])
            outcomes, costs = facts[FACTS + k : FACTS + 2 * k], facts[FACTS + 2 * k :]
            arm, saving = self._sent.row.arm, None
            if outcomes[best] > 0 and arm in arms:
                saving = costs[best] - costs[arms.index(arm)]
            known = arms[best] if outcomes[best] > 0 else None
            self._known = Known(arms, facts[FACTS : FACTS + k], outcomes, costs, floor, known, saving)
        return self._known

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What to try if the arm fails: the other feasible arms from the cheapest, then the rest from the best."""
        known, taken = self.known, self._sent.row.arm
        order = [
            (0, cost, -mean, n) if mean >= known.floor else (1, -mean, cost, n)
            for n, (mean, cost) in enumerate(zip(known.means, known.costs, strict=True))
        ]
        order.sort()
        return tuple([arm for each in order if (arm := known.arms[each[3]]) != taken])

    def __repr__(self) -> str:
        return f"Decision({self.id!r}, arm={self.arm!r}, {self.code}, propensity={self.propensity:.3g})"
