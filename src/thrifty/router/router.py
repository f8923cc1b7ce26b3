"""The router: decide, learn from late outcomes, explain. Another loop around the same rules.

Every call appends rows to a log and changes the state only as those rows do (`thrifty.router.state`). So the state after a restart
equals the state before it, randomness included: a decision draws from the stream named by (seed, replica, sequence).
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from math import nan
from typing import Any

from thrifty.router.arms import Arms, ArmsAndPrices
from thrifty.router.choice import choose
from thrifty.router.decision import Decision
from thrifty.router.engine import Engine, engine_for
from thrifty.router.expiry import expire_cold, expire_in_memory, make_room
from thrifty.router.explanation import Explanation, explain_segment
from thrifty.router.outcome import checked_outcome, checked_time, outcome_row
from thrifty.router.records import CODES, Key, Note
from thrifty.router.rehearsal import Change, rehearse, try_changes
from thrifty.router.replicated_log import ReplicatedLog
from thrifty.router.restore import ColdDecisionError, remember
from thrifty.router.settings import Settings, checked_arms, checked_name, checked_segment, checked_text
from thrifty.router.snapshots import Snapshots
from thrifty.router.state import State
from thrifty.router.state_log import LocalLog, StateLog
from thrifty.store.log import CHANGE, DECISION, Row

LONGEST_CONTEXT = 10_000
"""Characters of JSON."""

_new = tuple.__new__  # half the time of calling the class

AT_ONCE = 200
"""Default outcomes that are written while the lock is held once."""

Eligible = Iterable[str] | Mapping[str, float | None]


class Router:
    """Chooses arms for requests and learns from what comes back, in one process; safe to use from many threads.

    Parameters
    ----------
    arms : prices by name; None where a price is unknown and comes back with each outcome (then all costs are learnt)
    alpha : the share of the best reward one is willing to give up
    store : where decisions and outcomes are kept: "sqlite:///routes.db", "postgresql://USER@HOST/DATABASE" (which other processes
        may use too; see docs/service.md), an open store, or None for memory only
    name : what the router is called in the store and in the ids of its decisions
    clock : has time() and monotonic(), like the module of that name
    background : somebody calls `expire` four times a second, so no other call needs to read old decisions from the log
    settings : see `thrifty.router.Settings`: policy, deadline_s, default_outcome, mode, holdout, seed, ...

    >>> router = Router({"alpha-tel": 0.0079, "beta-sms": 0.0062, "gamma": 0.0041}, alpha=0.05, policy="cs-ucb")
    >>> decision = router.decide()
    >>> decision.arm, decision.code
    ('alpha-tel', 'explore')
    >>> router.record(decision.id, reward=1)
    'recorded'
    >>> router.record(decision.id, reward=1)
    'duplicate'

    """

    def __init__(
        self,
        arms: Mapping[str, float | None],
        alpha: float,
        *,
        store: Any = None,
        name: str = "router",
        clock: Any = time,
        background: bool = False,
        **settings: Any,
    ) -> None:
        unknown = set(settings) - set(Settings.names())
        if unknown:
            raise ValueError(f"a router has no setting {min(unknown)!r}; it has {', '.join(Settings.names())}")
        wanted, given = checked_arms(arms), Settings(alpha=alpha, **settings)
        engine = engine_for(given.policy)
        rehearse(engine, Arms(wanted), given)
        self._owned_store: Any = None
        if isinstance(store, str):
            from thrifty.store import open_store

            store = self._owned_store = open_store(store)
        fresh = State(checked_name("name", name), wanted, given, clock=clock, engine=engine)
        self._open(fresh, store, background)
        if store is not None:
            if self.log.position == 0 or self.state.configuration.deleted:
                self.wait(self._add_change("create", {"arms": wanted, "settings": given.to_dict()}, engine))
            self.configure(wanted, given, by="start")

    @classmethod
    def reopen(cls, name: str, store: Any, *, clock: Any = time, background: bool = False) -> "Router":
        """A router as its log in an open store left it; a LogRowError where a row of the log cannot be applied."""
        router = cls.__new__(cls)
        router._owned_store = None
        fresh = State(checked_name("name", name), {"none": 0.0}, Settings(alpha=0.0, policy="cheapest"), clock=clock)
        router._open(fresh, store, background)
        return router

    def _open(self, fresh: State, store: Any, background: bool) -> None:
        self.name, self.lock, self._background = fresh.name, threading.RLock(), background
        journal = None if store is None else store.journal(fresh.name)
        self._fresh = fresh
        self.log: StateLog
        if journal is None:
            self.log = StateLog()
        else:
            fresh.adopt_replica(journal.replica)
            self.log = ReplicatedLog(self, journal) if journal.shared else LocalLog(journal)
        self.state = self.log.restore(fresh)
        self._snapshots = Snapshots(self.log, self.name)
        if isinstance(self.log, ReplicatedLog):
            self.log.listen()

    def leave(self) -> None:
        """Follow the log no more."""
        self.log.leave()

    def close(self) -> None:
        """Keep a snapshot and let go of the store, if this router opened it."""
        self._snapshots.take_last(self)
        if self._owned_store is not None:
            self._owned_store.close()

    def __enter__(self) -> "Router":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """Everything that can be set but the arms."""
        return self.state.settings

    @property
    def arms(self) -> Arms:
        """Its arms."""
        return self.state.arms

    @property
    def version(self) -> int:
        """How often its arms or settings were changed."""
        return self.state.version

    @property
    def counts(self) -> dict[str, int]:
        """Decisions, outcomes that arrived, and decisions whose deadline passed without one."""
        state = self._known_state()
        return {"decisions": state.decided, "outcomes": state.arrived, "expired": state.expired}

    @property
    def groups(self) -> dict[str, list[Any]]:
        """Outcomes, reward sum and cost sum of the holdout and of all others."""
        return self._known_state().groups

    @property
    def pending(self) -> int:
        """Decisions that wait for an outcome."""
        return self._known_state().waiting

    @property
    def responsive(self) -> bool:
        """Whether `decide_soon` and `record_soon` take microseconds: the policy is compiled, and nothing is to be restored."""
        return not self.log.stale and self.state.engine.compiled

    @property
    def failed(self) -> str | None:
        """Why this router can no longer follow its log."""
        return self.log.failed

    def gauges(self) -> dict[str, float]:
        """How much there is of what has a limit, and what state the router is in."""
        state = self.state
        return {
            "memory_bytes": state.records.n_bytes,
            "memory_limit_bytes": state.settings.memory_bytes,
            "segments": len(state.segments),
            "max_segments": state.segments.limit,
            "pending": state.waiting,
            "compiled": float(state.engine.compiled),
            "stale": float(self.log.stale),
        }

    def explain(self, segment: str = "") -> Explanation:
        """What is known about a segment and what would be chosen for it now; print it, or take its `to_dict()`."""
        with self.lock:
            self._refresh()
            return explain_segment(self.state, segment)

    def segments(self) -> list[str]:
        """Every segment seen so far, "" first."""
        with self.lock:
            return self._known_state().segments.names()

    def statistics(self, segment: str = "") -> dict[str, tuple[int, int, float, float]]:
        """Per arm (sent, seen, reward sum, cost sum) of a segment and everything below it."""
        with self.lock:
            segments = self._known_state().segments
            sums = zip(self.arms.names, segments.statistics(segments.nearest(segment).number), strict=True)
            return {name: (sent, int(seen), reward_sum, cost_sum) for name, (sent, _, seen, reward_sum, cost_sum, _) in sums}

    def id_of(self, request_id: str) -> str:
        """The id of the decision that was made for a request_id, among those in memory."""
        with self.lock:
            key = self.state.records.answered(request_id)
            if key is None:
                raise KeyError(f"no decision with request_id {request_id!r:.80} is remembered")
            return self.state.id_of(key)

    # -- deciding ----------------------------------------------------------------------------------------------------

    def decide(
        self, segment: str = "", *, eligible: Eligible | None = None, request_id: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Decision:  # fmt: skip
        """Choose an arm; returns when the decision is durable.

        Parameters
        ----------
        segment : the kind of request, as a path: "DE/vodafone" borrows from others below "DE", and from all, where they are alike
        eligible : the arms to choose from, if not all; a mapping gives them prices for this once
        request_id : a retry with the same one gets the same decision, among those in memory
        context : values by name, at most 10,000 characters of JSON: kept in the log for offline evaluation; no rule uses it

        """
        decision = self.decide_soon(segment, eligible=eligible, request_id=request_id, context=context)
        if decision.position:
            self.wait(decision.position)
            self.finish(decision)
        return decision

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """A decision for each of several sets of arguments of `decide`, made durable together."""
        with self.lock:  # taken once for all of them
            asked = [dict(request) for request in requests]
            for request in asked:  # before any of them is decided
                self._check_request(**request)
            decisions = [self.decide_soon(**request) for request in asked]
        for decision in decisions:
            self.wait(decision.position)
            self.finish(decision)
        return decisions

    def decide_soon(
        self, segment: str = "", *, eligible: Eligible | None = None, request_id: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Decision:  # fmt: skip
        """Like `decide`, but the decision is durable only once `wait(decision.position)` returns."""
        with self.lock:
            self._refresh()
            self.log.admit()
            state = self.state
            if request_id is not None:
                known = state.records.answered(checked_text("request_id", request_id))
                if known is not None:
                    return self.repeat(known)
            choice, text = self._check_request(segment, eligible=eligible, context=context)
            node = state.segments.known(segment) or state.segments.obtain(segment)
            key, settings, clock = (state.replica, state.sequence + 1), state.settings, state.clock
            place, why, likely, rule, graduates = choose(state, key[1], node, choice)
            name, price, code = rule.names[place], rule.prices[place], CODES[why]
            at, shadow = clock.time(), settings.mode == "shadow"
            detail = None
            if choice is not None or text is not None or shadow or node.name != segment:
                detail = self._detail(choice, text, shadow, None if node.name == segment else node.name)
            propensity = None if likely != likely else likely  # NaN
            row = _new(Row, (DECISION, *key, at, segment, request_id, name, propensity, price, code, detail))
            note = None if request_id is None and detail is None else Note(request_id, segment, detail)
            due, cost = clock.monotonic() + settings.deadline_s, nan if price is None else price
            slot = state.apply_decision(key, at, due, node, rule.arms[place], why, likely, cost, not shadow, note)
            decision = Decision(state.id_of(key), name, code, likely, segment, state.configuration.version, rule)
            decision.position = self.log.add_decision(state, row, slot)
            self.log.answered(decision)
            for arm in graduates:
                self._add_change("graduate", {"arm": state.arms.names[arm]}, None)
            self.moved_on()
            return decision

    def _check_request(
        self, segment: str = "", *, eligible: Eligible | None = None, request_id: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> tuple[ArmsAndPrices | None, dict[str, Any] | None]:  # fmt: skip
        """The eligible arms and the context; a ValueError for a wrong request. Nothing may go wrong once the rule has chosen."""
        if request_id is not None:
            checked_text("request_id", request_id)
        if not isinstance(segment, str) or self.state.segments.known(segment) is None:
            checked_segment(segment)
        choice = None if eligible is None else self.state.arms.eligible(eligible)
        return choice, None if context is None else _checked_context(context)

    def _detail(self, choice: ArmsAndPrices | None, context: Any, shadow: bool, counted: str | None) -> str:
        found: dict[str, Any] = {}
        if choice is not None:
            found["eligible"] = [[self.arms.names[arm], price] for arm, price in zip(*choice, strict=True)]
        if shadow:
            found["shadow"] = True
        if counted is not None:
            found["counted"] = counted
        if context is not None:
            found["context"] = context
        return json.dumps(found)

    def repeat(self, key: Key) -> Decision:
        """The same decision once more; its reason and fallbacks are of what is known now."""
        state, slot = self.state, self.state.records.slot(key)
        assert slot is not None
        records, note = state.records, state.records.note(key)
        detail = json.loads(note.detail) if note is not None and note.detail is not None else {}
        node = state.segments.by_number[records.get(slot, "segment")]
        segment = node.name if note is None else note.segment
        try:
            eligible = state.arms.eligible(dict(detail["eligible"])) if "eligible" in detail else None
        except ValueError:  # none of those arms is active any more
            eligible = None
        rule = state.segments.rule(node, eligible)
        rule.look(state.segments.sums)
        decision = Decision(
            state.id_of(key), state.arms.names[records.get(slot, "made")], CODES[records.get(slot, "code")],
            records.get(slot, "propensity"), segment, records.get(slot, "version"), rule,
        )  # fmt: skip
        decision.position, decision.repeated = self.log.latest(state, slot)[1], True
        self.log.answered(decision)
        return decision

    def finish(self, decision: Decision) -> None:
        """Note, after waiting for a decision, whether it is given out before it is durable because the store is away."""
        decision.degraded = self.log.is_degraded(decision.position)

    # -- learning ----------------------------------------------------------------------------------------------------

    def record(
        self,
        decision_id: str,
        reward: float | None = None,
        *,
        status: str | None = None,
        cost: float | None = None,
        arm: str | None = None,
        occurred_at: float | None = None,
    ) -> str:
        """Take the outcome of a decision; returns when it is durable.

        Parameters
        ----------
        decision_id : the decision's id
        reward : in [0, 1]
        status : instead of a reward: "success", "failure", or "void" for an outcome that says nothing about the arm
        cost : what it cost, if not the price
        arm : the arm that was used, if not the decided one
        occurred_at : seconds since 1970; an outcome older than the one known is stale and changes nothing. It orders the outcomes
            of one decision and nothing else: clocks differ, so a time before that of the decision is taken as it is

        Returns
        -------
        "recorded", "corrected" (another outcome was known), "duplicate" or "stale"

        """
        answer, position = self.record_soon(
            decision_id, reward, status=status, cost=cost, arm=arm, occurred_at=occurred_at, cold=True
        )
        if position:
            self.wait(position)
        return answer

    def record_soon(
        self,
        decision_id: str,
        reward: float | None = None,
        *,
        status: str | None = None,
        cost: float | None = None,
        arm: str | None = None,
        occurred_at: float | None = None,
        cold: bool = False,
    ) -> tuple[str, int]:
        """Like `record`, with the position of the log to wait for.

        A decision that is not in memory is a ColdDecisionError; with `cold` it is looked up in the log, which takes milliseconds.
        """
        value, at = checked_outcome(reward, status, cost), checked_time(occurred_at)
        while True:
            with self.lock:
                self._refresh()
                state = self.state
                key = state.key_of(decision_id)
                slot = state.records.slot(key)
                if slot is not None:
                    self.log.admit_outcome()
                    known, position = self.log.latest(state, slot)
                    row = outcome_row(state, known, value, cost, arm, at)
                    if isinstance(row, str):
                        return row, position
                    position = self.log.add_outcome(state, row, slot)
                    self.moved_on()
                    return row.code, position
            if not cold and self.log.journal is not None:
                raise ColdDecisionError(decision_id)
            self.load(decision_id)

    def load(self, decision_id: str) -> None:
        """Bring a decision back into memory from the log; a KeyError where it is not there either. May take milliseconds."""
        key = self.state.key_of(decision_id)
        while True:
            records = self.state.records
            removals, found = records.removals, self.log.find(self.state, key)
            with self.lock:
                if key in self.state.records:
                    return
                if records is not self.state.records or removals != records.removals:
                    continue  # it may have been here and gone since it was read
                if not found or found[0].numbers["at"] < self.state.pruned_before:
                    raise KeyError(f"no decision {decision_id!r:.80} is known: it is wrong, or older than what is remembered")
                remember(self.state, found[0])
                return

    def expire(self) -> None:
        """Give every decision past its deadline the default outcome, those that are only in the log included."""
        expire_cold(self)
        while True:
            with self.lock:
                self._restore_if_stale()
                if not expire_in_memory(self, most=AT_ONCE):
                    return

    # -- changing ----------------------------------------------------------------------------------------------------

    def change(self, action: str, arm: str | None = None, *, price: float | None = None, by: str = "") -> None:
        """Change the arms while running; logged, and durable when this returns. Statistics of other arms are untouched.

        Parameters
        ----------
        action : "add" (with a price), "retire", "pause", "resume", "price" (with one), "reset" (its statistics), "pin", "unpin"
        arm : which one; "reset" and "unpin" may leave it out
        price : for "add" and "price"
        by : who asked, for the log

        """
        self._try_changes(lambda _state: [(action, {"arm": arm, "price": price, "by": by})])

    def configure(self, arms: Mapping[str, float | None], settings: Settings, *, by: str = "") -> None:
        """Add and price the named arms, retire the others, and take over the settings; nothing of it where anything cannot work."""
        wanted = checked_arms(arms)

        def differences(state: State) -> list[Change]:
            changes = state.arms.differences(wanted)
            found: list[Change] = [(action, {"arm": arm, "price": price, "by": by}) for action, arm, price in changes]
            if settings != state.settings:
                found.append(("settings", {**settings.to_dict(), "by": by}))
            return found

        self._try_changes(differences)

    def delete(self, *, by: str = "") -> None:
        """Write into the log that the router is no more; the log stays."""
        self._try_changes(lambda _state: [("delete", {"by": by})])

    def _try_changes(self, wanted: Callable[[State], list[Change]]) -> None:
        """Try changes on a copy, without the lock; if all work, log and apply them, unless something else was changed meanwhile."""
        while True:
            with self.lock:
                self._refresh()
                version, changes = self.state.version, wanted(self.state)
                arms, settings = self.state.arms.copy(), self.state.settings
            engine = try_changes(arms, settings, changes)
            with self.lock:
                if self.state.version != version:
                    continue
                if not changes:
                    return
                action, body = changes[0] if len(changes) == 1 else ("changes", {"changes": changes})
                position = self._add_change(action, body, engine)
            self.wait(position)
            return

    def _add_change(self, action: str, body: dict[str, Any], engine: Engine | None) -> int:
        state, arm = self.state, body.get("arm")
        row = Row(
            CHANGE, state.replica, state.sequence, state.clock.time(), None, None, arm, None, None, action, json.dumps(body)
        )  # fmt: skip
        position = self.log.add_change(state, row, engine)
        self.moved_on()
        return position

    def prune(self, before: float, *, by: str = "") -> int:
        """Delete decisions made before a time (seconds since 1970) and their outcomes from the log; the number of rows deleted.

        The statistics stay as they are, kept in snapshots. Decisions that may still wait for an outcome stay too. Outcomes of
        deleted decisions are refused from now on. Changes are never deleted, and this becomes one more.
        """
        journal = self.log.journal
        if journal is None:
            raise ValueError("a router without a store has no log to prune")
        self.expire()
        with self.lock:
            state = self.state
            oldest = state.deadlines.oldest_waiting(state.records, state.clock)
            before = min(before, state.clock.time() - state.settings.deadline_s, oldest)
            position = self._add_change("prune", {"before": before, "by": by}, None)
        self.wait(position)
        covered = self._snapshots.take_now(self)
        rows = journal.prune(before=before, upto=covered)
        with self.lock:
            position = self._add_change("pruned", {"before": before, "rows": rows, "by": by}, None)
        self.wait(position)
        self._snapshots.take_now(self)
        return rows

    # -- the log -----------------------------------------------------------------------------------------------------

    def wait(self, position: int) -> None:
        """Return when what was given this `position` is durable; or, of a decision, is going to be because the store is away."""
        if position:
            self.log.wait(position)

    def is_durable(self, position: int) -> bool:
        """Whether `wait(position)` would return at once; raises like it."""
        return not position or self.log.is_durable(position)

    def is_degraded(self, position: int) -> bool:
        """Whether a decision need not be waited for any longer, because the store is away."""
        return self.log.is_degraded(position)

    def moved_on(self) -> None:
        """The log has grown: keep memory within its limit, and take a snapshot now and then. Called under the lock."""
        state = self.state
        if state.records.n_bytes > state.settings.memory_bytes:
            make_room(self)
        if self.log.position >= self._snapshots.due_at:
            self._snapshots.take_if_due(self)

    def _refresh(self) -> None:
        """Bring the state up to date before a call: restored if the log lost rows, and without decisions past their deadline."""
        self._restore_if_stale()
        deadlines = self.state.deadlines
        if self.state.clock.monotonic() >= deadlines.next_due:
            expire_in_memory(self, most=AT_ONCE)
            if not self._background:
                expire_cold(self)

    def _known_state(self) -> State:
        """The state without rows that the log lost. A service restores it in the background instead."""
        if self.log.stale and not self._background:
            with self.lock:
                self._restore_if_stale()
        return self.state

    def _restore_if_stale(self) -> None:
        if self.log.stale:
            self.state = self.log.restore(self._fresh.begun_anew())


def _checked_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """`context`, or a ValueError where JSON cannot express it or it is too long for the log."""
    try:
        text = json.dumps(dict(context), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"context must be made of what JSON can express, got {context!r:.80}") from None
    if len(text) > LONGEST_CONTEXT:
        raise ValueError(f"context must be at most {LONGEST_CONTEXT} characters of JSON, got {len(text)}")
    return dict(context)
