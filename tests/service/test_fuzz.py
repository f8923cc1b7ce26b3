"""Mixed admin and hot requests, right and wrong, from several callers: no crash, no 5xx but 503, and a restart changes nothing.

THRIFTY_FUZZ_REQUESTS says how many, and THRIFTY_FUZZ_COMPILE whether rules are compiled beside them: "never" or "background".
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.service.conftest import Service
from tests.service.fuzzing import ADMIN_KEY, ARMS, ROUTERS, Requests

REQUESTS = int(os.environ.get("THRIFTY_FUZZ_REQUESTS", "1200"))
COMPILE = os.environ.get("THRIFTY_FUZZ_COMPILE", "never")
CALLERS = 3
HEADERS = {"content-type": "application/json", "authorization": f"Bearer {ADMIN_KEY}"}


class WatchedService(Service):
    """A service that says where it was when it crashed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"sqlite:///{folder / 'fuzz.db'}")
        self._faults = folder / "stderr.txt"

    def start(self) -> "WatchedService":
        command = [sys.executable, "-X", "faulthandler", "-m", "thrifty.cli", "serve", "--store", self.store]
        command += ["--port", str(self.port), "--log-level", "error"]
        environment = {**os.environ, "THRIFTY_COMPILE": COMPILE, "THRIFTY_ADMIN_KEY": ADMIN_KEY}
        with self._faults.open("a") as said:
            self.process = subprocess.Popen(command, stderr=said, env=environment)
        until = time.monotonic() + 60 + REQUESTS / 50  # a long log is folded by rules that are not compiled
        while time.monotonic() < until:
            self.check_alive()
            try:
                if httpx.get(f"{self.url}/readyz", headers=HEADERS, timeout=1).status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError(f"the service is not ready: {self._faults.read_text()[-5000:]}")

    def check_alive(self) -> None:
        assert self.process is not None
        assert self.process.poll() is None, f"the service ended with {self.process.returncode}: {self._faults.read_text()[-5000:]}"

    def fault(self) -> str:
        return self._faults.read_text()[-5000:]


class Caller(threading.Thread):
    """Sends requests until it has sent its share, or one fails."""

    def __init__(self, service: WatchedService, requests: Requests, share: int) -> None:
        super().__init__()
        self._service, self._requests, self._share = service, requests, share
        self.answers: Counter[tuple[str, int]] = Counter()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self._service.url, timeout=120) as client:
                for _ in range(self._share):
                    self._send(client)
        except BaseException as error:
            self.failure = error

    def _send(self, client: httpx.Client) -> None:
        request = self._requests.next()
        headers = [(b"content-type", b"application/json")]
        if request.key is not None:
            headers.append((b"authorization", f"Bearer {request.key}".encode()))
        try:
            response = client.request(request.method, request.path, content=request.body, headers=headers)
        except httpx.TransportError as error:
            time.sleep(0.5)
            self._service.check_alive()
            raise AssertionError(f"no answer to {request}") from error
        self.answers[request.path.split("/")[2] if request.path.startswith("/v1/") else "other", response.status_code] += 1
        assert response.status_code < 500 or response.status_code == 503, f"{request}: {response.text}\n{self._service.fault()}"
        if response.status_code == 200 and response.headers.get("content-type", "").startswith("application/json"):
            self._requests.learn(request, response.json())


def picture(service: WatchedService) -> dict[str, Any]:
    """Every router with its arms, settings and segments, and what is known about each segment."""
    with httpx.Client(base_url=service.url, timeout=120, headers=HEADERS) as client:
        seen: dict[str, Any] = {}
        for name in client.get("/v1/routers").json()["routers"]:
            router, segments = client.get(f"/v1/routers/{name}"), client.get(f"/v1/routers/{name}/segments")
            assert (router.status_code, segments.status_code) == (200, 200), f"{name}: {router.text} {segments.text}"
            known = [segment for segment in segments.json()["segments"] if segment]
            explained = {segment: client.get(f"/v1/routers/{name}/segments/{segment}").json() for segment in known[:100]}
            seen[name] = {"router": router.json(), "segments": segments.json(), "explained": explained}
        return seen


def settled_picture(service: WatchedService) -> dict[str, Any]:
    """The picture once all short deadlines are over, and nothing changes any more."""
    time.sleep(1.5)
    before = picture(service)
    for _ in range(40):
        time.sleep(0.5)
        after = picture(service)
        if after == before:
            return after
        before = after
    raise AssertionError("the state never came to rest")


def test_random_requests_crash_nothing_and_a_restart_changes_nothing(tmp_path: Path) -> None:
    service = WatchedService(tmp_path).start()
    requests = Requests(seed=12)
    callers = [Caller(service, requests, REQUESTS // CALLERS) for _ in range(CALLERS)]
    try:
        for name in ROUTERS:
            made = httpx.put(
                f"{service.url}/v1/routers/{name}", json={"arms": dict.fromkeys(ARMS, 1.0), "alpha": 0.1}, headers=HEADERS
            )
            assert made.status_code == 201, made.text
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        for caller in callers:
            if caller.failure is not None:
                raise caller.failure
        service.check_alive()
        before = settled_picture(service)
        service.kill()
        service.start()
        after = settled_picture(service)
        assert sorted(after) == sorted(before)
        for name, wanted in before.items():
            assert after[name] == wanted
    finally:
        if service.process is not None and service.process.poll() is None:
            service.kill()
    answers = sum((caller.answers for caller in callers), Counter[tuple[str, int]]())
    assert before, "no router is left to compare"
    for kind in ("decisions", "outcomes", "routers"):
        assert answers[kind, 200] > REQUESTS / 40, f"hardly any request was right: {answers}"
