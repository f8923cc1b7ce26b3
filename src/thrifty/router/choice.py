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
    """The probability that `_choose_routed`, asked now, would take an arm."""
    segments, draws, newcomers = state.segments, state.settings.propensity_draws, _newcomers(state, full)
    if not newcomers:
        return full.chance(segments.sums, sequence, draws, full.arms.index(arm))
    share, untried = state.settings.newcomer_share, _untried(state, newcomers)
    found = 0.0
    if share < 1.0 and arm not in newcomers:
        others = segments.rule(segment, _without(newcomers, (full.arms, full.prices)))
        found += (1.0 - share) * others.chance(segments.sums, sequence, draws, others.arms.index(arm))
    if untried:
        return found + share * (arm == untried[0])
    return found + share * full.chance(segments.sums, sequence, draws, full.arms.index(arm))


def _choose_routed(state: State, segment: Segment, sequence: int, rule: RuleInstance) -> Chosen:
    """What the holdout, newcomers, the rule and the budget make of a decision. In a canary the baseline is the holdout."""
    settings, segments, tight = state.settings, state.segments, _is_tight(state)
    held_out = settings.holdout and settings.mode != "canary" and (not tight or settings.guardrail == "on")
    if held_out and segments.toss(STREAMS * sequence + 2) < settings.holdout:
        rule.look(segments.sums)
        if rule.facts[GREEDY] >= 0 or settings.guardrail == "on":  # the guardrail needs a coin that nothing else decides
            return int(rule.facts[BEST]), _HOLDOUT, 1.0, rule, ()
    newcomers = _newcomers(state, rule)
    if not tight:
        if newcomers:
            return _choose_among_newcomers(state, segment, sequence, rule, newcomers)
        return _ask(state, sequence, rule)
    if newcomers and (dear := _dear_newcomers(state, segment, rule, newcomers)):
        rule, newcomers = segments.rule(segment, _without(dear, (rule.arms, rule.prices))), newcomers - dear
    if not newcomers:
        return _within_budget(state, sequence, _ask(state, sequence, rule), ((1.0, rule),))
    others = segments.rule(segment, _without(newcomers, (rule.arms, rule.prices)))
    mixture = (settings.newcomer_share, rule), (1 - settings.newcomer_share, others)
    return _within_budget(state, sequence, _choose_among_newcomers(state, segment, sequence, rule, newcomers), mixture)


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


def _within_budget(state: State, sequence: int, chosen: Chosen, mixture: tuple[tuple[float, RuleInstance], ...]) -> Chosen:
    """The choice, or the cheapest feasible arm instead of a dispensable one. All other arms are explored as ever.

    `mixture` are the rules that may have chosen, with their probabilities. The cheapest feasible arm is taken whenever none of the
    others that are not dispensable is.
    """
    place, _, likely, rule, graduates = chosen
    greedy = int(rule.facts[GREEDY])
    if greedy < 0 or (place != greedy and not rule.is_dispensable(place)):
        return chosen
    if isnan(likely) or (likely >= 1.0 and len(mixture) == 1):
        return greedy, _BUDGET, likely, rule, graduates
    names = [arm for other, arm in enumerate(rule.arms) if other != greedy and not rule.is_dispensable(other)]
    draws, sums, elsewhere = state.settings.propensity_draws, state.segments.sums, 0.0
    for share, each in mixture:
        elsewhere += share * sum(each.weigh(sums, sequence, draws, each.arms.index(arm)) for arm in names if arm in each.arms)
    return greedy, _BUDGET, min(max(1.0 - elsewhere, 1.0 / (draws + 1)), 1.0), rule, graduates


def _choose_among_newcomers(state: State, segment: Segment, sequence: int, full: RuleInstance, newcomers: set[int]) -> Chosen:
    """In a share of the decisions the rule may choose newcomers too, or a hardly tried one is taken; in the others it may not."""
    settings, segments, tight = state.settings, state.segments, _is_tight(state)
    others = segments.rule(segment, _without(newcomers, (full.arms, full.prices)))
    offered = segments.toss(STREAMS * sequence + 3) < settings.newcomer_share
    untried = _untried(state, newcomers) if offered else []
    if untried:
        full.look(segments.sums)
        return full.arms.index(untried[0]), _NEWCOMER, settings.newcomer_share, full, ()
    rule, other, share = (full, others, settings.newcomer_share) if offered else (others, full, 1 - settings.newcomer_share)
    draws = settings.propensity_draws
    place = rule.choose(segments.sums, sequence, draws, tight=tight)
    arm = rule.arms[place]
    propensity = share * rule.facts[PROPENSITY]
    if arm in other.arms:
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
