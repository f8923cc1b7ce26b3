"""The fold: what a row of the log does to the state of a router.

`apply` is the only way to change a state: live, after a restart, and for the rows of other replicas. What has no row has not
happened.
"""

import json
import time
from collections.abc import Iterable
from typing import Any

from thrifty.router.roster import ACTIONS
from thrifty.router.sent import ARRIVED, CODES, HOLDOUT, OPEN, Note, Sent, number_or_nan
from thrifty.router.settings import Settings
from thrifty.router.state import State
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Row


def apply(state: State, row: Row, sent: Sent | None = None, position: int = 0) -> Sent | None:
    """Fold one row into the state; for an outcome, `sent` is its decision. Returns the decision that the row was about.

    The kernels `decide` and `tell` do the same with the rows of usual decisions and usual outcomes.
    """
    kind = row.kind
    if kind == DECISION:
        return _decided(state, row, position)
    if kind == OUTCOME:
        assert sent is not None
        sent.position = position
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
            found[row.replica, row.sequence] = _remembered(state, row)
        elif row.kind == OUTCOME:
            sent = found.get((row.replica, row.sequence))
            if sent is not None:
                sent.settle(row, state.roster.index(row.arm))
        elif row.code == "reset":
            _forget(list(found.values()), _reset_arms(state, json.loads(str(row.detail))))
    return list(found.values())


def _decided(state: State, row: Row, position: int) -> Sent:
    """Count a decision in the statistics of its segment and of all above it, and remember it."""
    sent = _remembered(state, row)
    sent.position = position
    if sent.is_pending:
        state.tree.nodes[sent.segment].main.fold(sent.arm, 1, 0, 0.0, 0.0)
    ledger, limit = state.ledger, state.settings.remember
    if len(ledger) >= limit:
        ledger.trim(limit)
    ledger.add(sent)
    state.decided += 1
    if row.replica == state.replica and row.sequence > state.sequence:
        state.sequence = row.sequence
    return sent


def _remembered(state: State, row: Row) -> Sent:
    """A decision from its row. A clock that jumped cannot make its deadline longer than the whole."""
    deadline_s, passed = state.settings.deadline_s, state.clock() - row.at
    due = time.monotonic() + deadline_s - min(max(passed, 0.0), deadline_s)
    arm, name = state.roster.index(row.arm), row.segment or ""
    segment = state.tree.segment(name).number
    shadow = row.detail is not None and "shadow" in json.loads(row.detail)
    sent = Sent(
        row.replica, row.sequence, segment, arm, arm, CODES.index(row.code), state.version, row.at, due,
        number_or_nan(row.value), number_or_nan(row.cost), 0 if shadow else 1,
    )  # fmt: skip
    sent.id = state.id_of(row.replica, row.sequence)
    sent.note = None if row.request_id is None else Note(row.request_id, name, row.detail)
    return sent


def _settled(state: State, row: Row, sent: Sent) -> None:
    """Count an outcome, or the correction of one, or what the deadline says unless something was said before."""
    if row.code == "default" and sent.settled != OPEN:
        return
    main = state.tree.nodes[sent.segment].main
    arm, first = sent.arm, sent.settled != ARRIVED
    before = sent.sent, sent.seen, sent.reward, sent.cost
    sent.settle(row, state.roster.index(row.arm))
    changes = sent.sent - before[0], sent.seen - before[1], sent.reward - before[2], sent.cost - before[3]
    if sent.arm != arm:
        main.fold(arm, -before[0], -before[1], -before[2], -before[3])
        main.fold(sent.arm, sent.sent, sent.seen, sent.reward, sent.cost)
    else:
        main.fold(arm, *changes, sent.propensity)
    if sent.code == HOLDOUT or state.settings.holdout:
        group = state.groups["holdout" if sent.code == HOLDOUT else "routed"]
        for n, change in enumerate(changes[1:]):
            group[n] += change
    if row.code == "default":
        state.expired += 1
    elif first:
        state.arrived += 1
    state.ledger.keep(sent)


def _changed(state: State, action: str, body: dict[str, Any]) -> None:
    """Make a change, unless it has become impossible since it was asked for: another replica may have been faster."""
    if action == "create" and state.version and not state.deleted:
        return
    if action in ACTIONS and not state.roster.allows(action, body["arm"], body["price"]):
        return
    if action == "prune":
        state.pruned_before = max(state.pruned_before, body["before"])
        state.ledger.forget(state.pruned_before)
    if action in ("prune", "pruned"):
        return
    state.version += 1
    if action == "create":
        state.create(body["arms"], Settings.from_dict(body["settings"]))
    elif action == "delete":
        state.deleted = True
    elif action == "settings":
        state.settings = Settings.from_dict(body)
        state.tree.retune(state.settings, state.roster)
    elif action == "reset":
        arms = _reset_arms(state, body)
        state.tree.forget(arms)
        for sent in _forget(state.ledger, arms):
            state.ledger.keep(sent)
    else:
        state.roster.change(action, body["arm"], body["price"])
        state.tree.rearrange(state.roster)


def _reset_arms(state: State, body: dict[str, Any]) -> list[int]:
    return state.roster.everyone() if body["arm"] is None else [state.roster.index(body["arm"])]


def _forget(decisions: Iterable[Sent], arms: list[int]) -> list[Sent]:
    """A reset keeps what is pending. An outcome it forgot cannot be corrected any more: that would count what it did away with."""
    forgotten = [sent for sent in decisions if sent.arm in arms and not sent.waiting and not sent.is_pending]
    for sent in forgotten:
        sent.count_for_nothing()
        sent.forgotten = 1
    return forgotten
