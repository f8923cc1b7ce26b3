"""What the service refuses before anything is done, on the hot path and through ASGI alike; and how long it waits."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.service.conftest import Service
from tests.service.test_http import SMS, Caller, running
from tests.service.test_protocol import ASKED, CHUNKED, PLAIN, POST, answers, connect

SHORT: dict[str, Any] = {"header_timeout_s": 0.5, "body_timeout_s": 0.5, "keep_alive_s": 0.5}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running(tmp_path_factory.mktemp("edge")) as client:
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        yield client


def rows(client: Caller) -> int:
    return sum(1 for _ in client.app.store.journal("sms").read(0))


HOT = ("POST", "/v1/decisions", ASKED)
ADMIN = ("POST", "/v1/routers/sms/arms/a:pause", b"{}")


@pytest.mark.parametrize(("method", "path", "body"), [HOT, ADMIN])
@pytest.mark.parametrize(
    ("headers", "status", "named"),
    [
        ({"host": "elsewhere.example"}, 421, "elsewhere.example"),
        ({"host": "localhost.elsewhere.example"}, 421, "allowed_hosts"),
        ({"host": "localhost:1@elsewhere"}, 421, "allowed_hosts"),
        ({"host": ""}, 421, "allowed_hosts"),
        ({"origin": "http://elsewhere.example"}, 403, "elsewhere.example"),
        ({"origin": "null"}, 403, "allowed_origins"),
        ({"content-type": "text/plain"}, 415, "application/json"),
        ({"content-type": "application/jsonp"}, 415, "application/json"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "application/json"),
    ],
)
def test_foreign_requests_are_refused_and_nothing_is_done(
    client: Caller, method: str, path: str, body: bytes, headers: dict[str, str], status: int, named: str
) -> None:
    before = rows(client)
    answer = client.request(method, path, content=body, headers=headers)
    assert answer.status_code == status
    assert named in answer.json()["error"]["message"]
    assert rows(client) == before


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:8321", "localhost."])
def test_the_names_of_loopback_and_json_are_served(client: Caller, host: str, content_type: str) -> None:
    for _ in range(2):  # through ASGI, and then on the hot path
        answer = client.post("/v1/decisions", content=ASKED, headers={"host": host, "content-type": content_type})
        assert answer.status_code == 200, answer.text


def test_the_origin_of_the_service_itself_is_served(client: Caller) -> None:
    port = client.base_url.port
    for origin, status in ((f"http://127.0.0.1:{port}", 200), (f"http://127.0.0.1:{port}1", 403)):
        assert client.post("/v1/decisions", content=ASKED, headers={"origin": origin}).status_code == status
        assert client.get("/v1/routers", headers={"origin": origin}).status_code == status


def test_a_body_without_a_content_type_and_two_hosts_are_refused(client: Caller) -> None:
    without = PLAIN.replace(b"content-type: application/json\r\n", b"")
    for sent, status in ((without, 415), (PLAIN.replace(b"host: localhost\r\n", b"host: localhost\r\nhost: localhost\r\n"), 400)):
        with connect(client) as connection:
            connection.sendall(sent)
            assert answers(connection, 1)[0][0] == status
    with connect(client) as connection:
        connection.sendall(PLAIN.replace(b"host: localhost\r\n", b""))
        assert answers(connection, 1)[0][0] == 421


def test_hosts_and_origins_can_be_allowed(tmp_path: Path) -> None:
    page = "https://ops.example"
    with running(tmp_path, allowed_hosts=("api.example",), allowed_origins=(page,)) as client:
        client.headers["host"] = "api.example"
        assert client.put("/v1/routers/sms", json=SMS).status_code == 201
        answer = client.post("/v1/decisions", json={"router": "sms"}, headers={"origin": page})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page)
        asks = {"origin": page, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        assert client.options("/v1/decisions", headers=asks).headers["access-control-allow-headers"]
        assert client.get("/healthz", headers={"host": "localhost"}).status_code == 421
        assert client.get("/healthz", headers={"origin": "https://other.example"}).status_code == 403


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(b"x-%d: y\r\n" % n for n in range(101)),
        b"x: " + b"y" * 33_000 + b"\r\n",
        b"".join(b"x-%d: %s\r\n" % (n, b"y" * 4000) for n in range(9)),
    ],
    ids=["many", "long", "together"],
)
@pytest.mark.parametrize("request_line", [b"POST /v1/decisions HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\n"])
def test_too_many_or_too_long_headers_are_431(client: Caller, request_line: bytes, flood: bytes) -> None:
    with connect(client) as connection:
        connection.sendall(request_line + b"host: localhost\r\n" + flood + b"\r\n")
        status, headers, body = answers(connection, 1)[0]
        assert (status, headers[b"connection"]) == (431, b"close")
        assert b"32768 bytes" in body
        assert connection.recv(1) == b""


def test_an_address_that_is_too_long_is_431(client: Caller) -> None:
    with connect(client) as connection:
        connection.sendall(b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert answers(connection, 1)[0][0] == 431


def flood(port: int, start: bytes, megabytes: int) -> int:
    """Send headers without end until the service ends the connection; the bytes it took."""
    sent, piece = 0, b"y" * 65_536
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            connection.sendall(start)
            while sent < megabytes * 2**20:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
    return sent


@pytest.mark.parametrize(
    "start", [b"GET /healthz HTTP/1.1\r\nx: ", CHUNKED.removesuffix(b"\r\n") + b"x: "], ids=["headers", "trailers"]
)
def test_300_mb_of_headers_or_trailers_are_refused_early_with_flat_memory(launch: Callable[..., Service], start: bytes) -> None:
    service = launch()
    assert service.process is not None
    process = psutil.Process(service.process.pid)
    before = process.memory_info().rss
    taken = [flood(service.port, start, 300) for _ in range(5)]
    assert max(taken) < 20 * 2**20  # mostly what the sockets buffer
    assert process.memory_info().rss - before < 20 * 2**20
    assert httpx.get(f"{service.url}/healthz").status_code == 200


def closes_within(connection: socket.socket, seconds: float) -> bytes:
    """What comes until the connection ends, which it does in time."""
    connection.settimeout(seconds)
    said = b""
    while piece := connection.recv(65_536):
        said += piece
    return said


def test_100_half_open_connections_are_closed(tmp_path: Path) -> None:
    with running(tmp_path, **SHORT) as client, ExitStack() as stack:
        starts = [b"", b"POST /v1/dec", POST, PLAIN[:-3], CHUNKED[:-9]] * 20
        connections = [stack.enter_context(connect(client)) for _ in starts]
        for connection, start in zip(connections, starts, strict=True):
            connection.sendall(start)
        for connection, start in zip(connections, starts, strict=True):
            said = closes_within(connection, 5.0)
            assert said.startswith(b"HTTP/1.1 408 ") if start else said == b""
        assert client.get("/healthz").status_code == 200
        assert len(client.app.connections) <= 2


def test_a_slow_drip_does_not_keep_a_connection_open(tmp_path: Path) -> None:
    with running(tmp_path, **SHORT) as client, connect(client) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        started = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - started < 5.0:
                connection.sendall(b"x: y\r\n")
                time.sleep(0.05)
        assert time.monotonic() - started < 4.0


def test_more_connections_than_allowed_get_503(tmp_path: Path) -> None:
    with running(tmp_path, max_connections=3) as client:
        connections = [connect(client) for _ in range(3)]
        for connection in connections:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert answers(connection, 1)[0][0] == 200
        with connect(client) as one_more:
            status, headers, body = answers(one_more, 1)[0]
            assert (status, headers[b"retry-after"], json.loads(body)["error"]["code"]) == (503, b"1", "connections")
            assert one_more.recv(1) == b""
        for connection in connections:
            connection.close()
        time.sleep(0.1)
        assert client.get("/healthz").status_code == 200
        assert "thrifty_connections_refused_total 1" in client.get("/metrics").text


def test_keep_alive_can_be_set(tmp_path: Path) -> None:
    with running(tmp_path, keep_alive_s=0.5) as client, connect(client) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answers(connection, 1)
        started = time.monotonic()
        assert closes_within(connection, 5.0) == b""
        assert 0.3 < time.monotonic() - started < 2.0


def test_a_client_that_reads_no_answers_is_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path, **SHORT) as client:
        client.put("/v1/routers/sms", json=SMS)
        asked = json.dumps([{"router": "sms"}] * 1000).encode()  # the answer is 0.5 MB
        many = (POST + b"content-length: %d\r\n\r\n%s" % (len(asked), asked)) * 60
        with connect(client) as connection:

            def send() -> None:
                with suppress(OSError):
                    connection.sendall(many)

            sending = threading.Thread(target=send)
            sending.start()
            time.sleep(1.0)
            until = time.monotonic() + 10.0
            while len(client.app.connections):  # that of `client` is idle, and ends too
                assert time.monotonic() < until, "the connection is still open"
                time.sleep(0.05)
            sending.join(10)
        assert client.get("/healthz").status_code == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET http:// HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
def test_what_is_not_http_is_400_and_no_internal_error(client: Caller, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with connect(client) as connection:
        connection.sendall(sent)
        status, _, body = answers(connection, 1)[0]
    assert (status, json.loads(body)["error"]["code"]) == (400, "http")
    assert not caplog.records


def test_an_upgrade_that_is_not_offered_is_passed_over(client: Caller) -> None:
    with connect(client) as connection:
        upgrade = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: x\r\n\r\n"
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + upgrade)
        assert answers(connection, 1)[0][2] == b"ok\n"


def test_a_request_that_ends_early_is_not_carried_out(client: Caller) -> None:
    before = rows(client)
    with connect(client) as connection:
        connection.sendall(CHUNKED.removesuffix(b"0\r\n\r\n"))
        time.sleep(0.2)
    time.sleep(0.3)
    assert rows(client) == before


def test_the_checks_cost_less_than_two_microseconds(client: Caller) -> None:
    """Per request, beside reading the headers at all: the time of `_is_plain` with the headers of an ordinary client."""
    from thrifty.service.protocol import HotProtocol

    class Reading:
        service = client.app
        headers = [  # noqa: RUF012
            (b"host", b"localhost"),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"gzip"),
            (b"connection", b"keep-alive"),
            (b"user-agent", b"test"),
            (b"authorization", b"Bearer x"),
            (b"content-type", b"application/json"),
            (b"content-length", b"9"),
        ]

    reading: Any = Reading()
    client.app.checks.check(Reading.headers, has_body=True)
    assert HotProtocol._is_plain(reading)
    assert min(_timed(lambda: HotProtocol._is_plain(reading)) for _ in range(50)) < 2e-6


def _timed(call: Callable[[], Any], times: int = 500) -> float:
    started = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - started) / times
