"""`Client` waits, `AsyncClient` awaits. Their methods are made from the descriptions in `calls`, so that they are the same."""

import functools
import inspect
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import httpcore

from thrifty.client import calls
from thrifty.client.breaker import Breaker
from thrifty.client.call import Call
from thrifty.client.choice import KnownArms
from thrifty.client.deadline import DeadlineBackend, deadline
from thrifty.client.errors import ServiceError
from thrifty.client.exchange import FAILURES, Exchange, Options, Pause, Send, checked_prices

P = ParamSpec("P")
T = TypeVar("T")


class BaseClient:
    """Base of both clients: options, circuit breaker and known arms."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        fallback: Mapping[str, float] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        chosen = Options.of(options, falls_back=fallback is not None)
        breaker = Breaker(failures=chosen.breaker_failures, cooldown_s=chosen.breaker_cooldown_s, name=url)
        self._exchange = Exchange(url, key, options=chosen, known=KnownArms(checked_prices(fallback)), breaker=breaker)
        self._closed = False
        if ssl_context is None and url.startswith("https:"):
            ssl_context = httpcore.default_ssl_context()
        self._open_pool(ssl_context=ssl_context, max_connections=chosen.max_connections, keepalive_expiry=4.0)

    def _open_pool(self, **settings: Any) -> None:
        raise NotImplementedError

    def _timeouts(self, step: Send) -> dict[str, Any]:
        return step.timeouts(self._exchange.options.timeout_s)

    def _check_open(self) -> None:
        if self._closed:
            raise ServiceError("this client is closed", url=self._exchange.url, remedy="make a new one")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._exchange.url!r}, breaker {self._exchange.breaker.state})"


def _as_method(method: Callable[..., Any], describe: Callable[..., Any], result: Any) -> None:
    """Give a method the name, the documentation and the signature of its description."""
    functools.update_wrapper(method, describe)
    del method.__wrapped__  # type: ignore[attr-defined]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    described = inspect.signature(describe)
    signature = described.replace(parameters=[own, *described.parameters.values()], return_annotation=result)
    method.__signature__ = signature  # type: ignore[attr-defined]


def _result_of(describe: Callable[..., Any]) -> Any:
    return inspect.signature(describe).return_annotation.__args__[0]


def _waiting(describe: Callable[P, Call[T]]) -> Callable[Concatenate["Client", P], T]:
    """The method of `Client` for a call."""

    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(describe(*args, **kwargs))

    _as_method(method, describe, _result_of(describe))
    return method


def _awaiting(describe: Callable[P, Call[T]]) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """The method of `AsyncClient` for a call."""

    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(describe(*args, **kwargs))

    _as_method(method, describe, _result_of(describe))
    return method


class Client(BaseClient):
    """A client that waits. Thread-safe; make a new one after a fork.

    Parameters
    ----------
    url : of the service
    key : an API key, if the service needs one
    fallback : prices by arm. If the service is not available, `decide` then takes the arm that the service last chose for what it
        knows, for this segment or the nearest above, or else the cheapest of these; `Choice.local` is True then
    ssl_context : for https, if the default certificates do not do
    options : timeout_s, retries, decide_budget_s, ...; see `thrifty.client.Options`

    >>> with Client("http://127.0.0.1:9", retries=0, fallback={"a": 0.2, "b": 0.1}) as client:
    ...     choice = client.decide("sms")
    >>> choice.arm, choice.local
    ('b', True)

    """

    _pool: httpcore.ConnectionPool

    def _open_pool(self, **settings: Any) -> None:
        self._pool = httpcore.ConnectionPool(network_backend=DeadlineBackend(), **settings)

    def _run(self, call: Call[T]) -> T:
        self._check_open()
        steps = self._exchange.run(call)
        try:
            step = next(steps)
            while True:
                try:
                    response = self._carry_out(step)
                except FAILURES as failure:
                    step = steps.throw(failure)
                else:
                    step = steps.send(response)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    def _carry_out(self, step: Send | Pause) -> httpcore.Response | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        with deadline(step.deadline):
            return self._pool.request(
                step.method, step.url, headers=step.headers, content=step.content, extensions=self._timeouts(step)
            )

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    decide = _waiting(calls.decide)
    decide_many = _waiting(calls.decide_many)
    record = _waiting(calls.record)
    record_many = _waiting(calls.record_many)
    put_router = _waiting(calls.put_router)
    router = _waiting(calls.router)
    routers = _waiting(calls.routers)
    drift = _waiting(calls.drift)
    alerts = _waiting(calls.alerts)
    budget = _waiting(calls.budget)
    delete_router = _waiting(calls.delete_router)
    change = _waiting(calls.change)
    set_alpha = _waiting(calls.set_alpha)
    preview = _waiting(calls.preview)
    changes = _waiting(calls.changes)
    undo = _waiting(calls.undo)
    overview = _waiting(calls.overview)
    rollout = _waiting(calls.rollout)
    move_rollout = _waiting(calls.move_rollout)
    segments = _waiting(calls.segments)
    segment_table = _waiting(calls.segment_table)
    explain = _waiting(calls.explain)
    history = _waiting(calls.history)
    keys = _waiting(calls.keys)
    add_key = _waiting(calls.add_key)
    revoke_keys = _waiting(calls.revoke_keys)
    health = _waiting(calls.health)
    ready = _waiting(calls.ready)
    metrics = _waiting(calls.metrics)


class AsyncClient(BaseClient):
    """A client that awaits, for one event loop; otherwise like `Client`.

    >>> AsyncClient("http://127.0.0.1:9", "secret")
    AsyncClient('http://127.0.0.1:9', breaker closed)
    """

    _pool: httpcore.AsyncConnectionPool

    def _open_pool(self, **settings: Any) -> None:
        self._pool = httpcore.AsyncConnectionPool(**settings)

    async def _run(self, call: Call[T]) -> T:
        self._check_open()
        steps = self._exchange.run(call)
        try:
            step = next(steps)
            while True:
                try:
                    response = await self._carry_out(step)
                except FAILURES as failure:
                    step = steps.throw(failure)
                else:
                    step = steps.send(response)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _carry_out(self, step: Send | Pause) -> httpcore.Response | None:
        if isinstance(step, Pause):
            await anyio.sleep(step.seconds)
            return None
        with anyio.fail_after(step.deadline - time.monotonic()):
            return await self._pool.request(
                step.method, step.url, headers=step.headers, content=step.content, extensions=self._timeouts(step)
            )

    async def close(self) -> None:
        """Close the connections."""
        self._closed = True
        await self._pool.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    decide = _awaiting(calls.decide)
    decide_many = _awaiting(calls.decide_many)
    record = _awaiting(calls.record)
    record_many = _awaiting(calls.record_many)
    put_router = _awaiting(calls.put_router)
    router = _awaiting(calls.router)
    routers = _awaiting(calls.routers)
    drift = _awaiting(calls.drift)
    alerts = _awaiting(calls.alerts)
    budget = _awaiting(calls.budget)
    delete_router = _awaiting(calls.delete_router)
    change = _awaiting(calls.change)
    set_alpha = _awaiting(calls.set_alpha)
    preview = _awaiting(calls.preview)
    changes = _awaiting(calls.changes)
    undo = _awaiting(calls.undo)
    overview = _awaiting(calls.overview)
    rollout = _awaiting(calls.rollout)
    move_rollout = _awaiting(calls.move_rollout)
    segments = _awaiting(calls.segments)
    segment_table = _awaiting(calls.segment_table)
    explain = _awaiting(calls.explain)
    history = _awaiting(calls.history)
    keys = _awaiting(calls.keys)
    add_key = _awaiting(calls.add_key)
    revoke_keys = _awaiting(calls.revoke_keys)
    health = _awaiting(calls.health)
    ready = _awaiting(calls.ready)
    metrics = _awaiting(calls.metrics)
