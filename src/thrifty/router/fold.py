"""The fold: what a row of the log does to the state of a router.

`apply` is the only way to change a state: live, after a restart, and for the rows of other replicas. What has no row has not
happened.
"""

import json
import time
from typing import Any

from thrifty.router.roster import ACTIONS
from thrifty.router.sent import NOTHING, PENDING, Sent, share_of
from thrifty.router.settings import Settings
from thrifty.router.state import State
from thrifty.store.row import CHANGE, DECISION, OUTCOME, Row


def apply(state: State, row: Row, sent: Sent | None = None) -> Sent | None:
    """Fold one row into the state; for an outcome, `sent` is its decision. Returns the decision that the row was about."""
    kind = row.kind
    if kind == DECISION:
        return _decided(state, row)
    if kind == OUTCOME:
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
            found[row.replica, row.sequence] = _remembered(state, row)
        elif row.kind == OUTCOME:
            sent = found.get((row.replica, row.sequence))
            if sent is not None:
                sent.arm, sent.share = state.roster.index(row.arm), share_of(row.value, row.cost or 0.0)
                sent.outcome, sent.waiting = row, False
        elif row.code == "reset":
            _forget(list(found.values()), _reset_arms(state, json.loads(str(row.detail))))
    return list(found.values())


def _decided(state: State, row: Row) -> Sent:
    """Count a decision in the statistics of its segment and of all above it, and remember it."""
    sent = _remembered(state, row)
    if sent.share is PENDING:
        segment = row.segment or ""
        main = (state.tree.known(segment) or state.tree.levels(segment))[0].main
        main.fold(main.book, sent.arm, 1, 0, 0.0, 0.0)
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
    _, replica, sequence, at, _, _, name, _, _, _, detail = row
    deadline_s, passed = state.settings.deadline_s, state.clock() - at
    due = time.monotonic() + deadline_s
    if passed > 0.0:
        due -= passed if passed < deadline_s else deadline_s
    id = state.prefix + hex(sequence)[2:] if replica == state.replica else state.id_of(replica, sequence)
    shadow = detail is not None and "shadow" in json.loads(detail)
    return Sent(id, row, state.roster.index(name), due, state.version, NOTHING if shadow else PENDING)


def _settled(state: State, row: Row, sent: Sent) -> None:
    """Count an outcome, or the correction of one, or what the deadline says unless something was said before."""
    if row.code == "default" and sent.outcome is not None:
        return
    made, old = sent.row, sent.share
    segment = made.segment or ""
    main = (state.tree.known(segment) or state.tree.levels(segment))[0].main
    arm = state.roster.index(row.arm)
    share = NOTHING if sent.forgotten else share_of(row.value, row.cost or 0.0)
    new_sent, seen, reward, cost = share
    if arm != sent.arm:
        main.fold(main.book, sent.arm, -old.sent, -old.seen, -old.reward, -old.cost)
        main.fold(main.book, arm, new_sent, seen, reward, cost)
    elif old is PENDING:
        main.fold(main.book, arm, new_sent - 1, seen, reward, cost)
    else:
        main.fold(main.book, arm, new_sent - old.sent, seen - old.seen, reward - old.reward, cost - old.cost)
    if made.code == "holdout" or state.settings.holdout:
        group = state.groups["holdout" if made.code == "holdout" else "routed"]
        for n, (now, before) in enumerate(zip(share[1:], old[1:], strict=True)):
            group[n] += now - before
    if row.code == "default":
        state.expired += 1
    elif sent.outcome is None or sent.arrived is None:
        state.arrived += 1
    sent.arm, sent.share, sent.outcome, sent.waiting = arm, share, row, False


def count_pending(state: State, sent: Sent, by: int) -> None:
    """Count a decision that is not in the log once more, or not."""
    if sent.share == PENDING:
        main = state.tree.levels(sent.row.segment or "")[0].main
        main.fold(main.book, sent.arm, by, 0, 0.0, 0.0)
    state.decided += by


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
