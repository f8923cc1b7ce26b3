"""Problems: what a caller did wrong, or what the service cannot do now, as an answer."""

import json
import logging
import math
import secrets
from typing import Any

log = logging.getLogger("thrifty.service")


class ServiceProblemError(Exception):
    """An answer that is not a success.

    Parameters
    ----------
    status : of HTTP
    code : a word that programs can go by
    message : for people; it names the value and the remedy
    retry_s : seconds after which it is worth to try again, where the status has Retry-After (429, 503)
    request_id : under which the log has more, of an internal error

    >>> ServiceProblemError(404, "router", "there is no router 'x'").to_dict()
    {'error': {'code': 'router', 'message': "there is no router 'x'"}}

    """

    def __init__(self, status: int, code: str, message: str, *, retry_s: float = 1.0, request_id: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_s, self.request_id = status, code, message, retry_s, request_id

    def to_dict(self) -> dict[str, Any]:
        """The body."""
        body = {"code": self.code, "message": self.message}
        return {"error": body if self.request_id is None else {**body, "request_id": self.request_id}}

    def body(self) -> bytes:
        """The body, encoded."""
        return json.dumps(self.to_dict()).encode()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What the status asks for."""
        if self.status == 401:
            return [(b"www-authenticate", b"Bearer")]
        return [(b"retry-after", b"%d" % max(1, math.ceil(self.retry_s)))] if self.status in (429, 503) else []


def internal_problem(error: BaseException, **facts: Any) -> ServiceProblemError:
    """The answer to an error that nobody expected; the log has it with its trace under the same request_id."""
    request_id = secrets.token_hex(8)
    log.error("internal error", exc_info=error, extra={"facts": {"request_id": request_id, "error": repr(error)[:500], **facts}})
    message = f"an internal error; the log of the service has it under request_id {request_id}"
    return ServiceProblemError(500, "internal", message, request_id=request_id)
