"""How a call runs: circuit breaker, attempts, reading the answer, fallback. Written once, as steps that both clients carry out."""

import json
import math
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpcore

from thrifty.client.breaker import Breaker
from thrifty.client.call import Call
from thrifty.client.choice import KnownArms
from thrifty.client.errors import (
    ONE_ROUTER,
    UNAVAILABLE,
    NotFoundError,
    RateLimitedError,
    ServiceError,
    ServiceUnavailableError,
    error_of_status,
)
from thrifty.client.retries import retry_after_s, retrying
from thrifty.described import described, setting

T = TypeVar("T")

FAILURES = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, TimeoutError)
"""What the network may raise."""

_NOT_SENT = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
_RESERVE = 0.9
"""The share of a decision's budget that the network may use; the rest is for falling back in time."""


@dataclass(frozen=True)
class Send:
    """A step: send a request before a time of time.monotonic(), and give back the response."""

    method: str
    url: str
    content: bytes | None
    deadline: float
    headers: list[tuple[str, str]] = field(repr=False)

    def timeouts(self, connect_s: float) -> dict[str, Any]:
        """The extension of httpcore for the time left."""
        left = max(0.0, self.deadline - time.monotonic())
        return {"timeout": {"connect": min(left, connect_s), "pool": min(left, connect_s), "read": left, "write": left}}


@dataclass(frozen=True)
class Pause:
    """A step: wait."""

    seconds: float


Steps = Generator[Send | Pause, httpcore.Response | None, T]


@dataclass(frozen=True)
class Options:
    """Settings of a client; `described(Options)` has the range and the meaning of every field."""

    timeout_s: float = setting(
        2.0, "seconds for a call with all its retries; for connecting, at most this for every call", above_low=True
    )
    retries: int = setting(
        3, "attempts after the first, of calls that may be repeated; a decision is retried with the same request_id"
    )
    decide_budget_s: float = setting(
        0.05,
        "seconds for `decide` and `decide_many` with all retries; without a fallback as long as `timeout_s`",
        above_low=True,
    )
    admin_timeout_s: float = setting(
        300.0, "seconds for put_router, delete_router and change, which may have to wait for a compiler", above_low=True
    )
    breaker_failures: int = setting(5, "calls that fail in a row until no call goes out any more", low=1)
    breaker_cooldown_s: float = setting(1.0, "seconds until one call may try again", above_low=True)
    max_connections: int = setting(100, "connections at most", low=1)

    def __post_init__(self) -> None:
        for each in described(Options):
            object.__setattr__(self, each.name, each.checked(getattr(self, each.name)))

    @classmethod
    def of(cls, given: dict[str, Any], *, falls_back: bool) -> "Options":
        """The options that a caller names, with the defaults of the others; a ValueError for a wrong name or value."""
        names = [each.name for each in described(Options)]
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(f"a client has no option {unknown[0]!r}; it has {', '.join(names)}")
        given = {name: value for name, value in given.items() if value is not None}
        if "decide_budget_s" not in given and not falls_back:
            given["decide_budget_s"] = cls(**given).timeout_s
        return cls(**given)

    def budget_s(self, call: Call[Any]) -> float:
        """Seconds for a whole call."""
        if call.budget == "decide":
            return self.decide_budget_s * _RESERVE
        return self.admin_timeout_s if call.budget == "admin" else self.timeout_s


