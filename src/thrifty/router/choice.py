"""Choosing: what the rule of a segment chooses, and what pins, the rollout, the holdout and newcomers make of it."""

from hashlib import blake2b

from thrifty.router.arms import ArmsAndPrices
from thrifty.router.frame import BEST, CODE, GREEDY, PROPENSITY, STREAMS
from thrifty.router.records import CODES
from thrifty.router.rule_instance import RuleInstance
from thrifty.router.segments import Segment
from thrifty.router.settings import NEWCOMER_OUTCOMES
from thrifty.router.state import State

Chosen = tuple[int, int, float, RuleInstance, tuple[int, ...]]
"""The place of an arm in a rule, why, how likely it was, the rule, and newcomers that are newcomers no more."""

_NEWCOMER, _HOLDOUT, _PINNED = CODES.index("newcomer"), CODES.index("holdout"), CODES.index("pinned")
_EXPLOIT, _EXPLORE, _BASELINE, _FALLBACK = (CODES.index(code) for code in ("exploit", "explore", "baseline", "fallback"))


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
    if not (arms.newcomers or arms.pinned is not None or settings.holdout or settings.mode == "canary" or fallback is not None):
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
    """What the holdout, newcomers and the rule make of a decision. In a canary the baseline is the holdout."""
    settings, segments = state.settings, state.segments
    if settings.holdout and settings.mode != "canary" and segments.toss(STREAMS * sequence + 2) < settings.holdout:
        rule.look(segments.sums)
        if rule.facts[GREEDY] >= 0 or settings.guardrail == "on":  # the guardrail needs a coin that nothing else decides
            return int(rule.facts[BEST]), _HOLDOUT, 1.0, rule, ()
    newcomers = _newcomers(state, rule)
    if newcomers:
        return _choose_among_newcomers(state, segment, sequence, rule, newcomers)
    return _ask(state, sequence, rule)


def _ask(state: State, sequence: int, rule: RuleInstance) -> Chosen:
    place = rule.choose(state.segments.sums, sequence, state.settings.propensity_draws)
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


def _choose_among_newcomers(state: State, segment: Segment, sequence: int, full: RuleInstance, newcomers: set[int]) -> Chosen:
    """In a share of the decisions the rule may choose newcomers too, or a hardly tried one is taken; in the others it may not."""
    settings, segments = state.settings, state.segments
    others = segments.rule(segment, _without(newcomers, (full.arms, full.prices)))
    offered = segments.toss(STREAMS * sequence + 3) < settings.newcomer_share
    untried = _untried(state, newcomers) if offered else []
    if untried:
        full.look(segments.sums)
        return full.arms.index(untried[0]), _NEWCOMER, settings.newcomer_share, full, ()
    rule, other, share = (full, others, settings.newcomer_share) if offered else (others, full, 1 - settings.newcomer_share)
    draws = settings.propensity_draws
    place = rule.choose(segments.sums, sequence, draws)
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
