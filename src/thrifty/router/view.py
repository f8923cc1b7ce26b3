"""The readable side of a router: nothing here changes what it decides or what its log has."""

import threading
from functools import cached_property
from typing import Any

from thrifty.router.arms import Arms
from thrifty.router.change_log import ChangeLog
from thrifty.router.outlook import Outlook
from thrifty.router.preview import preview
from thrifty.router.recent import recent_decisions
from thrifty.router.segment_table import segment_table
from thrifty.router.settings import Settings
from thrifty.router.spending import DayForecast
from thrifty.router.state import State
from thrifty.router.state_log import StateLog
from thrifty.router.summary import summary
from thrifty.router.what_if import what_if


class RouterView:
    """What a router knows and how it stands; `Router` adds what changes that.

    Whatever is more than one attribute is read under the lock: a change of arms or settings is many steps.
    """

    name: str
    state: State
    log: StateLog
    lock: threading.RLock
    background: bool
    _fresh: State  # one that knows nothing

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
        with self.lock:
            state = self.known_state()
            return {"decisions": state.decided, "outcomes": state.arrived, "expired": state.expired}

    @property
    def groups(self) -> dict[str, list[Any]]:
        """Outcomes, sums of rewards and costs, and of their squares, of the holdout and of all others."""
        with self.lock:
            return {name: list(sums) for name, sums in self.known_state().groups.items()}

    @property
    def pending(self) -> int:
        """Decisions that wait for an outcome."""
        return self.known_state().waiting

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
        with self.lock:
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

    def forecast(self) -> DayForecast:
        """What was spent today (UTC), what is to be expected until midnight, and whether `daily_budget` can be kept."""
        with self.lock:
            state = self.known_state()
            return state.spending.forecast(state.clock.time(), state.settings.daily_budget)

    def segments(self) -> list[str]:
        """Every segment seen so far, "" first."""
        with self.lock:
            return self.known_state().segments.names()

    def statistics(self, segment: str = "") -> dict[str, tuple[int, int, float, float]]:
        """Per arm (sent, seen, reward sum, cost sum) of a segment and everything below it."""
        with self.lock:
            segments = self.known_state().segments
            sums = zip(self.arms.names, segments.statistics(segments.nearest(segment).number), strict=True)
            return {name: (sent, int(seen), reward_sum, cost_sum) for name, (sent, _, seen, reward_sum, cost_sum, *_) in sums}

    @cached_property
    def outlook(self) -> Outlook:
        """Copies of its sums, for whoever reads without the lock."""
        return Outlook()

    preview = preview
    recent_decisions = recent_decisions
    segment_table = segment_table
    summary = summary
    what_if = what_if

    def totals(self) -> tuple[Any, tuple[int, int, float, float, float]]:
        """Decisions, outcomes, outcomes that count, rewards and costs; before them, what differs once sums have begun anew."""
        with self.lock:
            state = self.state
            root = state.segments.sums.sums[0]
            sums = (float(root[name].sum()) for name in ("seen", "reward_sum", "cost_sum"))
            return (id(state), state.created_at, state.reset_at), (state.decided, state.arrived, *sums)  # type: ignore[return-value]

    @cached_property
    def change_log(self) -> ChangeLog:
        """The changes in its log."""
        if self.log.journal is None:
            raise ValueError("a router without a store has no log of changes: give it one")
        return ChangeLog(self.log.journal)

    def changes(self, limit: int = 50, *, before: int | None = None) -> list[dict[str, Any]]:
        """The newest changes of arms and settings, newest first: who did what, and what would undo it. May take milliseconds.

        Parameters
        ----------
        limit : how many, at most
        before : only those before this position of the log

        """
        return self.change_log.newest(limit, before)

    def id_of(self, request_id: str) -> str:
        """The id of the decision that was made for a request_id, among those in memory."""
        with self.lock:
            key = self.state.records.answered(request_id)
            if key is None:
                raise KeyError(f"no decision with request_id {request_id!r:.80} is remembered")
            return self.state.id_of(key)

    def known_state(self) -> State:
        """The state without rows that the log lost. A service restores it in the background instead."""
        if self.log.stale and not self.background:
            with self.lock:
                self._restore_if_stale()
        return self.state

    def _restore_if_stale(self) -> None:
        if self.log.stale:
            self.state = self.log.restore(self._fresh.begun_anew())
