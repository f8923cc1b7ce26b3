"""Alerts: look at all routers every few seconds, and write down what begins and what ends. One replica does it for all.

The truth is the store: an alert is open while its row is. So a restart, another replica or a kill -9 at any moment neither begins
an alert twice nor forgets one.
"""

import json
import logging
import threading
import time
from typing import Any

from thrifty.router import Router
from thrifty.router.monitor import LOOK_S, RULES, Monitor
from thrifty.service.alert_rules import ENDINGS, SEVERITIES, Condition, conditions, proven
from thrifty.service.config import Config
from thrifty.service.outbox import Outbox, shown
from thrifty.service.routers import Routers
from thrifty.service.store_alert import StoreAlert
from thrifty.service.webhook import Webhook
from thrifty.store import StoreError
from thrifty.store.alerts import Alert

log = logging.getLogger("thrifty.alerts")

REMEMBER_S = 60.0
"""Seconds after which what the tests know is kept in the store again."""

KEPT_S = 90 * 86_400.0
"""Alerts that ended longer ago are deleted."""

_LEVELS = {"page": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO}


class Alerts:
    """All alerts of a service.

    Parameters
    ----------
    config : has the address and the secret of the webhook
    store : keeps alerts
    routers : what is looked at

    """

    def __init__(self, config: Config, store: Any, routers: Routers) -> None:
        self._store, self._routers = store, routers
        self._leads = False
        self._webhook = Webhook(config.alert_url, config.alert_secret) if config.alert_url else None
        self._outbox = None if self._webhook is None else Outbox(store.alerts, self._webhook, lambda: self._leads)
        self._store_alert = StoreAlert(store, self._webhook)
        self._monitors: dict[str, Monitor] = {}
        self._newcomers: dict[str, set[str]] = {}
        self._remember_at = self._prune_at = 0.0
        self._open: list[Alert] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thrifty-alerts", daemon=True)

    # -- what others ask ---------------------------------------------------------------------------------------------

    @property
    def sends(self) -> bool:
        """Whether there is a webhook."""
        return self._webhook is not None

    def open(self) -> list[dict[str, Any]]:
        """Alerts that last, as of a few seconds ago; from memory."""
        return [shown(each) for each in self._open]

    def newest(self, limit: int) -> list[dict[str, Any]]:
        """The newest alerts, from the store."""
        return [shown(each) for each in self._store.alerts.newest(limit)]

    def test(self, by: str) -> None:
        """Note an alert that says nothing but that alerts arrive."""
        self._note("test", "", "", f"a test, asked for by {by}", time.time_ns())

    # -- in the background -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()
        if self._outbox is not None:
            self._outbox.start()

    def close(self) -> None:
        """Look no more, and keep what the tests know."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5.0)
        if self._outbox is not None:
            self._outbox.close()
        try:
            if self._leads:
                self._remember()
        except StoreError as error:
            log.warning("what the tests of alerts know was not kept", extra={"facts": {"error": str(error)}})

    def _run(self) -> None:
        complaint = ""
        while not self._stop.wait(LOOK_S):
            try:
                self.look(time.time())
                complaint = ""
            except Exception as error:
                if str(error) != complaint:
                    complaint = str(error)
                    trace = None if isinstance(error, StoreError) else error
                    log.warning("alerts cannot be looked at", exc_info=trace, extra={"facts": {"error": complaint}})

    def look(self, now: float) -> None:
        """Look at everything once."""
        if self._store_alert.look(now):
            for monitor in self._monitors.values():
                monitor.skip(now)
            return
        leads = self._store.lead("alerts")
        if leads and not self._leads:
            self._monitors, self._newcomers = {}, {}  # another replica may have written since
        self._leads = leads
        if leads:
            self._look_at_all(now)
        self._open = self._store.alerts.open()

    def _look_at_all(self, now: float) -> None:
        lasting = {each.key: each for each in self._store.alerts.open()}
        routers = dict(self._routers.all())
        for name, router in routers.items():
            self._look_at(router, {key: each for key, each in lasting.items() if each.router == name}, now)
        if not self._routers.starting:
            known = {*routers, *self._routers.quarantined, ""}
            for alert in lasting.values():
                if alert.router not in known:
                    self._end(alert, now, "the router was deleted")
        for name in self._monitors.keys() - routers.keys():
            del self._monitors[name]
        if now >= self._remember_at:
            self._remember_at = now + REMEMBER_S
            self._remember()
        if now >= self._prune_at:
            self._prune_at = now + 3600.0
            self._store.alerts.prune(now - KEPT_S)

    def _look_at(self, router: Router, lasting: dict[Any, Alert], now: float) -> None:
        monitor = self._monitor(router, lasting, now)
        monitor.look(router.state, now)
        wrong = {each.key: each for each in conditions(router, monitor, lasting)}
        waits = RULES if monitor.undecided() else ()
        for key, condition in wrong.items():
            if key not in lasting:
                self._begin(condition, now)
        for key, alert in lasting.items():
            if key not in wrong and alert.rule not in waits:
                self._end(alert, now, ENDINGS.get(alert.rule, "it is over"))
        graduates, self._newcomers[router.name] = proven(router, self._newcomers.get(router.name, set()))
        for arm, text in graduates:
            self._note("newcomer proven", router.name, arm, text, int(now // 86_400) + 1)
            self._remember_at = 0.0

    def _monitor(self, router: Router, lasting: dict[Any, Alert], now: float) -> Monitor:
        """The monitor of a router, from the store if this process has none. What is open stays so until there is evidence."""
        found = self._monitors.get(router.name)
        if found is None:
            kept = self._store.alerts.memory(router.name)
            try:
                memory = json.loads(kept) if kept else {}
                found = Monitor.load(memory["monitor"], now) if memory else Monitor(now)
            except (ValueError, KeyError, TypeError) as error:
                log.warning("tests of alerts begin anew", extra={"facts": {"router": router.name, "error": repr(error)}})
                memory, found = {}, Monitor(now)
            self._newcomers[router.name] = set(memory.get("newcomers", ()))
            self._monitors[router.name] = found
            for rule, _, segment, arm in lasting:
                if rule in RULES:
                    found.mark(rule, segment, arm)
        return found

    def _remember(self) -> None:
        for name, monitor in self._monitors.items():
            memory = {"monitor": monitor.dump(), "newcomers": sorted(self._newcomers.get(name, ()))}
            self._store.alerts.remember(name, json.dumps(memory))

    # -- rows --------------------------------------------------------------------------------------------------------

    def _begin(self, condition: Condition, now: float) -> None:
        severity = SEVERITIES[condition.key[0]]
        self._store.alerts.begin(condition.key, severity=severity, since=now, text=condition.text, send=self.sends)
        _log(severity, "alert began", condition.key, condition.text)

    def _end(self, alert: Alert, now: float, text: str) -> None:
        self._store.alerts.end(alert.id, at=now, text=text)
        _log("info", "alert ended", alert.key, text)

    def _note(self, rule: str, router: str, arm: str, text: str, occasion: int) -> None:
        key, severity = (rule, router, "", arm), SEVERITIES[rule]
        self._store.alerts.note(key, severity=severity, at=time.time(), text=text, occasion=occasion, send=self.sends)
        _log(severity, "alert", key, text)


def _log(severity: str, event: str, key: tuple[str, str, str, str], text: str) -> None:
    named = {name: value for name, value in zip(("rule", "router", "segment", "arm"), key, strict=True) if value}
    log.log(_LEVELS[severity], event, extra={"facts": {**named, "severity": severity, "text": text}})
