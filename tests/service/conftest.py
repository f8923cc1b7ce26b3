import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "Service":
        command = [sys.executable, "-m", "thrifty.cli", "serve", "--store", self.store, "--port", str(self.port), *self.flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/readyz", timeout=1).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError(self.process.communicate()[1])
            time.sleep(0.05)
        raise RuntimeError("the service did not start")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> tuple[int, str]:
        assert self.process is not None
        self.process.terminate()
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err


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
