"""Decisions as they go over the wire."""

from thrifty.router import Decision
from thrifty.router.decision import fallbacks_of
from thrifty.service.messages import DecisionAnswer, Estimate, ReasonBody
from thrifty.service.router_interface import explain_code


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
        decision.id, decision.arm, fallbacks_of(known, decision.arm), decision.propensity, decision.explored,
        ReasonBody(code, best, floor, estimates, saving, why), decision.version, decision.repeated, decision.degraded,
    )  # fmt: skip
