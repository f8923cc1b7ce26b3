"""The ASGI application: decisions and outcomes here, without a framework in between; everything else in `admin`.

A reply leaves only when what it says is durable. The loop does not block for that: the writer wakes it after each commit, and all
requests that the commit covered answer at once.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from thrifty.router import Decision, Router
from thrifty.router.decision import say_why
from thrifty.service.config import Config
from thrifty.service.desk import Desk
from thrifty.service.keys import KeyRing, digest
from thrifty.service.messages import DecisionAnswer, DecisionRequest, Estimate, OutcomeAnswer, OutcomeRequest, ReasonBody
from thrifty.service.problems import ProblemError
from thrifty.store import StoreError
from thrifty.store.writer import Writer

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("thrifty.service")

PRUNE_EVERY_S = 3600.0
"""How often old decisions are deleted, where the configuration says so."""

_decisions = msgspec.json.Decoder(DecisionRequest | list[DecisionRequest])
_outcomes = msgspec.json.Decoder(OutcomeRequest | list[OutcomeRequest])
_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode


class App:
    """The whole service behind one callable."""

    def __init__(self, config: Config, store: Any) -> None:
        from thrifty.service.admin import build_admin

        self.config, self.store = config, store
        self.keys = self._key_ring()
        if not self.keys and not config.loopback:
            raise ValueError(
                f"host {config.host} is reachable from elsewhere, and there are no keys: add one with `thrifty keys NAME`"
            )
        self.desk = Desk(store)
        self.ready = False
        self._prune_at = time.monotonic()
        self.requests: dict[tuple[str, int], int] = {}
        self.seconds: dict[str, float] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._hot = {"/v1/decisions": ("decide", self._decide), "/v1/outcomes": ("outcome", self._record)}
        self._admin = build_admin(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through the life of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"no {scope['type']} here")
        started = time.perf_counter()
        path = scope["path"]
        route = self._hot.get(path)
        if route is None or scope["method"] != "POST":
            await self._admin(scope, receive, send)
            return
        role, handle = route
        headers: list[tuple[bytes, bytes]] = []
        try:
            self.authorise(scope, role)
            status, body = await handle(await self._body(scope, receive))
        except ProblemError as problem:
            status, body, headers = problem.status, problem.body(), problem.headers()
        except StoreError as error:
            away = ProblemError(503, "store", str(error))
            status, body, headers = away.status, away.body(), away.headers()
        headers = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        self.count(path, status, time.perf_counter() - started)

    def count(self, route: str, status: int, seconds: float) -> None:
        """For the metrics."""
        self.requests[route, status] = self.requests.get((route, status), 0) + 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds

    def authorise(self, scope: Scope, role: str) -> None:
        """Raise a ProblemError unless the request carries a key for `role`."""
        if not self.keys:
            return
        allowed = self.keys.allows(_presented(scope), role)
        if allowed is None:
            raise ProblemError(401, "key", "a valid key is needed: Authorization: Bearer KEY")
        if not allowed:
            raise ProblemError(403, "role", f"this key has not the role {role}")

    def who(self, scope: Scope) -> str:
        """Who asks, for the log: the name of the key, if there is one, and the address."""
        host = scope["client"][0] if scope.get("client") else ""
        name = self.keys.name_of(_presented(scope) or "")
        return f"{name}@{host}" if name else host

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        limit = self.config.max_body
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > limit:
                raise ProblemError(413, "size", f"the body must be at most {limit} bytes, got {value.decode()}")
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > limit:
                raise ProblemError(413, "size", f"the body must be at most {limit} bytes")
        return body

    async def _decide(self, body: bytes) -> tuple[int, bytes]:
        asked = _read(_decisions, body)
        if isinstance(asked, DecisionRequest):
            router, decision = self._decide_one(asked)
            await self._durable(router, decision.position)
            router.finish(decision)
            return 200, _encode(_answer(decision))
        self._check_batch(len(asked))
        made: list[tuple[Router, Decision] | ProblemError] = []
        for each in asked:
            try:
                made.append(self._decide_one(each))
            except ProblemError as problem:
                made.append(problem)
        answers: list[Any] = []
        for each_made in made:
            if isinstance(each_made, ProblemError):
                answers.append(each_made.to_dict())
            else:
                router, decision = each_made
                await self._durable(router, decision.position)
                router.finish(decision)
                answers.append(_answer(decision))
        return 200, _encode(answers)

    def _decide_one(self, asked: DecisionRequest) -> tuple[Router, Decision]:
        router = self.router(asked.router)
        eligible = None if asked.eligible is None else {arm.arm: arm.cost for arm in asked.eligible}
        try:
            return router, router.decide_soon(asked.segment, eligible=eligible, request_id=asked.request_id, context=asked.context)
        except ValueError as error:
            raise ProblemError(422, "value", str(error)) from None

    async def _record(self, body: bytes) -> tuple[int, bytes]:
        told = _read(_outcomes, body)
        if isinstance(told, OutcomeRequest):
            router, answer, position = self._record_one(told)
            await self._durable(router, position)
            return 200, _encode(answer)
        self._check_batch(len(told))
        answers: list[Any] = []
        made: list[tuple[Router, int]] = []
        for each in told:
            try:
                router, answer, position = self._record_one(each)
                made.append((router, position))
                answers.append(answer)
            except ProblemError as problem:
                answers.append(problem.to_dict())
        for router, position in made:
            await self._durable(router, position)
        return 200, _encode(answers)

    def _record_one(self, told: OutcomeRequest) -> tuple[Router, OutcomeAnswer, int]:
        if (told.decision_id is None) == (told.reference is None or told.router is None):
            raise ProblemError(
                422, "value", "an outcome needs a decision_id, or a router and a reference (the request_id of its decision)"
            )
        router = self.router(told.router if told.decision_id is None else told.decision_id.partition(".")[0], code="decision")
        try:
            decision_id = told.decision_id if told.decision_id is not None else router.id_of(str(told.reference))
            result, position = router.record_soon(
                decision_id, told.reward, status=told.status, cost=told.cost, arm=told.arm, occurred_at=told.occurred_at
            )
        except KeyError as error:
            raise ProblemError(404, "decision", str(error.args[0])) from None
        except ValueError as error:
            raise ProblemError(422, "value", str(error)) from None
        return router, OutcomeAnswer(decision_id, result), position  # type: ignore[arg-type]

    def router(self, name: str | None, code: str = "router") -> Router:
        """The router of this name, or a ProblemError."""
        router = self.desk.find(str(name))
        if router is None:
            raise ProblemError(404, code, f"there is no router {str(name)!r:.80}: make one with PUT /v1/routers/NAME")
        return router

    def _check_batch(self, length: int) -> None:
        if not 1 <= length <= self.config.max_batch:
            raise ProblemError(422, "size", f"a batch must have 1 to {self.config.max_batch} items, got {length}")

    async def _durable(self, router: Router, position: int) -> None:
        while not router.is_durable(position) and not router.is_degraded(position):
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        loop = asyncio.get_running_loop()

        def committed() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._wake)

        writer, here = self.store.writer, threading.get_ident()

        def begin_soon() -> None:
            """Let all requests that the loop has at hand into the same commit."""
            if threading.get_ident() == here:
                loop.call_soon(writer.begin)
            else:
                writer.begin()

        writer.callbacks.append(committed)
        if isinstance(writer, Writer):
            writer.begin_soon = begin_soon
        ticking = asyncio.create_task(self._tick())
        self.ready = True
        log.info("started", extra={"facts": {"routers": self.desk.names()}})
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.ready = False
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        writer.callbacks.remove(committed)
        writer.begin_soon = None
        await asyncio.to_thread(self.desk.close)
        log.info("stopped")
        await send({"type": "lifespan.shutdown.complete"})

    async def _tick(self) -> None:
        """Four times a second: deadlines, routers and keys of other replicas, and requests that wait for a store that is away."""
        said = ""
        while True:
            await asyncio.sleep(0.25)
            self._wake()
            try:
                await asyncio.to_thread(self._look_around)
                said = ""
            except StoreError as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("store", extra={"facts": {"error": said}})

    def _look_around(self) -> None:
        self.desk.expire()
        if self.config.keep_days and time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_EVERY_S
            self.desk.prune(time.time() - 86_400 * self.config.keep_days)
        if self.store.shared and self.store.check() == "ready":
            self.desk.follow()
            keys = self._key_ring()
            if keys or self.config.loopback:
                self.keys = keys

    def _key_ring(self) -> KeyRing:
        keys = list(self.store.keys())
        if self.config.admin_key:
            keys.append((digest(self.config.admin_key), "admin", "admin"))
        return KeyRing(keys)


def _presented(scope: Scope) -> str | None:
    """The key that a request carries."""
    key = None
    for name, value in scope["headers"]:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            key = value[7:].decode("latin-1")
    return key


def _read(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ProblemError(422, "value", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, "json", f"the body must be JSON: {error}") from None


def _answer(decision: Decision) -> DecisionAnswer:
    known, code = decision.known, decision.code
    floor, best, saving = known.floor, known.best_arm, known.saving
    estimates = [
        Estimate(arm, mean if outcomes else None, int(outcomes), cost, mean >= floor)
        for arm, mean, outcomes, cost in zip(known.arms, known.means, known.outcomes, known.costs, strict=True)
    ]
    why = say_why(code, best, floor, saving, decision.decided_by)
    return DecisionAnswer(
        decision.id, decision.arm, decision.fallbacks, decision.propensity, decision.explored,
        ReasonBody(code, best, floor, estimates, saving, why), decision.version, decision.repeated, decision.degraded,
    )  # fmt: skip


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event, and what else is known."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = {
            "at": round(record.created, 3), "level": record.levelname.lower(), "logger": record.name, "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }  # fmt: skip
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)
