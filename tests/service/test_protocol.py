"""The short way of the hot routes, and when it is not taken: what a client gets must not depend on it."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.test_http import SMS, Caller, running

ASKED = json.dumps({"router": "sms", "segment": "DE"}).encode()
POST = b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
PLAIN = POST + b"content-length: %d\r\n\r\n%s" % (len(ASKED), ASKED)
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(ASKED), ASKED)
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running(tmp_path_factory.mktemp("protocol")) as client:
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        yield client


def connect(client: Caller) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=20)


def answers(connection: socket.socket, count: int) -> list[tuple[int, dict[bytes, bytes], bytes]]:
    """That many responses, in the order in which they come."""
    found: list[tuple[int, dict[bytes, bytes], bytes]] = []
    data = b""
    while len(found) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        headers = {name.lower(): value for name, value in re.findall(rb"\r\n([^:]+): ([^\r]*)", head)}
        length = int(headers.get(b"content-length", b"0"))
        if end and len(rest) >= length:
            found.append((int(head.split()[1]), headers, rest[:length]))
            data = rest[length:]
        else:
            more = connection.recv(65536)
            assert more, f"the connection ended after {found} and {data!r}"
            data += more
    return found


def said(answer: tuple[int, Any, bytes]) -> Any:
    assert answer[0] == 200, answer
    return json.loads(answer[2])


def test_both_ways_give_the_same_answer(client: Caller) -> None:
    with connect(client) as connection:
        connection.sendall(PLAIN)
        (short,) = answers(connection, 1)
        connection.sendall(CHUNKED)
        (long,) = answers(connection, 1)
    assert short[1] == {**long[1], b"content-length": b"%d" % len(short[2])}
    assert said(short).keys() == said(long).keys()
    assert said(short)["decision_id"] != said(long)["decision_id"]


@pytest.mark.parametrize("sent", [[PLAIN] * 5, [PLAIN, HEALTH, PLAIN], [CHUNKED, PLAIN], [PLAIN, CHUNKED, HEALTH]])
def test_requests_in_one_packet_are_answered_in_order(client: Caller, sent: list[bytes]) -> None:
    with connect(client) as connection:
        connection.sendall(b"".join(sent))
        got = answers(connection, len(sent))
    assert [answer[2] == b"ok\n" for answer in got] == [request == HEALTH for request in sent]
    numbers = [int(said(each)["decision_id"].rpartition(".")[2], 16) for each in got if each[2] != b"ok\n"]
    assert numbers == sorted(numbers)


def test_a_request_in_single_bytes(client: Caller) -> None:
    with connect(client) as connection:
        for byte in PLAIN:
            connection.sendall(bytes([byte]))
        assert said(answers(connection, 1)[0])["arm"] in ("a", "b")


@pytest.mark.parametrize("asks", [b"HTTP/1.0\r\n", b"HTTP/1.1\r\nconnection: close\r\n"])
def test_a_connection_that_shall_end_does(client: Caller, asks: bytes) -> None:
    with connect(client) as connection:
        connection.sendall(PLAIN.replace(b"HTTP/1.1\r\n", asks))
        answer = answers(connection, 1)[0]
        assert said(answer)["arm"] in ("a", "b")
        assert answer[1][b"connection"] == b"close"
        assert connection.recv(1) == b""


def test_expect_continue_and_bodies_that_are_too_long(client: Caller) -> None:
    with connect(client) as connection:
        connection.sendall(PLAIN.replace(b"host: localhost", b"host: localhost\r\nexpect: 100-continue"))
        assert b"100 Continue" in connection.recv(25)
    with connect(client) as connection:
        limit = client.app.config.max_body
        connection.sendall(POST + b"content-length: %d\r\n\r\n" % (limit + 1))
        assert answers(connection, 1)[0][0] == 413


def test_a_client_that_leaves_without_waiting_harms_nobody(client: Caller) -> None:
    for _ in range(20):
        with connect(client) as connection:
            connection.sendall(PLAIN * 3)
    assert client.post("/v1/decisions", content=ASKED).status_code == 200
    counts = client.get("/metrics").text
    assert re.search(r'thrifty_requests_total\{route="/v1/decisions",status="200"\} \d+', counts)


def test_keys_are_asked_for_on_the_short_way(tmp_path: Path) -> None:
    with running(tmp_path, keys={"k-decide": "decide", "k-outcome": "outcome"}) as client:
        for key, status in (("k-decide", 404), ("k-outcome", 403), ("wrong", 401)):
            answer = client.post("/v1/decisions", content=ASKED, headers={"authorization": f"Bearer {key}"})
            assert answer.status_code == status, answer.text
        assert client.post("/v1/decisions", content=ASKED).headers["www-authenticate"] == "Bearer"


def test_an_idle_connection_ends_and_a_busy_one_does_not(client: Caller) -> None:
    # uvicorn's five seconds: the first connection asks every second, the second asks once.
    with connect(client) as busy, connect(client) as idle:
        for connection in (busy, idle):
            connection.sendall(PLAIN)
            answers(connection, 1)
        for _ in range(8):
            time.sleep(0.9)
            busy.sendall(PLAIN)
            assert said(answers(busy, 1)[0])["arm"] in ("a", "b")
        idle.settimeout(0.1)
        assert idle.recv(1) == b""
