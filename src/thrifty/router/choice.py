"""Choosing: what the rule of a segment chooses, and what pins, the rollout, the holdout, newcomers and the budget make of it."""

from hashlib import blake2b
from math import isnan

from thrifty.router.arms import ArmsAndPrices
from thrifty.router.frame import BEST, CODE, FACTS, GREEDY, PROPENSITY, STREAMS
from thrifty.router.records import CODES
from thrifty.router.rule_instance import RuleInstance
from thrifty.router.segments import Segment
from thrifty.router.settings import NEWCOMER_OUTCOMES
from thrifty.router.state import State

Chosen = tuple[int, int, float, RuleInstance, tuple[int, ...]]
"""The place of an arm in a rule, why, how likely it was, the rule, and newcomers that are newcomers no more."""

_NEWCOMER, _HOLDOUT, _PINNED = CODES.index("newcomer"), CODES.index("holdout"), CODES.index("pinned")
_EXPLOIT, _EXPLORE, _BASELINE, _FALLBACK, _BUDGET = (
    CODES.index(code) for code in ("exploit", "explore", "baseline", "fallback", "budget")
)


def toss_of(router: str, key: str) -> float:
    """A number in [0, 1) that depends on the names of a router and of a key alone: the same in every process and version.

    >>> toss_of("sms", "customer-17")
    0.9944182251107243
    """
    return int.from_bytes(blake2b(f"{router}\0{key}".encode(), digest_size=6).digest(), "big") / 2.0**48


BUCKETS = 1 << 20


def bucket_of(router: str, key: str) -> int:
    """A number below `BUCKETS` that depends on the names of a router and of a key alone, and not on the toss of the key.

    It stands in the log, so that a test can count each key once. It names nobody: among a billion keys, a thousand have the same.

    >>> bucket_of("sms", "customer-17")
    958736
    """
    return int.from_bytes(blake2b(f"{router}\0{key}".encode(), digest_size=3, person=b"bucket").digest(), "big") % BUCKETS


def choose(state: State, sequence: int, segment: Segment, eligible: ArmsAndPrices | None, *, in_canary: bool = True) -> Chosen:
    """Choose for the decision numbered `sequence`. Nothing is counted; only the rule's own memory moves on.

    `in_canary` is whether the key of the request is in the canary share; outside a canary nobody asks.
    """
    rule = state.segments.rule(segment, eligible)
    arms, settings, fallback = state.arms, state.settings, state.configuration.fallback
    special = arms.newcomers or arms.pinned is not None or settings.holdout or settings.mode == "canary" or fallback is not None
    if not (special or state.spending.tight):
        return _ask(state, sequence, rule)
    if arms.pinned is not None and arms.pinned in rule.arms:
        rule.look(state.segments.sums)
        return rule.arms.index(arms.pinned), _PINNED, 1.0, rule, ()
    if len(rule.arms) > 1 and settings.mode != "shadow":
        if fallback is not None:
            return _baseline_place(state, rule), _FALLBACK, 1.0, rule, ()
        if settings.mode == "canary":
            return (_choose_for_canary if in_canary else _choose_baseline)(state, segment, sequence, rule)
    return _choose_routed(state, segment, sequence, rule)


def _baseline_place(state: State, rule: RuleInstance) -> int:
    """The place of the baseline: the arm that is named, if it is eligible, else the best one known."""
    rule.look(state.segments.sums)
    named = state.arms.find(state.settings.baseline)
    return rule.arms.index(named) if named in rule.arms else int(rule.facts[BEST])


def _choose_for_canary(state: State, segment: Segment, sequence: int, rule: RuleInstance) -> Chosen:
    """Route, with the probability over both groups, as if the key were random."""
    baseline, share = rule.arms[_baseline_place(state, rule)], state.settings.canary_share
    place, code, likely, chosen_by, graduates = _choose_routed(state, segment, sequence, rule)
    likely = share * likely + (1.0 - share) * (chosen_by.arms[place] == baseline)
    return place, code, likely, chosen_by, graduates


def _choose_baseline(state: State, segment: Segment, sequence: int, rule: RuleInstance) -> Chosen:
    """Take the baseline; a routed decision might have taken the same arm."""
    place, share = _baseline_place(state, rule), state.settings.canary_share
    likely = 1.0 - share + share * _chance(state, segment, sequence, rule, rule.arms[place])
    return place, _BASELINE, likely, rule, ()


