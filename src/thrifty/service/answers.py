"""Answers: what was done on the hot path, and how it goes over the wire."""

from typing import Any, NamedTuple

from thrifty.router import Decision, Router
from thrifty.router.decision import explain_code, fallbacks_of
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import DecisionAnswer, Estimate, OutcomeAnswer, ReasonBody


class Done(NamedTuple):
    """One thing that was asked for and done: where it lies in the log of its router, and what there is to say of it."""

    router: Router
    position: int
    content: Decision | OutcomeAnswer

    def is_certain(self) -> bool:
        """Whether it may be answered: it is durable, or is going to be because the store is away."""
        return self.router.is_durable(self.position) or self.router.is_degraded(self.position)

    def answer(self) -> DecisionAnswer | OutcomeAnswer:
        """What to say."""
        if isinstance(self.content, OutcomeAnswer):
            return self.content
        self.router.finish(self.content)
        return explained(self.content)


class DoneBatch(NamedTuple):
    """Several things, some of which could not be done."""

    parts: list[Done | ServiceProblemError]

    def is_certain(self) -> bool:
        """Whether all may be answered; the last is certain last."""
        return all(isinstance(part, ServiceProblemError) or part.is_certain() for part in reversed(self.parts))

    def wait(self) -> None:
        """Return when all may be answered."""
        for part in self.parts:
            if not isinstance(part, ServiceProblemError):
                part.router.wait(part.position)

    def answer(self) -> list[Any]:
        """What to say."""
        return [part.to_dict() if isinstance(part, ServiceProblemError) else part.answer() for part in self.parts]


def explained(decision: Decision) -> DecisionAnswer:
    """A decision with its reason."""
    known, code = decision.known, decision.code
    floor, best, saving = known.floor, known.best_arm, known.saving
    estimates = [
        Estimate(arm, mean if outcomes else None, int(outcomes), cost, mean >= floor)
        for arm, mean, outcomes, cost in zip(known.arms, known.means, known.outcomes, known.costs, strict=True)
    ]
    why = explain_code(code, best, floor, saving, decision.decided_by)
    return DecisionAnswer(
        decision.id,
        decision.arm,
        fallbacks_of(known, decision.arm),
        decision.propensity,
        decision.explored,
        ReasonBody(code, best, floor, estimates, saving, why),
        decision.version,
        decision.repeated,
        decision.degraded,
    )
