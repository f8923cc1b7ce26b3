"""The routers: every router of a service, by name, over one store."""

import gc
import logging
import threading
from typing import Any

from msgspec import UNSET

from thrifty.router import Router, Settings
from thrifty.router.settings import checked_name
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import RouterRequest
from thrifty.store import StoreError

log = logging.getLogger("thrifty.service")


class Routers:
    """Routers, brought back from the store at the start."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._turnover = store.turnover
        self._routers: dict[str, Router] = {name: Router.reopen(name, store) for name in store.routers()}
        _retire_garbage()

    def names(self) -> list[str]:
        """The routers there are."""
        return sorted(self._routers)

    def find(self, name: str) -> Router | None:
        """A router, if there is one of this name."""
        return self._routers.get(name)

    def router(self, name: str, code: str = "router") -> Router:
        """The router of this name, or a ServiceProblemError with this code."""
        router = self._routers.get(name)
        if router is None:
            raise ServiceProblemError(404, code, f"there is no router {name!r:.80}: make one with PUT /v1/routers/NAME")
        return router

    def put(self, name: str, wanted: RouterRequest, *, by: str) -> tuple[Router, bool]:
        """Make a router, or make it be as told; and whether it is new."""
        settings: dict[str, Any] = {
            key: getattr(wanted, key) for key in Settings.names() if getattr(wanted, key, UNSET) is not UNSET
        }
        with self._lock:
            router = self._routers.get(name)
            if router is not None:
                router.configure(wanted.arms, Settings(**settings), by=by)
                return router, False
            alpha = settings.pop("alpha")
            self._routers[name] = router = Router(wanted.arms, alpha, store=self.store, name=checked_name("name", name), **settings)
            _retire_garbage()
            return router, True

    def delete(self, name: str, *, by: str) -> bool:
        """Take a router out of service; its log stays. Whether there was one."""
        with self._lock:
            router = self._routers.pop(name, None)
            if router is not None:
                try:
                    router.delete(by=by)
                except StoreError:
                    self._routers[name] = router
                    raise
                router.leave()
            return router is not None

    def follow(self) -> None:
        """Take over routers that other replicas made, and let go of those they deleted."""
        turnover = self.store.turnover
        if turnover == self._turnover:
            return
        with self._lock:
            names = set(self.store.routers())
            for name in names - self._routers.keys():
                self._routers[name] = Router.reopen(name, self.store)
            for name in self._routers.keys() - names:
                self._routers.pop(name).leave()
        self._turnover = turnover

    def expire(self) -> None:
        """Let deadlines speak."""
        for router in list(self._routers.values()):
            router.expire()

    def prune(self, before: float) -> None:
        """Delete decisions made before a time from every log."""
        for router in list(self._routers.values()):
            rows = router.prune(before, by="keep_days")
            log.info("pruned", extra={"facts": {"router": router.name, "rows": rows}})

    def close(self) -> None:
        """Keep snapshots and flush the store."""
        for router in self._routers.values():
            try:
                router.close()
            except StoreError as error:
                log.warning("no snapshot", extra={"facts": {"router": router.name, "error": str(error)}})
        self.store.close()


def _retire_garbage() -> None:
    """Let the garbage collector look no more at what is there, mostly the compiler's objects: that would take 0.1 s each time."""
    gc.collect()
    gc.freeze()
