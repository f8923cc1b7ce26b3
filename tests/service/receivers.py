"""A real HTTP server that receives webhooks, and behaves as badly as a test wants."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "a secret of the tests"


class Receiver:
    """Keeps every request; answers with the next of `answers`, then with 200.

    An answer is a status, "hang", "drip" (a header that never ends) or "flood" (a body that never ends).
    """

    def __init__(self, *answers: Any, port: int = 0) -> None:
        self.answers, self.got = list(answers), list[tuple[dict[str, str], bytes]]()
        self.stopping = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            def do_GET(self) -> None:
                receiver.got.append(({"method": "GET"}, b""))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client that leaves is no error here."""

        self.server = Server(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook-with-a-token"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["content-length"]))
        self.got.append(({name.lower(): value for name, value in request.headers.items()}, body))
        how = self.answers.pop(0) if self.answers else 200
        if how == "hang":
            self.stopping.wait(60)
            return
        if how == "drip":
            request.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.stopping.wait(0.05):
                request.wfile.write(b"x")
        request.send_response(200 if how == "flood" else how)
        if how in (301, 302, 307, 308):
            request.send_header("location", self.url)
        request.end_headers()
        while how == "flood" and not self.stopping.is_set():
            request.wfile.write(b"x" * 65_536)

    def wait(self, count: int, seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < until, f"{len(self.got)} of {count} messages came"
            time.sleep(0.02)

    def close(self) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
