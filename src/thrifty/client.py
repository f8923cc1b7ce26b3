"""The client of the decision service: retries with the same request_id, times out, and can fall back to an arm it knows.

`Client` waits, `AsyncClient` awaits; both make the same calls.
"""

import asyncio
import time
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

_RETRIED = (429, 502, 503, 504)


class ServiceError(Exception):
    """The service refused a call, or could not be reached."""


@dataclass(frozen=True)
class Choice:
    """A decision of the service, or, when `local`, of the client because the service could not be reached."""

    arm: str
    decision_id: str | None
    fallbacks: tuple[str, ...] = ()
    propensity: float | None = None
    explored: bool = False
    reason: dict[str, Any] = field(default_factory=dict)
    local: bool = False


class _Calls:
    """What both clients do, as generators that yield a request and are sent its response."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_s: float = 2.0,
        retries: int = 3,
        fallback: Mapping[str, float] | None = None,
    ) -> None:
        self._url, self._timeout_s, self._retries = url.rstrip("/"), timeout_s, retries
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._prices = dict(fallback or {})
        self._known: dict[tuple[str, str], str] = {}  # (router, segment) -> the arm it chose last for what is known

    def _decide(
        self, router: str, segment: str, request_id: str | None, eligible: Mapping[str, float | None] | None
    ) -> Generator[tuple[str, Any], Any, Choice]:
        body: dict[str, Any] = {"router": router, "segment": segment, "request_id": request_id or uuid.uuid4().hex}
        if eligible is not None:
            body["eligible"] = [{"arm": arm, "cost": cost} for arm, cost in eligible.items()]
        try:
            said = yield "/v1/decisions", body
        except ServiceError:
            arm = self._arm_without_service(router, segment, eligible)
            if arm is None:
                raise
            return Choice(arm, None, local=True)
        if said["reason"]["code"] == "exploit":
            self._known[router, segment] = said["arm"]
        return Choice(
            said["arm"], said["decision_id"], tuple(said["fallbacks"]), said["propensity"], said["explored"], said["reason"]
        )  # fmt: skip

    def _arm_without_service(self, router: str, segment: str, eligible: Mapping[str, float | None] | None) -> str | None:
        """The arm the service chose last for what it knew, else the cheapest one given as a fallback."""
        if not self._prices:
            return None
        known = self._known.get((router, segment))
        if known is not None and (eligible is None or known in eligible):
            return known
        allowed = [arm for arm in self._prices if eligible is None or arm in eligible]
        return min(allowed, key=self._prices.__getitem__) if allowed else None

    @staticmethod
    def _record(decision_id: str, outcome: dict[str, Any]) -> Generator[tuple[str, Any], Any, str]:
        said = yield "/v1/outcomes", {"decision_id": decision_id, **outcome}
        return str(said["result"])

    def _read(self, response: httpx.Response) -> Any:
        """The answer; None when it is worth another try."""
        if response.status_code in _RETRIED:
            return None
        if response.is_error:
            raise ServiceError(f"{response.status_code}: {_message(response)}")
        return response.json()

    def _pause_s(self, attempt: int) -> float:
        return float(min(0.05 * 2**attempt, 1.0))


class Client(_Calls):
    """A client that waits.

    Parameters
    ----------
    url : of the service
    key : an API key, if it needs one
    timeout_s : for one try
    retries : tries after the first one, each with the same request_id, so that one request is one decision
    fallback : prices by arm; when the service cannot be reached, `decide` then takes the arm that it last chose for what it knew,
        or else the cheapest of these, and says so in `Choice.local`

    >>> Client("http://127.0.0.1:9", retries=0, fallback={"a": 0.2, "b": 0.1}).decide("sms").arm
    'b'

    """

    def __init__(self, url: str, key: str | None = None, **options: Any) -> None:
        super().__init__(url, key, **options)
        self._http = httpx.Client(base_url=self._url, headers=self._headers, timeout=self._timeout_s)

    def decide(
        self, router: str, segment: str = "", *, request_id: str | None = None, eligible: Mapping[str, float | None] | None = None
    ) -> Choice:
        """Choose an arm."""
        return self._run(self._decide(router, segment, request_id, eligible))  # type: ignore[no-any-return]

    def record(self, decision_id: str, reward: float | None = None, **outcome: Any) -> str:
        """Report an outcome: a reward, or status="success", "failure" or "void"."""
        return str(self._run(self._record(decision_id, _told(reward, outcome))))

    def put_router(self, name: str, arms: Mapping[str, float | None], alpha: float, **settings: Any) -> Any:
        """Make a router, or make it be as told."""
        response = self._http.put(f"/v1/routers/{name}", json={"arms": dict(arms), "alpha": alpha, **settings}, timeout=300)
        return self._read(response)

    def explain(self, router: str, segment: str = "") -> Any:
        """What the service knows about a segment."""
        said = self._read(self._http.get(f"/v1/routers/{router}/segments" + (f"/{segment}" if segment else "")))
        return said if segment else said["all"]

    def _run(self, calls: Generator[tuple[str, Any], Any, Any]) -> Any:
        try:
            path, body = next(calls)
            try:
                answer = self._insist(path, body)
            except ServiceError as error:
                return calls.throw(error)
            calls.send(answer)
        except StopIteration as done:
            return done.value
        raise AssertionError("a call asks once")

    def _insist(self, path: str, body: Any) -> Any:
        problem = ""
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(self._pause_s(attempt))
            try:
                response = self._http.post(path, json=body)
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            answer = self._read(response)
            if answer is not None:
                return answer
            problem = f"{response.status_code}: {_message(response)}"
        raise ServiceError(f"{self._url} gave no answer in {self._retries + 1} tries: {problem}")

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Calls):
    """A client that awaits; see `Client`."""

    def __init__(self, url: str, key: str | None = None, **options: Any) -> None:
        super().__init__(url, key, **options)
        self._http = httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=self._timeout_s)

    async def decide(
        self, router: str, segment: str = "", *, request_id: str | None = None, eligible: Mapping[str, float | None] | None = None
    ) -> Choice:
        """Choose an arm."""
        return await self._run(self._decide(router, segment, request_id, eligible))  # type: ignore[no-any-return]

    async def record(self, decision_id: str, reward: float | None = None, **outcome: Any) -> str:
        """Report an outcome: a reward, or status="success", "failure" or "void"."""
        return str(await self._run(self._record(decision_id, _told(reward, outcome))))

    async def _run(self, calls: Generator[tuple[str, Any], Any, Any]) -> Any:
        try:
            path, body = next(calls)
            try:
                answer = await self._insist(path, body)
            except ServiceError as error:
                return calls.throw(error)
            calls.send(answer)
        except StopIteration as done:
            return done.value
        raise AssertionError("a call asks once")

    async def _insist(self, path: str, body: Any) -> Any:
        problem = ""
        for attempt in range(self._retries + 1):
            if attempt:
                await asyncio.sleep(self._pause_s(attempt))
            try:
                response = await self._http.post(path, json=body)
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            answer = self._read(response)
            if answer is not None:
                return answer
            problem = f"{response.status_code}: {_message(response)}"
        raise ServiceError(f"{self._url} gave no answer in {self._retries + 1} tries: {problem}")

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _told(reward: float | None, outcome: dict[str, Any]) -> dict[str, Any]:
    return outcome if reward is None else {"reward": reward, **outcome}


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
