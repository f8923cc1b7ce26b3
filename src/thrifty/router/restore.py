"""Restoring: the state that a log amounts to, from the newest snapshot that is whole and every row after it."""

import json
import logging
from typing import Any, NamedTuple

from thrifty.forgetting import KEEP_ALL
from thrifty.router.choice import choose
from thrifty.router.compiling import compile_mode
from thrifty.router.engine import Engine, counting_for
from thrifty.router.history import deltas_after, deltas_of_row
from thrifty.router.records import ARRIVED, CODES, DEFAULTED, OPEN, DecisionRecords, Key, Note, forget_outcomes, number_or_nan
from thrifty.router.rows import counted_name, is_shadow, note_of
from thrifty.router.segment_sums import SegmentSums
from thrifty.router.snapshot import load
from thrifty.router.state import State
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Journal, Row, StoreError

log = logging.getLogger("thrifty.router")

MOST_INTERPRETED = 1000
"""Decisions that an interpreted rule is asked for again at the start, at most."""

RECENT = 20_000
"""Decisions that are brought back into memory at the start, at most, and as far as `memory_bytes` allows."""


class LogRowError(Exception):
    """A row of a router's log cannot be applied. `thrifty repair` shows it and can void it."""

    def __init__(self, router: str, position: int, row: Row, cause: Exception) -> None:
        super().__init__(f"row {position} of the log of {router!r} cannot be applied: {type(cause).__name__}: {cause}")
        self.router, self.position, self.row, self.cause = router, position, row, cause


class ColdDecisionError(LookupError):
    """A decision is not in memory; the log may have it."""


class DecisionInFlightError(StoreError):
    """A decision was given out before it was stored, and is on its way to the log: its outcome can be taken a moment later."""


class Recalled(NamedTuple):
    """A decision as its rows in the log left it."""

    key: Key
    numbers: Any  # a record
    note: Note | None


def recall(state: State, rows: list[tuple[int, Row]]) -> list[Recalled]:
    """The decisions among rows of the log that the statistics count already.

    The rows are decisions, outcomes, creations and resets in order; outcomes of other decisions are passed over. A router that was
    created anew knows nothing of decisions before that.
    """
    recollection = _Recollection(state)
    for position, row in rows:
        recollection.take(position, row)
    return recollection.decisions()


class _Recollection:
    """Decisions that are put together from their rows. Statistics of their own are counted along and thrown away."""

    def __init__(self, state: State) -> None:
        self._state, self._arms = state, state.arms  # once: the router may be created anew meanwhile
        self._records, self._counting = DecisionRecords(), counting_for(KEEP_ALL)
        self._sums = SegmentSums(len(self._arms.names), KEEP_ALL)
        self._sums.add(-1)
        self._segments: dict[Key, int] = {}

    def take(self, position: int, row: Row) -> None:
        """Take the next row."""
        if position <= self._state.created_at or (row.kind != CHANGE and self._arms.find(row.arm) is None):
            return  # of the router before it was deleted and created anew
        if row.kind == DECISION:
            self._take_decision(position, row)
        elif row.kind == OUTCOME:
            self._take_outcome(position, row)
        elif row.code == "reset":
            forget_outcomes(self._records.table, self._arms.numbers(json.loads(str(row.detail))["arm"]))

    def _take_decision(self, position: int, row: Row) -> None:
        state, key, note, arm = self._state, (row.replica, row.sequence), note_of(row), self._arms.index(row.arm)
        self._segments[key] = state.segments.nearest(counted_name(row)).number
        due = state.due_of(row.at, state.deadlines.period_at(position).deadline_s)
        propensity, price = number_or_nan(row.value), number_or_nan(row.cost)
        counted = int(not (note and is_shadow(note.detail)))
        made = (0, arm, arm, CODES.index(row.code), state.version, row.at, due, propensity, price, counted)
        slot = self._records.add(key, made, note)
        self._sums.count_pending(0, arm, counted)
        self._records.put(slot, "logged", position)
        self._records.put(slot, "position", position)

    def _take_outcome(self, position: int, row: Row) -> None:
        records, slot = self._records, self._records.slot((row.replica, row.sequence))
        how = DEFAULTED if row.code == "default" else ARRIVED
        if slot is None or (how == DEFAULTED and records.get(slot, "settled") != OPEN):
            return
        value, cost = number_or_nan(row.value), number_or_nan(row.cost)
        records.put(slot, "settled", how)
        records.put(slot, "outcome_at", row.at)
        self._counting.count_outcome.call(records.table, slot, self._arms.index(row.arm), value, cost, *self._sums.everything)
        records.put(slot, "position", position)

    def decisions(self) -> list[Recalled]:
        """All of them, in the order of their rows."""
        records, found = self._records, []
        for key, segment in self._segments.items():
            slot = records.slot(key)
            assert slot is not None
            records.put(slot, "segment", segment)
            found.append(Recalled(key, records.table[slot].copy(), records.note(key)))
        return found


