"""Previews: what a lever would do, from what is known now. Nothing is changed.

A preview looks at the busiest segments below the one in question, once as the router is and once as it would be, and weighs them by
their decisions. Quality is the estimate of the arm that would be chosen, with the interval that explanations have.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thrifty.compiled import interpreted
from thrifty.intervals import radius
from thrifty.router.arms import Arms, ArmsAndPrices
from thrifty.router.change_log import RESET_STAYS
from thrifty.router.change_texts import CHANGED, exact
from thrifty.router.explanation import LEVEL
from thrifty.router.outlook import Look, Looker, SumsCopy
from thrifty.router.rehearsal import Change, try_changes
from thrifty.router.settings import NEWCOMER_OUTCOMES, Settings, checked_price

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

MOST_SEGMENTS = 200
"""The busiest segments that a preview looks at."""

PREVIEWS = ("add", "retire", "pause", "resume", "price", "reset", "pin", "unpin", "alpha")
"""What can be previewed."""

VAGUE = 0.2
"""The width of an interval from which a preview says in words that little is known."""

_radius = interpreted(radius)


class Expected(NamedTuple):
    """What to expect of decisions in some segments: an arm where it is one, mean quality with its interval, mean cost."""

    arm: str | None
    quality: float | None
    low: float | None
    high: float | None
    cost: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return self._asdict()


class Plan(NamedTuple):
    """The router as it is or would be: its arms, its settings, and the arms whose statistics would be gone.

    With `baseline` it is about traffic that takes the baseline: all of it after a fallback, the keys outside of a canary.
    """

    arms: Arms
    settings: Settings
    forgotten: frozenset[int] = frozenset()
    baseline: bool = False

    def choice(self, n_known: int) -> ArmsAndPrices:
        """The arms that something is known about, at their prices."""
        numbers, prices = self.arms.active_at_prices()
        kept = [place for place, arm in enumerate(numbers) if arm < n_known and arm not in self.forgotten]
        return tuple(numbers[place] for place in kept), tuple(prices[place] for place in kept)


def preview(
    router: "RouterView",
    action: str,
    arm: str | None = None,
    *,
    price: float | None = None,
    alpha: float | None = None,
    segment: str = "",
    max_age_s: float = 0.0,
) -> dict[str, Any]:
    """What a change would do to the choice, the quality and the cost; nothing is changed. A ValueError if it could not be made.

    Parameters
    ----------
    action : what `change` takes, or "alpha"
    arm, price : as `change` takes them
    alpha : for "alpha"
    segment : the segments of interest: this one and all below it
    max_age_s : how old the statistics may be

    """
    if action not in PREVIEWS:
        raise ValueError(f"action must be one of {', '.join(PREVIEWS)}, got {action!r:.80}")
    copied = router.outlook.copy(router, max_age_s=max_age_s)
    fallen_back = copied.fallback and copied.settings.mode != "shadow"
    now = Plan(copied.arms, copied.settings, baseline=fallen_back)
    then = _planned(copied, action, arm, price, alpha)._replace(baseline=fallen_back)
    numbers, weights, covered = busiest(copied, segment)
    looks = [_looks(copied, plan, numbers) for plan in (now, then)]
    before, after = (expected(plan, each, weights) for plan, each in zip((now, then), looks, strict=True))
    moved = sum(_taken(now, one) != _taken(then, other) for one, other in zip(*looks, strict=True))
    facts = {"segments": len(numbers), "segments_moved": moved, "covered": covered}
    when = _when(action, arm, now, then)
    text = _text(now, (action, arm), (before, after), (moved, len(numbers)), when)
    text += _caveat(now, then) or _share_text((now, then), looks, weights)
    why_not = RESET_STAYS if action == "reset" else None
    return {
        "text": text if why_not is None else f"{text}. This cannot be undone: {why_not}",
        "before": before.to_dict(),
        "after": after.to_dict(),
        "undoable": why_not is None,
        "version": copied.version,
        **facts,
    }


def _planned(copied: SumsCopy, action: str, arm: str | None, price: float | None, alpha: float | None) -> Plan:
    """The router after the change, tried as the change itself would be."""
    if action == "alpha":
        if alpha is None:
            raise ValueError("alpha needs a value: the share of the best reward that one is willing to give up")
        for name, value in (("arm", arm), ("price", price)):
            if value is not None:
                raise ValueError(f"a change of alpha takes no {name}, got {value!r:.80}: it is about all arms, so leave {name} out")
        settings = replace(copied.settings, alpha=alpha)
        return Plan(copied.arms, settings)
    if alpha is not None:
        raise ValueError(f"{action} takes no alpha, got {alpha:g}: leave alpha out, or preview the action alpha")
    changes: list[Change] = [(action, {"arm": arm, "price": checked_price(str(arm), price)})]
    arms = copied.arms.copy()
    try_changes(arms, copied.settings, changes, fallen_back=copied.fallback)
    return Plan(arms, copied.settings, frozenset(arms.numbers(arm)) if action == "reset" else frozenset())


def busiest(copied: SumsCopy, segment: str) -> tuple[list[int], Any, float]:
    """The numbers of the busiest segments at and below one, their shares of its decisions, and what share they cover."""
    top = nearest(copied.names, segment)
    below = [n for n, name in enumerate(copied.names) if not top or name == top or name.startswith(f"{top}/")]
    own = np.maximum(copied.own("sent")[below], 0)
    busy = np.argsort(-own, kind="stable")[:MOST_SEGMENTS]
    busy = busy[own[busy] > 0]
    if not busy.size:
        return [below[0]], np.ones(1), 1.0
    taken = own[busy]
    return [below[n] for n in busy], taken / taken.sum(), float(taken.sum() / own.sum())


def nearest(names: list[str], segment: str) -> str:
    """The segment of this name, or the first one above it that is there.

    >>> nearest(["", "DE"], "DE/vodafone")
    'DE'
    """
    known = set(names)
    while segment not in known:
        segment = segment.rpartition("/")[0]
    return segment


def _looks(copied: SumsCopy, plan: Plan, numbers: list[int]) -> list[Look | None]:
    choice = plan.choice(copied.sums.shape[1])
    if not choice[0]:
        return [None] * len(numbers)
    looker = Looker(copied, plan.settings, choice)
    return [looker.at(number) for number in numbers]


def _taken(plan: Plan, look: Look | None) -> int | None:
    """The arm that is taken: the pinned one; else the baseline, or the best arm for it; else the cheapest that clears the floor."""
    if plan.arms.pinned is not None:
        return plan.arms.pinned
    if plan.baseline:
        named = plan.arms.find(plan.settings.baseline)
        if named is not None and plan.arms.status[named] == "active":
            return named
    place = None if look is None else look.best if plan.baseline else look.chosen
    return None if look is None or place is None else look.arms[place]


def expected(plan: Plan, looks: list[Look | None], weights: Any) -> Expected:
    """The weighted mean over segments. Intervals are added up as if they erred together: segments borrow from each other."""
    taken = [_taken(plan, look) for look in looks]
    arm = plan.arms.names[taken[0]] if len(set(taken)) == 1 and taken[0] is not None else None
    rows = [_numbers(look, each) for look, each in zip(looks, taken, strict=True)]
    if any(row is None for row in rows):
        return Expected(arm, None, None, None, None)
    quality, half, cost = (float(np.dot(weights, [row[n] for row in rows if row is not None])) for n in range(3))
    return Expected(arm, quality, max(quality - half, 0.0), min(quality + half, 1.0), cost)


def _numbers(look: Look | None, arm: int | None) -> tuple[float, float, float] | None:
    """Mean, half width and cost of an arm; None where it has no outcome."""
    if look is None or arm not in look.arms:
        return None
    place = look.arms.index(arm)
    if look.outcomes[place] <= 0.0:
        return None
    return look.means[place], float(_radius(LEVEL, look.outcomes[place])), look.costs[place]


def _text(now: Plan, asked: tuple[str, str | None], both: tuple[Expected, Expected], moved: tuple[int, int], when: str) -> str:
    (action, arm), (before, after) = asked, both
    if action == "add":
        if now.arms.pinned is not None:
            return f"{arm} would be added, and tried once {now.arms.names[now.arms.pinned]} is pinned no more"
        share = f"{now.settings.newcomer_share:.0%}"
        offered = f"{arm} would be tried in up to {share} of decisions until {NEWCOMER_OUTCOMES} of its outcomes are known"
        return f"{offered}; until then nothing else changes"
    if moved[0] == 0:
        same = f"the chosen arm stays {before.arm}" if before.arm else "the chosen arms stay the same"
        if before.quality is None and before.arm is None:
            return f"{when} nothing is known yet about what would be chosen"
        return f"{when} {same}: {_difference(before, after)}"
    if after.arm is not None:
        return f"{when} the chosen arm would be {after.arm}: {_difference(before, after)}"
    if after.quality is None:
        return f"{when} the router would have to learn again which arm is good enough"
    return f"{when} {moved[0]} of {moved[1]} segments would take another arm: {_difference(before, after)}"


def _caveat(now: Plan, then: Plan) -> str:
    """What keeps a change of the policy's choice from showing in the traffic."""
    if now.settings.mode == "shadow":
        return "; in shadow mode the caller keeps its own choice"
    if not now.baseline:
        return ""
    if then.arms.pinned is not None:
        return "; the router has fallen back to its baseline, and a pin goes before that"
    return "; the router has fallen back to its baseline: what the policy would choose shows once the rollout is moved on"


