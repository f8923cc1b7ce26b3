import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from thrifty import AsyncClient, Client
from thrifty.client import ServiceError

ANSWER = {
    "decision_id": "sms.0.1", "arm": "b", "fallbacks": ["a"], "propensity": 1.0, "explored": False, "reason": {"code": "exploit"},
}  # fmt: skip


class Flaky(HTTPServer):
    """A service that answers with the statuses in `script` first, and then well; 0 closes the connection without an answer."""

    script: list[int]
    heard: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        server.heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        status = server.script.pop(0) if server.script else 200
        if status == 0:
            self.connection.close()
            return
        said: Any = ANSWER if self.path == "/v1/decisions" else {"result": "recorded"}
        body = json.dumps(said if status == 200 else {"error": {"code": "x", "message": "not so"}}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    server = Flaky(("127.0.0.1", 0), Handler)
    server.script, server.heard = [], []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def url(server: Flaky) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_a_retry_carries_the_same_request_id(flaky: Flaky) -> None:
    flaky.script = [0, 503, 502]
    with Client(url(flaky), "key") as client:
        choice = client.decide("sms", "DE")
        assert (choice.arm, choice.decision_id, choice.local) == ("b", "sms.0.1", False)
        assert len(flaky.heard) == 4
        assert len({said["request_id"] for said in flaky.heard}) == 1
        assert client.record("sms.0.1", reward=1) == "recorded"
        assert client.record("sms.0.1", status="void") == "recorded"
    assert flaky.heard[-1] == {"decision_id": "sms.0.1", "status": "void"}


def test_what_the_service_refuses_is_not_retried(flaky: Flaky) -> None:
    flaky.script = [422]
    with Client(url(flaky), fallback={"a": 0.1}) as client, pytest.raises(ServiceError, match="422: not so"):
        client.record("sms.0.1", reward=1)
    assert len(flaky.heard) == 1


def test_without_the_service_it_falls_back_to_the_arm_known_last_and_else_to_the_cheapest(flaky: Flaky) -> None:
    with Client(url(flaky), retries=1, fallback={"a": 0.1, "b": 0.2, "c": 0.3}) as client:
        flaky.script = [503] * 2
        assert client.decide("sms", "DE").arm == "a"
        client.decide("sms", "DE")
        flaky.script = [503] * 10
        known = client.decide("sms", "DE")
        assert (known.arm, known.local, known.decision_id) == ("b", True, None)
        assert client.decide("sms", "DE", eligible={"c": None}).arm == "c"
        assert client.decide("sms", "FR").arm == "a"


def test_without_a_fallback_an_unreachable_service_is_an_error() -> None:
    with Client("http://127.0.0.1:9", retries=1) as client, pytest.raises(ServiceError, match="no answer in 2 tries"):
        client.decide("sms")


def test_the_async_client_makes_the_same_calls(flaky: Flaky) -> None:
    flaky.script = [503]

    async def play() -> None:
        async with AsyncClient(url(flaky), retries=2, fallback={"a": 0.1}) as client:
            choice = await client.decide("sms", request_id="mine")
            assert (choice.arm, choice.local) == ("b", False)
            assert await client.record("sms.0.1", reward=0) == "recorded"
            flaky.script = [503] * 3
            assert (await client.decide("sms", "elsewhere")).local

    asyncio.run(play())
    assert [said["request_id"] for said in flaky.heard[:2]] == ["mine", "mine"]