def _chance(state: State, segment: Segment, sequence: int, full: RuleInstance, arm: int) -> float:
    """The probability that `_choose_by_rule`, asked now, would take an arm."""
    full, newcomers = _offered(state, segment, full)
    if not newcomers:
        return _chance_of(state, sequence, full, arm)
    share, untried = state.settings.newcomer_share, _untried(state, newcomers)
    found = 0.0
    if share < 1.0:
        others = state.segments.rule(segment, _without(newcomers, (full.arms, full.prices)))
        found += (1.0 - share) * _chance_of(state, sequence, others, arm)
    if untried:
        return found + share * (arm == untried[0])
    return found + share * _chance_of(state, sequence, full, arm)


def _chance_of(state: State, sequence: int, rule: RuleInstance, arm: int) -> float:
    """The same of one rule. While the budget spares arms, dispensable ones give way to the cheapest feasible arm."""
    sums, draws = state.segments.sums, state.settings.propensity_draws
    if arm not in rule.arms:
        return 0.0
    place = rule.arms.index(arm)
    if not _is_tight(state):
        return rule.chance(sums, sequence, draws, place)
    rule.look(sums)
    greedy = int(rule.facts[GREEDY])
    if place != greedy:
        return 0.0 if greedy >= 0 and rule.is_dispensable(place) else rule.chance(sums, sequence, draws, place)
    kept = [other for other in range(len(rule.arms)) if other != greedy and not rule.is_dispensable(other)]
    return min(max(1.0 - sum(rule.chance(sums, sequence, draws, other) for other in kept), 0.0), 1.0)


def _choose_routed(state: State, segment: Segment, sequence: int, rule: RuleInstance) -> Chosen:
    """What the holdout makes of a decision, and the rule if it is not held out. In a canary the baseline is the holdout.

    The probability of an arm is over both: that of being held out and of not.
    """
    settings, segments = state.settings, state.segments
    held_out = settings.holdout if settings.mode != "canary" and (not _is_tight(state) or settings.guardrail == "on") else 0.0
    if not held_out:
        return _choose_by_rule(state, segment, sequence, rule)
    if segments.toss(STREAMS * sequence + 2) < held_out:
        rule.look(segments.sums)
        if _can_hold_out(state, rule):
            best = int(rule.facts[BEST])
            likely = held_out + (1.0 - held_out) * _chance(state, segment, sequence, rule, rule.arms[best])
            return best, _HOLDOUT, likely, rule, ()
    place, code, likely, chosen_by, graduates = _choose_by_rule(state, segment, sequence, rule)
    if chosen_by is not rule:
        rule.look(segments.sums)
    if _can_hold_out(state, rule):
        best = rule.arms[int(rule.facts[BEST])]
        likely = (1.0 - held_out) * likely + held_out * (chosen_by.arms[place] == best)
    return place, code, likely, chosen_by, graduates


def _can_hold_out(state: State, rule: RuleInstance) -> bool:
    """Whether a decision may be held out, by the last look: an arm is known to be feasible, or the guardrail needs a free coin."""
    return bool(rule.facts[GREEDY] >= 0 or state.settings.guardrail == "on")


def _choose_by_rule(state: State, segment: Segment, sequence: int, rule: RuleInstance) -> Chosen:
    """What newcomers, the rule and the budget make of a decision."""
    rule, newcomers = _offered(state, segment, rule)
    if newcomers:
        chosen = _choose_among_newcomers(state, segment, sequence, rule, newcomers)
    else:
        chosen = _ask(state, sequence, rule)
    return _within_budget(state, segment, sequence, rule, chosen) if _is_tight(state) else chosen


def _offered(state: State, segment: Segment, rule: RuleInstance) -> tuple[RuleInstance, set[int]]:
    """The rule and its newcomers; without dear newcomers while the budget spares them."""
    newcomers = _newcomers(state, rule)
    if newcomers and _is_tight(state) and (dear := _dear_newcomers(state, segment, rule, newcomers)):
        return state.segments.rule(segment, _without(dear, (rule.arms, rule.prices))), newcomers - dear
    return rule, newcomers


def _is_tight(state: State) -> bool:
    """Whether the budget spares arms. Not in a canary, where most decisions take the baseline whatever it costs."""
    return state.spending.tight and state.settings.mode != "canary"


