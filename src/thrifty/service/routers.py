"""The routers of a service, by name, over one store: opened in worker threads, and quarantined one by one where that fails."""

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

from thrifty.router import ConflictError, Router, Settings
from thrifty.router.compiling import after_load
from thrifty.router.known_start import check_started
from thrifty.router.settings import checked_name
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import RouterBody
from thrifty.service.workers import Workers
from thrifty.store import StoreError

OPENING_THREADS = 4
RETRY_S = 1.0
"""Seconds between two tries to open a router while the store is away."""

log = logging.getLogger("thrifty.service")


def reopen(name: str, store: Any) -> Router:
    """A router as its log left it."""
    return Router.reopen(name, store, background=True)


class Routers:
    """Routers, brought back from the store by `open`; until one is there, requests for it get 503.

    A router that cannot be opened, or can no longer follow its log, is quarantined: it gets 503, and all others go on.
    """

    def __init__(self, store: Any) -> None:
        self.store = store
        self._guard = threading.Lock()  # of the sets and dictionaries below; held for moments only
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # of what is being opened or changed
        self._routers: dict[str, Router] = {}
        self._quarantined: dict[str, str] = {}  # and why
        self._loading: set[str] = set()
        self._starting: set[str] = set()  # those among them that were there at the start
        self._listed = self._started = self._closing = False
        self._turnover = store.turnover
        self._complaints: dict[str, str] = {}  # what was logged last, by router
        self._workers: Workers | None = None

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to open all routers of the store; returns at once."""
        after_load.append(_freeze_young)
        self._workers = Workers("opening", threads=OPENING_THREADS)
        self._workers.submit(self._list)

    def _list(self) -> None:
        while not self._closing:
            try:
                names = self.store.routers()
            except StoreError as error:
                self._complain("", error)
                time.sleep(RETRY_S)
                continue
            with self._guard:
                self._loading.update(names)
                self._starting.update(names)
                self._listed = True
            for name in names:
                self._open_soon(name)
            return

    def _open_soon(self, name: str) -> None:
        assert self._workers is not None
        with self._guard:
            self._loading.add(name)
        self._workers.submit(lambda: self._open(name))

    def _open(self, name: str) -> None:
        """Open a router, as often as it takes while the store is away; quarantine it if that fails for another reason."""
        try:
            with self._lock_of(name):
                while not self._closing and name not in self._routers and not self._try_to_open(name):
                    time.sleep(RETRY_S)
        finally:
            with self._guard:
                self._loading.discard(name)
                self._starting.discard(name)
                last = not self._starting and not self._started
                self._started = self._started or last
        if last:
            gc.collect()
            gc.freeze()
            log.info("routers opened", extra={"facts": {"routers": len(self._routers), "quarantined": len(self._quarantined)}})

    def _try_to_open(self, name: str) -> bool:
        """Open a router or quarantine it; False if it is worth another try."""
        try:
            self._add(name, reopen(name, self.store))
        except Exception as error:
            if self._closing:
                return True
            if isinstance(error, StoreError) and self._is_away():
                self._complain(name, error)
                return False
            self.quarantine(name, f"{type(error).__name__}: {error}", error)
        return True

    def _is_away(self) -> bool:
        try:
            return bool(self.store.check() != "ready")
        except StoreError:
            return True

    def _add(self, name: str, router: Router) -> None:
        with self._guard:
            self._routers[name] = router
            self._quarantined.pop(name, None)

    def quarantine(self, name: str, reason: str, error: BaseException | None = None) -> None:
        """Take a router out of service until it is repaired; all others go on."""
        with self._guard:
            router = self._routers.pop(name, None)
            self._quarantined[name] = reason[:500]
        log.error("router quarantined", exc_info=error, extra={"facts": {"router": name, "reason": reason[:2000]}})
        if router is not None:
            router.leave()

    # -- looking -----------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The routers that are in service."""
        return sorted(self._routers)

    @property
    def starting(self) -> list[str]:
        """The routers that were there at the start and are still being opened; ["all"] until it is known which there are."""
        with self._guard:
            return sorted(self._starting) if self._listed else ["all"]

    @property
    def quarantined(self) -> dict[str, str]:
        """The routers that are quarantined, and why."""
        with self._guard:
            return dict(sorted(self._quarantined.items()))

    def all(self) -> list[tuple[str, Router]]:
        """The routers that are in service, by name."""
        with self._guard:
            return sorted(self._routers.items())

    def router(self, name: str, code: str = "router") -> Router:
        """The router of this name, or a ServiceProblemError; with this code if there is none."""
        router = self._routers.get(name)
        if router is not None:
            return router
        with self._guard:
            reason, loading = self._quarantined.get(name), name in self._loading or not self._listed
        if reason is not None:
            raise ServiceProblemError(503, "quarantined", _remedy(name, reason), retry_s=60.0)
        if loading:
            raise ServiceProblemError(503, "loading", f"router {name!r:.80} is being opened; try again later")
        raise ServiceProblemError(404, code, f"there is no router {name!r:.80}: make one with PUT /v1/routers/NAME")

    # -- changing ----------------------------------------------------------------------------------------------------

    def put(self, name: str, wanted: RouterBody, *, by: str, version: int | None = None) -> tuple[Router, bool]:
        """Make a router, or make it as wanted, if it has the `version`; and whether it is new."""
        asked, start = wanted.settings(), wanted.start()
        checked_name("name", name)
        with self._changing(name) as router:
            if router is not None:
                check_started(name, router.state.configuration.known, start)
                router.configure(wanted.arms, Settings(**asked), by=by, version=version)
                return router, False
            if version is not None:
                raise ConflictError(f"there is no router {name!r} of version {version}: leave version out to make one")
            router = Router(wanted.arms, store=self.store, name=name, background=True, by=by, known=start, **asked)
            self._add(name, router)
            return router, True

    def delete(self, name: str, *, by: str, version: int | None = None) -> None:
        """Take a router out of service, if it has the `version`; its log stays."""
        with self._changing(name) as router:
            if router is None:
                self.router(name)  # which raises
                return
            router.delete(by=by, version=version)
            with router.lock:  # so that a router that is made under this name again need not read the whole log
                router.snapshots.take_soon(router)
            with self._guard:
                self._routers.pop(name, None)
            router.leave()

    @contextmanager
    def _changing(self, name: str) -> Iterator[Router | None]:
        """The router of this name, if there is one, for one change at a time."""
        with self._guard:
            loading = name in self._loading or not self._listed
        if loading:
            raise ServiceProblemError(503, "loading", f"router {name!r:.80} is being opened; try again later")
        with self._lock_of(name):
            reason = self._quarantined.get(name)
            if reason is not None:
                raise ServiceProblemError(409, "quarantined", _remedy(name, reason))
            yield self._routers.get(name)

    def _lock_of(self, name: str) -> threading.Lock:
        with self._guard:
            lock = self._locks.get(name) or threading.Lock()
            self._locks[name] = lock
            return lock

    # -- a few times a second ----------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Take over routers that other replicas made, and let go of those they deleted."""
        turnover = self.store.turnover
        if turnover == self._turnover or not self._listed:
            return
        names = set(self.store.routers())
        with self._guard:
            new = names - self._routers.keys() - self._loading - self._quarantined.keys()
            gone = self._routers.keys() - names
            for name in self._quarantined.keys() - names:
                del self._quarantined[name]
        for name in new:
            self._open_soon(name)
        for name in gone:
            self._let_go(name)
        self._turnover = turnover

    def _let_go(self, name: str) -> None:
        """Let go of a router that another replica deleted; not of one that was made here a moment ago."""
        with self._lock_of(name):
            if name in self.store.routers():
                return
            with self._guard:
                router = self._routers.pop(name, None)
        if router is not None:
            router.leave()

    def expire(self) -> None:
        """Give decisions past their deadline the default outcome, and quarantine routers that have failed."""
        for name, router in self.all():
            self.check(name)
            try:
                router.expire()
                self._complaints.pop(name, None)
            except Exception as error:
                self._complain(name, error)

    def check(self, name: str) -> None:
        """Quarantine a router that can no longer follow its log."""
        router = self._routers.get(name)
        failed = None if router is None else router.failed
        if failed is not None:
            self.quarantine(name, failed)

    def prune(self, before: float) -> None:
        """Delete decisions made before a time from every log."""
        for name, router in self.all():
            try:
                rows = router.prune(before, by="keep_days")
            except Exception as error:
                self._complain(name, error)
            else:
                log.info("pruned", extra={"facts": {"router": name, "rows": rows}})

    def close(self) -> None:
        """Keep snapshots and flush the store."""
        self._closing = True
        if self._workers is not None:
            self._workers.close()
            after_load.remove(_freeze_young)
        for name, router in self.all():
            try:
                router.close()
            except Exception as error:
                log.warning("no snapshot", exc_info=error, extra={"facts": {"router": name, "error": str(error)}})
        self.store.close()

    def _complain(self, name: str, error: Exception) -> None:
        """Log an error of a router, once as long as it is the same."""
        if self._complaints.get(name) != str(error):
            self._complaints[name] = str(error)
            trace = None if isinstance(error, StoreError) else error
            log.warning("router", exc_info=trace, extra={"facts": {"router": name, "error": str(error)}})


def _remedy(name: str, reason: str) -> str:
    return f"router {name!r:.80} is quarantined: {reason[:300]}. `thrifty repair` shows what is wrong with its log and mends it"


def _freeze_young() -> None:
    """Keep the compiler's objects from the garbage collector, which would take 0.1 s each time to look at them.

    Only the young are collected first: routers are at work. Older garbage is frozen too, so this must not happen often.
    """
    gc.collect(1)
    gc.freeze()
