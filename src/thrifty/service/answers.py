"""Answers: what was done on the hot path, and how it goes over the wire."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from thrifty.router import Decision, DecisionInFlightError, Router
from thrifty.router.decision import explain_code, fallbacks_of
from thrifty.router.recording import LANDING_S
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


class Later:
    """Something that can be done a moment later: it is tried again whenever somebody asks whether it is certain, for a while.

    So an outcome that comes at once waits for its decision, which was given out before it was stored, and takes up no thread.
    """

    def __init__(self, call: "Callable[[], Done | DoneBatch]") -> None:
        self._call, self._until = call, time.monotonic() + LANDING_S
        self._done: Done | DoneBatch | None = None

    def is_certain(self) -> bool:
        """Whether it may be answered; a DecisionInFlightError once it has waited too long."""
        if self._done is None:
            try:
                self._done = self._call()
            except DecisionInFlightError:
                if time.monotonic() > self._until:
                    raise
                return False
        return self._done.is_certain()

    def answer(self) -> Any:
        """What to say."""
        assert self._done is not None
        return self._done.answer()


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
