"""The desk: every router of a service, by name, over one store."""

import threading
from typing import Any

from msgspec import UNSET

from thrifty.router import Router, Settings
from thrifty.router.settings import checked_name
from thrifty.service.messages import RouterRequest


class Desk:
    """Routers, brought back from the store at the start."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._routers: dict[str, Router] = {name: Router.reopen(name, store) for name in store.routers()}

    def names(self) -> list[str]:
        """The routers there are."""
        return sorted(self._routers)

    def find(self, name: str) -> Router | None:
        """A router, if there is one of this name."""
        return self._routers.get(name)

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
            return router, True

    def delete(self, name: str, *, by: str) -> bool:
        """Take a router out of service; its log stays. Whether there was one."""
        with self._lock:
            router = self._routers.pop(name, None)
            if router is not None:
                router.delete(by=by)
            return router is not None

    def expire(self) -> None:
        """Let deadlines speak, and see what other replicas did."""
        for router in list(self._routers.values()):
            router.expire()

    def close(self) -> None:
        """Keep snapshots and flush the store."""
        for router in self._routers.values():
            router.close()
        self.store.close()
