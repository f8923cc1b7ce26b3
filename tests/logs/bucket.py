"""A small S3 server for tests: signed requests list the objects of one bucket, and read pieces of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

KEY_ID = "tester"


@contextmanager
def serve_bucket(name: str, objects: dict[str, bytes]) -> Iterator[str]:
    """HOST:PORT of a server that has one bucket; it answers only those who sign with `KEY_ID`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            _, bucket, key = f"{unquote(address.path)}/".split("/", 2)
            if f"Credential={KEY_ID}/" not in self.headers.get("Authorization", ""):
                self._answer(403, b"")
            elif bucket != name or (key.rstrip("/") and key.rstrip("/") not in objects):
                self._answer(404, b"")
            elif not key.rstrip("/"):
                prefix = parse_qs(address.query).get("prefix", [""])[0]
                self._answer(200, _listing(each for each in objects if each.startswith(prefix)))
            else:
                self._send(objects[key.rstrip("/")])

        def _send(self, content: bytes) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked is None:
                self._answer(200, content)
                return
            first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
            self._answer(206, content[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{len(content)}"})

        def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for each, value in {"Content-Length": str(len(content)), "Accept-Ranges": "bytes", **(headers or {})}.items():
                self.send_header(each, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _listing(keys: Iterator[str]) -> bytes:
    found = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in keys)
    return f'<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>'.encode()
