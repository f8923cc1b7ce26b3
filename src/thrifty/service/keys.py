"""API keys: kept as SHA-256 digests, compared in constant time."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from thrifty.store import StoredKey

ROLES = ("decide", "outcome", "view", "admin")
"""What a key may do: view may read everything and change nothing, admin may do everything."""

LEAST_DAYS, MOST_DAYS = 0.01, 36_500.0
"""How long a key may live, if it expires. 0.01 days are 14.4 minutes: a key that ends sooner is hardly meant."""

NAME = r"^[^\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]{1,200}$(?!\n)"
"""What a key may be called: characters that are seen. A name stands in the log, in lists and in the changes of routers.

In Python `$` also fits before a last newline, in JSON schemas it does not; with `(?!\\n)` both mean the same.
"""


def make_key() -> str:
    """A new key of 256 random bits; whoever makes it must show it now, because only its digest is kept.

    >>> make_key().startswith("thrifty_")
    True
    """
    return f"thrifty_{secrets.token_urlsafe(32)}"


def digest(key: str) -> str:
    """How a key is kept. It has 256 random bits, so that a plain hash cannot be searched.

    >>> digest("a")[:8]
    'ca978112'
    """
    return hashlib.sha256(key.encode()).hexdigest()


def checked_key_name(name: str) -> str:
    """The name of a key, or a ValueError.

    >>> checked_key_name("shop / o")
    'shop / o'
    """
    if re.search(NAME, name) is None:
        raise ValueError(f"the name of a key must be 1 to 200 characters, none of them a control character, got {name!r:.80}")
    return name


def checked_days(days: float | None) -> float | None:
    """How many days a key lives, None for ever, or a ValueError."""
    if days is not None and not LEAST_DAYS <= days <= MOST_DAYS:
        raise ValueError(f"days must be from {LEAST_DAYS:g} (a quarter of an hour) to {MOST_DAYS:.0f}, got {days:g}")
    return days


def has_lasting_admin(keys: Iterable[StoredKey]) -> bool:
    """Whether one of the keys can always make others: it has the role admin, and does not expire."""
    return any("admin" in key.role.split(",") and key.expires_at is None for key in keys)


def checked_roles(roles: str) -> str:
    """Roles, separated by commas, or a ValueError.

    >>> checked_roles("decide,outcome")
    'decide,outcome'
    """
    if not roles or any(role not in ROLES for role in roles.split(",")):
        raise ValueError(f"role must be one or more of {', '.join(ROLES)}, separated by commas, got {roles!r:.80}")
    return roles


def written(at: float | None) -> str:
    """A time for people, to the minute, in UTC.

    >>> written(1_800_000_000), written(None)
    ('2027-01-15 08:00 UTC', '-')
    """
    return "-" if at is None else time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


class Key(NamedTuple):
    """A key that was given out."""

    digest: str
    roles: frozenset[str]
    name: str
    expires_at: float | None = None

    def is_expired(self, now: float) -> bool:
        """True from the time on at which it expires."""
        return self.expires_at is not None and now >= self.expires_at

    def allows(self, role: str) -> bool:
        """Whether it may act in a role."""
        return role in self.roles or "admin" in self.roles


class KeyRing:
    """The keys that were not revoked. Where none is required everything is allowed: the service then listens on loopback only.

    >>> ring = KeyRing([(digest("secret"), "decide", "ann")])
    >>> ring.allows("secret", "decide"), ring.allows("secret", "admin"), ring.allows("wrong", "decide")
    (True, False, None)
    """

    def __init__(self, keys: Iterable[tuple[Any, ...]], *, required: bool | None = None) -> None:
        self._keys = [
            (known.encode(), Key(known, frozenset(roles.split(",")), *(more[:2] or ("",)))) for known, roles, *more in keys
        ]
        self.required = bool(self._keys) if required is None else required

    def __bool__(self) -> bool:
        return bool(self._keys)

    def find(self, key: str | None) -> Key | None:
        """The key that was presented, if it is known, expired or not. It looks at every key, however early one fits."""
        found, fits = None, digest(key or "").encode()
        for known, each in self._keys:
            if hmac.compare_digest(known, fits):
                found = each
        return None if key is None else found

    def allows(self, key: str | None, role: str) -> bool | None:
        """Whether a key may act in a role; None when there is no such key, or it has expired."""
        if not self.required:
            return True
        found = self.find(key)
        return None if found is None or found.is_expired(time.time()) else found.allows(role)


class RateLimits:
    """A token bucket for each key, which holds the requests of one second.

    >>> limits = RateLimits(2.0)
    >>> [limits.take("a", 10.0), limits.take("a", 10.0), limits.take("a", 10.0), limits.take("a", 10.5)]
    [0.0, 0.0, 0.5, 0.0]
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(rate, 1.0)
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, and when that was

    def take(self, key: str, now: float) -> float:
        """Take one request; 0, or the seconds to wait until there is one."""
        if not self._rate:
            return 0.0
        left, at = self._buckets.get(key, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        taken = left >= 1.0
        self._buckets[key] = (left - taken, now)
        return 0.0 if taken else (1.0 - left) / self._rate

    def keep(self, keys: Iterable[str]) -> None:
        """Forget all other keys."""
        known = set(keys)
        self._buckets = {key: bucket for key, bucket in list(self._buckets.items()) if key in known}