class Exchange:
    """Runs calls to one service. Thread-safe."""

    def __init__(self, url: str, key: str | None, *, options: Options, known: KnownArms, breaker: Breaker) -> None:
        self.url, self.options, self.known, self.breaker = checked_url(url), options, known, breaker
        self._key = checked_key(key)
        self._headers = [("content-type", "application/json"), ("accept", "application/json")]
        self._headers += [("authorization", f"Bearer {self._key}")] if self._key else []

    def run(self, call: Call[T]) -> Steps[T]:
        """The steps of a call; falls back if there is a local result."""
        try:
            result = yield from self._guarded(call)
        except (ServiceUnavailableError, RateLimitedError) as error:
            local = None if call.local is None else call.local(self.known, error)
            if local is None:
                raise
            return local
        return result if call.finish is None else call.finish(self.known, result)

    def _guarded(self, call: Call[T]) -> Steps[T]:
        if call.probe:
            return (yield from self._attempts(call, tries=1))
        admission = self.breaker.admit()
        if admission is None:
            raise self._not_called(call)
        try:
            result = yield from self._attempts(call, tries=1 if admission.trial else self.options.retries + 1)
        except ServiceUnavailableError as error:
            answered = error.code in ONE_ROUTER
            (self.breaker.succeed if answered else self.breaker.fail)(admission)
            raise
        except ServiceError:
            self.breaker.succeed(admission)
            raise
        except BaseException:
            self.breaker.abandon(admission)
            raise
        self.breaker.succeed(admission)
        return result

    def _attempts(self, call: Call[T], *, tries: int) -> Steps[T]:
        budget_s = self.options.budget_s(call)
        deadline, pauses = time.monotonic() + budget_s, list[float]()
        content = None if call.body is None else json.dumps(call.body, allow_nan=False).encode()
        attempts = retrying(tries=tries, budget_s=budget_s, idempotent=call.idempotent, pauses=pauses)
        for tried, attempt in enumerate(attempts, start=1):
            if pauses:
                yield Pause(pauses.pop())
            with attempt:
                try:
                    response = yield Send(call.method, self.url + call.path, content, deadline, self._headers)
                except FAILURES as failure:
                    raise self._unreachable(call, failure, tried) from failure
                assert response is not None
                try:
                    result = self._read(call, response)
                except NotFoundError:
                    if not (call.deletes and tried > 1):
                        raise
                    result = call.read(None)
        return result

    def _read(self, call: Call[T], response: httpcore.Response) -> T:
        """The result in a response, or its error."""
        where, status = f"{call.method} {self.url}{call.path}", response.status
        if not 200 <= status < 300:
            code, message = self._problem(response)
            after = retry_after_s(_header(response, b"retry-after"))
            raise error_of_status(status, code, message, url=where, retry_after_s=after)
        try:
            text = response.content.decode()
            return call.read(text if call.text else json.loads(text) if text else None)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"the answer cannot be read ({type(error).__name__}: {self._hidden(str(error))[:200]})"
            remedy = "check that the url is that of a thrifty service of this version"
            raise ServiceUnavailableError(message, url=where, status=status, remedy=remedy) from None

    def _problem(self, response: httpcore.Response) -> tuple[str, str]:
        """Code and message of an answer that is not a success."""
        try:
            error = json.loads(response.content)["error"]
            return str(error["code"]), self._hidden(str(error["message"]))[:1000]
        except (ValueError, KeyError, TypeError):
            return "", self._hidden(response.content.decode(errors="replace"))[:200] or "no message"

    def _unreachable(self, call: Call[Any], failure: BaseException, tried: int) -> ServiceUnavailableError:
        kind = type(failure).__name__
        problem = f"no answer in {tried} {'try' if tried == 1 else 'tries'} ({kind}: {self._hidden(str(failure))[:200]})"
        remedy, sent = UNAVAILABLE, not isinstance(failure, _NOT_SENT)
        if sent and not call.idempotent:
            remedy = "the request may have been carried out: look before sending it again"
        error = ServiceUnavailableError(problem, url=f"{call.method} {self.url}{call.path}", remedy=remedy)
        error.sent = sent
        return error

    def _not_called(self, call: Call[Any]) -> ServiceUnavailableError:
        breaker = self.breaker
        problem = f"not called, because the last {breaker.failures} calls failed; the next may go out in {breaker.wait_s:.1f} s"
        error = ServiceUnavailableError(problem, url=f"{call.method} {self.url}{call.path}", remedy=UNAVAILABLE)
        error.sent = False
        return error

    def _hidden(self, text: str) -> str:
        """Text without the key, should a server or a proxy repeat it."""
        return text.replace(self._key, "[key]") if self._key else text


def _header(response: httpcore.Response, name: bytes) -> str | None:
    return next((value.decode("latin-1") for header, value in response.headers if header.lower() == name), None)


def checked_url(url: str) -> str:
    """The URL of a service without a slash at its end, or a ValueError."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("url must not contain a user or a password: pass the key as `key`")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"url must be http://HOST:PORT or https://HOST:PORT, got {url!r:.200}")
    return url.rstrip("/")


def checked_key(key: str | None) -> str:
    """A key that can stand in a header, or a ValueError, which does not show the key."""
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("key must consist of printable ASCII characters without spaces; is there a line break at its end?")
    return key or ""


def checked_prices(fallback: Mapping[str, float] | None) -> Mapping[str, float] | None:
    """Prices to fall back on, or a ValueError."""
    for arm, price in (fallback or {}).items():
        if not 0.0 <= price < math.inf:
            raise ValueError(f"fallback must have prices that are not negative, got {price!r} for {arm!r:.80}")
    return fallback
