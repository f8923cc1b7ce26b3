"""Who may do what: the keys of the store and of the configuration, and how many requests each may make."""

import math
import time
from typing import Any

from thrifty.service.config import Config
from thrifty.service.errors import ServiceProblemError
from thrifty.service.hot_path import Headers
from thrifty.service.keys import KeyRing, RateLimits, digest, written
from thrifty.store import StoredKey


class Access:
    """Checks the key of a request.

    As long as no key was ever made everybody may do everything. From then on a request needs a valid key, also when the last
    one was revoked.
    """

    def __init__(self, config: Config, store: Any) -> None:
        self._config, self._store = config, store
        self._limits = RateLimits(config.rate_limit)
        self._used_at: dict[str, float] = {}  # by digest
        self._stored_uses: dict[str, float] = {}  # of these, what `note_uses` has stored
        self.keys = KeyRing([])
        self.refresh()
        if not self.keys and not config.loopback:
            raise ValueError(
                f"host {config.host} is reachable from elsewhere, and there are no keys: "
                "make one with `thrifty keys NAME --role admin`"
            )

    def refresh(self) -> None:
        """Read the keys again."""
        required = self.keys.required or self._store.keys_required  # read first: the key that closes the service is among the keys
        keys = [*self._store.keys(), *self.configured]
        required = required or bool(keys)
        self.keys = KeyRing(keys, required=required)
        self._limits.keep(key.digest for key in keys)

    @property
    def configured(self) -> list[StoredKey]:
        """The keys of the configuration, which nobody can revoke."""
        key = self._config.admin_key
        return [StoredKey(digest(key), "admin", "admin", None, None, None)] if key else []

    def authorise(self, headers: Headers, role: str) -> None:
        """Raise a ServiceProblemError unless the request carries a key for `role` that has requests left."""
        if not self.keys.required:
            return
        found = self.keys.find(presented(headers))
        if found is None:
            raise ServiceProblemError(401, "key", "a valid key is needed: Authorization: Bearer KEY")
        now = time.time()
        if found.is_expired(now):
            raise ServiceProblemError(
                401, "expired", f"this key expired at {written(found.expires_at)}: ask whoever runs the service for a new one"
            )
        self._used_at[found.digest] = now
        wait_s = self._limits.take(found.digest, time.monotonic())
        if wait_s > 0.0:
            message = f"this key may make {self._config.rate_limit:g} requests a second; try again in {math.ceil(wait_s)} s"
            raise ServiceProblemError(429, "rate", message, retry_s=wait_s)
        if not found.allows(role):
            raise ServiceProblemError(403, "role", f"this key has not the role {role}")

    def note_uses(self) -> None:
        """Store when keys were used; called now and then."""
        used_at = self._used_at.copy()
        news = {key: used for key, used in used_at.items() if self._stored_uses.get(key) != used}
        if news:
            self._store.note_uses(news)
            self._stored_uses = used_at

    def listed(self) -> list[StoredKey]:
        """All keys of the store by name, with their last use, here or on another replica."""
        stored = self._store.keys()
        found = [key._replace(used_at=self._last_use(key)) for key in stored]
        return sorted(found, key=lambda key: (key.name, key.made_at or 0.0))

    def _last_use(self, key: StoredKey) -> float | None:
        return max((used for used in (self._used_at.get(key.digest), key.used_at) if used is not None), default=None)

    def is_allowed(self, headers: Headers, role: str) -> bool:
        """Whether the key of a request that goes on for long is still valid for `role`; no request is counted."""
        return self.keys.allows(presented(headers), role) is True

    def who(self, headers: Headers, client: Any) -> str:
        """Who asks, for the log: the name of the key, if there is one, and the address."""
        host = client[0] if client else ""
        found = self.keys.find(presented(headers))
        return f"{found.name}@{host}" if found is not None else str(host)


def presented(headers: Headers) -> str | None:
    """The key that a request carries."""
    key = None
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            key = value[7:].decode("latin-1")
    return key
