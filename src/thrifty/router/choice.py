"""Choosing: who decides for a segment, and what becomes of pins, the holdout and newcomers."""

from typing import NamedTuple

from thrifty.router.kernels import BEST, GREEDY, PROPENSITY, STREAMS
from thrifty.router.segment import Segment
from thrifty.router.settings import NEWCOMER_OUTCOMES
from thrifty.router.state import State
from thrifty.router.view import Key, View


class Choice(NamedTuple):
    """An arm, why, how likely it was, and the view that knows what it was chosen from."""

    arm: int
    code: str
    propensity: float
    view: View
    decider: Segment


def choose(state: State, sequence: int, segment: str, key: Key | None) -> Choice:
    """The arm of the decision numbered `sequence`; the rule's memory moves on, and nothing is counted yet."""
    decider = decider_of(state, segment)
    return Choice(*_pick(state, decider, sequence, key), decider)


def decider_of(state: State, segment: str) -> Segment:
    """The segment, or the first one above it that is not young any more, or the root."""
    young = state.settings.young_outcomes
    for level in state.tree.levels(segment):
        if level.outcomes >= young:
            break
    return level


def _pick(state: State, decider: Segment, sequence: int, key: Key | None) -> tuple[int, str, float, View]:
    roster, settings, tree = state.roster, state.settings, state.tree
    full = decider.main if key is None else decider.view(key)
    if roster.pinned is not None and (key is None or roster.pinned in key[0]):
        full.look()
        return roster.pinned, "pinned", 1.0, full
    if settings.holdout and tree.toss(STREAMS * sequence + 2) < settings.holdout:
        full.look()
        if full.peek[GREEDY] >= 0:
            return full.arms[int(full.peek[BEST])], "holdout", 1.0, full
    newcomers = roster.newcomers & set(full.arms) if roster.newcomers else None
    if newcomers and len(newcomers) < len(full.arms):
        return _pick_among_newcomers(state, decider, sequence, full, newcomers)
    place = full.choose(full.book, sequence, settings.propensity_draws)
    facts = full.peek
    code = "only" if len(full.arms) == 1 else "exploit" if facts[GREEDY] == place else "explore"
    return full.arms[place], code, facts[PROPENSITY], full


def _pick_among_newcomers(
    state: State, decider: Segment, sequence: int, full: View, newcomers: set[int]
) -> tuple[int, str, float, View]:
    """In a share of the decisions the rule sees the newcomers too, or a hardly tried one is taken; in the others it does not."""
    settings, tree = state.settings, state.tree
    others = decider.view(state.roster.without(newcomers, (full.arms, full.prices)))
    offered = tree.toss(STREAMS * sequence + 3) < settings.newcomer_share
    tries = tree.root.truth["sent"]
    untried = [arm for arm in sorted(newcomers) if tries[arm] < NEWCOMER_OUTCOMES] if offered else []
    if untried:
        full.look()
        return min(untried, key=lambda arm: int(tries[arm])), "newcomer", settings.newcomer_share, full
    view, other, share = (full, others, settings.newcomer_share) if offered else (others, full, 1 - settings.newcomer_share)
    draws = settings.propensity_draws
    place = view.choose(view.book, sequence, draws)
    arm = view.arms[place]
    propensity = share * view.peek[PROPENSITY]
    if arm in other.arms:
        propensity += (1 - share) * other.weigh(other.book, sequence, draws, other.arms.index(arm))
    greedy = int(view.peek[GREEDY])
    if offered:
        _graduate(state, newcomers, arm, view.arms[greedy] if greedy >= 0 else -1)
    code = "newcomer" if arm in newcomers else "exploit" if greedy == place else "explore"
    return arm, code, propensity, view


def _graduate(state: State, newcomers: set[int], chosen: int, greedy: int) -> None:
    """A newcomer becomes an arm like any other when the rule has had enough of it, or would take it for what is known."""
    seen = state.tree.root.truth["seen"]
    for arm in newcomers:
        if seen[arm] >= NEWCOMER_OUTCOMES and (arm != chosen or arm == greedy):
            state.roster.newcomers.discard(arm)
