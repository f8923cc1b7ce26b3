"""Fallback and circuit breaker of both clients."""

import asyncio
import threading
import time

import pytest

from tests.client.conftest import Make
from tests.client.servers import ANSWER, Behaviour, Server, closed_port, hang, reply
from thrifty.client import (
    AsyncClient,
    RequestRefusedError,
    ServiceUnavailableError,
)

DOWN = f"http://127.0.0.1:{closed_port()}"


def test_what_the_service_refuses_is_neither_retried_nor_decided_locally(make: Make, server: Server) -> None:
    server.default = reply(422)
    with make(server.url, fallback={"a": 0.1}, decide_budget_s=2) as client, pytest.raises(RequestRefusedError):
        client.decide("sms")
    assert len(server.received) == 1


def test_a_rate_limit_is_fallen_back_from_and_does_not_open_the_breaker(make: Make, server: Server) -> None:
    server.default = reply(429, retry_after="60")
    with make(server.url, fallback={"a": 0.1}, decide_budget_s=2, breaker_failures=1) as client:
        assert client.decide("sms").local
        assert client.decide("sms").local
    assert len(server.received) == 2


def test_the_fallback_is_the_last_known_good_arm_of_the_nearest_segment_else_the_cheapest(make: Make, server: Server) -> None:
    def chosen(arm: str, code: str) -> Behaviour:
        return reply(200, {**ANSWER, "arm": arm, "reason": {"code": code}})

    with make(server.url, fallback={"a": 0.1, "b": 0.2, "c": 0.3}, decide_budget_s=2, retries=0, breaker_failures=100) as client:
        server.script = [chosen("b", "exploit"), chosen("c", "explore"), chosen("c", "exploit")]
        client.decide("sms", "DE")
        client.decide("sms", "DE")
        client.decide("sms", "DE/vodafone", eligible={"c": None, "b": None})
        server.default = reply(503)
        assert client.decide("sms", "DE").arm == "b"
        assert client.decide("sms", "DE/vodafone").arm == "b"
        assert client.decide("sms", "DE/vodafone/x").arm == "b"
        assert client.decide("sms", "DE/vodafone", eligible={"b": None, "c": None}).arm == "c"
        assert client.decide("sms", "DE", eligible={"c": None}).arm == "c"
        assert client.decide("sms", "FR").arm == "a"
        assert client.decide("sms", "FR", eligible={"a": 0.4, "b": None}).arm == "b"
        assert client.decide("mail", "DE").arm == "a"
        with pytest.raises(ServiceUnavailableError):
            client.decide("sms", "FR", eligible={"d": 0.1})
        one, two = client.decide_many([{"router": "sms", "segment": "DE"}, {"router": "sms", "eligible": {"d": None}}])
        assert (one.arm, one.local) == ("b", True)
        assert isinstance(two, ServiceUnavailableError)


def test_without_a_fallback_an_unreachable_service_is_an_error(make: Make) -> None:
    with make(DOWN, retries=1) as client, pytest.raises(ServiceUnavailableError, match="no answer in 2 tries") as error:
        client.decide("sms")
    assert f"POST {DOWN}/v1/decisions" in str(error.value)


def test_the_breaker_opens_fails_at_once_and_closes_with_one_trial(make: Make, server: Server) -> None:
    server.default = reply(503)
    with make(server.url, retries=0, breaker_failures=3, breaker_cooldown_s=0.3) as client:
        for _ in range(3):
            with pytest.raises(ServiceUnavailableError, match="503"):
                client.decide("sms")
        for _ in range(5):
            with pytest.raises(ServiceUnavailableError, match="not called, because the last 3 calls failed"):
                client.decide("sms")
        assert len(server.received) == 3
        assert "breaker open" in repr(client.client)
        time.sleep(0.35)
        with pytest.raises(ServiceUnavailableError, match="503"):
            client.decide("sms")
        with pytest.raises(ServiceUnavailableError, match="not called"):
            client.decide("sms")
        server.default = reply()
        time.sleep(0.35)
        assert client.decide("sms").arm == "b"
        assert "breaker closed" in repr(client.client)


def test_a_cancelled_trial_lets_another_call_try(server: Server) -> None:
    async def play() -> None:
        async with AsyncClient(server.url, retries=0, breaker_failures=1, breaker_cooldown_s=0.05) as client:
            server.default = reply(503)
            with pytest.raises(ServiceUnavailableError):
                await client.decide("sms")
            await asyncio.sleep(0.06)
            server.default = hang
            trial = asyncio.create_task(client.decide("sms"))
            await asyncio.sleep(0.1)
            with pytest.raises(ServiceUnavailableError, match="not called"):
                await client.decide("sms")
            trial.cancel()
            with pytest.raises(asyncio.CancelledError):
                await trial
            server.default = reply()
            assert (await client.decide("sms")).arm == "b"

    asyncio.run(play())


def test_one_thread_at_a_time_tries_after_the_cool_down(make: Make, server: Server) -> None:
    server.default = reply(503)
    with make(server.url, retries=0, breaker_failures=1, breaker_cooldown_s=0.05) as client:
        with pytest.raises(ServiceUnavailableError):
            client.decide("sms")
        time.sleep(0.06)
        breaker, admitted = client.client._exchange.breaker, []
        threads = [threading.Thread(target=lambda: admitted.append(breaker.admit())) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(each is not None for each in admitted) == 1


def test_a_quarantined_router_is_not_asked_again_and_does_not_open_the_breaker(make: Make, server: Server) -> None:
    server.default = reply(503, {"error": {"code": "quarantined", "message": "row 7 cannot be applied"}}, retry_after="1")
    with make(server.url, fallback={"a": 0.1}, decide_budget_s=2, breaker_failures=1) as client:
        assert client.decide("broken").local
        assert len(server.received) == 1
        server.default = reply()
        assert not client.decide("sms").local


def test_items_of_a_batch_that_the_service_cannot_decide_now_are_decided_locally(make: Make, server: Server) -> None:
    broken = {"error": {"code": "quarantined", "message": "row 7 cannot be applied"}}
    server.default = reply(200, [ANSWER, broken, {"error": {"code": "value", "message": "no"}}])
    with make(server.url, fallback={"a": 0.1}, decide_budget_s=2) as client:
        one, two, three = client.decide_many([{"router": "sms"}, {"router": "broken"}, {"router": "sms", "segment": "?"}])
    assert (one.arm, one.local, two.arm, two.local) == ("b", False, "a", True)
    assert type(three) is RequestRefusedError
    assert three.status == 422


def test_an_answer_with_too_few_results_is_an_error(make: Make, server: Server) -> None:
    server.default = reply(200, [ANSWER])
    with make(server.url, retries=0) as client:
        with pytest.raises(ServiceUnavailableError, match="the answer cannot be read"):
            client.decide_many([{"router": "sms"}] * 2)
        server.default = reply(200, [{"result": "recorded"}])
        with pytest.raises(ServiceUnavailableError, match="1 results for 2 outcomes"):
            client.record_many([{"decision_id": "sms.0.1", "reward": 1.0}] * 2)
