"""The alert "store degraded", the only one that cannot wait in the store: it goes straight to the webhook, from every replica."""

import logging
import threading
from typing import Any

from thrifty.service.outbox import pause_s
from thrifty.service.webhook import Webhook
from thrifty.store import StoreError

log = logging.getLogger("thrifty.alerts")

AWAY_S = 10.0
"""Seconds that the store must be away before anybody is told."""

BACK_S = 30.0
"""Seconds that the store must be back before the alert ends."""

RULE = "store degraded"


class StoreAlert:
    """Notices that the store takes no rows, and that it does again. Then the alert is written down as well.

    Parameters
    ----------
    store : what is looked at
    webhook : who is told; None for nobody

    """

    def __init__(self, store: Any, webhook: Webhook | None) -> None:
        self._store, self._webhook = store, webhook
        self._away_since: float | None = None
        self._back_since: float | None = None
        self._reason = ""
        self._begun = self._sending = self._sent = False
        self._attempts, self._due = 0, 0.0

    def look(self, now: float) -> bool:
        """Look at the store; True if it is away now."""
        reason = self._reason_now()
        if reason is not None:
            self._away_since = self._away_since or now
            self._back_since, self._reason = None, reason
            if now - self._away_since >= AWAY_S:
                self._begin(now)
            return True
        if self._away_since is not None:
            self._back_since = self._back_since or now
            if not self._begun:
                self._away_since = None
            elif now - self._back_since >= BACK_S:
                self._end(now)
        return False

    def _reason_now(self) -> str | None:
        try:
            return None if self._store.check() == "ready" else str(self._store.writer.failure or "it is away")
        except StoreError as error:
            return str(error)

    def _begin(self, now: float) -> None:
        if not self._begun:
            self._begun, self._sent, self._attempts, self._due = True, False, 0, 0.0
            log.error("alert began", extra={"facts": {"rule": RULE, "severity": "page", "text": self._text()}})
        if self._webhook is not None and not self._sent and not self._sending and now >= self._due:
            self._sending = True
            threading.Thread(target=self._send, args=(now,), name="thrifty-store-alert", daemon=True).start()

    def _send(self, now: float) -> None:
        assert self._webhook is not None
        about = {"rule": RULE, "router": "", "segment": "", "arm": "", "severity": "page"}
        alert = {"id": None, **about, "since": self._away_since, "until": None, "text": self._text(), "ending": None}
        problem = self._webhook.post({"event": "began", "alert": alert}, f"store-{self._away_since}")
        self._attempts += 1
        self._sent, self._due = problem is None, now + pause_s(self._attempts, 0.5)
        self._sending = False
        if problem is not None:
            log.warning("an alert was not sent", extra={"facts": {"alert": RULE, "problem": problem}})

    def _text(self) -> str:
        return f"the store takes no rows: {self._reason}"[:500]

    def _end(self, now: float) -> None:
        """Write the alert down, unless another replica did for the same time. Its end goes through the outbox."""
        table, since = self._store.alerts, self._away_since or now
        overlapping = [each for each in table.newest(50) if each.rule == RULE and (each.until is None or each.until >= since)]
        if not overlapping:
            table.begin((RULE, "", "", ""), severity="page", since=since, text=self._text(), send=self._webhook is not None)
        for alert in table.open():
            if alert.rule == RULE:
                if self._sent:
                    table.confirm(alert)
                table.end(alert.id, at=now, text="the store takes rows again")
        log.info("alert ended", extra={"facts": {"rule": RULE}})
        self._away_since, self._back_since, self._begun, self._reason = None, None, False, ""
