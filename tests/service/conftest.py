import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import httpx
import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(autouse=True)
def _compiled_routers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls to routers run on the event loop, as they do in production."""
    monkeypatch.setenv("THRIFTY_COMPILE", "wait")


class Service:
    """`thrifty serve` in a process of its own."""

    def __init__(self, store: str, *flags: str) -> None:
        self.store, self.flags, self.port = store, flags, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def start(self) -> "Service":
        command = [sys.executable, "-m", "thrifty.cli", "serve", "--store", self.store, "--port", str(self.port), *self.flags]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe that nobody reads would fill up and hold up the service
        self.process = subprocess.Popen(command, stderr=self._said)
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/readyz", timeout=1).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError(self.wait())
            time.sleep(0.05)
        raise RuntimeError("the service did not start")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.wait()

    def stop(self) -> tuple[int, str]:
        assert self.process is not None
        self.process.terminate()
        said = self.wait()
        return self.process.returncode, said

    def wait(self, seconds: float = 20.0) -> str:
        """What the process wrote to stderr, once it has ended. Called once for each start."""
        assert self.process is not None
        self.process.wait(seconds)
        if self._said is None:
            return ""
        with self._said:
            self._said.seek(0)
            return self._said.read().decode()


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    services: list[Service] = []

    def start(*flags: str, store: str = f"sqlite:///{tmp_path / 'service.db'}") -> Service:
        services.append(Service(store, *flags))
        return services[-1].start()

    yield start
    for service in services:
        if service.process is not None and service.process.poll() is None:
            service.kill()
