"""The outbox: sends the messages of alerts to the webhook until the receiver confirms them, from a thread of its own."""

import logging
import random
import threading
import time
from typing import Any

from thrifty.service.webhook import Webhook
from thrifty.store import StoreError
from thrifty.store.alerts import Alert, AlertTable

log = logging.getLogger("thrifty.alerts")

LOOK_S = 1.0
"""Seconds between two looks at what is to be sent."""

OLDEST_S = 86_400.0
"""A message older than this is given up."""

LONGEST_PAUSE_S = 300.0
AT_ONCE = 20


def pause_s(attempts: int, draw: float) -> float:
    """Seconds until the next try after so many failed ones: 2, 4, 8, ... at most 300, times a factor from 0.5 to 1.5.

    >>> [pause_s(attempts, 0.5) for attempts in (1, 2, 3, 20)]
    [2.0, 4.0, 8.0, 300.0]
    """
    return float(min(2.0 ** min(attempts, 20), LONGEST_PAUSE_S) * (0.5 + draw))


def message(alert: Alert, event: str) -> dict[str, Any]:
    """The body of a message: the same for every try."""
    began = {"until": None, "ending": None} if event == "began" and alert.until != alert.since else {}
    return {"event": event, "alert": shown(alert) | began}


def shown(alert: Alert) -> dict[str, Any]:
    """An alert as GET /v1/alerts and messages show it."""
    return {
        "id": alert.id,
        "rule": alert.rule,
        "router": alert.router,
        "segment": alert.segment,
        "arm": alert.arm,
        "severity": alert.severity,
        "since": alert.since,
        "until": alert.until,
        "text": alert.text,
        "ending": alert.ending,
    }


class Outbox:
    """Sends what is due. Messages of one alert go in order; each goes at least once while it is younger than a day.

    Parameters
    ----------
    table : the alerts
    webhook : where to
    leads : whether this process is the one that sends

    """

    def __init__(self, table: AlertTable, webhook: Webhook, leads: Any) -> None:
        self._table, self._webhook, self._leads = table, webhook, leads
        self._random = random.Random()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thrifty-outbox", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Send no more; what is not confirmed stays in the store."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)  # an attempt may take longer: the thread is a daemon, and the message is sent again

    def _run(self) -> None:
        complaint = ""
        while not self._stop.wait(LOOK_S):
            try:
                if self._leads():
                    self.send_due()
                complaint = ""
            except StoreError as error:
                if str(error) != complaint and not self._stop.is_set():
                    complaint = str(error)
                    log.warning("alerts are not sent: the store is away", extra={"facts": {"error": complaint}})
            except Exception:
                log.exception("alerts are not sent")

    def send_due(self) -> None:
        """Send what is due now, and give up what is too old. Ends early when there is no answer: others would wait too."""
        given_up = self._table.give_up(time.time() - OLDEST_S)
        if given_up:
            log.error("messages of alerts given up: too old or too many", extra={"facts": {"alerts": given_up}})
        for alert in self._table.due(time.time(), AT_ONCE):
            if self._stop.is_set() or not self._send(alert):
                return

    def _send(self, alert: Alert) -> bool:
        """Send the next message of an alert; False if there was no answer."""
        problem = self._webhook.post(message(alert, alert.event), f"{alert.id}-{alert.event}")
        if problem is None:
            self._table.confirm(alert)
            return True
        pause = pause_s(alert.attempts + 1, self._random.random())
        self._table.postpone(alert, time.time() + pause)
        facts = {
            "alert": alert.id,
            "event": alert.event,
            "problem": problem,
            "attempts": alert.attempts + 1,
            "next_s": round(pause, 1),
        }
        log.warning("an alert was not sent", extra={"facts": facts})
        return not problem.startswith("no answer")
