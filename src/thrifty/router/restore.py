"""Restoring: the state that a log amounts to, from the newest snapshot that is whole and every row after it."""

import json

from thrifty.router.choice import choose
from thrifty.router.fold import apply, recall
from thrifty.router.sent import Sent
from thrifty.router.snapshot import load
from thrifty.router.state import State
from thrifty.store.log import DECISION, OUTCOME, Journal, Row


def restore(fresh: State, journal: Journal) -> tuple[State, int, int]:
    """The fold of a log onto a state that knows nothing; the position of its last row, and of the snapshot it came from."""
    state, position, snapshot = fresh, 0, 0
    for at, body in journal.snapshots():
        try:
            state = load(fresh, body)
        except (ValueError, KeyError, TypeError):  # of another format: an older one, or the whole log, will do
            continue
        position = snapshot = at
        for sent in recall(state, journal.recent(state.settings.remember, upto=at)):
            state.ledger.add(sent)
        break
    for at, row in journal.read(position):
        position = at
        take(state, row, journal, before=at)
    return state, position, snapshot


def take(state: State, row: Row, journal: Journal, *, before: int | None = None) -> None:
    """Fold a row that is in the log already: one from before a restart, or from another replica."""
    if row.kind == OUTCOME:
        try:
            sent = find(state, state.id_of(row.replica, row.sequence), journal, before=before)
        except KeyError:
            if not state.pruned_before:
                raise
            return  # an outcome of a pruned decision, from a replica that had not heard of that
        apply(state, row, sent)
        return
    if row.kind == DECISION and row.replica == state.replica and not journal.shared:
        _move_on(state, row)
    apply(state, row)


def _move_on(state: State, row: Row) -> None:
    """Ask the rule once more, so that its memory moves on. If it was changed since, the log still says which arm it was."""
    detail = json.loads(row.detail) if row.detail else {}
    key = state.roster.key_of(dict(detail["eligible"])) if "eligible" in detail else None
    choose(state, row.sequence, state.tree.segment(row.segment or ""), key)


def find(state: State, decision_id: str, journal: Journal | None, *, before: int | None = None) -> Sent:
    """A decision from the ledger, or else from the log as far as it goes before a position; a KeyError if there is none."""
    sent = state.ledger.find(decision_id)
    if sent is not None:
        return sent
    name, _, rest = decision_id.partition(".")
    replica, _, sequence = rest.partition(".")
    try:
        number = int(replica, 16), int(sequence, 16)
        known = name == state.name and journal is not None and max(number) < 2**62
    except ValueError:
        known = False
    found = recall(state, journal.find(*number, before=before)) if known and journal is not None else []
    if not found or found[0].at < state.pruned_before:
        raise KeyError(f"no decision {decision_id!r:.80} is known: it is wrong, or older than what is remembered")
    return found[0]
