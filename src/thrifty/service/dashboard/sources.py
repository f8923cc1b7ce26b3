"""What the parts of a page are made of: calls to the routers, the store and the rest of the service, in one place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from thrifty.router import Router
from thrifty.router.outlook import Looker
from thrifty.router.summary import score_interval
from thrifty.service.dashboard.tables import TableView, cut
from thrifty.store.history import TooManyRowsError

if TYPE_CHECKING:
    from thrifty.service.app import App

ALERTS, DECISIONS, CHANGES = 30, 30, 30
"""Rows of these lists that are shown."""

ALL_ARMS = "all arms together"
"""Stands for the arms where they are too many to be kept apart."""

SEVERAL = "differs by segment"
BASIS = "Estimates of the arms as they are known now, at the prices of now, weighed by the decisions of each segment."
FRESH_S = 0.9
"""Seconds for which sums that were copied serve all parts."""


class Sources:
    """Everything that the dashboard reads. All of it runs in worker threads."""

    def __init__(self, app: "App") -> None:
        self.app = app

    def overview(self) -> dict[str, Any]:
        """All routers at a glance."""
        return self.app.overview.latest()

    def glance(self, router: Router) -> dict[str, Any]:
        """One router at a glance."""
        return self.app.overview.glance(router.name, router)

    def segment_glance(self, router: Router, segment: str) -> dict[str, Any]:
        """One segment and those below it at a glance."""
        known = router.explain(segment)
        outcomes, rewards = sum(arm.outcomes for arm in known.arms), sum(arm.reward_sum for arm in known.arms)
        low, high = score_interval(rewards, outcomes)
        spend = sum(arm.spent for arm in known.arms)
        before = spend + known.saved
        return {
            "decisions_per_minute": None,
            "decisions": sum(arm.decisions for arm in known.arms),
            "outcomes": outcomes,
            "pending": sum(arm.pending for arm in known.arms),
            "quality": rewards / outcomes if outcomes else None,
            "quality_low": low,
            "quality_high": high,
            "floor": known.floor if known.best_arm else None,
            "spend": spend,
            "saving": known.saved if known.best_arm else None,
            "saving_low": None,
            "saving_high": None,
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

    def segments(self, router: Router, within: str | None, view: TableView) -> tuple[list[dict[str, Any]], TableView]:
        """The segments of a view: sums of all, and what is chosen now in those that are shown."""
        copied = router.outlook.copy(router, max_age_s=FRESH_S)
        sent, seen, rewards, spend = (copied.sums[name].sum(axis=1).tolist() for name in ("sent", "seen", "reward_sum", "cost_sum"))
        below = f"{within}/" if within else ""
        rows = [
            {
                "number": number,
                "segment": name,
                "decisions": sent[number],
                "outcomes": round(seen[number]),
                "quality": rewards[number] / seen[number] if seen[number] > 0.0 else None,
                "spend": spend[number],
            }
            for number, name in enumerate(copied.names)
            if name and name.startswith(below)
        ]
        shown, view = cut(rows, view, name="segment")
        choice, names = copied.arms.active_at_prices(), copied.arms.names
        looker = Looker(copied, copied.settings, choice) if choice[0] else None
        return [{**row, **_taken(looker, row["number"], names)} for row in shown], view

    def frontier(self, router: Router) -> tuple[list[dict[str, Any]], str]:
        """What to expect at each alpha of a grid, and on what that rests."""
        alphas = sorted({*(step / 100 for step in range(31)), router.settings.alpha})
        rows = []
        for alpha in alphas:
            found = router.preview("alpha", alpha=alpha, max_age_s=FRESH_S)["after"]
            if found["quality"] is None:
                return [], ""
            named = {"arm": found["arm"] or SEVERAL, "quality_low": found["low"], "quality_high": found["high"]}
            rows.append({**found, **named, "alpha": alpha, "cost_low": None, "cost_high": None})
        return rows, BASIS

    def history(self, router: Router, segment: str | None, *, step: str, since: float, until: float) -> list[dict[str, Any]]:
        """Rows of the history by arm; of all arms together where there would be too many. About a second old."""
        asked = {"step": step, "since": since, "until": until, "segment": segment or ""}
        try:
            return list(self.app.store.history(router.name, **asked, by=("arm",)).rows)
        except TooManyRowsError:
            return [{**row, "arm": ALL_ARMS} for row in self.app.store.history(router.name, **asked, by=()).rows]


def _taken(looker: Looker | None, number: int, names: Sequence[str]) -> dict[str, Any]:
    """The floor of a segment, and the arm that is chosen there now."""
    look = None if looker is None else looker.at(number)
    if look is None or look.chosen is None:
        return {"floor": None, "chosen": None}
    return {"floor": look.floor, "chosen": names[look.arms[look.chosen]]}
