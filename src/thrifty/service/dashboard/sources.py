"""What the parts of a page are made of: calls to the routers, the store and the rest of the service, in one place."""

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from thrifty.router import Router
from thrifty.router.explanation import Explanation
from thrifty.router.segment_table import segment_saving
from thrifty.router.summary import score_interval
from thrifty.service.dashboard.tables import TableView
from thrifty.service.overview import FRESH_S
from thrifty.store.history import TooManyRowsError

if TYPE_CHECKING:
    from thrifty.service.app import App

ALERTS, DECISIONS, CHANGES = 30, 30, 30
"""Rows of these lists that are shown."""

ALL_ARMS = "all arms together"
"""Stands for the arms where they are too many to be kept apart."""

SAME_S, MOST_EXPLAINED = 0.1, 64
"""Seconds for which an explanation serves several parts, and how many are kept."""


class Sources:
    """Everything that the dashboard reads. All of it runs in worker threads."""

    def __init__(self, app: "App") -> None:
        self.app = app
        self._explained: OrderedDict[tuple[str, str | None, int], tuple[float, Explanation]] = OrderedDict()

    def explain(self, router: Router, segment: str | None) -> Explanation:
        """The explanation of a segment, the same for all parts that are made at the same time."""
        key, now = (router.name, segment, router.version), time.monotonic()
        at, found = self._explained.get(key, (-1e9, None))
        if found is None or now - at > SAME_S:
            found = router.explain(segment or "")
            self._explained[key] = (now, found)
            while len(self._explained) > MOST_EXPLAINED:
                self._explained.popitem(last=False)
        return found

    def overview(self) -> dict[str, Any]:
        """All routers at a glance."""
        return self.app.overview.latest()

    def glance(self, router: Router) -> dict[str, Any]:
        """One router at a glance."""
        return self.app.overview.glance(router.name, router)

    def segment_glance(self, router: Router, segment: str) -> dict[str, Any]:
        """One segment and those below it at a glance."""
        known = self.explain(router, segment)
        outcomes, rewards = sum(arm.outcomes for arm in known.arms), sum(arm.reward_sum for arm in known.arms)
        low, high = score_interval(rewards, outcomes)
        spend = sum(arm.spent for arm in known.arms)
        before, saving = spend + known.saved, segment_saving(router, segment, max_age_s=FRESH_S)
        return {
            "decisions_per_minute": None,
            "decisions": sum(arm.decisions for arm in known.arms),
            "outcomes": outcomes,
            "pending": sum(arm.pending for arm in known.arms),
            "counted": outcomes,
            "quality": rewards / outcomes if outcomes else None,
            "quality_low": low,
            "quality_high": high,
            "floor": known.floor if known.best_arm else None,
            "spend": spend,
            "saving": known.saved if known.best_arm else None,
            "saving_low": saving.low,
            "saving_high": saving.high,
            "saving_share": known.saved / before if before > 0.0 else None,
        }

    def alarms(self, router: str) -> list[dict[str, Any]]:
        """The alerts of a router that last."""
        return [alert for alert in self.app.alerts.open() if alert["router"] == router]

    def alerts(self) -> list[dict[str, Any]]:
        """The newest alerts, over or not."""
        return self.app.alerts.newest(ALERTS)

    def decisions(self, router: Router, segment: str | None) -> list[dict[str, Any]]:
        """The newest decisions."""
        return router.recent_decisions(DECISIONS, segment=segment or "")

    def changes(self, router: Router, before: int | None) -> list[dict[str, Any]]:
        """The newest changes before a position of the log, and one more if there are more."""
        return router.changes(CHANGES + 1, before=before)

    def segments(self, router: Router, below: str | None, view: TableView) -> dict[str, Any]:
        """The segments of a view, and how many there are in all."""
        return router.segment_table(
            search=view.search, below=below or "", sort=view.sort, limit=view.limit, offset=view.offset, max_age_s=FRESH_S
        )

    def history(self, router: Router, segment: str | None, *, step: str, since: float, until: float) -> list[dict[str, Any]]:
        """Rows of the history by arm; of all arms together where there would be too many. About a second old."""
        asked = {"step": step, "since": since, "until": until, "segment": segment or ""}
        try:
            return list(self.app.store.history(router.name, **asked, by=("arm",)).rows)
        except TooManyRowsError:
            return [{**row, "arm": ALL_ARMS} for row in self.app.store.history(router.name, **asked, by=()).rows]
