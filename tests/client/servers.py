"""Small servers on 127.0.0.1 that answer as a script says, well or badly."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

ANSWER: dict[str, Any] = {
    "decision_id": "sms.0.1",
    "arm": "b",
    "fallbacks": ["a"],
    "propensity": 1.0,
    "explored": False,
    "reason": {"code": "exploit", "text": "because"},
    "version": 1,
    "repeated": False,
    "degraded": False,
}


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Behaviour = Callable[["Server", socket.socket, Received], bool]
"""Answers one request; True if the connection can take another."""


def reply(status: int = 200, body: Any = None, **headers: str) -> Behaviour:
    """Answer with a status, a JSON body (by default a good one) and headers; _ in their names stands for -."""

    def answer(_server: "Server", connection: socket.socket, received: Received) -> bool:
        content = body
        if content is None:
            good = {"result": "recorded"} if received.path == "/v1/outcomes" else ANSWER
            content = good if status < 300 else {"error": {"code": "code", "message": "not so"}}
        encoded = content if isinstance(content, bytes) else json.dumps(content).encode()
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(encoded)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + encoded)
        return True

    return answer


def reset(_server: "Server", connection: socket.socket, _received: Received) -> bool:
    """End the connection with RST instead of an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def half(_server: "Server", connection: socket.socket, _received: Received) -> bool:
    """Send half of a good answer and close the connection."""
    encoded = json.dumps(ANSWER).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(encoded) + encoded[: len(encoded) // 2])
    return False


def hang(server: "Server", _connection: socket.socket, _received: Received) -> bool:
    """Never answer."""
    server.closing.wait(60)
    return False


def half_then_hang(server: "Server", connection: socket.socket, received: Received) -> bool:
    """Send half of a good answer and nothing more."""
    half(server, connection, received)
    return hang(server, connection, received)


def dribble(server: "Server", connection: socket.socket, _received: Received) -> bool:
    """Send one byte of a header that never ends every 5 ms."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    try:
        while not server.closing.wait(0.005):
            connection.sendall(b"x")
    except OSError:
        pass  # the client has gone, as it should
    return False


class Server:
    """Takes the behaviours in `script` one by one, and then `default`."""

    def __init__(self) -> None:
        self.script: list[Behaviour] = []
        self.default: Behaviour = reply()
        self.received: list[Received] = []
        self.times: list[float] = []
        self.closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(0.1)
            going = True
            while going and not self.closing.is_set():
                try:
                    received = self._read(connection)
                    if received is None:
                        return
                except TimeoutError:
                    continue
                except OSError:
                    return
                self.received.append(received)
                self.times.append(time.monotonic())
                behaviour = self.script.pop(0) if self.script else self.default
                try:
                    going = behaviour(self, connection, received)
                except OSError:
                    return  # the client has gone

    @staticmethod
    def _read(connection: socket.socket) -> Received | None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65_536)
            if not piece:
                return None
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65_536)
        method, path, _ = first.split(" ")
        return Received(method, path, headers, json.loads(body) if body else None)

    def close(self) -> None:
        self.closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for thread in self._threads:
            thread.join()


@contextmanager
def serving(*script: Behaviour, default: Behaviour | None = None) -> Iterator[Server]:
    server = Server()
    server.script = list(script)
    server.default = default or server.default
    try:
        yield server
    finally:
        server.close()


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
