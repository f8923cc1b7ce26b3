"""Router state, derived from an append-only log.

`apply` is the one interpreter of rows: for live calls, after a restart, and for rows of other replicas. Live calls use two parts of
it directly, `apply_decision` and `apply_outcome`. What has no row has not happened.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from math import isnan, nan
from typing import Any

from thrifty.router.configuration import Configuration, single_changes
from thrifty.router.deadlines import Deadlines
from thrifty.router.engine import Engine, engine_for
from thrifty.router.guardrail import Guardrail, contrast_of
from thrifty.router.history import HistoryDeltas
from thrifty.router.known_start import KnownStart
from thrifty.router.records import (
    ARRIVED,
    BYTES_OF_RECORD,
    CODE,
    CODES,
    DEFAULTED,
    GROUPS,
    LOGGED,
    OPEN,
    OUTCOME_AT,
    POSITION,
    SEGMENT,
    SETTLED,
    WAITING,
    WIDTH,
    DecisionRecords,
    Key,
    Made,
    Note,
    forget_outcomes,
    number_or_nan,
)
from thrifty.router.rows import bucket_in, counted_name, is_shadow, note_of
from thrifty.router.segments import Segment, Segments
from thrifty.router.settings import Settings
from thrifty.router.spending import Spending
from thrifty.store.log import CHANGE, DECISION, Row

MOST_ROOM = 1 << 18
"""Decision records for which there is room at once; more is made when they come."""


class State:
    """Everything that rows of the log change, and nothing else.

    Parameters
    ----------
    name : of the router
    arms : prices by name
    settings : everything else
    replica : who decides here
    clock : has time() and monotonic(), like the module of that name
    known : what the router starts with

    """

    def __init__(
        self,
        name: str,
        arms: dict[str, float | None],
        settings: Settings,
        *,
        replica: int = 0,
        clock: Any = time,
        engine: Engine | None = None,
        known: KnownStart | None = None,
    ) -> None:
        self.name, self.replica, self.clock = name, replica, clock
        self.configuration = Configuration(arms, settings.to_dict(), known)
        self.settings, self.engine = settings, engine or engine_for(settings.policy, apart=known is not None)
        self.history: HistoryDeltas | None = None  # where rows are counted for the history in the store
        self.pruned_before = 0.0  # decisions made before this time are no longer known
        self.sequence = 0  # of the last decision made here
        self.sequences: dict[int, int] = {}  # of the last decision of every other replica
        self.decided = self.arrived = self.expired = 0  # decisions, outcomes, and deadlines that passed without one
        # outcomes, sums of rewards and costs, and of their squares, of all groups, while there is a holdout or a canary
        self.groups: dict[str, list[Any]] = {name: [0, 0.0, 0.0, 0.0, 0.0] for name in ("routed", "holdout", "baseline")}
        self.guardrail = Guardrail()
        self._begin(0)
        self.guardrail.watch(contrast_of(settings), clock.time())

    def _begin(self, position: int) -> None:
        """Forget all decisions and statistics; their numbers go on, so that an id never means two of them."""
        self.arms = self.configuration.arms
        self._prefix = f"{self.name}.{self.replica:x}."
        self.segments = Segments(self.settings, self.arms, self.engine, self.replica)
        self.records = DecisionRecords(min(self.records_limit(), MOST_ROOM) + 256)
        self.deadlines, self.spending = Deadlines(self.settings.deadline_s, position), Spending()
        self._start_from_known()
        self.created_at, self.reset_at = position, 0  # positions in the log: of its creation, and of the last reset
        self.waiting = 0  # decisions that wait for an outcome, in memory or not
        self._prepare()

    def _start_from_known(self) -> None:
        """Make the segments of known outcomes, and remember these, unless the engine keeps no table of what is remembered."""
        if self.configuration.known is not None:
            known = []
            for segment, name, outcomes in self.configuration.known.outcomes:
                arm = self.arms.index(name)
                known.append((self.segments.make(segment).number, arm, outcomes.at_price(self.arms.prices[arm])))
            if self.segments.sums.forgets:
                self.segments.sums.start_from(known)

    @property
    def version(self) -> int:
        """How often arms or settings were changed."""
        return self.configuration.version

    def adopt_replica(self, replica: int) -> None:
        """Be the state of another replica, before anything has happened."""
        self.replica = replica
        self._begin(0)

    def begun_anew(self) -> "State":
        """A state of the same router that knows nothing."""
        arms = dict(zip(self.arms.names, self.arms.prices, strict=True))
        return State(self.name, arms, self.settings, replica=self.replica, clock=self.clock, engine=self.engine)

    def id_of(self, key: Key) -> str:
        """The id of a decision."""
        return f"{self.name}.{key[0]:x}.{key[1]:x}"

    def own_id(self, sequence: int) -> str:
        """The id of a decision that is made here."""
        return f"{self._prefix}{sequence:x}"

    def key_of(self, decision_id: str) -> Key:
        """The key of an id of this router's form; a KeyError where it cannot be one."""
        text = decision_id.removeprefix(self._prefix)
        if text != decision_id:  # nearly always: one that was made here
            try:
                number = int(text, 16)
            except ValueError:
                number = -1
            if 0 <= number < 2**62 and f"{number:x}" == text:
                return self.replica, number
        name, _, numbers = decision_id.partition(".")
        replica, _, sequence = numbers.partition(".")
        try:
            key = int(replica, 16), int(sequence, 16)
        except ValueError:
            key = -1, -1
        if name != self.name or self.id_of(key) != decision_id or max(key) >= 2**62:
            raise KeyError(f"no decision {decision_id!r:.80} is known: ids look like {self.name}.0.1f")
        return key

    # -- rows --------------------------------------------------------------------------------------------------------

    def apply(self, row: Row, position: int, engine: Engine | None = None) -> None:
        """Change the state as a row of the log says; an outcome's decision must be in memory."""
        key = row.replica, row.sequence
        if row.kind != CHANGE and self.arms.find(row.arm) is None:
            return  # of the router before it was deleted and created anew, from a replica that did not know of that
        if row.kind == DECISION:
            segment, note = self.counted_in(row), note_of(row)
            code, counted = CODES.index(row.code), not (note is not None and is_shadow(note.detail))
            propensity, price = number_or_nan(row.value), number_or_nan(row.cost)
            due, arm = self.due_of(row.at, self.settings.deadline_s), self.arms.index(row.arm)
            made = (segment.number, arm, arm, code, self.version, row.at, due, propensity, price, int(counted))
            slot = self.apply_decision(key, made, note)
            self.records.put(slot, "logged", position)
            self.records.put(slot, "position", position)
            self.landed(row)
        elif row.kind == CHANGE:
            self.apply_change(row, position, engine)
        else:
            found = self.records.slot(key)
            assert found is not None
            self.apply_outcome(row, found)
            self.records.put(found, "position", position)

    def apply_decision(self, key: Key, made: Made, note: Note | None) -> int:
        """Remember a decision and count it; the row of `records` it is in."""
        records = self.records
        slot = records.add(key, made, note)
        self.segments.sums.count_pending(made[0], made[2], made[9])
        self.deadlines.add(key, made[6], records)
        self.decided += 1
        self.waiting += 1
        if key[0] != self.replica:
            self.sequences[key[0]] = max(key[1], self.sequences.get(key[0], 0))
        elif key[1] > self.sequence:
            self.sequence = key[1]
        return slot

    def landed(self, row: Row) -> None:
        """Count a decision that has a place in the log, where the order of the log matters."""
        if self.guardrail.contrast is not None:
            self.guardrail.decided((row.replica, row.sequence), row.code, bucket=bucket_in(row), at=row.at)
        self.spending.take_decision(row, self.settings.daily_budget)
        if self.history is not None:
            self.history.count_decision(row)

    def due_of(self, at: float, deadline_s: float) -> float:
        """When a decision made at a time falls due, by the monotonic clock. A clock that jumped cannot make that later than now."""
        passed = self.clock.time() - at
        return float(self.clock.monotonic() + deadline_s - min(max(passed, 0.0), deadline_s))

    def apply_outcome(self, row: Row, slot: int) -> None:
        """Count an outcome, or the correction of one, or the default one of the deadline unless there is one already."""
        records, sums, how = self.records, self.segments.sums, DEFAULTED if row.code == "default" else ARRIVED
        numbers, base = records.integers, slot * WIDTH
        was, segment, waited = numbers[base + SETTLED], numbers[base + SEGMENT], numbers[base + WAITING]
        if how == DEFAULTED and was != OPEN:
            return
        arm, value, cost = self.arms.index(row.arm), row.value, row.cost
        value, cost = nan if value is None else value, nan if cost is None else cost
        if self.history is not None:
            self.history.count_outcome(self, slot, row)
        self.spending.take_outcome(records, slot, value, cost, how)
        code = CODES[numbers[base + CODE]]
        grouped = self.settings.holdout or self.settings.mode == "canary" or code in GROUPS
        before = _counted(records, slot) if grouped else None
        if sums.forgets:
            sums.count_in(segment)
        numbers[base + SETTLED], records.floats[base + OUTCOME_AT] = how, row.at
        self.engine.counting.count_outcome.call(records.table, slot, arm, value, cost, *sums.everything)
        self.waiting -= waited
        if how == DEFAULTED:
            self.expired += 1
        elif was != ARRIVED:
            self.arrived += 1
        if before is not None:
            group = self.groups[GROUPS.get(code, "routed")]
            for n, now in enumerate(_counted(records, slot)):
                group[n] += now - before[n]
        if was == OPEN and self.guardrail.contrast is not None:
            self.guardrail.settled(records.key_at(slot), code, row.value)
        if self.engine.weighs_outcomes and was != ARRIVED and not isnan(value):
            self._observe(self.segments.by_number[segment], arm, value, records.get(slot, "propensity"))

    def _observe(self, segment: Segment | None, arm: int, reward: float, propensity: float) -> None:
        """Hand an outcome to the rules of a segment and of all above it."""
        while segment is not None:
            self.segments.rule(segment).observe(arm, reward, propensity)
            segment = segment.parent

    def apply_change(self, row: Row, position: int, engine: Engine | None = None) -> None:
        """Make the changes of a row, each unless it has become impossible: another replica may have been faster."""
        for each, its_body in single_changes(row.code, json.loads(str(row.detail)), self.version):
            if each == "prune":
                self.pruned_before = max(self.pruned_before, its_body["before"])
                self._forget_pruned()
            elif self.configuration.apply(each, its_body):
                self._follow_change(each, its_body, position, engine)
                self._follow_rollout(each, row.at)

    def _follow_change(self, action: str, body: dict[str, Any], position: int, engine: Engine | None) -> None:
        """Bring statistics, rules and deadlines in line with the configuration."""
        if action in ("create", "settings", "rollout"):
            self.settings = Settings.from_dict(self.configuration.values)
            self.engine = engine or engine_for(self.settings.policy, apart=self.configuration.known is not None)
        if action == "create":
            self._begin(position)
        elif action == "reset":
            arms = self.arms.numbers(body["arm"])
            self.segments.reset(arms)
            forget_outcomes(self.records.table, arms)
            self.reset_at = position
        elif action not in ("delete", "graduate", "fallback"):
            self._prepare()
            self.deadlines.begin(self.settings.deadline_s, position)
            self.segments.change(self.settings, self.arms, self.engine)

    def _follow_rollout(self, action: str, at: float) -> None:
        """Begin the guardrail's test anew where it is about something else now; after a fallback there is none."""
        if action == "fallback":
            self.guardrail.stop()
        elif action in ("create", "rollout") or self.configuration.fallback is None:
            contrast = contrast_of(self.settings)
            if action in ("create", "rollout") or contrast != self.guardrail.contrast:
                self.guardrail.watch(contrast, at)

    def _prepare(self) -> None:
        """Load or compile the policy for the arms. Changes of two replicas may not fit together: then decisions are refused."""
        with suppress(ValueError):
            self.engine.prepare(self.arms.active_at_prices())

    def _forget_pruned(self) -> None:
        old = self.records.table["at"] < self.pruned_before
        for key in self.records.all_keys() if old.any() else ():
            slot = self.records.slot(key)
            if slot is not None and old[slot]:
                self.records.remove(key)

    def records_limit(self) -> int:
        """How many decisions fit into memory, about."""
        return self.settings.memory_bytes // BYTES_OF_RECORD

    def trim(self, is_durable: Callable[[int], bool]) -> None:
        """Let the oldest decisions leave memory until the rest fits; one whose rows are not durable yet ends that."""
        records, limit = self.records, self.settings.memory_bytes
        while records.n_bytes > limit:
            key = records.oldest()
            if key is None:
                return
            slot = records.at(key)
            numbers, base = records.integers, slot * WIDTH
            logged = numbers[base + LOGGED]
            if not logged or not is_durable(numbers[base + POSITION]):
                return
            if numbers[base + WAITING]:
                self.deadlines.evict(key, records.get(slot, "due"), logged)
            records.remove(key)

    def counted_in(self, row: Row) -> Segment:
        """The segment in which a decision is counted: the one it names, unless its row says that there were too many then."""
        return self.segments.make(counted_name(row))


def _counted(records: DecisionRecords, slot: int) -> tuple[Any, ...]:
    """What a decision counts for in its group."""
    reward, cost = records.get(slot, "reward"), records.get(slot, "cost")
    return records.get(slot, "seen"), reward, cost, reward * reward, cost * cost
