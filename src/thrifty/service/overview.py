"""The overview: all routers at a glance, made at most once a second for everybody who asks."""

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec

from thrifty.router import Router
from thrifty.service.errors import internal_problem
from thrifty.service.rates import RouterRates
from thrifty.store import StoreError

log = logging.getLogger("thrifty.service")

if TYPE_CHECKING:
    from thrifty.service.app import App

EVERY_S = 1.0
"""Seconds between two events of a kind."""

FRESH_S = 0.9
"""Seconds for which an overview, and the statistics that it rests on, serve everybody; less than `EVERY_S`, so that each is new."""

LAST_DECISIONS = 20
"""Decisions that an event of a router carries."""

encode = msgspec.json.Encoder().encode


class Overview:
    """All routers at a glance. Everything but `run` takes long: it runs in worker threads."""

    def __init__(self, app: "App") -> None:
        self._app, self._lock = app, threading.Lock()
        self._rates: dict[str, RouterRates] = {}
        self._glances: dict[str, tuple[Any, dict[str, Any]]] = {}  # by router: of which copy of its sums, and the summary
        self._made: dict[str, Any] = {}
        self._body, self._made_at = b"", -1e9

    async def run(self) -> None:
        """Once a second: the totals of all routers, from which rates are known."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await asyncio.to_thread(self.sample)
            except Exception as error:
                internal_problem(error, during="sampling")

    def sample(self) -> None:
        """Note the totals of all routers; called about once a second, so that rates are known."""
        now, routers = time.monotonic(), dict(self._app.routers.all())
        for name in self._rates.keys() - routers.keys():
            self._rates.pop(name, None)
            self._glances.pop(name, None)
        for name, router in routers.items():
            self._rates.setdefault(name, RouterRates()).sample(router, now)

    def body(self) -> bytes:
        """The overview as JSON, at most a second old."""
        with self._lock:
            if time.monotonic() - self._made_at >= FRESH_S:
                self._made = self._make()
                self._body, self._made_at = encode(self._made), time.monotonic()
            return self._body

    def latest(self) -> dict[str, Any]:
        """The overview as plain values, at most a second old."""
        self.body()
        return self._made

    def _make(self) -> dict[str, Any]:
        try:
            store = str(self._app.store.check())
        except StoreError as error:
            store = f"away: {error}"
        routers = [self.glance(name, router) for name, router in self._app.routers.all()]
        return {"store": store, "at": time.time(), "routers": routers, "quarantined": self._app.routers.quarantined}

    def glance(self, name: str, router: Router) -> dict[str, Any]:
        """One router at a glance, with its rates and alarms."""
        alarms = [alert for alert in self._app.alerts.open() if alert["router"] == name]
        try:
            copied = router.outlook.copy(router, max_age_s=FRESH_S)
        except StoreError as error:
            alarms.append({"rule": "store", "severity": "page", "text": f"the store is away: {error}"})
            return {"name": name, "alarms": alarms, **self._rates_of(name)}
        known = self._glances.get(name)
        if known is None or known[0] is not copied:
            try:
                known = self._glances[name] = (copied, router.summary(max_age_s=FRESH_S))
            except Exception as error:  # a fault of the package; the other routers are shown nevertheless
                log.exception("a router cannot be summed up", extra={"facts": {"router": name}})
                alarms.append({"rule": "fault", "severity": "page", "text": f"its figures cannot be worked out: {error}"})
                return {"name": name, "alarms": alarms, **self._rates_of(name)}
        return {**known[1], **self._rates_of(name), "alarms": alarms}

    def _rates_of(self, name: str) -> dict[str, Any]:
        return self._rates.get(name, RouterRates()).shown()

    def router_body(self, name: str) -> bytes:
        """What an event of one router carries: a glance, its explanation and its last decisions; null if it is not in service."""
        router = dict(self._app.routers.all()).get(name)
        if router is None:
            return encode({"router": None})
        parts = {"explanation": router.explain().to_dict(), "decisions": router.recent_decisions(LAST_DECISIONS)}
        return encode({"router": self.glance(name, router), **parts})
