"""The twin: a slow, obvious router that the real one is compared with.

It chooses no arm. It is handed each decision of the real router, checks that it was allowed, and does all the bookkeeping by
itself: a list of rows, and `take`, which folds one row into dictionaries. Statistics are the sum over all decisions of what each
of them counts for now, added up anew whenever somebody asks.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.router import twin_rules as rules
from tests.router.twin_guardrail import TwinGuardrail, terms_of
from tests.router.twin_rules import ACTIONS, Arms, number_or_none, path_of
from thrifty.store.log import CHANGE, DECISION, OUTCOME, Row

CODES = ("exploit", "explore", "only", "newcomer", "holdout", "pinned", "baseline", "fallback")
GROUPS = {"holdout": "holdout", "baseline": "baseline", "fallback": "baseline"}
RECENT_BYTES = 32_000
"""Of the latest decisions so much is in memory however small it is: a request_id of theirs is answered with the same decision."""


@dataclass
class Made:
    """One decision. `counts` is what it adds to the statistics of its arm now: sent, seen, reward and cost."""

    row: Row
    segment: str  # where it counts
    due: float
    version: int
    arm: str  # the arm that was used, as far as is known
    counts: tuple[int, int, float, float]
    state: str = "open"  # or "default", or "arrived"
    outcome: Row | None = None  # the last one
    forgotten: bool = False


class Twin:
    """A router of this name that decides for nobody. `now` is the wall clock."""

    def __init__(self, name: str, now: Callable[[], float]) -> None:
        self.name, self.now = name, now
        self.rows: list[Row] = []
        self.version, self.deleted, self.pruned_before = 0, False, 0.0
        self.settings: dict[str, Any] = {}
        self.counts = {"decisions": 0, "outcomes": 0, "expired": 0}
        self.groups: dict[str, list[Any]] = {name: [0, 0.0, 0.0, 0.0, 0.0] for name in ("routed", "holdout", "baseline")}
        self.guardrail, self.fallback = TwinGuardrail(), False
        self.sequences: dict[int, int] = {0: 0}  # the last one of every replica
        self.forgot = False  # whether a policy was at work that forgets
        self._begin({})

    def _begin(self, arms: Mapping[str, float | None], known: Mapping[str, Any] | None = None) -> None:
        self.arms: Arms = {name: (price, "active") for name, price in arms.items()}
        self.pinned: str | None = None
        self.added: set[str] = set()
        self.segments = [""]
        self.decisions: dict[tuple[int, int], Made] = {}
        self.known: list[dict[str, Any]] = list(known["outcomes"]) if known else []
        for each in self.known:
            self._make_segment(each["segment"])

    # -- the fold ----------------------------------------------------------------------------------------------------

    def take(self, row: Row) -> None:
        """Fold the next row of the log."""
        self.rows.append(row)
        {DECISION: self._decided, OUTCOME: self._settled, CHANGE: self._changed}[row.kind](row)

    def _decided(self, row: Row) -> None:
        detail = json.loads(row.detail or "{}")
        segment, pending = self._make_segment(detail.get("counted", row.segment or "")), 0 if detail.get("shadow") else 1
        due = row.at + self.settings["deadline_s"]
        made = Made(row, segment, due, self.version, str(row.arm), (pending, 0, 0.0, 0.0))
        self.decisions[row.replica, row.sequence] = made
        self.guardrail.decided(row)
        self.counts["decisions"] += 1
        self.sequences[row.replica] = max(row.sequence, self.sequences.get(row.replica, 0))

    def _segment(self, name: str) -> str:
        """Where a decision for a segment is to count: there, or in the nearest one above when there are too many."""
        missing = [each for each in path_of(name) if each not in self.segments]
        if len(self.segments) + len(missing) <= self.settings["max_segments"]:
            return name
        return next(each for each in path_of(name) if each in self.segments)

    def _make_segment(self, name: str) -> str:
        self.segments.extend(reversed([each for each in path_of(name) if each not in self.segments]))
        return name

    def _settled(self, row: Row) -> None:
        """The last outcome holds; a default never takes the place of anything."""
        made = self.decisions.get((row.replica, row.sequence))
        if made is None or self._is_pruned(made) or (row.code == "default" and made.state != "open"):
            return
        first, before = made.state != "arrived", made.counts
        if made.state == "open":
            self.guardrail.settled(row)
        made.arm, made.outcome = str(row.arm), row
        made.state = "default" if row.code == "default" else "arrived"
        nothing = row.value is None or made.forgotten
        made.counts = (0, 0, 0.0, 0.0) if nothing else (1, 1, row.value or 0.0, row.cost or 0.0)
        if made.row.code in GROUPS or self.settings["holdout"] or self.settings["mode"] == "canary":
            group = self.groups[GROUPS.get(made.row.code, "routed")]
            for n in range(3):
                group[n] += made.counts[n + 1] - before[n + 1]
            for n in (2, 3):  # squares of rewards and costs
                group[n + 1] += made.counts[n] * made.counts[n] - before[n] * before[n]
        if row.code == "default":
            self.counts["expired"] += 1
        elif first:
            self.counts["outcomes"] += 1

    def _changed(self, row: Row) -> None:
        """A change that another replica made impossible has no effect."""
        action, body = row.code, json.loads(str(row.detail))
        if action == "create" and self.version and not self.deleted:
            return
        if action in ACTIONS and rules.refusal(self.arms, action, body["arm"], body["price"]):
            return
        if action == "fallback" and (self.fallback or body["if_version"] != self.version):
            return
        if action == "prune":
            self.pruned_before = max(self.pruned_before, body["before"])
        if action == "graduate":
            self.added.discard(body["arm"])
        if action in ("prune", "pruned", "graduate"):
            return
        if action == "changes":
            for each, its_body in body["changes"]:
                self._changed(row._replace(code=each, detail=json.dumps(its_body)))
            return
        self.version += 1
        if action == "create":
            self._begin(body["arms"], body.get("known"))
            self.forgot = False
            self.settings, self.deleted, self.fallback = body["settings"], False, False
            self.guardrail.watch(self.settings)
        elif action == "delete":
            self.deleted = True
        elif action == "settings":
            self.settings = {name: body[name] for name in self.settings}
            if not self.fallback and terms_of(self.settings) != self.guardrail.terms:
                self.guardrail.watch(self.settings)
        elif action == "rollout":
            self.settings, self.fallback = {**self.settings, "mode": body["to"], "canary_share": body["share"]}, False
            self.guardrail.watch(self.settings)
        elif action == "fallback":
            self.fallback = True
            self.guardrail.stop()
        elif action == "reset":
            self._reset(list(self.arms) if body["arm"] is None else [body["arm"]])
        elif action in ACTIONS:
            self._change_arm(action, body["arm"], body["price"])
        self.forgot = self.forgot or "+" in self.settings["policy"]

    def _reset(self, arms: list[str]) -> None:
        """What is pending stays. What is forgotten cannot be corrected back into the statistics. Nothing is known any more."""
        self.known = [each for each in self.known if each["arm"] not in arms]
        for made in self.decisions.values():
            if made.arm in arms and made.state != "open":
                made.counts, made.forgotten = (0, 0, 0.0, 0.0), True

    def _change_arm(self, action: str, arm: str | None, price: float | None) -> None:
        self.arms = rules.changed(self.arms, action, arm, price)
        if action == "add":
            self.added.add(str(arm))
        if action == "pin":
            self.pinned = arm
        elif action == "unpin" or (action in ("retire", "pause") and self.pinned == arm):
            self.pinned = None

    # -- what a router shows -----------------------------------------------------------------------------------------

    def statistics(self) -> dict[str, dict[str, tuple[int, int, float, float]]]:
        """Per segment and arm, of the segment and everything below it: sent, seen, sums of rewards and costs."""
        return {segment: {arm: row[:4] for arm, row in arms.items()} for segment, arms in self._sums().items()}  # type: ignore[misc]

    def squares(self) -> dict[str, dict[str, tuple[float, float]]]:
        """The same of the sums of squares of rewards and costs."""
        return {segment: {arm: row[4:] for arm, row in arms.items()} for segment, arms in self._sums().items()}  # type: ignore[misc]

    def remembered(self) -> dict[str, dict[str, tuple[float, ...]]] | None:
        """Per segment and arm the outcomes that a rule learns from, and their rewards, known ones included. None if it forgot."""
        if self.forgot:
            return None
        found = {segment: {arm: [row[1], row[2], row[4]] for arm, row in arms.items()} for segment, arms in self._sums().items()}
        for each in self.known:
            for segment in path_of(each["segment"]):
                for n, name in enumerate(("outcomes", "rewards", "reward_squares")):
                    found[segment][each["arm"]][n] += each[name]
        return {segment: {arm: tuple(row) for arm, row in arms.items()} for segment, arms in found.items()}

    def _sums(self) -> dict[str, dict[str, tuple[float, ...]]]:
        sums = {segment: {arm: [0, 0, 0.0, 0.0, 0.0, 0.0] for arm in self.arms} for segment in self.segments}
        for made in self.decisions.values():
            reward, cost = made.counts[2:]
            for segment in path_of(made.segment):
                for n, count in enumerate((*made.counts, reward**2, cost**2)):
                    sums[segment][made.arm][n] += count
        return {segment: {arm: tuple(row) for arm, row in arms.items()} for segment, arms in sums.items()}

    def _is_pruned(self, made: Made) -> bool:
        return made.row.at < self.pruned_before

    def waiting(self) -> list[Made]:
        """Decisions that wait for an outcome."""
        return [made for made in self.decisions.values() if made.state == "open" and not self._is_pruned(made)]

    def due(self) -> list[str]:
        """The ids of decisions that are past their deadline and have no default outcome yet."""
        return [self.id_of(made.row) for made in self.waiting() if made.due <= self.now()]

    def id_of(self, row: Row) -> str:
        """The id of the decision that a row is about."""
        return f"{self.name}.{row.replica:x}.{row.sequence:x}"

    # -- what callers do ---------------------------------------------------------------------------------------------

    def decided(
        self,
        decision: Any,
        segment: str = "",
        *,
        eligible: Any = None,
        request_id: Any = None,
        context: Any = None,
        key: Any = None,
    ) -> None:
        """A decision that the real router made; an AssertionError when it must not, a ValueError when it had to refuse."""
        known = self._asked_before(request_id)
        if known is not None and decision is not None and decision.repeated:
            first = known.row
            assert (decision.id, decision.arm, decision.code) == (self.id_of(first), first.arm, first.code)
            assert decision.segment == first.segment
            assert number_or_none(decision.propensity) == first.value
            return
        assert known is None or not self._is_recent(known), f"{request_id} was not recognised"
        prices = rules.check_request(self.arms, segment, eligible, request_id, context)
        if key is not None and not rules.is_text(key):
            raise ValueError(f"a key of {key!r}")
        assert decision is not None, "refused without need"
        replica, sequence = self._check_id(decision.id)
        self._check_choice(decision, prices)
        if self.settings["mode"] == "canary" and decision.code not in ("pinned", "only", "fallback"):
            toss = rules.toss(self.name, key or decision.id)
            assert (decision.code == "baseline") == (toss >= self.settings["canary_share"])
        detail: dict[str, Any] = {} if eligible is None else {"eligible": [list(each) for each in prices.items()]}
        detail |= {"shadow": True} if self.settings["mode"] == "shadow" else {}
        detail |= {} if context is None else {"context": context}
        counted = self._segment(segment)
        detail |= {} if counted == segment else {"counted": counted}
        detail |= {} if key is None or self.settings["mode"] != "canary" else {"bucket": rules.bucket(self.name, key)}
        value, arm = number_or_none(decision.propensity), decision.arm
        asked = (replica, sequence, self.now(), segment, request_id)
        self.take(Row(DECISION, *asked, arm, value, prices[arm], decision.code, json.dumps(detail) if detail else None))

    def _asked_before(self, request_id: str | None) -> Made | None:
        found = [made for made in self.decisions.values() if made.row.request_id == request_id and not self._is_pruned(made)]
        return None if request_id is None or not found else found[-1]

    def _is_recent(self, made: Made) -> bool:
        taken = 0
        for each in reversed(self.decisions.values()):
            taken += 1000 + sum(len(text or "") for text in (each.row.segment, each.row.request_id, each.row.detail))
            if taken > RECENT_BYTES:
                return False
            if each is made:
                return True
        return False

    def _check_id(self, decision_id: str) -> tuple[int, int]:
        """Numbers of decisions grow, whatever happens to the router."""
        replica, sequence = rules.parse_id(self.name, decision_id)
        assert sequence > self.sequences.get(replica, 0), f"{decision_id} was given out before"
        return replica, sequence

    def _check_choice(self, decision: Any, prices: dict[str, float | None]) -> None:
        arm, code, propensity = decision.arm, decision.code, decision.propensity
        assert arm in prices, f"{arm} is not among {prices}"
        assert code in CODES
        assert math.isnan(propensity) or 0.0 < propensity <= 1.0 + 1e-9, propensity
        assert (code == "pinned") == (self.pinned in prices), f"{code} while {self.pinned} is pinned"
        assert code != "pinned" or (arm == self.pinned and propensity == 1.0)
        assert code != "only" or len(prices) == 1
        assert code != "holdout" or (self.settings["holdout"] and self.settings["mode"] != "canary")
        assert code != "baseline" or self.settings["mode"] == "canary"
        falls_back = self.fallback and self.settings["mode"] != "shadow" and len(prices) > 1 and code != "pinned"
        assert (code == "fallback") == falls_back
        named = self.settings["baseline"]
        assert code not in ("baseline", "fallback") or arm == named or named not in prices
        assert code != "newcomer" or arm in self.added
        assert decision.version == self.version

    def record(
        self,
        decision_id: str,
        reward: Any = None,
        *,
        status: Any = None,
        cost: Any = None,
        arm: str | None = None,
        occurred_at: float | None = None,
    ) -> str:
        """The answer to an outcome."""
        value = rules.check_outcome(reward, status, cost, occurred_at)
        made = self.find(decision_id)
        last = made.outcome if made.state == "arrived" else None
        if last is not None and occurred_at is not None and occurred_at < last.at:
            return "stale"
        used = made.arm if arm is None else arm
        if used not in self.arms:
            raise ValueError(f"no arm {used}")
        if last is not None and last.arm == used:
            if value is None and last.value is None:
                return "duplicate"
            if cost is None and last.value is not None:
                cost = last.cost
        if cost is None:
            cost = made.row.cost if used == made.row.arm else self.arms[used][0]
        if cost is None and value is not None:
            raise ValueError(f"what {used} cost is unknown")
        if last is not None and (last.arm, last.value, last.cost) == (used, value, cost):
            return "duplicate"
        at, answer = self.now() if occurred_at is None else occurred_at, "recorded" if last is None else "corrected"
        self._outcome(made, at, used, value, cost, answer)
        return answer

    def graduated(self, row: Row) -> None:
        """An arm that the real router added and now takes for one like any other."""
        assert row.arm in self.added
        self._log("graduate", {"arm": row.arm})

    def find(self, decision_id: str) -> Made:
        """A decision that is known; a KeyError when there is none."""
        made = self.decisions.get(rules.parse_id(self.name, decision_id))
        if made is None or self._is_pruned(made):
            raise KeyError(decision_id)
        return made

    def expired(self, row: Row) -> None:
        """A default outcome that the real router wrote."""
        made = self.decisions.get((row.replica, row.sequence))
        assert made is not None and made.state == "open" and made.due <= self.now(), f"{self.id_of(row)} was not due"  # noqa: PT018
        value = 0.0 if self.settings["default_outcome"] == "failure" and made.counts[0] else None
        self._outcome(made, self.now(), made.arm, value, made.row.cost, "default")

    def _outcome(self, made: Made, at: float, arm: str, value: float | None, cost: float | None, code: str) -> None:
        self.take(Row(OUTCOME, made.row.replica, made.row.sequence, at, None, None, arm, value, cost, code, None))
        if self.guardrail.broken:
            self._log("fallback", self.guardrail.body(self.now(), self.version))

    def create(self, arms: Mapping[str, float | None], settings: dict[str, Any], known: dict[str, Any] | None = None) -> None:
        """Make the router, or make it again after `delete`."""
        rules.check_works({name: (price, "active") for name, price in arms.items()}, settings)
        self._log("create", {"arms": dict(arms), "settings": settings, "by": "", **({"known": known} if known else {})})

    def change(self, action: str, arm: str | None = None, *, price: float | None = None, by: str = "") -> None:
        """Change an arm; a ValueError when that cannot work, and then nothing has changed."""
        rules.check_works(rules.changed_all(self.arms, [(action, arm, price)]), self.settings)
        self._log(action, {"arm": arm, "price": price, "by": by})

    def configure(self, wanted: Mapping[str, float | None], settings: dict[str, Any], *, by: str = "") -> None:
        """Add and price the wanted arms, retire the others, take over the settings: all of it, or a ValueError and nothing."""
        changes = rules.differences(self.arms, wanted)
        rules.check_works(rules.changed_all(self.arms, changes), settings)
        rules.check_fallback(self.fallback, self.settings, settings)
        rules.check_known(self.known, self.settings, settings)
        wanted_changes = [(action, {"arm": arm, "price": price, "by": by}) for action, arm, price in changes]
        if settings != self.settings:
            wanted_changes.append(("settings", {**settings, "by": by}))
        if len(wanted_changes) == 1:
            self._log(*wanted_changes[0])
        elif wanted_changes:
            self._log("changes", {"changes": wanted_changes})

    def move_rollout(self, to: str, *, share: float | None = None, by: str = "") -> None:
        """Move the rollout; this ends a fallback."""
        share = self.settings["canary_share"] if share is None else share
        if to not in ("live", "canary", "shadow") or not 0.001 <= share <= 0.99:
            raise ValueError(f"to {to} with {share}")
        rules.check_works(self.arms, self.settings)
        self._log("rollout", {"to": to, "share": share, "by": by})

    def delete(self, *, by: str = "") -> None:
        """Take the router out of service."""
        self._log("delete", {"by": by})

    def prune(self, before: float, *, by: str = "") -> int:
        """Delete decisions made before a time, but none that waits or could; the number of rows deleted."""
        before = min([before, self.now() - self.settings["deadline_s"], *(made.row.at for made in self.waiting())])
        self._log("prune", {"before": before, "by": by})
        kept = [n for n, row in enumerate(self.rows) if row.kind == DECISION and row.at >= before]
        first = kept[0] if kept else len(self.rows)
        left = [row for n, row in enumerate(self.rows) if n >= first or row.kind == CHANGE]
        deleted, self.rows = len(self.rows) - len(left), left
        self._log("pruned", {"before": before, "rows": deleted, "by": by})
        return deleted

    def _log(self, action: str, body: dict[str, Any]) -> None:
        arm, sequence = body.get("arm"), self.sequences[0]
        self.take(Row(CHANGE, 0, sequence, self.now(), None, None, arm, None, None, action, json.dumps(body)))
