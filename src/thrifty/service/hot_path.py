"""The hot path: decisions and outcomes are asked for here, done at once, and answered when they are durable.

Nobody blocks for that, and no task waits for it either: an answer is owed until a commit covers it, and whoever learns of the
commit calls `settle`, which gives out all answers that are due. A call that may take long (a policy that is not compiled yet, a
decision that has to be looked up in the log) runs in a worker thread, and its answer comes back to the loop.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from thrifty.router import ColdDecisionError, DecisionInFlightError
from thrifty.service.answers import Done, DoneBatch, Later
from thrifty.service.batches import SlowCallError, do_rest
from thrifty.service.errors import ServiceProblemError, internal_problem
from thrifty.service.messages import DecisionRequest, OutcomeAnswer, OutcomeRequest, decoded
from thrifty.service.routers import Routers
from thrifty.service.workers import Workers
from thrifty.store import StoreError

ROLES = {"/v1/decisions": "decide", "/v1/outcomes": "outcome"}
"""The routes of the hot path, and what a key must be allowed to do there."""

ON_THE_LOOP = 50
"""A batch of more items runs in a worker thread: a thousand decisions would hold up everybody else for tens of milliseconds."""

COSTLY_S, COSTLY_IN_A_ROW = 0.01, 3
"""A router of which so many decisions in a row took longer decides in worker threads for a while: many arms, many draws."""

LATE_S = 0.01
"""Seconds after which answers that are still owed are looked at again: the store may be away by then."""

SLOW_THREADS, SLOW_WAITING = 4, 256
"""Worker threads for calls that may take long, and requests that may wait for one."""

MOST_LATER = 1000
"""Answers that may wait before no outcome waits for its decision any more."""

Answerable = Done | DoneBatch | Later
Headers = Sequence[tuple[bytes, bytes]]
Reply = Callable[[int, bytes, Headers], None]
"""Takes the status, the body, and what headers the status asks for."""

_decisions = msgspec.json.Decoder(DecisionRequest | list[DecisionRequest])
_outcomes = msgspec.json.Decoder(OutcomeRequest | list[OutcomeRequest])
_encode = msgspec.json.Encoder().encode


class HotPath:
    """Takes requests for the hot routes. For one thread, that of the loop.

    Parameters
    ----------
    routers : where the routers are
    max_batch : how many things may be asked for at once
    authorise : is given the headers of a request and a role, and raises a ServiceProblemError
    count : is given the path, the status and the seconds of every request

    """

    def __init__(
        self,
        routers: Routers,
        *,
        max_batch: int,
        authorise: Callable[[Headers, str], None],
        count: Callable[[str, int, float], None],
    ) -> None:
        self._routers, self._max_batch, self._authorise, self._count = routers, max_batch, authorise, count
        self._owed: list[tuple[Answerable, str, float, Reply]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looks_again = False  # whether the loop is going to call `_settle_late`
        self._costly: set[str] = set()  # routers whose decisions take too long for the loop
        self._took_long: dict[str, int] = {}  # how many of a router's decisions in a row did
        self.slow = Workers("slow", threads=SLOW_THREADS, waiting=SLOW_WAITING)
        self._calls: dict[str, tuple[Any, Callable[..., Done]]] = {
            "/v1/decisions": (_decisions, self._decide),
            "/v1/outcomes": (_outcomes, self._record),
        }

    def run_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take requests in this loop's thread from now on."""
        self._loop = loop

    def take(self, path: str, headers: Headers, body: bytes | bytearray, reply: Reply) -> None:
        """Do what the body of a request to one of the routes asks for; `reply` is called now, or when that is durable."""
        started = time.perf_counter()
        decoder, do = self._calls[path]
        try:
            self._authorise(headers, ROLES[path])
            asked = decoded(decoder, body)
            if isinstance(asked, list):
                self._take_batch(do, asked, path, started, reply)
                return
            try:
                done: Answerable = do(asked)
            except SlowCallError:
                self._start_slow(partial(do, asked, slow=True), path, started, reply)
                return
            except DecisionInFlightError:
                done = self._later(partial(do, asked))
        except Exception as error:
            self.refuse(error, path, started, reply)
            return
        self._finish(done, path, started, reply)

    def forget_costly(self) -> None:
        """Let every router be tried on the loop again; called now and then."""
        self._costly.clear()

    def settle(self) -> None:
        """Give out the answers that are due."""
        owed, self._owed = self._owed, []
        for done, path, started, reply in owed:
            self._finish(done, path, started, reply)

    def refuse(self, error: Exception, path: str, started: float, reply: Reply) -> None:
        """Answer that it cannot be done; what nobody expected is logged."""
        problem = _problem(error, path)
        try:
            reply(problem.status, problem.body(), problem.headers())
        except Exception as failed:
            internal_problem(failed, path=path)
        self._count(path, problem.status, time.perf_counter() - started)

    def _finish(self, done: Answerable, path: str, started: float, reply: Reply) -> None:
        """Answer, or owe the answer. Nothing that goes wrong here keeps others from their answers."""
        try:
            if not done.is_certain():
                self._owe(done, path, started, reply)
                return
            body = _encode(done.answer())
        except Exception as error:
            self.refuse(error, path, started, reply)
            return
        self._give(body, path, started, reply)

    def _owe(self, done: Answerable, path: str, started: float, reply: Reply) -> None:
        """Keep an answer until a commit covers it, or until the store counts as away, which no commit tells."""
        self._owed.append((done, path, started, reply))
        if self._loop is not None and not self._looks_again:
            self._looks_again = True
            self._loop.call_later(LATE_S, self._settle_late)

    def _settle_late(self) -> None:
        self._looks_again = False
        self.settle()

    def _give(self, body: bytes, path: str, started: float, reply: Reply) -> None:
        try:
            reply(200, body, ())
        except Exception as failed:
            internal_problem(failed, path=path)
        self._count(path, 200, time.perf_counter() - started)

    # -- several at once, and slow ones ------------------------------------------------------------------------------

    def _take_batch(self, do: Callable[..., Done], asked: list[Any], path: str, started: float, reply: Reply) -> None:
        """Do all in order. From the first one that may take long, the rest is done in a worker thread."""
        if not 1 <= len(asked) <= self._max_batch:
            raise ServiceProblemError(422, "size", f"a batch must have 1 to {self._max_batch} items, got {len(asked)}")
        if len(asked) > ON_THE_LOOP:
            self._start_large(do, asked, path, started, reply)
            return
        parts: list[Done | ServiceProblemError] = []
        go_on = partial(do_rest, do, asked, parts, path)
        try:
            done: Answerable = go_on(slow=False)
        except SlowCallError:
            self._start_slow(partial(go_on, slow=True), path, started, reply)
            return
        except DecisionInFlightError:
            done = self._later(partial(go_on, slow=False))
        self._finish(done, path, started, reply)

    def _later(self, call: Callable[[], Done | DoneBatch]) -> Later:
        """Let something be tried again whenever a commit has come, unless too many answers wait already."""
        if len(self._owed) >= MOST_LATER:
            raise StoreError(f"{MOST_LATER} answers wait for the store already: try again later")
        return Later(call)

    def _start_large(self, do: Callable[..., Done], asked: list[Any], path: str, started: float, reply: Reply) -> None:
        """Do a large batch in a worker thread, wait there until it is durable, and write its answer there too."""
        loop = self._loop
        assert loop is not None

        def run() -> None:
            try:
                batch = do_rest(do, asked, [], path, slow=True)
                batch.wait()
                body = _encode(batch.answer())
            except Exception as error:
                _hand_over(loop, self.refuse, error, path, started, reply)
            else:
                _hand_over(loop, self._give, body, path, started, reply)

        self._submit(run)

    def _submit(self, run: Callable[[], None]) -> None:
        if not self.slow.submit(run):
            raise ServiceProblemError(503, "busy", f"{SLOW_WAITING} slow requests wait already; try again later")

    def _start_slow(self, call: Callable[[], Done | DoneBatch], path: str, started: float, reply: Reply) -> None:
        """Run a call in a worker thread and give its answer back to the loop."""
        loop = self._loop
        assert loop is not None

        def run() -> None:
            try:
                done = call()
            except Exception as error:
                _hand_over(loop, self.refuse, error, path, started, reply)
            else:
                _hand_over(loop, self._finish, done, path, started, reply)

        self._submit(run)

    # -- one of each -------------------------------------------------------------------------------------------------

    def _decide(self, asked: DecisionRequest, *, slow: bool = False) -> Done:
        router = self._routers.router(asked.router)
        if not slow and (not router.responsive or router.name in self._costly):
            raise SlowCallError
        started = time.perf_counter()
        eligible = None if asked.eligible is None else {arm.arm: arm.cost for arm in asked.eligible}
        try:
            decision = router.decide_soon(
                asked.segment, eligible=eligible, request_id=asked.request_id, context=asked.context, key=asked.key
            )
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from None
        if time.perf_counter() - started > COSTLY_S:
            self._note_costly(router.name)
        elif self._took_long:
            self._took_long.pop(router.name, None)
        return Done(router, decision.position, decision)

    def _note_costly(self, name: str) -> None:
        """One long decision may be a pause of the machine; a few in a row are the router's own."""
        self._took_long[name] = self._took_long.get(name, 0) + 1
        if self._took_long[name] >= COSTLY_IN_A_ROW:
            self._costly.add(name)

    def _record(self, asked: OutcomeRequest, *, slow: bool = False) -> Done:
        if (asked.decision_id is None) == (asked.reference is None or asked.router is None):
            raise ServiceProblemError(
                422, "value", "an outcome needs a decision_id, or a router and a reference (the request_id of its decision)"
            )
        name = str(asked.router) if asked.decision_id is None else asked.decision_id.partition(".")[0]
        router = self._routers.router(name, code="decision")
        if not slow and not router.responsive:
            raise SlowCallError
        outcome = {"status": asked.status, "cost": asked.cost, "arm": asked.arm, "occurred_at": asked.occurred_at}
        try:
            decision_id = asked.decision_id if asked.decision_id is not None else router.id_of(str(asked.reference))
            record: Any = router.record_when_stored if slow else partial(router.record_soon, cold=False)
            result, position = record(decision_id, asked.reward, **outcome)
        except ColdDecisionError:
            raise SlowCallError from None
        except KeyError as error:
            raise ServiceProblemError(404, "decision", str(error.args[0])) from None
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from None
        return Done(router, position, OutcomeAnswer(decision_id, result))


def _problem(error: Exception, path: str) -> ServiceProblemError:
    if isinstance(error, ServiceProblemError):
        return error
    if isinstance(error, StoreError):
        return ServiceProblemError(503, "store", str(error))
    if isinstance(error, SlowCallError):  # an outcome that waited for its decision, which has left memory since
        return ServiceProblemError(503, "store", "the decision was stored a moment ago: send the outcome again")
    return internal_problem(error, path=path)


def _hand_over(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *values: Any) -> None:
    """Call something in the loop's thread; when the loop has ended meanwhile there is nobody to answer any more."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, *values)
