"""The router: decide, learn from late outcomes, explain. Another loop around the same rules.

Every call appends rows to a log and changes the state only as those rows do (`thrifty.router.state`). So the state after a restart
equals the state before it, randomness included: a decision draws from the stream named by (seed, replica, sequence).
"""

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from thrifty.actions import checked_action
from thrifty.router.arms import Arms
from thrifty.router.changing import add_change, adjust, delete, make_changes, prune, undo
from thrifty.router.deciding import Eligible, check_request, decide_soon, repeat
from thrifty.router.decision import Decision
from thrifty.router.engine import Engine, engine_for
from thrifty.router.expiry import expire_cold, expire_in_memory, make_room
from thrifty.router.explanation import Explanation, explain_segment
from thrifty.router.history_keeper import HistoryKeeper, history
from thrifty.router.known_start import KnownStart, check_started
from thrifty.router.recording import load, record_soon, record_when_stored
from thrifty.router.rehearsal import Change, rehearse
from thrifty.router.replicated_log import ReplicatedLog
from thrifty.router.reward_histogram import RewardHistogram
from thrifty.router.rollout import fall_back, move_rollout, rollout
from thrifty.router.settings import Settings, checked_arms, checked_name, checked_price
from thrifty.router.snapshots import Snapshots
from thrifty.router.state import State
from thrifty.router.state_log import LocalLog, StateLog
from thrifty.router.view import RouterView

AT_ONCE = 200
"""Default outcomes that are written while the lock is held once."""


