"""Both clients against servers that answer badly, late or not at all."""

import contextlib
import logging
import pickle
import time
from email.utils import formatdate
from typing import Any

import pytest

from tests.client.conftest import Make
from tests.client.servers import Behaviour, Server, closed_port, dribble, half, half_then_hang, hang, reply, reset
from thrifty.client import (
    KeyRefusedError,
    NotFoundError,
    RateLimitedError,
    RequestRefusedError,
    ServiceError,
    ServiceUnavailableError,
)

DOWN = f"http://127.0.0.1:{closed_port()}"
KEY = "thrifty_secret-key"


@pytest.mark.parametrize("fault", [reset, half, reply(503), reply(502), reply(500), reply(200, b"<html>")])
def test_a_decision_is_retried_with_the_same_request_id(make: Make, server: Server, fault: Behaviour) -> None:
    server.script = [fault, fault]
    with make(server.url) as client:
        choice = client.decide("sms", "DE")
    assert (choice.arm, choice.decision_id, choice.local) == ("b", "sms.0.1", False)
    assert len(server.received) == 3
    assert {each.body["request_id"] for each in server.received} == {choice.request_id}


@pytest.mark.parametrize("fault", [hang, half_then_hang, dribble])
def test_a_server_that_does_not_finish_is_given_up_in_time(make: Make, server: Server, fault: Behaviour) -> None:
    server.default = fault
    with make(server.url, timeout_s=0.3) as client:
        started = time.monotonic()
        with pytest.raises(ServiceUnavailableError, match="no answer in 1 try"):
            client.record("sms.0.1", 1.0)
        assert 0.25 < time.monotonic() - started < 1.0


@pytest.mark.parametrize("fault", [hang, half_then_hang, dribble, reset, half, reply(503, retry_after="1")])
def test_a_decision_falls_back_within_its_budget(make: Make, server: Server, fault: Behaviour) -> None:
    server.default = fault
    with make(server.url, fallback={"a": 0.2, "b": 0.1}, decide_budget_s=0.2) as client:
        started = time.monotonic()
        choice = client.decide("sms")
        assert time.monotonic() - started < 0.3
    assert (choice.arm, choice.local, choice.decision_id) == ("b", True, None)


def test_everything_idempotent_is_retried_and_changes_are_not(make: Make, server: Server) -> None:
    def sent(fault: Behaviour, name: str, *args: object) -> int:
        server.script, before = [fault], len(server.received)
        with make(server.url, timeout_s=5) as client, contextlib.suppress(ServiceUnavailableError):
            getattr(client, name)(*args)
        return len(server.received) - before

    server.default = reply(200, {"result": "recorded", "routers": [], "key": "k", "segments": [], "all": {}, "keys": []})
    idempotent: list[tuple[Any, ...]] = [
        ("record", "sms.0.1", 1.0),
        ("put_router", "sms", {"a": 0.1}, 0.05),
        ("router", "sms"),
        ("routers",),
        ("delete_router", "sms"),
        ("segments", "sms"),
        ("explain", "sms"),
        ("keys",),
        ("revoke_keys", "ann"),
        ("metrics",),
    ]
    assert [sent(fault, *call) for call in idempotent for fault in (reset, reply(503))] == [2] * 20
    once = [("change", "sms", "pause", "a"), ("add_key", "ann")]
    assert [sent(fault, *call) for call in once for fault in (reset, half, reply(503))] == [1] * 6


def test_a_change_that_may_have_been_carried_out_says_so(make: Make, server: Server) -> None:
    server.default = half
    with (
        make(server.url) as client,
        pytest.raises(ServiceUnavailableError, match="may have been carried out: look") as error,
    ):
        client.change("sms", "pause", "a")
    assert error.value.sent


def test_a_change_is_retried_when_the_connection_was_refused(make: Make) -> None:
    with make(DOWN, retries=2) as client:
        with pytest.raises(ServiceUnavailableError, match=r"no answer in 3 tries \(ConnectError") as error:
            client.change("sms", "pause", "a")
        assert not error.value.sent


def test_probes_are_sent_once_whatever_the_breaker_says(make: Make, server: Server) -> None:
    server.default = reply(503, {"error": {"code": "store", "message": "not started"}})
    with make(server.url, breaker_failures=1, breaker_cooldown_s=60, retries=0) as client:
        with pytest.raises(ServiceUnavailableError):
            client.routers()
        for probe in (client.ready, client.health):
            with pytest.raises(ServiceUnavailableError, match="503 store: not started"):
                probe()
        server.default = reply(200, b"ready\n")
        assert client.ready() == "ready"
        with pytest.raises(ServiceUnavailableError, match="not called, because the last 1 calls failed"):
            client.routers()
    assert len(server.received) == 4


def test_deleting_again_after_a_lost_answer_is_a_success(make: Make, server: Server) -> None:
    server.script = [reset, reply(404)]
    with make(server.url) as client:
        assert client.delete_router("sms") is None
        server.script = [reply(404)]
        with pytest.raises(NotFoundError):
            client.delete_router("sms")