def remember(state: State, recalled: Recalled, *, newest: bool = False) -> int:
    """Bring a decision back into memory; its row in the records."""
    slot = state.records.place(recalled.key, recalled.note, newest=newest)
    state.records.table[slot] = recalled.numbers
    return slot


def restore(fresh: State, journal: Journal) -> tuple[State, int, int]:
    """The state of a log, given one that knows nothing; the position of its last row, and of the snapshot it came from."""
    state, position = fresh, 0
    for at, body in journal.snapshots():
        try:
            state = load(fresh, body, at)
        except Exception as error:  # broken or of another format: an older one, or the whole log, will do
            log.warning("a snapshot cannot be used", extra={"facts": {"router": fresh.name, "position": at, "error": repr(error)}})
            state = fresh.begun_anew()
            continue
        position = at
        _load_recent(state, journal, at)
        break
    snapshot, first = position, state.sequence
    deltas = deltas_after(journal.history.reached(), snapshot=snapshot, shared=journal.shared)
    for at, row in journal.read(position):
        position, state.history = at, deltas_of_row(deltas, at)
        try:
            take(state, row, at, journal, first)
        except StoreError:
            raise
        except Exception as error:
            raise LogRowError(state.name, at, row, error) from error
        state.trim(lambda _position: True)
    state.history = deltas
    return state, position, snapshot


def _load_recent(state: State, journal: Journal, upto: int) -> None:
    """Bring back recent decisions; whoever waits among them need not be looked for in the log."""
    count = min(RECENT if state.engine.counting.compiled else RECENT // 10, state.records_limit())
    rows = journal.recent(count, upto=upto)
    found = [recalled for recalled in recall(state, rows) if recalled.numbers["at"] >= state.pruned_before]
    if not found:
        return
    first = min(int(recalled.numbers["logged"]) for recalled in found)
    for period in state.deadlines.periods:
        period.cold_upto = min(period.cold_upto, first - 1)
        if period.cold_after >= period.cold_upto:
            period.cold_due = float("inf")
    for recalled in found:
        remember(state, recalled, newest=True)
        if recalled.numbers["waiting"]:
            period = state.deadlines.period_at(int(recalled.numbers["logged"]))
            state.deadlines.add(recalled.key, float(recalled.numbers["due"]), state.records, period)


def take(state: State, row: Row, position: int, journal: Journal, first: int | None, engine: Engine | None = None) -> None:
    """Apply a row that is in the log already; `first` is the number of the last decision before all such rows.

    Without it, rules are not asked again. `engine` is used whatever policy a change names.
    """
    key = row.replica, row.sequence
    if row.kind == OUTCOME and key not in state.records:
        found = recall(state, journal.find(*key, before=position))
        if not found:
            passed_over(state, row, position)
            return
        remember(state, found[0])
    if first is not None and row.kind == DECISION and row.replica == state.replica and not journal.shared:
        _ask_again(state, row, first)
    state.apply(row, position, engine)


def passed_over(state: State, row: Row, position: int) -> None:
    """Say that an outcome has no decision that counts: pruned, of a router that was deleted meanwhile, or taken back."""
    if not state.pruned_before:
        facts = {"router": state.name, "position": position, "decision": state.id_of((row.replica, row.sequence))}
        log.warning("an outcome without a decision is passed over", extra={"facts": facts})


def _ask_again(state: State, row: Row, first: int) -> None:
    """Let the rule choose once more, so that its memory moves on. If it would choose another arm now, the log holds.

    While the rule is interpreted that takes milliseconds: after a thousand decisions it begins anew from the statistics instead.
    """
    if state.engine.compiled or state.sequence - first < MOST_INTERPRETED or compile_mode() == "never":
        detail = json.loads(row.detail) if row.detail else {}
        eligible = state.arms.eligible(dict(detail["eligible"])) if "eligible" in detail else None
        choose(state, row.sequence, state.counted_in(row), eligible, in_canary=row.code not in ("baseline", "fallback"))
