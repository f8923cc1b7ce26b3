"""Errors of the client. All are ServiceErrors, and name the URL, the status, the code and a remedy."""

from typing import Any


class ServiceError(Exception):
    """A call to the service failed.

    Attributes
    ----------
    message : what happened, in the words of the service where it answered
    url : method and URL of the call, or the URL of the service
    status : HTTP status; None if there was no answer
    code : what the service calls the problem: "router", "decision", "value", "key", "store" ...
    remedy : what to do about it
    retry_after_s : seconds after which the service asks to be called again; None if it did not say

    >>> str(ServiceError("there is no router 'x'", url="GET http://h/v1/routers/x", status=404, code="router", remedy="check it"))
    "GET http://h/v1/routers/x: 404 router: there is no router 'x'; check it"

    """

    def __init__(
        self,
        message: str,
        *,
        url: str = "",
        status: int | None = None,
        code: str = "",
        remedy: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.url, self.status, self.code = message, url, status, code
        self.remedy, self.retry_after_s = remedy, retry_after_s

    def __str__(self) -> str:
        answer = " ".join(str(part) for part in (self.status, self.code) if part)
        text = ": ".join(part for part in (self.url, answer, self.message) if part)
        return f"{text}; {self.remedy}" if self.remedy else text


class ServiceUnavailableError(ServiceError):
    """The service could not be reached, did not answer in time, answered with a 5xx status, or with something unreadable.

    `sent` is False if no request can have reached the service, so that nothing can have been changed.
    """

    sent = True


class RequestRefusedError(ServiceError):
    """The service answered with a 4xx status: the request is wrong, and repeating it does not help."""


class NotFoundError(RequestRefusedError):
    """404: there is no such router, segment, decision or key."""


class KeyRefusedError(RequestRefusedError):
    """401 or 403: the key is missing, not valid, expired, or has not the role that the call needs."""


class RateLimitedError(RequestRefusedError):
    """429: too many requests with this key."""


class LocalChoiceError(ServiceError):
    """An outcome without a decision_id: the client made that choice itself, and the service does not know it."""

    def __init__(self, message: str = "decision_id is None: the client made this choice without the service", **facts: Any) -> None:
        remedy = "record outcomes only if choice.decision_id is not None, or give the router and the request_id of the decision"
        super().__init__(message, **{"remedy": remedy, **facts})


_REMEDIES = {
    400: "correct the request",
    401: "pass a valid key as `key`; `thrifty keys NAME` makes one",
    403: "use a key with the role that this call needs",
    404: "check the name; routers() lists the routers",
    413: "send less at once",
    421: "add the host of the url to allowed_hosts of the service",
    422: "correct the value that the message names",
    429: "send fewer requests, or raise the rate limit of the key",
}
_KINDS: dict[int, type[RequestRefusedError]] = {
    401: KeyRefusedError,
    403: KeyRefusedError,
    404: NotFoundError,
    429: RateLimitedError,
}
_CODES = {
    401: ("key", "expired"),
    403: ("role",),
    404: ("router", "decision", "segment", "name"),
    429: ("rate",),
    500: ("internal",),
    503: ("store", "busy", "loading", "draining", "quarantined"),
}
_STATUS_OF_CODE = {code: status for status, codes in _CODES.items() for code in codes}
ONE_ROUTER = ("quarantined", "loading")
"""Codes of 503 that concern one router; the service itself is there."""

UNAVAILABLE = "check that the service runs and is ready (ready()), or give `fallback` prices"


def error_of_status(status: int, code: str, message: str, *, url: str, retry_after_s: float | None = None) -> ServiceError:
    """The error for an answer that is not a success.

    >>> type(error_of_status(403, "role", "no", url="")).__name__
    'KeyRefusedError'
    >>> type(error_of_status(503, "store", "no", url="")).__name__
    'ServiceUnavailableError'
    """
    if status >= 500:
        kind: type[ServiceError] = ServiceUnavailableError
        remedy = UNAVAILABLE
    elif status < 400:
        kind, remedy = RequestRefusedError, "check the url: the service itself never redirects"
    else:
        kind, remedy = _KINDS.get(status, RequestRefusedError), _REMEDIES.get(status, "correct the request")
    return kind(message, url=url, status=status, code=code, remedy=remedy, retry_after_s=retry_after_s)


def error_of_item(answer: dict[str, Any], *, url: str) -> ServiceError:
    """The error of one item of a batch, which has a code and no status of its own.

    >>> type(error_of_item({"code": "decision", "message": "there is no decision 'x.0.1'"}, url="")).__name__
    'NotFoundError'
    """
    code = str(answer["code"])
    status = answer.get("status") or _STATUS_OF_CODE.get(code, 422)
    return error_of_status(int(status), code, str(answer["message"]), url=url)