@pytest.mark.parametrize("as_date", [False, True])
@pytest.mark.parametrize("status", [503, 429])
def test_retry_after_is_honoured(make: Make, server: Server, status: int, as_date: bool) -> None:
    at = time.time() + 2
    server.script = [reply(status, retry_after=formatdate(at, usegmt=True) if as_date else "1")]
    with make(server.url, timeout_s=5) as client:
        assert client.decide("sms").arm == "b"
    waited = server.times[1] - server.times[0]
    assert 0.99 <= waited < 2.5
    if as_date:
        assert time.time() >= int(at)


def test_retry_after_beyond_the_budget_is_not_waited_for(make: Make, server: Server) -> None:
    server.default = reply(503, retry_after="60")
    with make(server.url) as client:
        started = time.monotonic()
        with pytest.raises(ServiceUnavailableError) as error:
            client.decide("sms")
        assert error.value.retry_after_s == 60.0
        assert time.monotonic() - started < 1.0
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRefusedError),
        (401, KeyRefusedError),
        (403, KeyRefusedError),
        (404, NotFoundError),
        (413, RequestRefusedError),
        (422, RequestRefusedError),
        (429, RateLimitedError),
        (302, RequestRefusedError),
        (503, ServiceUnavailableError),
    ],
)
def test_errors_name_the_url_the_status_the_code_and_a_remedy(make: Make, server: Server, status: int, kind: type) -> None:
    server.default = reply(status)
    with make(server.url, retries=0) as client, pytest.raises(ServiceError) as caught:
        client.record("sms.0.1", 1.0)
    error = caught.value
    assert type(error) is kind
    assert (error.url, error.status, error.code, error.message) == (f"POST {server.url}/v1/outcomes", status, "code", "not so")
    assert error.remedy
    assert str(error) == f"POST {server.url}/v1/outcomes: {status} code: not so; {error.remedy}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_key_is_sent_and_is_in_no_error_log_or_repr(make: Make, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [
        reply(),
        reset,
        reply(503, {"error": {"code": "x", "message": f"you sent Bearer {KEY}"}}),
        reply(401, f"Authorization: Bearer {KEY}".encode()),
        reply(200, f'"{KEY}'.encode()),
        hang,
        reset,
    ]
    texts = []
    with make(server.url, KEY, retries=0, timeout_s=0.3, breaker_failures=3) as client:
        client.decide("sms")
        for _ in range(8):
            try:
                client.record("sms.0.1", 1.0)
            except ServiceError as error:
                texts += [str(error), repr(error), error.message]
        texts.append(repr(client.client))
    assert all(each.headers["authorization"] == f"Bearer {KEY}" for each in server.received)
    assert len(server.received) == 7
    assert len(texts) == 25
    assert "[key]" in "".join(texts)
    assert KEY not in "".join(texts) + caplog.text
    assert "calls in a row failed" in caplog.text


def test_every_request_has_the_json_content_type(make: Make, server: Server) -> None:
    server.default = reply(200, {"routers": [], "result": "recorded", "key": "k", "keys": [{"name": "ann", "role": "decide"}]})
    with make(server.url) as client:
        client.routers()
        client.record("sms.0.1", 1.0)
        assert client.add_key("ann", "decide") == "k"
        assert client.add_key("ann", days=2.5) == "k"
        assert client.keys() == [{"name": "ann", "role": "decide"}]
        assert client.revoke_keys("a b/c") is None
    assert {each.headers["content-type"] for each in server.received} == {"application/json"}
    assert [(each.method, each.path, each.body) for each in server.received[2:]] == [
        ("POST", "/v1/keys", {"name": "ann", "role": "decide"}),
        ("POST", "/v1/keys", {"name": "ann", "role": "decide,outcome", "days": 2.5}),
        ("GET", "/v1/keys", None),
        ("DELETE", "/v1/keys/a%20b%2Fc", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("localhost:8321",), {}, "url must be http://HOST:PORT"),
        (("http://ann:pw@h",), {}, "pass the key as `key`"),
        (("http://h", f"{KEY}\n"), {}, "key must consist of printable"),
        (("http://h",), {"timeout_s": 0}, "timeout_s must be a number above 0, got 0"),
        (("http://h",), {"decide_budget_s": float("nan")}, "decide_budget_s must be"),
        (("http://h",), {"retries": -1}, "retries must be a whole number of at least 0, got -1"),
        (("http://h",), {"breaker_failures": 0}, "breaker_failures must be a whole number of at least 1, got 0"),
        (("http://h",), {"fallback": {"a": -1.0}}, "got -1.0 for 'a'"),
    ],
)
def test_wrong_options_are_refused_without_showing_the_key(
    make: Make, arguments: tuple[str, ...], options: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        make(*arguments, **options)
    assert KEY not in str(error.value)
    assert "pw" not in str(error.value)
