"""The router: decide, learn from late outcomes, explain. Another loop around the same rules.

Every call appends rows to the log and changes the state only in ways that reading those rows again would repeat: the state is the
fold of the log, bit for bit, randomness included, because a decision draws from the stream named by (seed, replica, sequence).
"""

import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from thrifty.router.decision import Decision
from thrifty.router.explanation import Explanation, explain_segment
from thrifty.router.kernels import BEST, GREEDY, PROPENSITY, STREAMS
from thrifty.router.roster import Roster
from thrifty.router.segment import Segment
from thrifty.router.sent import NOTHING, PENDING, Sent, Share, share_of
from thrifty.router.settings import NEWCOMER_OUTCOMES, Settings, checked_arms, checked_name, checked_price, checked_text
from thrifty.router.snapshot import dump, load
from thrifty.router.tree import Tree
from thrifty.store.row import CHANGE, DECISION, OUTCOME, Journal, Row, StoreError

SNAPSHOT_EVERY = 100_000
"""Rows of the log between two snapshots."""

Eligible = Iterable[str] | Mapping[str, float | None]


class Router:
    """Chooses arms for requests and learns from what comes back, in one process; safe to use from many threads.

    Parameters
    ----------
    arms : prices by name; None where a price is unknown and comes back with each outcome (then all costs are learnt)
    alpha : the share of the best reward one is willing to give up
    store : where decisions and outcomes are kept: "sqlite:///routes.db", or None for memory only
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
        self.name = checked_name("name", name)
        self._clock = clock
        self._lock = threading.RLock()
        self._owned_store: Any = None
        self._journal: Journal | None = None
        self._begin(checked_arms(arms), Settings(alpha=alpha, **settings))
        if store is not None:
            if isinstance(store, str):
                from thrifty.store import open_store

                store = self._owned_store = open_store(store)
            self._attach(store.journal(self.name), checked_arms(arms), Settings(alpha=alpha, **settings))

    @classmethod
    def reopen(cls, name: str, store: Any, *, clock: Callable[[], float] = time.time) -> "Router":
        """A router as its log in an open store left it."""
        router = cls.__new__(cls)
        router.name, router._clock, router._lock, router._owned_store = checked_name("name", name), clock, threading.RLock(), None
        router._journal = journal = store.journal(name)
        router._restore(journal, {"none": None}, Settings(alpha=0.0))
        return router

    def _begin(self, arms: dict[str, float | None], settings: Settings, replica: int = 0) -> None:
        self.settings = settings
        self.roster = Roster(arms)
        self.version = 0
        self.deleted = False
        self._replica = replica
        self._tree = Tree(settings, self.roster, replica)
        self._sequence = 0
        self._sent: dict[str, Sent] = {}
        self._order: deque[Sent] = deque()
        self._queue: deque[Sent] = deque()  # those that may still wait for their deadline
        self._requests: dict[str, Sent] = {}
        self._position = self._snapshot_at = 0
        self.groups = {"routed": [0, 0.0, 0.0], "holdout": [0, 0.0, 0.0]}
        self.counts = {"decisions": 0, "outcomes": 0, "expired": 0}

    # -- deciding ----------------------------------------------------------------------------------------------------

    def decide(self, segment: str = "", *, eligible: Eligible | None = None, request_id: str | None = None) -> Decision:
        """Choose an arm; returns when the decision is durable.

        Parameters
        ----------
        segment : the kind of request, as a path: "DE/vodafone" leans on "DE" while it is young, and that on all segments
        eligible : the arms to choose from, if not all; a mapping gives them prices for this once
        request_id : a retry with the same one gets the same decision, among the last `remember` decisions

        """
        decision = self.decide_soon(segment, eligible=eligible, request_id=request_id)
        self.wait(decision.position)
        return decision

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """A decision for each of several sets of arguments of `decide`, made durable together."""
        decisions = [self.decide_soon(**request) for request in requests]
        self.wait(max((decision.position for decision in decisions), default=0))
        return decisions

    def decide_soon(self, segment: str = "", *, eligible: Eligible | None = None, request_id: str | None = None) -> Decision:
        """Like `decide`, but the decision is durable only once `wait(decision.position)` returns."""
        if segment:
            checked_text("segment", segment)
        if request_id is not None:
            checked_text("request_id", request_id)
        with self._lock:
            self._ready()
            if request_id is not None and request_id in self._requests:
                return self._repeat(self._requests[request_id])
            key = None if eligible is None else self.roster.key_of(eligible)
            self._make_room()
            sequence = self._sequence + 1
            decision, sent = self._choose(sequence, segment, key, self._clock(), request_id)
            self._sequence = sequence
            self.counts["decisions"] += 1
            if self._journal is not None:
                detail = self._detail(key)
                row = Row(
                    DECISION, self._replica, sequence, sent.at, segment, request_id, decision.arm, decision.propensity, sent.price,
                    decision.code, detail,
                )  # fmt: skip
                sent.position = decision.position = self._append(row)
            return decision

    def wait(self, position: int) -> None:
        """Return when everything up to `position` of the log is durable."""
        if self._journal is not None and position:
            try:
                self._journal.wait(position)
            except StoreError:
                self._reload()
                raise

    def is_durable(self, position: int) -> bool:
        """Whether `wait(position)` would return at once; raises like it."""
        if self._journal is None or not position:
            return True
        try:
            return self._journal.is_durable(position)
        except StoreError:
            self._reload()
            raise

    def _detail(self, key: Any) -> str | None:
        said: dict[str, Any] = {}
        if key is not None:
            said["eligible"] = [[self.roster.names[arm], price] for arm, price in zip(*key, strict=True)]
        if self.settings.mode == "shadow":
            said["shadow"] = True
        return json.dumps(said) if said else None

    def _choose(self, sequence: int, segment: str, key: Any, at: float, request_id: str | None) -> tuple[Decision, Sent]:
        """The decision numbered `sequence`, counted in the statistics of its segment and of all above it."""
        levels = self._tree.levels(segment)
        young = self.settings.young_outcomes
        for decider in levels:
            if decider.outcomes >= young:
                break
        arm, code, propensity, view = self._pick(decider, sequence, key)
        names = self.roster.names
        if view.names is None:
            view.names = tuple(names[each] for each in view.arms)
        id = f"{self.name}.{self._replica:x}.{sequence:x}"
        decision = Decision(
            id, names[arm], code=code, propensity=propensity, segment=segment, version=self.version,
            facts=view.peek.tobytes(), names=view.names, decided_by=decider.name,
        )  # fmt: skip
        price = view.prices[view.arms.index(arm)] if key is not None else self.roster.prices[arm]
        sent = Sent(
            id,
            sequence,
            segment,
            arm,
            at,
            time.monotonic() + self.settings.deadline_s,
            price,
            propensity,
            code,
            self.version,
            request_id,
        )
        if self.settings.mode == "shadow":
            sent.share = NOTHING
        else:
            self._count(levels, arm, *PENDING)
        self._remember(sent)
        return decision, sent

    def _pick(self, decider: Segment, sequence: int, key: Any) -> tuple[int, str, float, Any]:
        roster, settings, tree = self.roster, self.settings, self._tree
        if roster.pinned is not None and (key is None or roster.pinned in key[0]):
            view = decider.main if key is None else decider.view(key)
            view.look()
            return roster.pinned, "pinned", 1.0, view
        full = decider.main if key is None else decider.view(key)
        if settings.holdout and tree.toss(STREAMS * sequence + 2) < settings.holdout:
            full.look()
            if full.peek[GREEDY] >= 0:
                return full.arms[int(full.peek[BEST])], "holdout", 1.0, full
        newcomers = roster.newcomers & set(full.arms) if roster.newcomers else None
        draws = settings.propensity_draws
        if not newcomers or len(newcomers) == len(full.arms):
            place = full.choose(full.book, sequence, draws)
            arm = full.arms[place]
            facts = full.peek
            code = "only" if len(full.arms) == 1 else "exploit" if facts[GREEDY] == place else "explore"
            return arm, code, facts[PROPENSITY], full
        others = decider.view(roster.without(newcomers, (full.arms, full.prices)))
        offered = tree.toss(STREAMS * sequence + 3) < settings.newcomer_share
        untried = [arm for arm in sorted(newcomers) if tree.root.truth["sent"][arm] < NEWCOMER_OUTCOMES] if offered else []
        if untried:
            full.look()
            return min(untried, key=lambda arm: int(tree.root.truth["sent"][arm])), "newcomer", settings.newcomer_share, full
        view, other, share = (full, others, settings.newcomer_share) if offered else (others, full, 1 - settings.newcomer_share)
        place = view.choose(view.book, sequence, draws)
        arm = view.arms[place]
        propensity = share * view.peek[PROPENSITY]
        if arm in other.arms:
            propensity += (1 - share) * other.weigh(other.book, sequence, draws, other.arms.index(arm))
        greedy = int(view.peek[GREEDY])
        if offered:
            self._graduate(newcomers, arm, view.arms[greedy] if greedy >= 0 else -1)
        code = "newcomer" if arm in newcomers else "exploit" if greedy == place else "explore"
        return arm, code, propensity, view

    def _graduate(self, newcomers: set[int], chosen: int, greedy: int) -> None:
        """A newcomer becomes an arm like any other when the rule has had enough of it, or would take it for what is known."""
        root = self._tree.root
        for arm in newcomers:
            if root.truth["seen"][arm] >= NEWCOMER_OUTCOMES and (arm != chosen or arm == greedy):
                self.roster.newcomers.discard(arm)

    def _repeat(self, sent: Sent) -> Decision:
        decision = Decision(
            sent.id,
            self.roster.names[sent.arm],
            code=sent.code,
            propensity=sent.propensity,
            segment=sent.segment,
            version=sent.version,
        )
        decision.repeated, decision.position, decision.degraded = True, sent.position, sent.degraded
        return decision

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
        occurred_at : seconds since 1970; an outcome older than the one known is stale and changes nothing

        Returns
        -------
        "recorded", "corrected" (another outcome was known), "duplicate" or "stale"

        """
        said, position = self.record_soon(decision_id, reward, status=status, cost=cost, arm=arm, occurred_at=occurred_at)
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
        value = _checked_outcome(reward, status)
        if cost is not None:
            checked_price("the outcome", cost)
        with self._lock:
            self._ready()
            sent = self._find(decision_id)
            used = sent.arm if arm is None else self.roster.index(arm)
            if occurred_at is not None and occurred_at < sent.outcome_at:
                return "stale", sent.position
            paid = cost if cost is not None else sent.share.cost if sent.arrived and not sent.void and used == sent.arm else None
            if paid is None:
                paid = sent.price if used == sent.arm else self.roster.prices[used]
            if paid is None and value is not None:
                raise ValueError(f"cost must come with the outcome of {self.roster.names[used]!r}, whose price is unknown")
            share = share_of(value, paid or 0.0)
            if sent.arrived and used == sent.arm and share == sent.share and sent.void == (value is None):
                return "duplicate", sent.position
            said = "corrected" if sent.arrived else "recorded"
            at = self._clock() if occurred_at is None else occurred_at
            self._settle(sent, used, share, at, arrived=True, void=value is None)
            if self._journal is not None:
                row = Row(
                    OUTCOME, sent.replica, sent.sequence, at, None, None, self.roster.names[used], value, paid, said, None
                )  # fmt: skip
                sent.position = self._append(row)
            return said, sent.position

    def _settle(self, sent: Sent, arm: int, share: Share, at: float, *, arrived: bool, void: bool) -> None:
        levels = self._tree.levels(sent.segment)
        old_sent, old_seen, old_reward, old_cost = sent.share
        new_sent, new_seen, new_reward, new_cost = share
        seen, reward, cost = new_seen - old_seen, new_reward - old_reward, new_cost - old_cost
        if arm == sent.arm:
            self._count(levels, arm, new_sent - old_sent, seen, reward, cost)
        else:
            self._count(levels, sent.arm, -old_sent, -old_seen, -old_reward, -old_cost)
            self._count(levels, arm, new_sent, new_seen, new_reward, new_cost)
        group = self.groups["holdout" if sent.code == "holdout" else "routed"]
        group[0] += seen
        group[1] += reward
        group[2] += cost
        if arrived and not sent.arrived:
            self.counts["outcomes"] += 1
        sent.arm, sent.share, sent.waiting, sent.outcome_at, sent.arrived, sent.void = arm, share, False, at, arrived, void

    @staticmethod
    def _count(levels: tuple[Segment, ...], arm: int, sent: int, seen: int, reward: float, cost: float) -> None:
        for level in levels:
            main = level.main
            level.outcomes += seen
            main.fold(main.book, arm, sent, seen, reward, cost)

    def _remember(self, sent: Sent) -> None:
        self._sent[sent.id] = sent
        self._order.append(sent)
        self._queue.append(sent)
        if sent.request_id is not None:
            self._requests[sent.request_id] = sent

    def _make_room(self) -> None:
        """Forget the oldest decision when there are too many; before the next one, so that its default outcome comes first."""
        while len(self._sent) >= self.settings.remember:
            oldest = self._order.popleft()  # a dict whose first keys were deleted takes long to find its first
            del self._sent[oldest.id]
            if oldest.request_id is not None and self._requests.get(oldest.request_id) is oldest:
                del self._requests[oldest.request_id]
            if oldest.waiting and not self._replaying:
                self._default(oldest)

    _replaying = _stale = False

    def _expire(self) -> None:
        now = time.monotonic()
        queue = self._queue
        while queue:
            head = queue[0]
            if head.waiting and head.due > now:
                break
            queue.popleft()
            if head.waiting:
                self._default(head)

    def _ready(self) -> None:
        if self._stale:
            self._reload()
        self._expire()

    def expire(self) -> None:
        """Give every decision past its deadline the default outcome; `decide` and `record` do so by themselves."""
        with self._lock:
            self._ready()

    def _default(self, sent: Sent) -> None:
        """What the deadline says, of a decision that this replica made."""
        if sent.replica != self._replica:
            sent.waiting = False
            return
        failed = self.settings.default_outcome == "failure" and sent.share is PENDING
        at = self._clock()
        paid = sent.price or 0.0
        self._settle(sent, sent.arm, share_of(0.0, paid) if failed else NOTHING, at, arrived=False, void=not failed)
        self.counts["expired"] += 1
        if self._journal is not None:
            arm = self.roster.names[sent.arm]
            row = Row(
                OUTCOME, sent.replica, sent.sequence, at, None, None, arm, 0.0 if failed else None, paid, "default", None
            )  # fmt: skip
            sent.position = self._append(row)

    def _find(self, decision_id: str, before: int | None = None) -> Sent:
        sent = self._sent.get(decision_id)
        if sent is not None:
            return sent
        name, _, rest = decision_id.partition(".")
        replica, _, sequence = rest.partition(".")
        try:
            number = int(replica, 16), int(sequence, 16)
            known = name == self.name and self._journal is not None and max(number) < 2**62
        except ValueError:
            known = False
        rows = self._journal.find(*number, before=before) if known and self._journal is not None else []
        if not rows:
            raise KeyError(f"no decision {decision_id!r:.80} is known: it is wrong, or older than what is remembered")
        found = self._recall(rows[0])
        for row in rows[1:]:
            self._recall_outcome(found, row)
        return found

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
            position = self._log_change(action, {"arm": arm, "price": price, "by": by})
        self.wait(position)

    def configure(self, arms: Mapping[str, float | None], settings: Settings, *, by: str = "") -> None:
        """Make the router be as told: add and price the named arms, retire the others, and take over the settings."""
        wanted = checked_arms(arms)
        with self._lock:
            self._ready()
            position = 0
            for action, arm, price in self.roster.differences(wanted):
                position = self._log_change(action, {"arm": arm, "price": price, "by": by})
            if settings != self.settings:
                position = self._log_change("settings", {**settings.to_dict(), "by": by})
        self.wait(position)

    def delete(self, *, by: str = "") -> None:
        """Write into the log that the router is no more; the log stays."""
        with self._lock:
            position = self._log_change("delete", {"by": by})
        self.wait(position)

    def id_of(self, request_id: str) -> str:
        """The id of the decision that was asked for with a request_id, among those remembered."""
        with self._lock:
            if request_id not in self._requests:
                raise KeyError(f"no decision with request_id {request_id!r:.80} is remembered")
            return self._requests[request_id].id

    def _log_change(self, action: str, body: dict[str, Any]) -> int:
        self._apply_change(action, body)
        if self._journal is None:
            return 0
        return self._append(
            Row(
                CHANGE,
                self._replica,
                self._sequence,
                self._clock(),
                None,
                None,
                body.get("arm"),
                None,
                None,
                action,
                json.dumps(body),
            )
        )

    def _apply_change(self, action: str, body: dict[str, Any]) -> None:
        self.version += 1
        if action == "create":
            self.deleted = False
            self.settings, self.roster = Settings(**body["settings"]), Roster(body["arms"])
            self._tree = Tree(self.settings, self.roster, self._replica)
        elif action == "delete":
            self.deleted = True
        elif action == "settings":
            self.settings = Settings(**{name: body[name] for name in Settings.names() if name in body})
            self._tree.retune(self.settings, self.roster)
        elif action == "reset":
            self._tree.forget(self.roster.everyone() if body["arm"] is None else [self.roster.index(body["arm"])])
            for sent in self._sent.values():
                if (body["arm"] is None or self.roster.names[sent.arm] == body["arm"]) and not sent.waiting:
                    sent.share = NOTHING
        else:
            self.roster.change(action, body["arm"], body["price"])
            self._tree.rearrange(self.roster)

    # -- looking -----------------------------------------------------------------------------------------------------

    def explain(self, segment: str = "") -> Explanation:
        """What is known about a segment and what would be chosen for it now; print it, or take its `to_dict()`."""
        with self._lock:
            self._expire()
            return explain_segment(self._tree, self.roster, self.settings, segment, self.groups)

    def segments(self) -> list[str]:
        """Every segment seen so far, "" first."""
        with self._lock:
            return self._tree.names()

    def statistics(self, segment: str = "") -> dict[str, tuple[int, int, float, float]]:
        """Per arm (sent, seen, reward sum, cost sum) of a segment and everything below it."""
        with self._lock:
            truth = self._tree.levels(segment)[0].truth
            return {name: tuple(truth[arm].tolist()) for arm, name in enumerate(self.roster.names)}

    @property
    def pending(self) -> int:
        """Decisions that wait for an outcome."""
        with self._lock:
            return sum(sent.waiting for sent in self._queue)

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

    # -- the log -----------------------------------------------------------------------------------------------------

    def _append(self, row: Row) -> int:
        assert self._journal is not None
        try:
            self._position = self._journal.append(row)
        except StoreError:
            self._reload()
            raise
        if self._position - self._snapshot_at >= SNAPSHOT_EVERY:
            self._snapshot()
        return self._position

    def _snapshot(self) -> None:
        assert self._journal is not None
        self._snapshot_at = self._position
        self._journal.save_snapshot(self._position, dump(self))

    def _attach(self, journal: Journal, arms: dict[str, float | None], settings: Settings) -> None:
        self._journal, self._replica = journal, journal.replica
        self._restore(journal, arms, settings)
        if self._position == 0 or self.deleted:
            self._log_change("create", {"arms": arms, "settings": settings.to_dict()})
            journal.wait(self._position)
        else:
            self.configure(arms, settings, by="start")

    def _restore(self, journal: Journal, arms: dict[str, float | None], settings: Settings) -> None:
        """The fold of the log: the newest snapshot that is whole, and every row after it."""
        journal.recover()
        self._begin(arms, settings, journal.replica)
        for position, body in journal.snapshots():
            try:
                load(self, body)
            except (ValueError, KeyError, TypeError):  # of another format: an older one, or the whole log, will do
                self._begin(arms, settings, journal.replica)
                continue
            self._position = self._snapshot_at = position
            for row in journal.recent(self.settings.remember, upto=position):
                if row.kind == DECISION:
                    self._remember(self._recall(row))
                else:
                    self._recall_outcome(self._find(self._id_of(row)), row)
            break
        self._replaying = True
        for position, row in journal.read(self._position):
            self._position = position
            self._replay(row, position)
        self._replaying = False

    def _replay(self, row: Row, position: int) -> None:
        if row.kind == DECISION:
            self._replay_decision(row)
        elif row.kind == OUTCOME:
            sent = self._find(self._id_of(row), before=position)
            arm = self.roster.index(str(row.arm))
            share = share_of(row.value, row.cost or 0.0)
            arrived = row.code != "default"
            self._settle(sent, arm, share, row.at, arrived=arrived, void=row.value is None)
            self.counts["expired"] += not arrived
        else:
            self._apply_change(row.code, json.loads(str(row.detail)))

    def _replay_decision(self, row: Row) -> None:
        """Decide once more, so that the rule's memory moves on; the log says which arm it was."""
        detail = json.loads(row.detail) if row.detail else {}
        sent = self._recall(row)
        self._make_room()
        self.counts["decisions"] += 1
        if row.replica != self._replica or self._journal is None or self._journal.shared:
            if not detail.get("shadow"):
                self._count(self._tree.levels(sent.segment), sent.arm, *PENDING)
            self._remember(sent)
            self._sequence = max(self._sequence, row.sequence) if row.replica == self._replica else self._sequence
            return
        key = self.roster.key_of(dict(detail["eligible"])) if "eligible" in detail else None
        _, again = self._choose(row.sequence, sent.segment, key, row.at, row.request_id)
        self._sequence = row.sequence
        if again.arm != sent.arm:  # the rule has changed since; the log is the truth
            share, levels = again.share, self._tree.levels(sent.segment)
            self._count(levels, again.arm, -share.sent, 0, 0.0, 0.0)
            self._count(levels, sent.arm, *share)
            again.arm = sent.arm
        again.due, again.propensity, again.code = sent.due, sent.propensity, sent.code

    def _id_of(self, row: Row) -> str:
        return f"{self.name}.{row.replica:x}.{row.sequence:x}"

    def _recall(self, row: Row) -> Sent:
        """A decision from its row. A clock that jumped cannot make its deadline longer than the whole."""
        passed = min(max(self._clock() - row.at, 0.0), self.settings.deadline_s)
        due = time.monotonic() + self.settings.deadline_s - passed
        sent = Sent(
            self._id_of(row), row.sequence, row.segment or "", self.roster.index(str(row.arm)), row.at, due, row.cost,
            row.value if row.value is not None else math.nan, row.code, self.version, row.request_id, replica=row.replica,
        )  # fmt: skip
        if row.detail and json.loads(row.detail).get("shadow"):
            sent.share = NOTHING
        return sent

    def _recall_outcome(self, sent: Sent, row: Row) -> None:
        """What an outcome that is already in the statistics made of its decision."""
        sent.arm, sent.share = self.roster.index(str(row.arm)), share_of(row.value, row.cost or 0.0)
        sent.waiting, sent.outcome_at, sent.arrived, sent.void = False, row.at, row.code != "default", row.value is None

    def _reload(self) -> None:
        """The log did not take what the state already counts: fold the log anew, so that nothing is counted that is not there."""
        assert self._journal is not None
        with self._lock:
            self._stale = True
            settings, arms = self.settings, dict(zip(self.roster.names, self.roster.prices, strict=True))
            self._restore(self._journal, arms, settings)
            self._stale = False


def _checked_outcome(reward: float | None, status: str | None) -> float | None:
    """The reward, or None for void."""
    if (reward is None) == (status is None):
        raise ValueError("an outcome needs a reward in [0, 1] or a status of success, failure or void: one of the two")
    if status is not None:
        rewards = {"success": 1.0, "failure": 0.0, "void": None}
        if status not in rewards:
            raise ValueError(f"status must be one of success, failure, void, got {status!r:.80}")
        return rewards[status]
    if isinstance(reward, bool) or not isinstance(reward, (int, float)) or not 0.0 <= reward <= 1.0:
        raise ValueError(f"reward must be a number in [0, 1], got {reward!r:.80}")
    return float(reward)
