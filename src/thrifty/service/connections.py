"""Open connections: how many there may be, and how long one may take.

There is no timer for each connection: `sweep` looks at all of them a few times a second, so that a request costs no timer.
"""

from typing import TYPE_CHECKING

from thrifty.service.config import Config

if TYPE_CHECKING:
    from thrifty.service.protocol import HotProtocol

IDLE, HEAD, BODY = 0, 1, 2
"""What a connection is reading: nothing, the headers of a request, or its body."""


class Connections:
    """All open connections. For one thread, that of the loop."""

    def __init__(self, config: Config) -> None:
        self._open: set[HotProtocol] = set()
        self._limits_s = {IDLE: config.keep_alive_s, HEAD: config.header_timeout_s, BODY: config.body_timeout_s}
        self._max_connections, self._unread_s = config.max_connections, config.body_timeout_s
        self.refused = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "HotProtocol") -> bool:
        """Take in a new connection; False when there are too many."""
        if len(self._open) >= self._max_connections:
            self.refused += 1
            return False
        self._open.add(connection)
        return True

    def discard(self, connection: "HotProtocol") -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)

    def sweep(self, now: float) -> None:
        """End connections that are idle or whose request is not there in time, and those whose answer nobody reads."""
        for connection in list(self._open):
            if connection.flow.write_paused:
                connection.unread_since = connection.unread_since or now
                if now - connection.unread_since > self._unread_s:
                    connection.transport.abort()
                continue
            connection.unread_since = 0.0
            if connection.owes_answer():
                connection.since = now
            elif now - connection.since > self._limits_s[connection.phase]:
                connection.time_out()