class Router(RouterView):
    """Chooses arms for requests and learns from what comes back, in one process; safe to use from many threads.

    Parameters
    ----------
    arms : prices by name; None where a price is unknown and comes back with each outcome (then all costs are learnt)
    alpha : the share of the best reward one is willing to give up
    store : where decisions and outcomes are kept: "sqlite:///routes.db", "postgresql://USER@HOST/DATABASE" (which other processes
        may use too; see docs/service.md), an open store, or None for memory only
    name : what the router is called in the store and in the ids of its decisions
    clock : has time() and monotonic(), like the module of that name
    by : who makes it, for the log
    known : outcomes of the arms to start with, and where they come from: {"source": "sms.csv", "outcomes": [{"segment": "DE",
        "arm": "a", "outcomes": 40, "rewards": 36}]}. Rules learn from them; nothing counts them as the router's own. A router
        starts once: one that is in the store already must have started with the same, or `known` is left out
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
        by: str = "",
        known: Any = None,
        **settings: Any,
    ) -> None:
        unknown = set(settings) - set(Settings.names())
        if unknown:
            raise ValueError(f"a router has no setting {min(unknown)!r}; it has {', '.join(Settings.names())}")
        wanted, given = checked_arms(arms), Settings(alpha=alpha, **settings)
        start = None if known is None else KnownStart.read(known)
        engine = engine_for(given.policy, apart=start is not None)
        rehearse(engine, Arms(wanted), given)
        if start is not None:
            start.check(wanted, given, weighs_outcomes=engine.weighs_outcomes)
        fresh = State(checked_name("name", name), wanted, given, clock=clock, engine=engine, known=start)
        self._owned_store: Any = None
        if isinstance(store, str):
            from thrifty.store import open_store

            store = self._owned_store = open_store(store)
        try:
            self._open(fresh, store, background)
            if store is not None:
                self._start(wanted, given, start, by=by, engine=engine)
        except BaseException:
            if self._owned_store is not None:
                self._owned_store.close()
            raise

    def _start(
        self, arms: dict[str, float | None], settings: Settings, known: KnownStart | None, *, by: str, engine: Engine
    ) -> None:
        """Make the router in its store, or bring the one that is there in line. Another replica may have made it meanwhile."""
        if self.log.position == 0 or self.state.configuration.deleted:
            body = {"arms": arms, "settings": settings.to_dict(), "by": by}
            body |= {} if known is None else {"known": known.to_dict()}
            self.wait(add_change(self, "create", body, engine))
        check_started(self.name, self.state.configuration.known, known)
        self.configure(arms, settings, by="start")

    @classmethod
    def reopen(cls, name: str, store: Any, *, clock: Any = time, background: bool = False) -> "Router":
        """A router as its log in an open store left it; a LogRowError where a row of the log cannot be applied."""
        router = cls.__new__(cls)
        router._owned_store = None
        fresh = State(checked_name("name", name), {"none": 0.0}, Settings(alpha=0.0, policy="cheapest"), clock=clock)
        router._open(fresh, store, background)
        return router

    def _open(self, fresh: State, store: Any, background: bool) -> None:
        self.name, self.lock, self.background = fresh.name, threading.RLock(), background
        self.rewards = RewardHistogram() if background else None  # for the metrics of a service
        self.fallback_due = 0, 0.0  # the stage of a rollout that is to fall back, and when this is to be written
        journal = None if store is None else store.journal(fresh.name)
        self._fresh = fresh
        if journal is None:
            self.log = StateLog()
        else:
            fresh.adopt_replica(journal.replica)
            self.log = ReplicatedLog(self, journal) if journal.shared else LocalLog(journal)
        self.state = self.log.restore(fresh)
        self.snapshots, self.history_keeper = Snapshots(self.log, self.name), HistoryKeeper(self.log, self.name)
        self.store = store
        if isinstance(self.log, ReplicatedLog):
            self.log.listen()

    def leave(self) -> None:
        """Follow the log no more."""
        self.history_keeper.close(self)
        self.log.leave()

    def close(self) -> None:
        """Keep a snapshot and let go of the store, if this router opened it."""
        self.history_keeper.stop_filling()
        self.snapshots.take_last(self)
        if self._owned_store is not None:
            self._owned_store.close()

    def __enter__(self) -> "Router":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explain(self, segment: str = "") -> Explanation:
        """What is known about a segment and what would be chosen for it now; print it, or take its `to_dict()`."""
        with self.lock:
            self.refresh()
            return explain_segment(self.state, segment)

    # -- deciding ----------------------------------------------------------------------------------------------------

    def decide(
        self,
        segment: str = "",
        *,
        eligible: Eligible | None = None,
        request_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Decision:
        """Choose an arm; returns when the decision is durable.

        Parameters
        ----------
        segment : the kind of request, as a path: "DE/vodafone" borrows from others below "DE", and from all, where they are alike
        eligible : the arms to choose from, if not all; a mapping gives them prices for this once
        request_id : a retry with the same one gets the same decision, among those in memory
        context : values by name, at most 10,000 characters of JSON: kept in the log for offline evaluation; no rule uses it
        key : in a canary, requests with the same key are all routed or all take the baseline: a customer, a card. Without one each
            decision falls to a group by itself. Of the key only a hash of 20 bits is kept

        """
        decision = self.decide_soon(segment, eligible=eligible, request_id=request_id, context=context, key=key)
        if decision.position:
            self.wait(decision.position)
            self.finish(decision)
        return decision

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """A decision for each of several sets of arguments of `decide`, made durable together."""
        with self.lock:  # taken once for all of them
            asked = [dict(request) for request in requests]
            for request in asked:  # before any of them is decided
                check_request(self, **request)
            decisions = [self.decide_soon(**request) for request in asked]
        for decision in decisions:
            self.wait(decision.position)
            self.finish(decision)
        return decisions

    decide_soon = decide_soon
    repeat = repeat

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
        outcome: dict[str, Any] = {"status": status, "cost": cost, "arm": arm, "occurred_at": occurred_at}
        answer, position = self.record_when_stored(decision_id, reward, **outcome)
        if position:
            self.wait(position)
        return answer

    record_soon = record_soon
    record_when_stored = record_when_stored
    load = load

    def expire(self) -> None:
        """Give every decision past its deadline the default outcome, those that are only in the log included."""
        expire_cold(self)
        while True:
            with self.lock:
                self._restore_if_stale()
                more = expire_in_memory(self, most=AT_ONCE)
                fall_back(self)
            if not more:
                return

    # -- changing ----------------------------------------------------------------------------------------------------

    def change(
        self, action: str, arm: str | None = None, *, price: float | None = None, by: str = "", version: int | None = None
    ) -> None:
        """Change the arms while running; logged, and durable when this returns. Statistics of other arms are untouched.

        Parameters
        ----------
        action : "add" (with a price), "retire", "pause", "resume", "price" (with one), "reset" (its statistics), "pin", "unpin"
        arm : which one; "reset" and "unpin" may leave it out
        price : for "add" and "price"
        by : who asked, for the log
        version : of the router that the change is meant for; a ConflictError if it has changed since

        """
        checked_action(action)
        amount = checked_price(str(arm), price)
        make_changes(self, lambda _state: [(action, {"arm": arm, "price": amount, "by": by})], version=version)

    adjust = adjust
    undo = undo

    def configure(self, arms: Mapping[str, float | None], settings: Settings, *, by: str = "", version: int | None = None) -> None:
        """Add and price the named arms, retire the others, and take over the settings; nothing of it where anything cannot work.

        With a `version`, a ConflictError if the router has changed since it had that.
        """
        wanted = checked_arms(arms)

        def differences(state: State) -> list[Change]:
            changes = state.arms.differences(wanted)
            found: list[Change] = [(action, {"arm": arm, "price": price, "by": by}) for action, arm, price in changes]
            if settings != state.settings:
                found.append(("settings", {**settings.to_dict(), "by": by}))
            return found

        make_changes(self, differences, version=version)

    rollout = rollout
    move_rollout = move_rollout

    delete = delete

    prune = prune
    history = history

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
        if self.log.position >= self.snapshots.due_at:
            self.snapshots.take_soon(self)
        if state.guardrail.broken_by is not None and not isinstance(self.log, ReplicatedLog):
            fall_back(self)

    def refresh(self) -> None:
        """Bring the state up to date before a call: restored if the log lost rows, and without decisions past their deadline."""
        if self.log.stale:
            self._restore_if_stale()
        state = self.state
        if state.clock.monotonic() >= state.deadlines.next_due:
            expire_in_memory(self, most=AT_ONCE)
            if not self.background:
                expire_cold(self)
        if state.guardrail.broken_by is not None:
            fall_back(self)
