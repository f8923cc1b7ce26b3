"""The fold: what a row of the log does to the state of a router.

`apply` is the only way to change a state: live, after a restart, and for the rows of other replicas. What has no row has not
happened.
"""

import json
import time
from typing import Any

from thrifty.router.segment import Segment
from thrifty.router.sent import NOTHING, PENDING, Sent, share_of
from thrifty.router.settings import Settings
from thrifty.router.state import State
from thrifty.store.row import CHANGE, DECISION, OUTCOME, Row


def apply(state: State, row: Row, sent: Sent | None = None) -> Sent | None:
    """Fold one row into the state; for an outcome, `sent` is its decision. Returns the decision that the row was about."""
    if row.kind == DECISION:
        return _decided(state, row)
    if row.kind == OUTCOME:
        assert sent is not None
        _settled(state, row, sent)
        return sent
    _changed(state, row.code, json.loads(str(row.detail)))
    return None


def recall(state: State, rows: list[Row]) -> list[Sent]:
    """The decisions among rows that the statistics count already, as those rows left them.

    The rows are decisions, outcomes and changes in order; outcomes of other decisions are passed over. A router that was created
    anew knows nothing of decisions before that.
    """
    found: dict[tuple[int, int], Sent] = {}
    created = max((n for n, row in enumerate(rows) if row.kind == CHANGE and row.code == "create"), default=-1)
    for row in rows[created + 1 :]:
        if row.kind == DECISION:
            shadow = row.detail is not None and json.loads(row.detail).get("shadow")
            found[row.replica, row.sequence] = _remembered(state, row, shadow=bool(shadow))
        elif row.kind == OUTCOME:
            sent = found.get((row.replica, row.sequence))
            if sent is not None:
                sent.arm, sent.share = state.roster.index(str(row.arm)), share_of(row.value, row.cost or 0.0)
                sent.outcome, sent.waiting = row, False
        elif row.code == "reset":
            _forget(list(found.values()), _reset_arms(state, json.loads(str(row.detail))))
    return list(found.values())


def _decided(state: State, row: Row) -> Sent:
    """Count a decision in the statistics of its segment and of all above it, and remember it."""
    shadow = row.detail is not None and bool(json.loads(row.detail).get("shadow"))
    state.ledger.trim(state.settings.remember)
    sent = _remembered(state, row, shadow=shadow)
    if not shadow:
        count(state.tree.levels(row.segment or ""), sent.arm, *PENDING)
    state.ledger.add(sent)
    state.counts["decisions"] += 1
    if row.replica == state.replica:
        state.sequence = max(state.sequence, row.sequence)
    return sent


def _remembered(state: State, row: Row, *, shadow: bool) -> Sent:
    """A decision from its row. A clock that jumped cannot make its deadline longer than the whole."""
    deadline_s = state.settings.deadline_s
    passed = min(max(state.clock() - row.at, 0.0), deadline_s)
    due = time.monotonic() + deadline_s - passed
    share = NOTHING if shadow else PENDING
    arm = state.roster.index(str(row.arm))
    return Sent(state.id_of(row.replica, row.sequence), row, arm, due=due, version=state.version, share=share)


def _settled(state: State, row: Row, sent: Sent) -> None:
    """Count an outcome, or the correction of one, or what the deadline says."""
    levels = state.tree.levels(sent.row.segment or "")
    arm = state.roster.index(str(row.arm))
    share = NOTHING if sent.forgotten else share_of(row.value, row.cost or 0.0)
    old_sent, old_seen, old_reward, old_cost = sent.share
    new_sent, new_seen, new_reward, new_cost = share
    seen, reward, cost = new_seen - old_seen, new_reward - old_reward, new_cost - old_cost
    if arm == sent.arm:
        count(levels, arm, new_sent - old_sent, seen, reward, cost)
    else:
        count(levels, sent.arm, -old_sent, -old_seen, -old_reward, -old_cost)
        count(levels, arm, new_sent, new_seen, new_reward, new_cost)
    group = state.groups["holdout" if sent.row.code == "holdout" else "routed"]
    group[0] += seen
    group[1] += reward
    group[2] += cost
    if row.code == "default":
        state.counts["expired"] += 1
    elif not sent.arrived:
        state.counts["outcomes"] += 1
    sent.arm, sent.share, sent.outcome, sent.waiting = arm, share, row, False


def count(levels: tuple[Segment, ...], arm: int, sent: int, seen: int, reward: float, cost: float) -> None:
    """Add to the sums of an arm in a segment and all above it."""
    for level in levels:
        main = level.main
        level.outcomes += seen
        main.fold(main.book, arm, sent, seen, reward, cost)


def _changed(state: State, action: str, body: dict[str, Any]) -> None:
    state.version += 1
    if action == "create":
        state.create(body["arms"], Settings(**body["settings"]))
    elif action == "delete":
        state.deleted = True
    elif action == "settings":
        state.settings = Settings(**{name: body[name] for name in Settings.names() if name in body})
        state.tree.retune(state.settings, state.roster)
    elif action == "reset":
        arms = _reset_arms(state, body)
        state.tree.forget(arms)
        _forget(list(state.ledger), arms)
    else:
        state.roster.change(action, body["arm"], body["price"])
        state.tree.rearrange(state.roster)


def _reset_arms(state: State, body: dict[str, Any]) -> list[int]:
    return state.roster.everyone() if body["arm"] is None else [state.roster.index(body["arm"])]


def _forget(decisions: list[Sent], arms: list[int]) -> None:
    """A reset keeps what is pending. An outcome it forgot cannot be corrected any more: that would count what it did away with."""
    for sent in decisions:
        if sent.arm in arms and not sent.waiting and sent.share != PENDING:
            sent.share, sent.forgotten = NOTHING, True
