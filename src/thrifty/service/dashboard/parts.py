"""The parts of the pages: what each shows, as content for its template."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from thrifty.router import Router
from thrifty.router.guardrail import contrast_of
from thrifty.router.segment_table import SORTS
from thrifty.service.dashboard import numbers
from thrifty.service.dashboard.bars import bullet, difference_bar
from thrifty.service.dashboard.picture import arms_picture
from thrifty.service.dashboard.series import Timeline, line_chart, share_chart, spark, timeline_of
from thrifty.service.dashboard.sources import CHANGES, Sources
from thrifty.service.dashboard.tables import cut, table_view
from thrifty.service.dashboard.what_if import frontier_chart
from thrifty.service.dashboard.wording import borrowing, marks_of, number_of, result_of, titled
from thrifty.service.frontiers import NOT_FROM_LOG
from thrifty.service.queries import RouterPartQuery

if TYPE_CHECKING:
    from thrifty.service.app import App

RANGES = {
    "live": ("minute", 60.0, 15, "by minute"),
    "hours": ("minute", 60.0, 180, "by minute"),
    "day": ("hour", 3600.0, 24, "by hour"),
    "month": ("day", 86_400.0, 30, "by day"),
    "year": ("day", 86_400.0, 365, "by day"),
}
"""Step of the history, its seconds, how many steps, and how that is called. A whole router has "live" in steps of 5 s."""

ARM_COLUMNS = ("arm", "cost", "mean", "decisions", "outcomes", "borrowed", "spent")
ROLES_TEXT = (
    ("decide", "ask for decisions"),
    ("outcome", "report outcomes"),
    ("view", "read everything"),
    ("admin", "do everything"),
)

UNKNOWN = {
    **dict.fromkeys(("quality", "quality_low", "quality_high", "floor", "best_arm", "chosen", "spend"), None),
    **dict.fromkeys(("saving", "saving_low", "saving_high", "saving_share", "decisions", "outcomes", "pending"), None),
    "mode": "",
    "alpha": 0.0,
    "arms": 0,
    "segments": 0,
    "outcomes_per_minute": None,
}
"""What is shown of a router while the store is away and nothing else is known of it."""

Content = dict[str, Any]


class Parts:
    """One method for each part; all run in worker threads."""

    def __init__(self, app: "App") -> None:
        self.app, self.sources = app, Sources(app)

    # -- all routers -------------------------------------------------------------------------------------------------

    def overview(self) -> Content:
        """All routers in one table."""
        known = self.sources.overview()
        rows = [self._overview_row(row) for row in known["routers"]]
        decisions = sum(row["decisions_per_minute"] or 0.0 for row in rows)
        alarms = sum(len(row["alarms"]) for row in rows)
        totals = (
            f"{number_of(len(rows), 'router')}, {numbers.per_minute(decisions)} decisions a minute, {number_of(alarms, 'alarm')}."
        )
        return {"store": known["store"], "quarantined": known["quarantined"], "routers": rows, "totals": totals}

    def _overview_row(self, glance: Mapping[str, Any]) -> Content:
        row = {**UNKNOWN, **glance}
        about = [row["mode"], f"alpha {row['alpha']:g}", number_of(row["arms"], "arm"), number_of(row["segments"], "segment")]
        return {
            **row,
            "href": f"/routers/{quote(row['name'], safe='')}",
            "about": " · ".join(about) if "mode" in glance else "the store is away",
            "alarms": [titled(alarm) for alarm in row["alarms"]],
            "bullet": bullet(row["quality"], row["quality_low"], row["quality_high"], row["floor"]),
            "spark": spark([cell.decisions for cell in self.app.pulse.totals(row["name"])]),
        }

    def alerts(self) -> Content:
        """The alarms of all routers, newest first."""
        return {"alerts": [titled(alert) for alert in self.sources.alerts()]}

    def keys(self) -> Content:
        """All keys of the store; never the keys themselves or their digests."""
        access, now = self.app.access, time.time()
        keys = [{**key._asdict(), "expired": key.expires_at is not None and now >= key.expires_at} for key in access.listed()]
        for key in keys:
            del key["digest"]
        return {"keys": keys, "required": access.keys.required, "roles": ROLES_TEXT}

    # -- one router or segment ---------------------------------------------------------------------------------------

    def tags(self, router: Router, segment: str | None, _query: RouterPartQuery) -> Content:
        """The settings that matter, beside the name."""
        settings, arms = router.settings, router.arms
        pinned = None if arms.pinned is None else arms.names[arms.pinned]
        facts = {"mode": settings.mode, "alpha": f"{settings.alpha:g}", "policy": settings.policy, "version": router.version}
        return {**facts, "pinned": pinned, "segment": segment}

    def head(self, router: Router, segment: str | None, _query: RouterPartQuery) -> Content:
        """The figures and the sentence."""
        row = self.sources.glance(router) if segment is None else self.sources.segment_glance(router, segment)
        known = self.sources.explain(router, segment).to_dict()
        alerts = [titled(alert) for alert in self.sources.alarms(router.name)]
        row, counted = {**UNKNOWN, **row}, row.get("counted")
        return {
            **row,
            "why": known["why"],
            "borrowing": borrowing(known, segment) if segment else "",
            "alerts": [alert for alert in alerts if not segment or not alert["segment"] or alert["segment"] == segment],
            "spend_each": f"{numbers.money(row['spend'] / counted)} each" if counted else "nothing spent yet",
            "bullet": bullet(row["quality"], row["quality_low"], row["quality_high"], row["floor"]),
        }

    def picture(self, router: Router, segment: str | None, query: RouterPartQuery) -> Content:
        """Arms by price and success rate."""
        known = self.sources.explain(router, segment).to_dict()
        many = segment is None and len(router.segments()) > 1
        note = "All segments together; each segment decides by its own estimates." if many else ""
        return {"drawn": arms_picture(known, query.size), "note": note}

    def arms(self, router: Router, segment: str | None, query: RouterPartQuery) -> Content:
        """The table of arms."""
        known, pins = self.sources.explain(router, segment).to_dict(), router.arms
        pinned = None if pins.pinned is None else pins.names[pins.pinned]
        shown, view = cut(known["arms"], table_view(query, columns=ARM_COLUMNS, sort="cost"), name="arm")
        total = sum(arm["decisions"] for arm in known["arms"])
        rows = [
            {
                **arm,
                "chosen": arm["arm"] == known["chosen"],
                "pinned": arm["arm"] == pinned,
                "share": arm["decisions"] / total if total else 0.0,
                "marks": marks_of(arm, known, pinned),
                "bullet": bullet(arm["mean"], arm["low"], arm["high"], known["floor"]),
            }
            for arm in shown
        ]
        return {"arms": rows, "view": view, "segment": segment, "version": router.version, "known_from": known["known_from"]}

    def series(self, router: Router, segment: str | None, query: RouterPartQuery) -> Content:
        """Charts over time."""
        timeline, step = self._timeline(router, segment, query.range)
        if not any(cell.decisions for cell in timeline.totals()):
            return {"empty": "No decision in this span.", "share": None, "lines": [], "step": step}
        floor = self.sources.explain(router, segment).floor
        minutes = timeline.step_s / 60.0
        per, unit = (1.0, "") if minutes >= 60.0 else (minutes, " a minute")
        lines = [
            line_chart(
                "Quality",
                timeline,
                lambda cell: cell.rewards / cell.outcomes if cell.outcomes else None,
                shown=numbers.rate,
                reference=(floor, f"dashed: floor now, {numbers.rate(floor)}") if floor else None,
                from_zero=False,
            ),
            line_chart(f"Spend{unit}", timeline, lambda cell: cell.costs / per, shown=numbers.money),
            line_chart(f"Decisions{unit}", timeline, lambda cell: cell.decisions / per, shown=numbers.per_minute),
        ]
        return {"empty": "", "share": share_chart(timeline, query.size), "lines": lines, "step": step}

    def _timeline(self, router: Router, segment: str | None, wanted: str) -> tuple[Timeline, str]:
        known = [
            (arm.cost if arm.cost is not None else float("inf"), arm.arm) for arm in self.sources.explain(router, segment).arms
        ]
        arms = [name for _, name in sorted(known)]
        if wanted == "live" and segment is None:
            return self.app.pulse.timeline(router.name, arms), "by five seconds"
        name, step_s, steps, text = RANGES[wanted]
        start = (time.time() // step_s - steps + 1) * step_s
        rows = self.sources.history(router, segment, step=name, since=start, until=start + steps * step_s)
        return timeline_of(rows, arms, start=start, step_s=step_s, steps=steps), text

    def frontier(self, router: Router, found: Mapping[str, Any], query: RouterPartQuery) -> Content:
        """What another alpha would have done."""
        (note, _, reason), alpha = found["note"].partition(" ("), router.settings.alpha
        reason = reason.removesuffix(")").removeprefix(f"{NOT_FROM_LOG}: ")
        notes = {"note": f"{note[:1].upper()}{note[1:]}.", "reason": f"{reason[:1].upper()}{reason[1:]}"}
        content = {**notes, "alpha": f"{alpha:g}", "version": router.version}
        rows = [row for row in found["rows"] if row["quality"] is not None and row["cost"] is not None]
        if not rows:
            return {**content, "rows": [], "drawn": None, "at": 0}
        drawn, texts, at = frontier_chart(rows, alpha, query.size)
        return {**content, "drawn": drawn, "rows": texts, "at": at}

    def rollout(self, router: Router, _segment: str | None, _query: RouterPartQuery) -> Content:
        """How far the rollout is."""
        known, settings, arms = router.rollout().to_dict(), router.settings, router.arms
        text = known["text"]
        live = {
            "holdout": settings.holdout,
            "watched": contrast_of(replace(settings, mode="live")) is not None,
            "pinned": None if arms.pinned is None else arms.names[arms.pinned],
        }
        return {
            **known,
            **live,
            "text": f"{text[:1].upper()}{text[1:]}.",
            "drawn": difference_bar(known),
            "version": router.version,
        }

    def segments(self, router: Router, segment: str | None, query: RouterPartQuery) -> Content:
        """The table of segments, or of those below one."""
        view = table_view(query, columns=SORTS, sort="-decisions")
        found = self.sources.segments(router, segment, view)
        rows = [{**row, "href": segment_link(router.name, row["name"])} for row in found["segments"]]
        return {"rows": rows, "view": replace(view, total=found["total"], shown=len(rows))}

    def decisions(self, router: Router, segment: str | None, _query: RouterPartQuery) -> Content:
        """The last decisions."""
        rows = self.sources.decisions(router, segment)
        return {"rows": [{**row, "href": segment_link(router.name, row["segment"]), "result": result_of(row)} for row in rows]}

    def changes(self, router: Router, _segment: str | None, query: RouterPartQuery) -> Content:
        """The last changes, with who made them."""
        before = query.offset
        found = self.sources.changes(router, before or None)
        rows = found[:CHANGES]
        more = rows[-1]["position"] if len(found) > len(rows) else None
        return {"rows": rows, "more": more, "later": before, "version": router.version}


def segment_link(router: str, segment: str) -> str:
    """The address of a segment's page. A browser resolves the parts . and .. of a path, so such a name goes into the query.

    >>> segment_link("sms", "DE/o2?"), segment_link("sms", "a/..")
    ('/routers/sms/segments/DE/o2%3F', '/routers/sms/segments/?segment=a%2F..')
    """
    base = f"/routers/{quote(router, safe='')}/segments/"
    parts = segment.split("/")
    if any(part in (".", "..") for part in parts):
        return f"{base}?segment={quote(segment, safe='')}"
    return base + "/".join(quote(part, safe="") for part in parts)
