"""API keys: kept as SHA-256 digests, compared in constant time."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable

ROLES = ("decide", "outcome", "admin")
"""What a key may do; admin may do everything."""


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


def checked_roles(roles: str) -> str:
    """Roles, separated by commas, or a ValueError.

    >>> checked_roles("decide,outcome")
    'decide,outcome'
    """
    if not roles or any(role not in ROLES for role in roles.split(",")):
        raise ValueError(f"role must be one or more of {', '.join(ROLES)}, separated by commas, got {roles!r:.80}")
    return roles


class KeyRing:
    """The keys there are. With none of them, everything is allowed: the service then listens on loopback only.

    >>> ring = KeyRing([(digest("secret"), "decide")])
    >>> ring.allows("secret", "decide"), ring.allows("secret", "admin"), ring.allows("wrong", "decide")
    (True, False, None)
    """

    def __init__(self, keys: Iterable[tuple[str, ...]]) -> None:
        self._keys = [(known.encode(), frozenset(roles.split(",")), "".join(name)) for known, roles, *name in keys]

    def __bool__(self) -> bool:
        return bool(self._keys)

    def allows(self, key: str | None, role: str) -> bool | None:
        """Whether a key may act in a role; None when there is no such key. It looks at every key, however early one fits."""
        if not self._keys:
            return True
        presented = digest(key or "").encode()
        roles: frozenset[str] | None = None
        for known, granted, _ in self._keys:
            if hmac.compare_digest(known, presented):
                roles = granted
        return None if roles is None or key is None else role in roles or "admin" in roles

    def name_of(self, key: str) -> str:
        """Whom a key was given to; nothing when there is no such key."""
        presented = digest(key).encode()
        return "".join(name for known, _, name in self._keys if hmac.compare_digest(known, presented))
