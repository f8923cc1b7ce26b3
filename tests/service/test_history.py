"""The history over HTTP."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.test_http import SMS, Caller, running


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Caller]:
    with running(tmp_path) as client:
        client.put("/v1/routers/sms", json=SMS)
        yield client


def decide(service: Caller, segment: str, reward: float | None = None) -> str:
    decided = service.post("/v1/decisions", json={"router": "sms", "segment": segment}).json()
    if reward is not None:
        service.post("/v1/outcomes", json={"decision_id": decided["decision_id"], "reward": reward, "cost": 0.5})
    return str(decided["decision_id"])


def test_the_history_has_what_was_acknowledged_at_once(service: Caller) -> None:
    for reward in (1.0, 0.0, 0.25, None):
        decide(service, "DE/x", reward)
    for step in ("minute", "hour", "day"):
        shown = service.get("/v1/routers/sms/history", params={"step": step, "by": "", "until": time.time() + 60}).json()
        sums = [sum(row[name] for row in shown["rows"]) for name in ("decisions", "outcomes", "rewards", "costs")]
        assert sums == [4, 3, 1.25, 1.5]
        assert (shown["router"], shown["step"]) == ("sms", step)
        assert shown["upto"] > 0
        assert all(row["at"] % 60 == 0 for row in shown["rows"])


def test_a_segment_includes_those_below_it_and_fields_are_kept_apart(service: Caller) -> None:
    for segment in ("DE", "DE/x", "DE0", "DEU", "FR"):
        decide(service, segment)
    asked = {"by": "segment,group", "segment": "DE", "until": str(time.time() + 60)}
    rows = service.get("/v1/routers/sms/history", params=asked).json()["rows"]
    assert {(row["segment"], row["group"], row["decisions"]) for row in rows} == {("DE", "routed", 1), ("DE/x", "routed", 1)}
    both = service.get("/v1/routers/sms/history", params={**asked, "by": "group"}).json()["rows"]
    assert sum(row["decisions"] for row in both) == 2


def test_a_later_correction_changes_the_cell_of_its_decision(service: Caller) -> None:
    decided = decide(service, "DE", 1.0)
    service.post("/v1/outcomes", json={"decision_id": decided, "reward": 0.25, "cost": 2.0})
    (row,) = service.get("/v1/routers/sms/history", params={"by": "", "step": "day", "until": time.time() + 60}).json()["rows"]
    assert (row["decisions"], row["outcomes"], row["rewards"], row["costs"]) == (1, 1, 0.25, 2.0)
    service.post("/v1/outcomes", json={"decision_id": decided, "status": "void"})
    (row,) = service.get("/v1/routers/sms/history", params={"by": "", "step": "day", "until": time.time() + 60}).json()["rows"]
    assert (row["decisions"], row["outcomes"], row["rewards"], row["costs"]) == (1, 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"step": "week"}, "step must be one of day, hour, minute, got 'week'"),
        ({"since": "yesterday"}, "since must be a number, got 'yesterday'"),
        ({"since": "nan"}, "since must be a number"),
        ({"until": "1e300"}, "until"),
        ({"since": "7", "until": "7"}, "since must be before until"),
        ({"by": "arm,colour"}, "by must be one of arm, group, segment, got 'colour'"),
        ({"segment": "DE//x"}, "segment must be a path"),
        ({"segment": "a\x00b"}, "segment"),
        ({"colour": "red"}, "there is no parameter 'colour'"),
    ],
)
def test_wrong_parameters_are_named(service: Caller, asked: dict[str, str], said: str) -> None:
    answer = service.get("/v1/routers/sms/history", params=asked)
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]


def test_a_parameter_that_is_given_twice_is_refused(service: Caller) -> None:
    answer = service.get("/v1/routers/sms/history", params=[("step", "minute"), ("step", "hour")])
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "the parameter 'step' must be given once"


def test_a_router_that_is_not_there_has_no_history(service: Caller) -> None:
    assert service.get("/v1/routers/nobody/history").status_code == 404


def test_too_many_rows_are_refused_with_the_remedy(service: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thrifty.store.history.MOST_ROWS", 2)
    for segment in "abc":
        decide(service, segment)
    answer = service.get("/v1/routers/sms/history", params={"by": "segment", "until": str(time.time() + 60)})
    assert answer.status_code == 422
    assert "ask for a shorter time" in answer.json()["error"]["message"]
