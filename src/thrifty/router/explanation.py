"""Explanations: what is known about a segment, what would be chosen now and why, and what has been saved."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from thrifty.compiled import interpreted
from thrifty.intervals import radius
from thrifty.router.arms import Arms
from thrifty.router.frame import BEST, FLOOR, GREEDY
from thrifty.router.saving import saved_against
from thrifty.router.state import State

_radius = interpreted(radius)
LEVEL = math.log(2 / 0.05) / 2
"""Hoeffding: a two-sided interval that holds with probability 0.95 for rewards in [0, 1]."""


@dataclass(frozen=True)
class ArmExplanation:
    """One arm of a segment. `pending` are decisions without an outcome.

    `mean` rests on the outcomes that are `remembered`, all of them unless the policy forgets, and on `borrowed` ones: what those of
    other segments are worth. `known` outcomes were known when the router started: they are no `outcomes` of its own, and are among
    those remembered as long as the policy has not forgotten them. `low` and `high` bound it with probability 0.95.
    """

    arm: str
    status: str
    newcomer: bool
    decisions: int
    outcomes: int
    pending: int
    remembered: float
    borrowed: float
    known: int
    reward_sum: float
    mean: float | None
    low: float
    high: float
    cost: float | None
    spent: float
    feasible: bool


@dataclass(frozen=True)
class Explanation:
    """What is known about a segment.

    `chosen` is the cheapest arm whose mean clears the floor; `saved` is what the outcomes so far cost less than the same number
    from the best arm would have, at what that arm cost in each segment below this one. With a holdout or in a canary, `measured`
    compares the groups of the whole router by outcomes, mean reward and mean cost. `known_from` is where outcomes come from that
    the router started with; empty if there are none.
    """

    segment: str
    decided_by: str
    policy: str
    alpha: float
    floor: float
    best_arm: str | None
    chosen: str | None
    why: str
    saved: float
    measured: dict[str, dict[str, float | None]] | None
    known_from: str
    arms: tuple[ArmExplanation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "arms": [asdict(arm) for arm in self.arms]}

    def __str__(self) -> str:
        lines = [f"segment {self.segment or '(all)'}, {self.policy}, alpha {self.alpha:g}: {self.why}"]
        width = max(len(arm.arm) for arm in self.arms)
        for arm in self.arms:
            mean = "no outcome yet" if arm.mean is None else f"{arm.mean:.4f} in [{arm.low:.3f}, {arm.high:.3f}]"
            marks = [name for name, holds in (("feasible", arm.feasible), ("newcomer", arm.newcomer)) if holds]
            marks += [] if arm.status == "active" else [arm.status]
            cost = "unknown" if arm.cost is None else f"{arm.cost:g}"
            outcomes = f"{arm.outcomes} outcomes" + (f", {arm.remembered:g} remembered" if arm.remembered != arm.outcomes else "")
            outcomes += f", {arm.borrowed:g} borrowed" if arm.borrowed else ""
            outcomes += f", {arm.known} known from {self.known_from}" if arm.known else ""
            lines.append(f"  {arm.arm:<{width}}  {mean:<26} cost {cost:<8} {outcomes}, {arm.pending} pending  {' '.join(marks)}")
        lines.append(f"  saved so far: {self.saved:.6g}")
        for group, measured in (self.measured or {}).items():
            lines.append(f"  {group}: {measured}")
        return "\n".join(lines)


def explain_segment(state: State, name: str) -> Explanation:
    """The explanation of a segment; one that was never used is explained by the nearest one above it."""
    arms, settings, segments = state.arms, state.settings, state.segments
    segment = segments.nearest(name)
    rule = segments.look(segment)
    floor, learnt = float(rule.facts[FLOOR]), rule.facts[GREEDY] >= 0
    best = arms.names[rule.arms[int(rule.facts[BEST])]] if learnt else None
    chosen = arms.names[rule.arms[int(rule.facts[GREEDY])]] if learnt else None
    effective = rule.effective()
    own, recent = segments.statistics(segment.number), segments.sums.recent[segment.number].tolist()
    start = state.configuration.known_left
    known = [0 if start is None else start.below(segment.name, name) for name in arms.names]
    found = [
        _explain_arm(arms, arm, own[arm], recent[arm], effective.get(arm, recent[arm][:5]), floor, known[arm])
        for arm in range(len(arms.names))
    ]
    instead = "" if segment.name == name else segment.name or "all segments"
    fixed, reason = _fixed(state, best)
    return Explanation(
        segment=name,
        decided_by=segment.name,
        policy=settings.policy,
        alpha=settings.alpha,
        floor=floor,
        best_arm=best,
        chosen=fixed or chosen,
        why=reason or _why(best, chosen, floor, instead),
        saved=saved_against(*segments.sums.used(), segment.number, rule.arms[int(rule.facts[BEST])]) if learnt else 0.0,
        measured=_measured(state.groups) if settings.holdout or settings.mode == "canary" else None,
        known_from="" if start is None or not start.outcomes else start.source,
        arms=tuple(found),
    )


def _explain_arm(
    arms: Arms, arm: int, own: tuple[Any, ...], recent: tuple[Any, ...], effective: tuple[Any, ...], floor: float, known: int
) -> ArmExplanation:
    sent, pending, seen, reward_sum, spent, _, _, priced = own
    weight, won, paid = (max(number, 0.0) for number in effective[2:5])
    remembered = max(recent[2], 0.0)  # corrections of forgotten outcomes can leave less than nothing
    mean = won / weight if weight else None
    width = _radius(LEVEL, weight) if weight else 1.0
    price = arms.prices[arm]
    learnt = paid / weight if weight and (priced or known) else None
    return ArmExplanation(
        arm=arms.names[arm],
        status=arms.status[arm],
        newcomer=arm in arms.newcomers,
        decisions=sent,
        outcomes=int(seen),
        pending=pending,
        remembered=round(remembered, 1),
        borrowed=round(weight - remembered, 1),
        known=known,
        reward_sum=reward_sum,
        mean=mean,
        low=max(mean - width, 0.0) if mean is not None else 0.0,
        high=min(mean + width, 1.0) if mean is not None else 1.0,
        cost=price if price is not None else learnt,
        spent=spent,
        feasible=mean is not None and mean >= floor and arms.status[arm] == "active",
    )


def _fixed(state: State, best: str | None) -> tuple[str | None, str]:
    """The arm that is taken whatever the rule would choose, and why: it is pinned, or the guardrail fell back to it."""
    arms, fallback, baseline = state.arms, state.configuration.fallback, state.settings.baseline
    if arms.pinned is not None:
        return arms.names[arms.pinned], f"{arms.names[arms.pinned]} is pinned"
    if fallback is None or state.settings.mode == "shadow":
        return None, ""
    arm = baseline if baseline in arms.active() else best
    return arm, f"fallen back to the baseline {arm or ''} until a person moves the rollout on: {fallback['text']}"


def _why(best: str | None, chosen: str | None, floor: float, instead: str) -> str:
    if chosen is None:
        return "nothing is known yet"
    unseen = f" (by the statistics of {instead}: nobody has asked for this one)" if instead else ""
    return f"{chosen} is the cheapest arm whose mean clears the floor {floor:.4f} set by {best}{unseen}"


def _measured(groups: dict[str, list[Any]]) -> dict[str, dict[str, float | None]]:
    return {
        name: {"outcomes": n, "mean_reward": reward / n if n else None, "mean_cost": cost / n if n else None}
        for name, (n, reward, cost, *_) in groups.items()
    }