def _share_text(plans: tuple[Plan, Plan], looks: list[list[Look | None]], weights: Any) -> str:
    """In a canary: of which share of the keys this is said, and what it does to the others."""
    settings = plans[0].settings
    if settings.mode != "canary" or all(plan.arms.pinned is not None for plan in plans):
        return ""
    others = [plan._replace(baseline=True) for plan in plans]
    taken = [[_taken(plan, look) for look in each] for plan, each in zip(others, looks, strict=True)]
    before, after = (expected(plan, each, weights) for plan, each in zip(others, looks, strict=True))
    text = f"; in {settings.canary_share:.3g} of the keys, the canary"
    if taken[0] != taken[1]:
        return f"{text}; all other keys would take {after.arm or 'another arm'}: {_difference(before, after)}"
    if before != after:
        return f"{text}; all other keys stay with {after.arm or 'their arms'}: {_difference(before, after)}"
    return text


def _when(action: str, arm: str | None, now: Plan, then: Plan) -> str:
    """The change in some words."""
    if action == "alpha":
        return f"at alpha {exact(then.settings.alpha)}"
    if action == "unpin":
        return "without a pin"
    if action == "reset":
        return f"with the statistics of {arm or 'all arms'} reset"
    if action == "price":
        price = then.arms.prices[then.arms.index(arm)]
        return f"with {arm} at {'an unknown price' if price is None else exact(price)}"
    unpinned = action in ("pause", "retire") and now.arms.pinned is not None and then.arms.pinned is None
    return f"with {arm} {CHANGED[action]}{' and no more pinned' if unpinned else ''}"


def _difference(before: Expected, after: Expected) -> str:
    if before.quality is None or before.cost is None or after.quality is None or after.cost is None:
        return "its quality is not known yet"
    share = 1.0 - after.cost / before.cost if before.cost > 0.0 else 0.0
    if abs(share) < 0.005:
        cost = "about the same cost"
    else:
        cost = f"about {abs(share):.0%} {'less' if share > 0 else 'more'}"
    same = f"{before.quality:.3f}" == f"{after.quality:.3f}"
    text = f"{cost}, quality {after.quality:.3f} {'as now' if same else f'instead of {before.quality:.3f}'}"
    vague = next((each for each in (after, before) if _is_vague(each)), None)
    if vague is None:
        return text
    return f"{text}; few outcomes are known: the quality {'after' if vague is after else 'before'} it is {_range(vague)}"


def _is_vague(expected: Expected) -> bool:
    return expected.high is not None and expected.low is not None and expected.high - expected.low > VAGUE


def _range(expected: Expected) -> str:
    return f"somewhere between {expected.low:.2f} and {expected.high:.2f}"
