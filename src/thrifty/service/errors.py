"""Problems: what a caller did wrong, or what the service cannot do now, as an answer."""

import json
from typing import Any


class ServiceProblemError(Exception):
    """An answer that is not a success.

    >>> ServiceProblemError(404, "router", "there is no router 'x'").to_dict()
    {'error': {'code': 'router', 'message': "there is no router 'x'"}}
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def to_dict(self) -> dict[str, Any]:
        """The body."""
        return {"error": {"code": self.code, "message": self.message}}

    def body(self) -> bytes:
        """The body, encoded."""
        return json.dumps(self.to_dict()).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What the status asks for."""
        if self.status == 401:
            return [(b"www-authenticate", b"Bearer")]
        return [(b"retry-after", b"1")] if self.status == 503 else []