def _ask(state: State, sequence: int, rule: RuleInstance) -> Chosen:
    place = rule.choose(state.segments.sums, sequence, state.settings.propensity_draws, tight=_is_tight(state))
    return place, int(rule.facts[CODE]), rule.facts[PROPENSITY], rule, ()


def _newcomers(state: State, rule: RuleInstance) -> set[int]:
    """Newcomers among the arms of a rule, unless all of them are."""
    if not state.arms.newcomers:
        return set()
    newcomers = state.arms.newcomers & set(rule.arms)
    return newcomers if len(newcomers) < len(rule.arms) else set()


def _untried(state: State, newcomers: set[int]) -> list[int]:
    """Newcomers that were hardly tried, the least tried one first."""
    tries = state.segments.sums.sums["sent"][0]
    return sorted((arm for arm in newcomers if tries[arm] < NEWCOMER_OUTCOMES), key=lambda arm: (int(tries[arm]), arm))


def _dear_newcomers(state: State, segment: Segment, rule: RuleInstance, newcomers: set[int]) -> set[int]:
    """Newcomers that cost more than the cheapest feasible arm among the others, if there is one."""
    others = state.segments.rule(segment, _without(newcomers, (rule.arms, rule.prices)))
    rule.look(state.segments.sums)
    others.look(state.segments.sums)
    greedy = int(others.facts[GREEDY])
    if greedy < 0:
        return set()
    costs = rule.facts[FACTS + 2 * len(rule.arms) :]
    limit = others.facts[FACTS + 2 * len(others.arms) + greedy]
    return {arm for arm in newcomers if costs[rule.arms.index(arm)] > limit}


def _within_budget(state: State, segment: Segment, sequence: int, full: RuleInstance, chosen: Chosen) -> Chosen:
    """The choice, or the cheapest feasible arm instead of a dispensable one. All other arms are explored as ever.

    The probability is over all that may choose: the rule with newcomers, which is `full`, and the one without.
    """
    place, _, likely, rule, graduates = chosen
    greedy = int(rule.facts[GREEDY])
    if greedy < 0 or (place != greedy and not rule.is_dispensable(place)):
        return chosen
    if not isnan(likely) and (likely < 1.0 or _newcomers(state, full)):
        least = 1.0 / (state.settings.propensity_draws + 1)
        likely = max(_chance(state, segment, sequence, full, rule.arms[greedy]), least)
    return greedy, _BUDGET, likely, rule, graduates


def _choose_among_newcomers(state: State, segment: Segment, sequence: int, full: RuleInstance, newcomers: set[int]) -> Chosen:
    """In a share of the decisions the rule may choose newcomers too, or a hardly tried one is taken; in the others it may not."""
    settings, segments, tight = state.settings, state.segments, _is_tight(state)
    others = segments.rule(segment, _without(newcomers, (full.arms, full.prices)))
    offered = segments.toss(STREAMS * sequence + 3) < settings.newcomer_share
    untried = _untried(state, newcomers)
    if untried and offered:
        full.look(segments.sums)
        return full.arms.index(untried[0]), _NEWCOMER, settings.newcomer_share, full, ()
    rule, other, share = (full, others, settings.newcomer_share) if offered else (others, full, 1 - settings.newcomer_share)
    draws = settings.propensity_draws
    place = rule.choose(segments.sums, sequence, draws, tight=tight)
    arm = rule.arms[place]
    propensity = share * rule.facts[PROPENSITY]
    if arm in other.arms and not untried:  # a newcomer that was hardly tried has all of the other share
        if tight:
            propensity += (1 - share) * _chance_of(state, sequence, other, arm)
        else:
            propensity += (1 - share) * other.weigh(segments.sums, sequence, draws, other.arms.index(arm))
    greedy = int(rule.facts[GREEDY])
    best = rule.arms[greedy] if greedy >= 0 else -1
    seen = segments.sums.sums["seen"][0]
    enough = [each for each in sorted(newcomers) if seen[each] >= NEWCOMER_OUTCOMES] if offered else []
    graduates = tuple(each for each in enough if each != arm or each == best)
    code = _NEWCOMER if arm in newcomers else _EXPLOIT if greedy == place else _EXPLORE
    return place, code, propensity, rule, graduates


def _without(left_out: set[int], choice: ArmsAndPrices) -> ArmsAndPrices:
    kept = [place for place, arm in enumerate(choice[0]) if arm not in left_out]
    return tuple(choice[0][place] for place in kept), tuple(choice[1][place] for place in kept)
