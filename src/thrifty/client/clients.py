"""`Client` waits, `AsyncClient` awaits. Their methods are the same: made from the descriptions in `calls` and `admin_calls`."""

import functools
import inspect
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import httpcore

from thrifty.client import admin_calls, calls
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
    put_router = _waiting(admin_calls.put_router)
    router = _waiting(admin_calls.router)
    routers = _waiting(admin_calls.routers)
    drift = _waiting(admin_calls.drift)
    alerts = _waiting(admin_calls.alerts)
    budget = _waiting(admin_calls.budget)
    delete_router = _waiting(admin_calls.delete_router)
    change = _waiting(admin_calls.change)
    set_alpha = _waiting(admin_calls.set_alpha)
    preview = _waiting(admin_calls.preview)
    changes = _waiting(admin_calls.changes)
    undo = _waiting(admin_calls.undo)
    overview = _waiting(admin_calls.overview)
    rollout = _waiting(admin_calls.rollout)
    move_rollout = _waiting(admin_calls.move_rollout)
    segments = _waiting(admin_calls.segments)
    segment_table = _waiting(admin_calls.segment_table)
    explain = _waiting(admin_calls.explain)
    history = _waiting(admin_calls.history)
    keys = _waiting(admin_calls.keys)
    add_key = _waiting(admin_calls.add_key)
    revoke_keys = _waiting(admin_calls.revoke_keys)
    health = _waiting(admin_calls.health)
    ready = _waiting(admin_calls.ready)
    metrics = _waiting(admin_calls.metrics)


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
    put_router = _awaiting(admin_calls.put_router)
    router = _awaiting(admin_calls.router)
    routers = _awaiting(admin_calls.routers)
    drift = _awaiting(admin_calls.drift)
    alerts = _awaiting(admin_calls.alerts)
    budget = _awaiting(admin_calls.budget)
    delete_router = _awaiting(admin_calls.delete_router)
    change = _awaiting(admin_calls.change)
    set_alpha = _awaiting(admin_calls.set_alpha)
    preview = _awaiting(admin_calls.preview)
    changes = _awaiting(admin_calls.changes)
    undo = _awaiting(admin_calls.undo)
    overview = _awaiting(admin_calls.overview)
    rollout = _awaiting(admin_calls.rollout)
    move_rollout = _awaiting(admin_calls.move_rollout)
    segments = _awaiting(admin_calls.segments)
    segment_table = _awaiting(admin_calls.segment_table)
    explain = _awaiting(admin_calls.explain)
    history = _awaiting(admin_calls.history)
    keys = _awaiting(admin_calls.keys)
    add_key = _awaiting(admin_calls.add_key)
    revoke_keys = _awaiting(admin_calls.revoke_keys)
    health = _awaiting(admin_calls.health)
    ready = _awaiting(admin_calls.ready)
    metrics = _awaiting(admin_calls.metrics)
