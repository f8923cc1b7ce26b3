import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.service.receivers import SECRET, Receiver
from thrifty.service.webhook import Webhook, checked_target, verified


@pytest.fixture
def receive() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def start(*answers: Any) -> Receiver:
        made.append(Receiver(*answers))
        return made[-1]

    yield start
    for each in made:
        each.close()


def test_a_message_is_signed_so_that_the_receiver_can_check_it(receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    assert Webhook(receiver.url, SECRET).post({"event": "test"}, "7-test") is None
    ((headers, body),) = receiver.got
    assert json.loads(body) == {"event": "test"}
    assert headers["x-thrifty-delivery"] == "7-test"
    signature = headers["x-thrifty-signature"]
    assert verified(SECRET, body, signature, now=time.time())
    assert not verified(SECRET, body, signature, now=time.time() + 600)
    assert not verified("another secret entirely", body, signature, now=time.time())
    assert not verified(SECRET, body + b" ", signature, now=time.time())


@pytest.mark.parametrize(
    "signature", ["", "t=", "t=1", "v1=0", "t=1,v1=", "t=x,v1=0", "t=1,t=2,v1=0", "t=" + "9" * 5000 + ",v1=0", "t=1,v1=\u00e9"]
)
def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    assert not verified(SECRET, b"{}", signature, now=1.0)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (500, "status 500"),
        (404, "status 404"),
        (302, "status 302: redirects are not followed, correct alert_url"),
        (308, "status 308: redirects are not followed, correct alert_url"),
        ("hang", "no answer within 0.4 s"),
        ("drip", "no answer within 0.4 s"),
        ("flood", None),  # the status is enough; the body is not read
    ],
)
def test_the_answer_is_bounded_and_nothing_but_2xx_confirms(
    receive: Callable[..., Receiver], answer: Any, problem: str | None
) -> None:
    receiver, started = receive(answer), time.monotonic()
    assert Webhook(receiver.url, SECRET, seconds=0.4).post({}, "1") == problem
    assert time.monotonic() - started < 5
    assert len(receiver.got) == 1  # a redirect is not followed


def test_a_port_where_nobody_listens_is_a_problem_without_the_address(receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    receiver.close()
    assert Webhook(receiver.url, SECRET, seconds=2).post({}, "1") == "no answer: ConnectError"


def test_neither_address_nor_secret_is_logged(receive: Callable[..., Receiver], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for answer in (200, 500, 302, "hang"):
        Webhook(receive(answer).url, SECRET, seconds=0.3).post({}, "1")
    assert SECRET not in caplog.text
    assert "hook-with-a-token" not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "ops.internal",
        "ftp://ops.example/",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "http://ops.example:0/",
        "http://ops.example:99999/",
        "http://ann:word@ops.example/",
        "http://ops.example/a b",
        "http://ops.example/\n",
        "http://[::1/",
        "javascript:alert(1)",
        "http://\u00e9.example/",
    ],
)
def test_an_address_that_cannot_be_one_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ValueError, match="alert_url must be an address") as error:
        checked_target(url, SECRET)
    assert url not in str(error.value)


def test_a_secret_that_is_missing_or_short_is_refused_without_being_shown() -> None:
    with pytest.raises(ValueError, match="alert_secret, of at least 16") as error:
        checked_target("https://ops.example/hook", "short-one")
    assert "short-one" not in str(error.value)
