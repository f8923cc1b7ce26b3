"""Both clients against a real service."""

import inspect
import threading
import time

import pytest

from tests.client.conftest import Make
from tests.service.conftest import Service
from thrifty.client import (
    AsyncClient,
    Choice,
    Client,
    LocalChoiceError,
    NotFoundError,
    RequestRefusedError,
    ServiceError,
    ServiceUnavailableError,
    admin_calls,
    calls,
)


def test_both_clients_have_the_same_methods_with_the_same_signatures() -> None:
    def public(kind: type) -> dict[str, str]:
        return {
            name: str(inspect.signature(member)) for name, member in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"
        }

    assert public(Client) == public(AsyncClient)
    assert inspect.signature(Client) == inspect.signature(AsyncClient)
    described = {
        name
        for room in (calls, admin_calls)
        for name, member in inspect.getmembers(room, inspect.isfunction)
        if member.__module__ == room.__name__
    }
    assert {name for name in described if name[0] != "_"} | {"close"} == set(public(Client))
    assert all(inspect.iscoroutinefunction(getattr(AsyncClient, name)) for name in public(AsyncClient))
    assert all(getattr(Client, name).__doc__ for name in public(Client))
    assert "-> thrifty.client.choice.Choice" in public(Client)["decide"]


def test_decide_and_record(make: Make, service: Service) -> None:
    with make(service.url) as client:
        choice = client.decide("sms", "DE/vodafone", context={"hour": 3})
        assert isinstance(choice, Choice)
        assert choice.arm in ("a", "b")
        assert (choice.local, choice.repeated, choice.degraded) == (False, False, False)
        assert choice.reason["text"]
        assert client.record(choice.decision_id, 1.0) == "recorded"
        assert client.record(choice.decision_id, 1.0) == "duplicate"
        assert client.record(choice.decision_id, status="failure", cost=0.01, arm="a", occurred_at=time.time()) == "corrected"


def test_a_request_id_is_decided_once_and_names_the_decision_of_an_outcome(make: Make, service: Service) -> None:
    with make(service.url) as client:
        request_id = f"{type(client.client).__name__}-1"
        first, second = client.decide("sms", request_id=request_id), client.decide("sms", request_id=request_id)
        assert first.decision_id == second.decision_id
        assert (first.repeated, second.repeated) == (False, True)
        assert client.record(router="sms", request_id=first.request_id, reward=0.5) == "recorded"
        assert client.record(second.decision_id, 0.5) == "duplicate"


def test_eligible_arms(make: Make, service: Service) -> None:
    with make(service.url) as client:
        assert client.decide("sms", eligible={"a": None}).arm == "a"
        with pytest.raises(RequestRefusedError) as refused:
            client.decide("sms", eligible={"nowhere": 0.1})
        assert (refused.value.status, refused.value.code) == (422, "value")
        assert "nowhere" in refused.value.message


def test_batches_have_a_result_or_an_error_for_each_item(make: Make, service: Service) -> None:
    with make(service.url) as client:
        one, two, three = client.decide_many([{"router": "sms", "segment": "FR"}, {"router": "nowhere"}, {"router": "sms"}])
        assert isinstance(two, NotFoundError)
        assert (two.status, two.code) == (404, "router")
        outcomes = [
            {"decision_id": one.decision_id, "status": "success"},
            {"decision_id": None, "reward": 1.0},
            {"decision_id": "sms.0.ffffff", "reward": 1.0},
            {"router": "sms", "request_id": three.request_id, "reward": 0.0},
        ]
        results = client.record_many(outcomes)
        assert results[0::3] == ["recorded", "recorded"]
        assert isinstance(results[1], LocalChoiceError)
        assert isinstance(results[2], NotFoundError)


