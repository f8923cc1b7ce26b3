"""How long `decide` takes when the service is down or hung: below 50 ms, with a fallback."""

import time

import pytest

from tests.client.conftest import Make
from tests.client.servers import Behaviour, Server, closed_port, dribble, hang

CALLS = 200


def seconds_of_decisions(make: Make, url: str, **options: float) -> list[float]:
    """Sorted seconds of so many decisions, all of them local."""
    taken = []
    with make(url, fallback={"a": 0.2, "b": 0.1}, **options) as client:
        for _ in range(CALLS):
            started = time.perf_counter()
            choice = client.decide("sms", "DE/vodafone")
            taken.append(time.perf_counter() - started)
            assert choice.local
    return sorted(taken)


def test_a_decision_takes_less_than_50_ms_when_the_service_is_down(make: Make) -> None:
    assert seconds_of_decisions(make, f"http://127.0.0.1:{closed_port()}")[int(0.95 * CALLS)] < 0.05


@pytest.mark.parametrize("fault", [hang, dribble])
def test_a_decision_takes_less_than_50_ms_when_the_service_is_hung(make: Make, server: Server, fault: Behaviour) -> None:
    server.default = fault
    taken = seconds_of_decisions(make, server.url)
    assert taken[int(0.95 * CALLS)] < 0.05
    assert len(server.received) == 5, "the breaker opened after five calls"


def test_a_decision_takes_about_50_ms_when_the_service_is_hung_and_the_breaker_is_not_open(make: Make, server: Server) -> None:
    server.default = hang
    with make(server.url, fallback={"a": 0.1}, breaker_failures=1000) as client:
        taken = []
        for _ in range(40):
            started = time.perf_counter()
            assert client.decide("sms").local
            taken.append(time.perf_counter() - started)
    assert sorted(taken)[30] < 0.06
