"""Choosing: what the rule of a segment says, and what becomes of pins, the holdout and newcomers."""

from thrifty.router.kernels import BEST, CODE, GREEDY, PROPENSITY, STREAMS
from thrifty.router.segment import Segment
from thrifty.router.sent import CODES
from thrifty.router.settings import NEWCOMER_OUTCOMES
from thrifty.router.state import State
from thrifty.router.view import Key, View

Choice = tuple[int, str, float, View]
"""An arm, why, how likely it was, and the view that knows what it was chosen from."""


def choose(state: State, sequence: int, segment: Segment, key: Key | None) -> Choice:
    """The arm of the decision numbered `sequence`; the rule's memory moves on, and nothing is counted yet."""
    view = segment.main if key is None else segment.view(key)
    if not is_usual(state):
        special = _pick_specially(state, segment, sequence, view)
        if special is not None:
            return special
    place = view.choose(sequence, state.settings.propensity_draws)
    return view.arms[place], CODES[int(view.peek[CODE])], view.peek[PROPENSITY], view


def is_usual(state: State) -> bool:
    """Whether the rule alone decides: there are no pins, no holdout and no newcomers."""
    roster = state.roster
    return not roster.newcomers and roster.pinned is None and not state.settings.holdout


def _pick_specially(state: State, segment: Segment, sequence: int, view: View) -> Choice | None:
    """What a pin, the holdout or newcomers make of a decision; None when it is one like any other."""
    roster, settings = state.roster, state.settings
    if roster.pinned is not None and roster.pinned in view.arms:
        view.look()
        return roster.pinned, "pinned", 1.0, view
    if settings.holdout and state.tree.toss(STREAMS * sequence + 2) < settings.holdout:
        view.look()
        if view.peek[GREEDY] >= 0:
            return view.arms[int(view.peek[BEST])], "holdout", 1.0, view
    newcomers = roster.newcomers & set(view.arms)
    if not newcomers or len(newcomers) == len(view.arms):
        return None
    return _pick_among_newcomers(state, segment, sequence, view, newcomers)


def _pick_among_newcomers(state: State, segment: Segment, sequence: int, full: View, newcomers: set[int]) -> Choice:
    """In a share of the decisions the rule sees the newcomers too, or a hardly tried one is taken; in the others it does not."""
    settings, tree = state.settings, state.tree
    others = segment.view(state.roster.without(newcomers, (full.arms, full.prices)))
    offered = tree.toss(STREAMS * sequence + 3) < settings.newcomer_share
    tries = tree.root.sums.truth["sent"]
    untried = [arm for arm in sorted(newcomers) if tries[arm] < NEWCOMER_OUTCOMES] if offered else []
    if untried:
        full.look()
        return min(untried, key=lambda arm: int(tries[arm])), "newcomer", settings.newcomer_share, full
    view, other, share = (full, others, settings.newcomer_share) if offered else (others, full, 1 - settings.newcomer_share)
    draws = settings.propensity_draws
    place = view.choose(sequence, draws)
    arm = view.arms[place]
    propensity = share * view.peek[PROPENSITY]
    if arm in other.arms:
        propensity += (1 - share) * other.weigh(sequence, draws, other.arms.index(arm))
    greedy = int(view.peek[GREEDY])
    if offered:
        _graduate(state, newcomers, arm, view.arms[greedy] if greedy >= 0 else -1)
    code = "newcomer" if arm in newcomers else "exploit" if greedy == place else "explore"
    return arm, code, propensity, view


def _graduate(state: State, newcomers: set[int], chosen: int, greedy: int) -> None:
    """A newcomer becomes an arm like any other when the rule has had enough of it, or would take it for what is known."""
    seen = state.tree.root.sums.truth["seen"]
    for arm in newcomers:
        if seen[arm] >= NEWCOMER_OUTCOMES and (arm != chosen or arm == greedy):
            state.roster.newcomers.discard(arm)