def test_routers_arms_and_segments(make: Make, service: Service) -> None:
    name = "made"
    with make(service.url) as client:
        client.put_router(name, {"a": 0.2, "b": 0.1}, 0.05, policy="cs-ucb")
        assert name in client.routers()
        assert client.router(name)["alpha"] == 0.05
        assert client.change(name, "add", "c/d e:f", price=0.05)["arms"]["c/d e:f"]["price"] == 0.05
        assert client.change(name, "price", "a", price=0.3)["arms"]["a"]["price"] == 0.3
        assert client.change(name, "pin", "b")["pinned"] == "b"
        assert client.change(name, "unpin", "b")["pinned"] is None
        assert client.change(name, "pause", "a")["arms"]["a"]["status"] == "paused"
        assert client.change(name, "resume", "a")["arms"]["a"]["status"] == "active"
        client.change(name, "reset", "a")
        assert client.change(name, "retire", "c/d e:f")["arms"]["c/d e:f"]["status"] == "retired"
        client.decide(name, "DE/a b")
        assert client.segments(name) == ["", "DE", "DE/a b"]
        assert client.explain(name, "DE/a b")["segment"] == "DE/a b"
        assert client.explain(name)["segment"] == ""
        assert client.delete_router(name) is None
        with pytest.raises(NotFoundError, match=r"GET .*/v1/routers/made: 404 router: .*'made'.*routers\(\) lists"):
            client.router(name)
        with pytest.raises(NotFoundError):
            client.delete_router(name)
        with pytest.raises(ValueError, match=r"action must be one of add, .*, got 'paint'"):
            client.change(name, "paint", "a")


def test_health_readiness_and_metrics(make: Make, service: Service) -> None:
    with make(service.url) as client:
        assert (client.health(), client.ready()) == ("ok", "ready")
        assert "thrifty_decisions_total" in client.metrics()


def test_alerts_and_the_budget_of_a_router(make: Make, service: Service) -> None:
    with make(service.url) as client:
        client.put_router("daily", {"a": 0.5}, 0.05, daily_budget=1e6)
        before = client.budget("daily")["spent"]
        client.decide("daily")
        assert client.alerts(5) == []
        shown = client.budget("daily")
        assert (shown["budget"], shown["spent"], shown["tight"]) == (1e6, before + 0.5, False)


def test_drift_of_a_service_without_a_file(make: Make, service: Service) -> None:
    with make(service.url) as client:
        assert client.drift() == {
            "file": None,
            "reconcile": None,
            "read_at": None,
            "error": None,
            "needs_restart": [],
            "routers": [],
        }


def test_an_outcome_of_a_local_choice_is_refused(make: Make, service: Service) -> None:
    with make(service.url) as client:
        with pytest.raises(LocalChoiceError, match=r"decision_id is None.*record outcomes only if"):
            client.record(None, 1.0)
        with pytest.raises(LocalChoiceError):
            client.record_many([{"decision_id": None, "reward": 1.0}])
    assert issubclass(LocalChoiceError, ServiceError)


def test_a_closed_client_says_so(make: Make, service: Service) -> None:
    with make(service.url) as client:
        client.health()
        client.close()
        with pytest.raises(ServiceError, match="this client is closed; make a new one") as error:
            client.decide("sms")
    assert not isinstance(error.value, ServiceUnavailableError)


def test_many_threads_share_a_client(service: Service) -> None:
    ids: list[str | None] = []

    def work() -> None:
        for _ in range(20):
            choice = client.decide("sms", "threads")
            ids.append(choice.decision_id)
            client.record(str(choice.decision_id), 1.0)

    with Client(service.url) as client:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        explained = client.explain("sms", "threads")
    assert len(set(ids)) == 160
    assert sum(arm["outcomes"] for arm in explained["arms"]) == 160


def test_the_history_has_what_was_recorded(make: Make, service: Service) -> None:
    with make(service.url) as client:
        before = sum(row["decisions"] for row in client.history("sms", step="day", segment="IT")["rows"])
        client.record(client.decide("sms", "IT/tim").decision_id, 1.0)
        rows = client.history("sms", step="day", segment="IT", by=["segment", "group"])["rows"]
        assert [(row["segment"], row["group"]) for row in rows] == [("IT/tim", "routed")]
        assert (rows[0]["decisions"], rows[0]["outcomes"]) == (before + 1, before + 1)
