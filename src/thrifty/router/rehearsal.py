"""Rehearsal: try a change of arms or settings on a copy before it is logged, down to one decision and one outcome."""

from dataclasses import replace
from typing import Any

import numpy as np

from thrifty.policies.binding import rule_kernels
from thrifty.policies.inspection import is_users
from thrifty.policies.trial import check_users_rule
from thrifty.problem import Terms
from thrifty.router.arms import Arms, ArmsAndPrices
from thrifty.router.engine import Engine, engine_for
from thrifty.router.known_start import KnownStart
from thrifty.router.records import DecisionRecords
from thrifty.router.rule_instance import RuleTemplate
from thrifty.router.segment_sums import SegmentSums
from thrifty.router.settings import Settings

Change = tuple[str, dict[str, Any]]
"""An action and its body, as they stand in a row of the log."""

WITHOUT_EFFECT = ("delete", "declare")
"""Changes of neither arms nor settings: nothing is to be tried."""


def try_changes(
    arms: Arms,
    settings: Settings,
    changes: list[Change],
    *,
    fallen_back: bool = False,
    apart: bool = False,
    known: KnownStart | None = None,
) -> Engine | None:
    """Make changes to a copy of the arms and settings; a ValueError where one cannot work. The engine to use afterwards, if any.

    `apart` says that the router started with known outcomes, and `known` are those that were not reset since. What is refused here
    and not by `Arms.check_change` may stand in the logs of older versions, and is applied from there.
    """
    policy = settings.policy
    for action, body in changes:
        if action == "settings":
            wanted = Settings.from_dict(body)
            if fallen_back and wanted.baseline != settings.baseline:
                raise ValueError(_fallen_back(settings.baseline, wanted.baseline))
            settings = wanted
        elif action == "rollout":
            settings = replace(settings, mode=body["to"], canary_share=body["share"])
        elif action not in WITHOUT_EFFECT:
            arms.check_change(action, body["arm"], body["price"])
            if action == "pin" and arms.status[arms.index(body["arm"])] == "paused":
                raise ValueError(f"arm {body['arm']!r:.80} is paused, so a pin would have no effect: resume it first")
            if action != "reset":
                arms.change(action, body["arm"], body["price"])
    if all(action in WITHOUT_EFFECT for action, _ in changes):
        return None
    engine = engine_for(settings.policy, apart=apart)
    if known is not None and engine.weighs_outcomes and settings.policy != policy:
        known.check_policy(settings.policy, "reset the router first")
    rehearse(engine, arms, settings, fallen_back=fallen_back)
    return engine


def rehearse(engine: Engine, arms: Arms, settings: Settings, *, fallen_back: bool = False) -> None:
    """Decide once and take one outcome, on statistics of its own; whatever is wrong with a policy becomes a ValueError."""
    choice = arms.active_at_prices()
    _check_baseline(arms, settings.baseline, fallen_back=fallen_back)
    try:
        _check_users_policy(engine, choice, settings)
        sums = SegmentSums(len(arms.names), engine.forgetting)
        sums.add(-1)
        rule = RuleTemplate(engine, settings, choice, names=arms.names, words=np.zeros(4, np.uint64)).instance()
        place = rule.choose(sums, 1, 0)
        if not 0 <= place < len(choice[0]):
            raise ValueError(f"it chose arm {place} of {len(choice[0])}")
        records, arm = DecisionRecords(1), choice[0][place]
        slot = records.add((0, 1), (0, arm, arm, 0, 0, 0.0, 0.0, 1.0, 0.5, 1), None)
        sums.count_pending(0, arm, 1)
        engine.counting.count_outcome.call(records.table, slot, arm, 1.0, 0.5, *sums.everything)
        rule.observe(arm, 1.0, 1.0)
        rule.choose(sums, 2, 0)
    except ValueError:
        raise
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0]
        raise ValueError(f"policy {settings.policy!r:.80} does not work here: {type(error).__name__}: {line:.200}") from error


def _check_baseline(arms: Arms, baseline: str, *, fallen_back: bool) -> None:
    """Raise a ValueError unless the baseline is an arm, or empty."""
    if not baseline:
        return
    remedy = f"name one of {', '.join(arms.active())[:300]}, or leave it empty for the best arm known"
    if arms.find(baseline) is None:
        raise ValueError(f"baseline {baseline!r:.80} is no arm: {remedy}")
    if arms.status[arms.index(baseline)] == "retired":
        if fallen_back:
            raise ValueError(
                f"arm {baseline!r:.80} is the baseline that the router has fallen back to, so it cannot be retired: move the "
                f"rollout first, which ends the fallback, then set baseline, and {remedy}"
            )
        raise ValueError(
            f"arm {baseline!r:.80} is the baseline, which takes all traffic outside a canary and after a fallback, so it cannot be "
            f"retired: set baseline first, or in the same PUT, and {remedy}"
        )


def _fallen_back(baseline: str, wanted: str) -> str:
    named = "the best arm known" if not baseline else repr(baseline)
    return (
        f"the router has fallen back to its baseline, {named:.80}, so baseline must stay {baseline!r:.80}, got {wanted!r:.80}: "
        "name it as it is, move the rollout first, or pin the arm that all traffic shall take"
    )


def _check_users_policy(engine: Engine, choice: ArmsAndPrices, settings: Settings) -> None:
    """Prepare the engine; try a user's policy in plain Python first, and wait for what the compiler says about it.

    A policy of the package decides at once, interpreted. One that the compiler refuses would stay interpreted for ever.
    """
    if not is_users(engine.policy):
        engine.prepare(choice)
        return
    costs = None if any(price is None for price in choice[1]) else np.array(choice[1], dtype=np.float64)
    terms = Terms(n_arms=len(choice[0]), costs=costs, alpha=settings.alpha, horizon=None)
    numbers = engine.policy.numbers(terms)
    check_users_rule(engine.policy, rule_kernels(engine.policy, terms, numbers), terms, numbers)
    job = engine.prepare(choice)
    if job is not None:
        job.wait()
        if job.refusal is not None:
            raise ValueError(job.refusal)
