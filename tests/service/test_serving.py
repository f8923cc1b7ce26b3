"""`thrifty serve` as a process: draining, a second signal, a busy port, simulated traffic on a store of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Service, free_port
from tests.service.test_http import SMS
from tests.service.test_protocol import answers

HALF = b"GET /readyz HTTP/1.1\r\nhost: loc"


def signalled(service: Service, number: int = signal.SIGTERM) -> None:
    assert service.process is not None
    service.process.send_signal(number)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(happens: Callable[[], bool], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def test_sigterm_drains_what_is_under_way_and_accepts_no_more(launch: Callable[..., Service]) -> None:
    service = launch()
    assert service.process is not None
    httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=300)
    body = b'{"router": "sms"}'
    head = b"POST /v1/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 17\r\n\r\n"
    with (
        socket.create_connection(("127.0.0.1", service.port), timeout=10) as half,
        socket.create_connection(("127.0.0.1", service.port), timeout=10) as hot,
        socket.create_connection(("127.0.0.1", service.port), timeout=10) as idle,
    ):
        half.sendall(HALF)
        hot.sendall(head + body)
        assert answers(hot, 1)[0][0] == 200
        hot.sendall(head + body[:5])
        time.sleep(0.2)
        signalled(service)
        assert idle.recv(1) == b""
        wait_until(lambda: not is_listening(service.port))
        half.sendall(b"alhost\r\n\r\n")
        status, headers, said = answers(half, 1)[0]
        assert (status, headers[b"connection"], json.loads(said)["error"]["code"]) == (503, b"close", "draining")
        assert service.process.poll() is None
        hot.sendall(body[5:])
        status, headers, said = answers(hot, 1)[0]
        assert (status, headers[b"connection"], "arm" in json.loads(said)) == (200, b"close", True)
        assert hot.recv(1) == b""
    err = service.wait()
    assert service.process.returncode == 0
    assert json.loads(err.splitlines()[-1])["event"] == "stopped"


def test_draining_ends_in_time_and_a_second_signal_ends_at_once(launch: Callable[..., Service]) -> None:
    for signals, least, most in ((1, 0.7, 5.0), (2, 0.0, 0.9)):
        service = launch("--drain-s", "1" if signals == 1 else "30")
        assert service.process is not None
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as half:
            half.sendall(HALF)
            time.sleep(0.2)
            started = time.monotonic()
            signalled(service)
            if signals == 2:
                time.sleep(0.3)
                signalled(service)
            service.wait()
        assert least < time.monotonic() - started < most
        assert service.process.returncode == (0 if signals == 1 else 128 + signal.SIGTERM)


def test_a_service_may_say_more_than_a_pipe_holds(launch: Callable[..., Service]) -> None:
    service, lines = launch(), 60
    for _ in range(lines):  # each is logged with its path
        assert httpx.delete(f"{service.url}/v1/keys/{'x' * 2000}", timeout=10).status_code == 404
    code, said = service.stop()
    assert (code, said.count("x" * 2000)) == (0, lines)


def serve(*flags: str, folder: Path, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "thrifty.cli", "serve", *flags]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env={**os.environ, **environment}
    )


def test_a_busy_port_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for flags in ([], ["--traffic"]):
            process = serve("--port", port, *flags, folder=tmp_path)
            out, err = process.communicate(timeout=60)
            assert process.returncode == 2
            assert f"cannot listen on 127.0.0.1, port {port}" in err
            assert out == ""
        assert not list(tmp_path.iterdir())
        taken.settimeout(0.2)
        with pytest.raises(TimeoutError):
            taken.accept()


def test_traffic_leaves_a_running_service_alone(launch: Callable[..., Service], tmp_path: Path) -> None:
    service = launch()
    httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=300)
    before = httpx.get(f"{service.url}/v1/routers/sms").json()
    process = serve("--port", str(service.port), "--traffic", folder=tmp_path)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "cannot listen" in err
    assert httpx.get(f"{service.url}/v1/routers/sms").json() == before
    assert httpx.get(f"{service.url}/v1/routers").json()["routers"] == ["sms"]


def test_traffic_refuses_a_store_with_other_routers(launch: Callable[..., Service], tmp_path: Path) -> None:
    service = launch()
    httpx.put(f"{service.url}/v1/routers/sms", json=SMS, timeout=300)
    service.stop()
    for flags, environment in ((["--store", service.store], {}), ([], {"THRIFTY_STORE": service.store})):
        process = serve("--port", str(free_port()), "--traffic", *flags, folder=tmp_path, **environment)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "store of its own" in err
        assert "'sms'" in err
        assert out == ""


@pytest.fixture
def traffic(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    port = free_port()
    process = serve("--port", str(port), "--traffic", "--log-level", "warning", folder=tmp_path)
    lines: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
    reader.start()
    yield process, f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)
    reader.join(5)
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def test_traffic_has_a_store_and_routers_of_its_own(traffic: tuple[Any, str], tmp_path: Path) -> None:
    process, url = traffic

    def decided() -> bool:
        assert process.poll() is None
        try:
            text = httpx.get(f"{url}/metrics", timeout=5).text
        except httpx.TransportError:
            return False
        return any(
            line.startswith('thrifty_decisions_total{router="sms-demo-gb"}') and not line.endswith(" 0")
            for line in text.splitlines()
        )

    wait_until(decided, 120.0)
    assert (tmp_path / "thrifty-demo.db").exists()
    assert httpx.get(f"{url}/v1/routers").json()["routers"] == ["sms-demo-gb", "sms-demo-in", "sms-demo-us"]


def test_every_flag_of_serve_is_a_setting(capsys: pytest.CaptureFixture[str]) -> None:
    from thrifty.cli.main import main
    from thrifty.described import described
    from thrifty.service.config import Config

    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    shown = capsys.readouterr().out
    for setting in described(Config):
        assert f"{setting.flag} " in shown
    config = Config.load({"allowed_hosts": "a, b"}, environment={"THRIFTY_RATE_LIMIT": "2.5", "THRIFTY_MAX_CONNECTIONS": "7"})
    assert (config.allowed_hosts, config.rate_limit, config.max_connections) == (("a", "b"), 2.5, 7)
    for name, wrong in (
        ("PORT", "70000"),
        ("RATE_LIMIT", "-1"),
        ("KEEP_ALIVE_S", "nan"),
        ("LOG_LEVEL", "loud"),
        ("MAX_BODY", "1.5"),
    ):
        with pytest.raises(ValueError, match=f"{name.lower()} must be .*{wrong}"):
            Config.load({}, environment={f"THRIFTY_{name}": wrong})
