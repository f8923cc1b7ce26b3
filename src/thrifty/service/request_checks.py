"""Checks of a request's headers before anything is done: Host, Origin, Content-Type.

A web page that a user of this machine looks at can send requests to loopback, and can give its own name the address 127.0.0.1. The
check of Origin refuses the first, the check of Host the second.
"""

from collections.abc import Sequence

from thrifty.service.config import Config
from thrifty.service.errors import ServiceProblemError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
REMEMBERED = 1000
"""Values of Host that are remembered as allowed."""

_JSON = b"application/json"


class RequestChecks:
    """What the headers of a request must say.

    `known_hosts` and `known_types` are values that were seen and allowed; the protocol looks there first.

    >>> checks = RequestChecks(Config())
    >>> checks.check([(b"host", b"127.0.0.1:8321")], has_body=False)
    >>> checks.check([(b"host", b"elsewhere.example")], has_body=False)
    Traceback (most recent call last):
    thrifty.service.errors.ServiceProblemError: Host 'elsewhere.example' is not served here: add it to allowed_hosts
    """

    def __init__(self, config: Config) -> None:
        names = config.allowed_hosts
        if not names and config.loopback:
            names = (*LOOPBACK_NAMES, config.host)
        self._hosts = frozenset(name.lower().strip("[]") for name in names) if "*" not in names else frozenset()
        self._origins = frozenset(origin.lower().rstrip("/").encode() for origin in config.allowed_origins)
        self.known_hosts: set[bytes] = set()
        self.known_types: set[bytes] = {_JSON}

    def check(self, headers: Sequence[tuple[bytes, bytes]], *, has_body: bool) -> None:
        """Raise a ServiceProblemError that says what is wrong."""
        hosts = [value for name, value in headers if name == b"host"]
        self._check_host(hosts)
        for name, value in headers:
            if name == b"origin":
                self._check_origin(value, hosts)
        if has_body:
            self._check_type([value for name, value in headers if name == b"content-type"])

    def _check_host(self, hosts: list[bytes]) -> None:
        if len(hosts) == 1 and hosts[0] in self.known_hosts:
            return
        if len(hosts) > 1:
            raise ServiceProblemError(400, "host", f"a request must have one Host, got {len(hosts)}")
        host = hosts[0].decode("latin-1") if hosts else ""
        if self._hosts and _name_of(host) not in self._hosts:
            raise ServiceProblemError(421, "host", f"Host {host!r:.80} is not served here: add it to allowed_hosts")
        if hosts and len(self.known_hosts) < REMEMBERED:
            self.known_hosts.add(hosts[0])

    def _check_origin(self, origin: bytes, hosts: list[bytes]) -> None:
        lower = origin.lower()
        scheme, _, place = lower.partition(b"://")
        same = scheme in (b"http", b"https") and bool(hosts) and place == hosts[0].lower()
        if not same and lower not in self._origins:
            shown = origin.decode("latin-1")
            raise ServiceProblemError(403, "origin", f"Origin {shown!r:.80} may not call this service: add it to allowed_origins")

    def _check_type(self, types: list[bytes]) -> None:
        if len(types) == 1 and types[0] in self.known_types:
            return
        kind = types[0].partition(b";")[0].strip().lower() if len(types) == 1 else b""
        if kind != _JSON:
            shown = b", ".join(types).decode("latin-1") or "none"
            raise ServiceProblemError(
                415, "content-type", f"a body must come with Content-Type: application/json, got {shown!r:.80}"
            )
        if len(self.known_types) < REMEMBERED:
            self.known_types.add(types[0])


def has_body(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a request has a body that is not empty, or of unknown length."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip().lstrip(b"0") != b"") for name, value in headers
    )


def _name_of(host: str) -> str:
    """The name in a Host header, without the port.

    >>> _name_of("localhost:8321"), _name_of("[::1]:80"), _name_of("[::1]")
    ('localhost', '::1', '::1')
    """
    host = host.strip().lower()
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    return name.removesuffix(".") if not port or port.isdigit() else ""
