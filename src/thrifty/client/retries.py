"""When to send a request again: full jitter, a server's Retry-After, and the time budget of the call."""

import time
from email.utils import parsedate_to_datetime
from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, stop_before_delay, wait_random_exponential

from thrifty.client.errors import RateLimitedError, ServiceError, ServiceUnavailableError

_jitter = wait_random_exponential(multiplier=0.05, max=1.0)
"""Between 0 and 0.05 s before the first retry, then up to twice as much each time, up to 1 s."""


def retry_after_s(value: str | None, *, now: float | None = None) -> float | None:
    """Seconds to wait by a Retry-After header, which has seconds or an HTTP date; None if there is none or it is unreadable.

    >>> retry_after_s("3"), retry_after_s("Thu, 01 Jan 1970 00:01:40 GMT", now=98.0), retry_after_s("soon")
    (3.0, 2.0, None)
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, at - (time.time() if now is None else now))


def retrying(*, tries: int, budget_s: float, idempotent: bool, pauses: list[float]) -> Retrying:
    """Attempts of a call. A pause is appended to `pauses` instead of slept, because one client sleeps and the other awaits."""

    def is_worth_it(error: BaseException) -> bool:
        if isinstance(error, ServiceUnavailableError):
            return error.code != "quarantined" and (idempotent or not error.sent)
        return idempotent and isinstance(error, RateLimitedError)

    return Retrying(
        sleep=pauses.append,
        wait=_pause_s,
        stop=stop_after_attempt(tries) | stop_before_delay(budget_s),
        retry=retry_if_exception(is_worth_it),
        reraise=True,
    )


def _pause_s(state: RetryCallState) -> float:
    """Jitter, after what the server asked for."""
    error: Any = None if state.outcome is None else state.outcome.exception()
    asked = error.retry_after_s if isinstance(error, ServiceError) else None
    return (asked or 0.0) + _jitter(state)
