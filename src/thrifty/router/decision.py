"""A decision: which arm, what to try next, and why."""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from thrifty.router.frame import BEST, FACTS, FLOOR
from thrifty.router.rule_instance import RuleInstance

MEANINGS = {
    "exploit": "the cheapest arm whose mean reward clears the floor",
    "explore": "not the cheapest arm that clears the floor: the rule wants to know more about this one, or holds it worth more",
    "only": "no other arm is eligible",
    "newcomer": "an arm that was added while running is being tried",
    "holdout": "this decision belongs to the holdout share, which takes the best arm whatever it costs",
    "pinned": "an operator pinned this arm",
    "baseline": "this decision is not in the canary share, so it takes the baseline",
    "fallback": "the guardrail stopped the rollout: everything takes the baseline until a person moves it on",
    "budget": "the cheapest arm whose mean reward clears the floor, and no dearer one, because the day's budget is tight",
}
"""Why an arm was chosen: `thrifty.router.records.CODES` in words."""


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
        return explain_code(self.code, self.best_arm, self.floor, self.saving, self.segment)


def explain_code(code: str, best_arm: str | None, floor: float, saving: float | None, segment: str) -> str:
    """A reason in words.

    >>> explain_code("only", None, 0.0, None, "DE")
    'only: no other arm is eligible; nothing is known yet (statistics of DE)'
    """
    best = f"; the best arm known is {best_arm}, the floor {floor:.4g}" if best_arm else "; nothing is known yet"
    saved = f", saving {saving:.4g}" if saving else ""
    return f"{code}: {MEANINGS[code]}{best}{saved} (statistics of {segment or 'all segments'})"


class Known(NamedTuple):
    """What was known when a decision was made: of every arm in turn, and about all of them."""

    arms: tuple[str, ...]
    means: tuple[float, ...]  # -1 where there was no outcome
    outcomes: tuple[float, ...]
    costs: tuple[float, ...]
    floor: float
    best_arm: str | None
    saving: float | None


@cache
def _numbers(count: int) -> Callable[[bytes], tuple[Any, ...]]:
    """What reads so many numbers from bytes."""
    return Struct(f"{count}d").unpack


class Decision:
    """One decision of a router.

    Attributes
    ----------
    id : to be given back with the outcome
    arm : the arm to use
    propensity : the probability of this arm, given what was known: over the holdout and all others, and in a canary over both
        groups, as if the key were random
    explored : whether it was chosen to learn rather than for what is known
    code : why, in one word; one of `MEANINGS`
    version : how often the router's arms had been changed
    repeated : whether this answers a request_id that was seen before
    segment : what the decision is for
    position : of the decision in the log
    degraded : whether the decision is not durable, because the store is away

    """

    __slots__ = ("_facts", "_rule", "arm", "code", "degraded", "id", "position", "propensity", "repeated", "segment", "version")

    def __init__(self, id: str, arm: str, code: str, propensity: float, segment: str, version: int, rule: RuleInstance) -> None:
        self.id, self.arm, self.code, self.propensity = id, arm, code, propensity
        self.segment, self.version = segment, version
        self.position = 0
        self.repeated = self.degraded = False
        self._rule, self._facts = rule, rule.facts.tobytes()  # the facts of now: the rule goes on

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
        return self._rule.segment

    @property
    def reason(self) -> Reason:
        """Why this arm."""
        arms, means, outcomes, costs, floor, best, saving = self.known
        facts = zip(arms, means, outcomes, costs, strict=True)
        estimates = tuple(ArmFacts(arm, mean if n else None, int(n), cost, mean >= floor) for arm, mean, n, cost in facts)
        return Reason(self.code, best, floor, estimates, saving, self._rule.segment)

    @property
    def known(self) -> Known:
        """The numbers behind the reason."""
        arms = self._rule.names
        k = len(arms)
        facts = _numbers(len(self._facts) // 8)(self._facts)
        floor, best = facts[FLOOR], int(facts[BEST])
        outcomes, costs = facts[FACTS + k : FACTS + 2 * k], facts[FACTS + 2 * k :]
        known = arms[best] if outcomes[best] > 0 else None
        saving = costs[best] - costs[arms.index(self.arm)] if known is not None and self.arm in arms else None
        return Known(arms, facts[FACTS : FACTS + k], outcomes, costs, floor, known, saving)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What to try if the arm fails: the other feasible arms from the cheapest, then the rest from the best."""
        return fallbacks_of(self.known, self.arm)

    def __repr__(self) -> str:
        return f"Decision({self.id!r}, arm={self.arm!r}, {self.code}, propensity={self.propensity:.3g})"


def fallbacks_of(known: Known, taken: str) -> tuple[str, ...]:
    """The other feasible arms from the cheapest, then the rest from the best."""
    order = [
        (0, cost, -mean, n) if mean >= known.floor else (1, -mean, cost, n)
        for n, (mean, cost) in enumerate(zip(known.means, known.costs, strict=True))
    ]
    order.sort()
    return tuple([arm for each in order if (arm := known.arms[each[3]]) != taken])
