"""The hot_path: decisions and outcomes are asked for here, done at once, and answered when they are durable.

Nobody blocks for that, and no task waits for it either: an answer is owed until a commit covers it, and whoever learns of the
commit calls `settle`, which gives out all answers that are due.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from thrifty.router import Decision, Router
from thrifty.router.decision import fallbacks_of, say_why
from thrifty.service.errors import ServiceProblemError
from thrifty.service.messages import (
    DecisionAnswer,
    DecisionRequest,
    Estimate,
    OutcomeAnswer,
    OutcomeRequest,
    ReasonBody,
    decoded,
)
from thrifty.service.routers import Routers
from thrifty.store import StoreError

ROLES = {"/v1/decisions": "decide", "/v1/outcomes": "outcome"}
"""The routes of the hot_path, and what a key must be allowed to do there."""

Headers = Sequence[tuple[bytes, bytes]]
Reply = Callable[[int, bytes, Headers], None]
"""Takes the status, the body, and what headers the status asks for."""

_decisions = msgspec.json.Decoder(DecisionRequest | list[DecisionRequest])
_outcomes = msgspec.json.Decoder(OutcomeRequest | list[OutcomeRequest])
_encode = msgspec.json.Encoder().encode


class Done(NamedTuple):
    """One thing that was asked for and done: where it lies in the log of its router, and what there is to say of it."""

    router: Router
    position: int
    content: Decision | OutcomeAnswer

    def is_certain(self) -> bool:
        """Whether it may be answered: it is durable, or is going to be because the store is away."""
        return self.router.is_durable(self.position) or self.router.is_degraded(self.position)

    def answer(self) -> DecisionAnswer | OutcomeAnswer:
        """What to say."""
        if isinstance(self.content, OutcomeAnswer):
            return self.content
        self.router.finish(self.content)
        return explained(self.content)


class Batch(NamedTuple):
    """Several things, some of which could not be done."""

    parts: list[Done | ServiceProblemError]

    def is_certain(self) -> bool:
        """Whether all may be answered; the last is certain last."""
        return all(isinstance(part, ServiceProblemError) or part.is_certain() for part in reversed(self.parts))

    def answer(self) -> list[Any]:
        """What to say."""
        return [part.to_dict() if isinstance(part, ServiceProblemError) else part.answer() for part in self.parts]


class HotPath:
    """Takes requests for the hot routes, whatever brought them here. For one thread, that of the loop.

    Parameters
    ----------
    routers : where the routers are
    max_batch : how many things may be asked for at once
    authorise : is given the headers of a request and a role, and raises a ServiceProblemError
    count : is told the path, the status and the seconds of every request

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
        self._owed: list[tuple[Done | Batch, str, float, Reply]] = []
        self._ways: dict[str, tuple[Any, Callable[[Any], Done]]] = {
            "/v1/decisions": (_decisions, self._decide),
            "/v1/outcomes": (_outcomes, self._record),
        }

    def take(self, path: str, headers: Headers, body: bytes, reply: Reply) -> None:
        """Do what the body of a request to one of the routes asks for; `reply` is called now, or when that is durable."""
        started = time.perf_counter()
        decoder, do = self._ways[path]
        try:
            self._authorise(headers, ROLES[path])
            asked = decoded(decoder, body)
            done = self._do_all(do, asked) if isinstance(asked, list) else do(asked)
            if not done.is_certain():
                self._owed.append((done, path, started, reply))
                return
        except (ServiceProblemError, StoreError) as error:
            self.refuse(error, path, started, reply)
            return
        self._give(done, path, started, reply)

    def settle(self) -> None:
        """Give out the answers that are due."""
        owed, self._owed = self._owed, []
        for each in owed:
            done, path, started, reply = each
            try:
                if not done.is_certain():
                    self._owed.append(each)
                    continue
            except StoreError as error:
                self.refuse(error, path, started, reply)
                continue
            self._give(done, path, started, reply)

    def refuse(self, error: ServiceProblemError | StoreError, path: str, started: float, reply: Reply) -> None:
        """Answer that it cannot be done."""
        problem = error if isinstance(error, ServiceProblemError) else ServiceProblemError(503, "store", str(error))
        reply(problem.status, problem.body(), problem.headers())
        self._count(path, problem.status, time.perf_counter() - started)

    def _give(self, done: Done | Batch, path: str, started: float, reply: Reply) -> None:
        reply(200, _encode(done.answer()), ())
        self._count(path, 200, time.perf_counter() - started)

    def _do_all(self, do: Callable[[Any], Done], asked: list[Any]) -> Batch:
        if not 1 <= len(asked) <= self._max_batch:
            raise ServiceProblemError(422, "size", f"a batch must have 1 to {self._max_batch} items, got {len(asked)}")
        parts: list[Done | ServiceProblemError] = []
        for each in asked:
            try:
                parts.append(do(each))
            except ServiceProblemError as problem:
                parts.append(problem)
        return Batch(parts)

    def _decide(self, asked: DecisionRequest) -> Done:
        router = self._routers.router(asked.router)
        eligible = None if asked.eligible is None else {arm.arm: arm.cost for arm in asked.eligible}
        try:
            decision = router.decide_soon(asked.segment, eligible=eligible, request_id=asked.request_id, context=asked.context)
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from None
        return Done(router, decision.position, decision)

    def _record(self, told: OutcomeRequest) -> Done:
        if (told.decision_id is None) == (told.reference is None or told.router is None):
            raise ServiceProblemError(
                422, "value", "an outcome needs a decision_id, or a router and a reference (the request_id of its decision)"
            )
        name = str(told.router) if told.decision_id is None else told.decision_id.partition(".")[0]
        router = self._routers.router(name, code="decision")
        try:
            decision_id = told.decision_id if told.decision_id is not None else router.id_of(str(told.reference))
            result, position = router.record_soon(
                decision_id, told.reward, status=told.status, cost=told.cost, arm=told.arm, occurred_at=told.occurred_at
            )
        except KeyError as error:
            raise ServiceProblemError(404, "decision", str(error.args[0])) from None
        except ValueError as error:
            raise ServiceProblemError(422, "value", str(error)) from None
        return Done(router, position, OutcomeAnswer(decision_id, result))  # type: ignore[arg-type]


def explained(decision: Decision) -> DecisionAnswer:
    """A decision as it goes over the wire."""
    known, code = decision.known, decision.code
    floor, best, saving = known.floor, known.best_arm, known.saving
    estimates = [
        Estimate(arm, mean if outcomes else None, int(outcomes), cost, mean >= floor)
        for arm, mean, outcomes, cost in zip(known.arms, known.means, known.outcomes, known.costs, strict=True)
    ]
    why = say_why(code, best, floor, saving, decision.decided_by)
    return DecisionAnswer(
        decision.id, decision.arm, fallbacks_of(known, decision.arm), decision.propensity, decision.explored,
        ReasonBody(code, best, floor, estimates, saving, why), decision.version, decision.repeated, decision.degraded,
    )  # fmt: skip
