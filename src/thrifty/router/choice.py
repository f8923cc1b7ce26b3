"""Choosing: what the rule of a segment chooses, and what pins, the holdout and newcomers make of it."""

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
_EXPLOIT, _EXPLORE = CODES.index("exploit"), CODES.index("explore")


def choose(state: State, sequence: int, segment: Segment, eligible: ArmsAndPrices | None) -> Chosen:
    """Choose for the decision numbered `sequence`. Nothing is counted; only the rule's own memory moves on."""
    rule = state.segments.rule(segment, eligible)
    if state.arms.newcomers or state.arms.pinned is not None or state.settings.holdout:
        special = _choose_specially(state, segment, sequence, rule)
        if special is not None:
            return special
    place = rule.choose(state.segments.sums, sequence, state.settings.propensity_draws)
    return place, int(rule.facts[CODE]), rule.facts[PROPENSITY], rule, ()


def _choose_specially(state: State, segment: Segment, sequence: int, rule: RuleInstance) -> Chosen | None:
    """What a pin, the holdout or newcomers make of a decision; None where the rule alone decides."""
    arms, settings, segments = state.arms, state.settings, state.segments
    if arms.pinned is not None and arms.pinned in rule.arms:
        rule.look(segments.sums)
        return rule.arms.index(arms.pinned), _PINNED, 1.0, rule, ()
    if settings.holdout and segments.toss(STREAMS * sequence + 2) < settings.holdout:
        rule.look(segments.sums)
        if rule.facts[GREEDY] >= 0:
            return int(rule.facts[BEST]), _HOLDOUT, 1.0, rule, ()
    newcomers = arms.newcomers & set(rule.arms)
    if not newcomers or len(newcomers) == len(rule.arms):
        return None
    return _choose_among_newcomers(state, segment, sequence, rule, newcomers)


def _choose_among_newcomers(state: State, segment: Segment, sequence: int, full: RuleInstance, newcomers: set[int]) -> Chosen:
    """In a share of the decisions the rule may choose newcomers too, or a hardly tried one is taken; in the others it may not."""
    settings, segments = state.settings, state.segments
    others = segments.rule(segment, _without(newcomers, (full.arms, full.prices)))
    offered = segments.toss(STREAMS * sequence + 3) < settings.newcomer_share
    tries = segments.sums.sums["sent"][0]
    untried = [arm for arm in sorted(newcomers) if tries[arm] < NEWCOMER_OUTCOMES] if offered else []
    if untried:
        full.look(segments.sums)
        fewest = min(untried, key=lambda arm: int(tries[arm]))
        return full.arms.index(fewest), _NEWCOMER, settings.newcomer_share, full, ()
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
