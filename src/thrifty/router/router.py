"""The router: decide, learn from late outcomes, explain. Another loop around the same rules.

Every call appends rows to the log and changes the state only in ways that reading those rows again would repeat: the state is the
fold of the log, bit for bit, randomness included, because a decision draws from the stream named by (seed, replica, sequence).
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from thrifty.router.choice import choose, is_usual
from thrifty.router.decision import Decision
from thrifty.router.explanation import Explanation, explain_segment
from thrifty.router.kernels import CODE, PROPENSITY
from thrifty.router.logged import Logged
from thrifty.router.outcome import checked_outcome, outcome_row
from thrifty.router.restore import find
from thrifty.router.sent import CODES, Note
from thrifty.router.settings import Settings, checked_arms, checked_name, checked_segment, checked_text
from thrifty.router.state import State
from thrifty.router.view import Key, View
from thrifty.store.log import DECISION, Row

LONGEST_CONTEXT = 10_000
"""Characters of JSON."""

_new = tuple.__new__  # half the time of calling the class

Eligible = Iterable[str] | Mapping[str, float | None]


class Router(Logged):
    """Chooses arms for requests and learns from what comes back, in one process; safe to use from many threads.

    Parameters
    ----------
    arms : prices by name; None where a price is unknown and comes back with each outcome (then all costs are learnt)
    alpha : the share of the best reward one is willing to give up
    store : where decisions and outcomes are kept: "sqlite:///routes.db", "postgresql://USER@HOST/DATABASE" (which other processes
        may use too; see docs/service.md), an open store, or None for memory only
    name : what the router is called in the store and in the ids of its decisions
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
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> None:
        unknown = set(settings) - set(Settings.names())
        if unknown:
            raise ValueError(f"a router has no setting {min(unknown)!r}; it has {', '.join(Settings.names())}")
        told = Settings(alpha=alpha, **settings)
        wanted = checked_arms(arms)
        told.check_arms(len(wanted))
        super().__init__(State(checked_name("name", name), wanted, told, clock=clock))
        self._owned_store: Any = None
        if store is not None:
            if isinstance(store, str):
                from thrifty.store import open_store

                store = self._owned_store = open_store(store)
            self._restore(store.journal(self.name))
            if self._position == 0 or self._state.deleted:
                self.wait(self._take_change("create", {"arms": wanted, "settings": told.to_dict()}))
            self.configure(wanted, told, by="start")
        self._rehearse()

    @classmethod
    def reopen(cls, name: str, store: Any, *, clock: Callable[[], float] = time.time) -> "Router":
        """A router as its log in an open store left it."""
        router = cls.__new__(cls)
        Logged.__init__(router, State(checked_name("name", name), {"none": 0.0}, Settings(alpha=0.0), clock=clock))
        router._owned_store = None
        router._restore(store.journal(name))
        router._rehearse()
        return router

    def leave(self) -> None:
        """Hear no more of other replicas."""
        if self._journal is not None:
            self._journal.ignore()

    def close(self) -> None:
        """Keep a snapshot and let go of the store, if this router opened it."""
        with self._lock:
            if self._journal is not None and self._position > self._snapshot_at:
                self._snapshot()
            if self._owned_store is not None:
                self._owned_store.close()

    def __enter__(self) -> "Router":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """How often its arms or settings were changed."""
        return self._state.version

    @property
    def counts(self) -> dict[str, int]:
        """Decisions, outcomes that arrived, and decisions that the deadline spoke for."""
        state = self._state
        return {"decisions": state.decided, "outcomes": state.arrived, "expired": state.expired}

    @property
    def groups(self) -> dict[str, list[Any]]:
        """Outcomes, reward sum and cost sum of the holdout and of all others."""
        return self._state.groups

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
        request_id : a retry with the same one gets the same decision, among the last `remember` decisions
        context : values by name, at most 10,000 characters of JSON: kept in the log for offline evaluation; no rule uses it

        """
        decision = self.decide_soon(segment, eligible=eligible, request_id=request_id, context=context)
        if decision.position:
            self.wait(decision.position)
            self.finish(decision)
        return decision

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """A decision for each of several sets of arguments of `decide`, made durable together."""
        with self._lock:  # taken once for all of them
            decisions = [self.decide_soon(**request) for request in requests]
        for decision in decisions:
            self.wait(decision.position)
            self.finish(decision)
        return decisions

    def decide_soon(
        self, segment: str = "", *, eligible: Eligible | None = None, request_id: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Decision:  # fmt: skip
        """Like `decide`, but the decision is durable only once `wait(decision.position)` returns."""
        with self._lock:
            state, now = self._state, time.monotonic()
            if self._follower is not None:
                self._follower.admit(keep=True)
            if self._stale or now >= state.ledger.next_due:
                self._ready()
                state = self._state
            if request_id is not None:
                known = state.ledger.answered(checked_text("request_id", request_id))
                if known is not None:
                    return self._repeat(known)
            ledger, settings = state.ledger, state.settings
            key = None if eligible is None else state.roster.key_of(eligible)
            plain = key is None and context is None and settings.mode == "live"
            detail = None if plain else self._detail(key, context)  # before the rule chooses, so that nothing can go wrong after it
            node = state.tree.known(segment) or state.tree.segment(checked_segment(segment))
            if len(ledger) >= settings.remember:
                while (oldest := ledger.trim(settings.remember)) is not None:
                    self._speak_for(oldest)
            if plain and self._follower is None and is_usual(state):
                return self._decide_as_usual(state, node.main, segment, request_id, now)
            arm, code, propensity, view = choose(state, state.sequence + 1, node, key)
            name = state.roster.names[arm]
            price = state.roster.prices[arm] if key is None else view.prices[view.arms.index(arm)]
            made = (DECISION, state.replica, state.sequence + 1, state.clock(), segment, request_id)
            sent = self._take_in(Row(*made, name, propensity, price, code, detail))
            decision = Decision(sent.id, name, code, propensity, segment, state.version, view)
            decision.position = sent.position
            if self._follower is not None:
                self._follower.answered(decision)
            return decision

    def _decide_as_usual(self, state: State, view: View, segment: str, request_id: str | None, now: float) -> Decision:
        """Nearly every decision: the rule chooses, and one kernel does what `apply` would do with the row."""
        settings, ledger = state.settings, state.ledger
        sequence, slot, at, due = state.sequence + 1, ledger.next_slot(), state.clock(), now + settings.deadline_s
        place = view.decide(
            view.book, sequence, settings.propensity_draws, ledger.address, slot, at, due, state.replica, state.version
        )
        id = state.prefix + hex(sequence)[2:]
        ledger.entered(id, due, None if request_id is None else Note(request_id, segment, None))
        state.sequence = sequence
        state.decided += 1
        code, propensity = CODES[int(view.peek[CODE])], view.peek[PROPENSITY]
        decision = Decision(id, view.names[place], code, propensity, segment, state.version, view)
        if self._journal is not None:
            row = (
                DECISION, state.replica, sequence, at, segment, request_id, decision.arm, propensity, view.prices[place], code, None
            )  # fmt: skip
            decision.position = self._append(_new(Row, row))
            ledger.place(slot, decision.position)
            self._reached(decision.position)
        return decision

    def _detail(self, key: Key | None, context: Mapping[str, Any] | None) -> str | None:
        said: dict[str, Any] = {}
        if key is not None:
            said["eligible"] = [[self.roster.names[arm], price] for arm, price in zip(*key, strict=True)]
        if self.settings.mode == "shadow":
            said["shadow"] = True
        if context is not None:
            said["context"] = _checked_context(context)
        return json.dumps(said) if said else None

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
        said, position = self.record_soon(decision_id, reward, status=status, cost=cost, arm=arm, occurred_at=occurred_at)
        if position:
            self.wait(position)
        return said

    def record_soon(
        self,
        decision_id: str,
        reward: float | None = None,
        *,
        status: str | None = None,
        cost: float | None = None,
        arm: str | None = None,
        occurred_at: float | None = None,
    ) -> tuple[str, int]:
        """Like `record`, with the position of the log to wait for."""
        value = checked_outcome(reward, status, cost)
        with self._lock:
            state = self._state
            if self._stale or time.monotonic() >= state.ledger.next_due:
                self._ready()
                state = self._state
            if self._follower is not None:
                return self._follower.record(decision_id, value, cost, arm, occurred_at)
            if value is not None and cost is None and arm is None and occurred_at is None and not state.settings.holdout:
                position = self._settle_as_usual(state, decision_id, value, "recorded")
                if position is not None:
                    return "recorded", position
            sent = find(state, decision_id, self._journal)
            row = outcome_row(state, sent, value, cost, arm, occurred_at)
            if isinstance(row, str):
                return row, sent.position
            self._take_in(row, sent)
            return row.code, sent.position

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
        with self._lock:
            self._ready()
            self.roster.check_change(action, arm, price)
            self.settings.check_arms(len(self.roster.active()) + (action == "add"))
            position = self._take_change(action, {"arm": arm, "price": price, "by": by})
        self.wait(position)
        self._rehearse()

    def configure(self, arms: Mapping[str, float | None], settings: Settings, *, by: str = "") -> None:
        """Make the router be as told: add and price the named arms, retire the others, and take over the settings."""
        wanted = checked_arms(arms)
        settings.check_arms(len(wanted))
        with self._lock:
            self._ready()
            position = 0
            for action, arm, price in self.roster.differences(wanted):
                position = self._take_change(action, {"arm": arm, "price": price, "by": by})
            if settings != self.settings:
                position = self._take_change("settings", {**settings.to_dict(), "by": by})
        self.wait(position)
        self._rehearse()

    def delete(self, *, by: str = "") -> None:
        """Write into the log that the router is no more; the log stays."""
        with self._lock:
            position = self._take_change("delete", {"by": by})
        self.wait(position)

    def _rehearse(self) -> None:
        with self._lock:
            if not self._state.deleted:
                self._state.tree.rehearse(newcomers=bool(self.roster.newcomers))

    # -- looking -----------------------------------------------------------------------------------------------------

    def explain(self, segment: str = "") -> Explanation:
        """What is known about a segment and what would be chosen for it now; print it, or take its `to_dict()`."""
        with self._lock:
            self._ready()
            state = self._state
            return explain_segment(state.tree, state.roster, state.settings, segment, state.groups)

    def segments(self) -> list[str]:
        """Every segment seen so far, "" first."""
        with self._lock:
            return self._state.tree.names()

    def statistics(self, segment: str = "") -> dict[str, tuple[int, int, float, float]]:
        """Per arm (sent, seen, reward sum, cost sum) of a segment and everything below it."""
        with self._lock:
            truth = self._state.tree.segment(segment).sums.truth
            sums = zip(self.roster.names, truth.tolist(), strict=False)
            return {name: (sent, int(seen), reward_sum, cost_sum) for name, (sent, _, seen, reward_sum, cost_sum) in sums}

    def id_of(self, request_id: str) -> str:
        """The id of the decision that was asked for with a request_id, among those remembered."""
        with self._lock:
            sent = self._state.ledger.answered(request_id)
            if sent is None:
                raise KeyError(f"no decision with request_id {request_id!r:.80} is remembered")
            return sent.id

    @property
    def pending(self) -> int:
        """Decisions that wait for an outcome."""
        with self._lock:
            return self._state.ledger.waiting


def _checked_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """`context`, or a ValueError when JSON cannot say it or it is too long for the log."""
    try:
        said = json.dumps(dict(context), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"context must be made of what JSON can say, got {context!r:.80}") from None
    if len(said) > LONGEST_CONTEXT:
        raise ValueError(f"context must be at most {LONGEST_CONTEXT} characters of JSON, got {len(said)}")
    return dict(context)
