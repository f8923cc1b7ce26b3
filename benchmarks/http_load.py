"""The HTTP part of the benchmarks of the service: real load from wrk on 127.0.0.1, in turns with what it is compared with."""

import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx

HERE = Path(__file__).parent
PEER = HERE / "build" / "service-peer"
PEER_PACKAGES = ("pybandits==8.4.1", "fastapi", "uvicorn", "uvloop", "httptools")
HANDLER = """
import asyncio, sqlite3
from thrifty.store.group_commit import GroupCommit

async def reply(receive, send):
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})

async def live(receive, send):
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})

async def empty(scope, receive, send):
    await (reply if scope["type"] == "http" else live)(receive, send)

class Durable:
    waiting, writer = [], None

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await live(receive, send)
        if self.writer is None:
            self.start(asyncio.get_running_loop())
        future = asyncio.get_running_loop().create_future()
        position = self.writer.append((), 0)
        self.waiting.append((position, future))
        await future
        await reply(receive, send)

    def start(self, loop):
        rows = sqlite3.connect("floor-http.db", isolation_level=None, check_same_thread=False)
        rows.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (n INTEGER PRIMARY KEY)")

        def commit(batch):
            rows.execute(f"INSERT INTO t VALUES {', '.join(['(?)'] * len(batch))}", [position for position, _ in batch])

        self.writer = GroupCommit(commit, durable=0)
        self.writer.begin_soon = lambda: loop.call_soon(self.writer.begin)
        self.writer.callbacks.append(lambda: loop.call_soon_threadsafe(self.wake))

    def wake(self):
        waiting, self.waiting = self.waiting, []
        for position, future in waiting:
            if position <= self.writer.durable:
                future.set_result(None)
            else:
                self.waiting.append((position, future))

durable = Durable()
"""
DECIDE = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"router": "ROUTER", "segment": "DE"}'
"""
DECIDE_AND_RECORD = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local ids, first, last = {}, 1, 0
function request()
   if first > last then return wrk.format(nil, "/v1/decisions", nil, '{"router": "ROUTER", "segment": "DE"}') end
   local id = ids[first]
   ids[first], first = nil, first + 1
   return wrk.format(nil, "/v1/outcomes", nil, '{"decision_id": "' .. id .. '", "status": "success"}')
end
function response(status, headers, body)
   local id = string.match(body, '"decision_id": ?"([^"]+)","arm"')
   if id then last = last + 1; ids[last] = id end
end
"""


def free_port() -> int:
    """A port nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str) -> None:
    """Until somebody answers."""
    for _ in range(600):
        try:
            httpx.get(url, timeout=1)
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")


Measured = dict[str, list[tuple[float, float]]]
"""Requests a second and 99th percentiles in milliseconds, of every turn, by what was measured."""


def measure(folder: Path, seconds: int, repeats: int) -> Measured:
    """The service beside an empty handler on the same server, one that only commits, and the peer, in turns."""
    (folder / "handler.py").write_text(HANDLER)
    uvicorn = ["-m", "uvicorn", "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error", "--port"]
    ports = {name: str(free_port()) for name in ("service", "empty", "durable", "peer")}
    store = f"sqlite:///{folder / 'h.db'}"
    commands = {
        "service": [sys.executable, "-m", "thrifty.cli", "serve", "--store", store, "--port", ports["service"]],
        "empty": [sys.executable, *uvicorn, ports["empty"], "handler:empty"],
        "durable": [sys.executable, *uvicorn, ports["durable"], "handler:durable"],
        "peer": [str(peer_python()), *uvicorn, ports["peer"], "--app-dir", str(HERE / "peers"), "pybandits_service:app"],
    }
    running = [subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) for command in commands.values()]
    found: Measured = {}

    def load(what: str, server: str, script: str, router: str) -> None:
        file = folder / "load.lua"
        file.write_text(script.replace("ROUTER", router))
        found.setdefault(what, []).append(wrk(f"{urls[server]}/v1/decisions", file, seconds))

    try:
        urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        for url in urls.values():
            wait_for(url)
        for turn in range(repeats):
            for name, policy in (("default", {}), ("index", {"policy": "cs-etc:tau=10"})):
                for what, script in (("", DECIDE), (" with outcomes", DECIDE_AND_RECORD)):
                    router = f"{name}{turn}{what.strip()[:4]}"  # of its own, that remembers fewer decisions than it can
                    body = {"arms": {"a": 0.0079, "b": 0.0062, "c": 0.0041}, "alpha": 0.05, **policy}
                    httpx.put(f"{urls['service']}/v1/routers/{router}", json=body, timeout=300).raise_for_status()
                    load(name + what, "service", script, router)
            load("empty", "empty", DECIDE, "")
            load("durable", "durable", DECIDE, "")
            load("peer", "peer", DECIDE, "")
            load("peer with outcomes", "peer", DECIDE_AND_RECORD, "")
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return found


def http(folder: Path, seconds: int, repeats: int) -> list[str]:
    """Rows of the table."""
    if shutil.which("wrk") is None:
        return ["| HTTP | left out: wrk is not installed |"]
    found = measure(folder, seconds, repeats)

    def rate(name: str) -> str:
        rates, p99s = zip(*found[name], strict=True)
        return f"{statistics.median(rates):,.0f}/s, p99 {statistics.median(p99s):.1f} ms"

    def ratio(name: str, other: str) -> float:
        return statistics.median(ours[0] / theirs[0] for ours, theirs in zip(found[name], found[other], strict=True))

    def ours(name: str) -> str:
        return f"{rate(name)}, {ratio(name, 'empty'):.2f} of empty, {ratio(name, 'durable'):.2f} of the floor"

    peer = "pybandits SmabBernoulliCC behind FastAPI, nothing durable"
    return [
        f"| HTTP, wrk, 32 connections: an empty ASGI handler | {rate('empty')} |",
        f"| one that answers after a FULL commit of an empty row, the floor of ASGI | {rate('durable')}, "
        f"{ratio('durable', 'empty'):.2f} of empty |",
        f"| thrifty, an index policy, reply after a FULL commit | {ours('index')} |",
        f"| thrifty, the default policy with propensities | {ours('default')} |",
        f"| {peer} | {rate('peer')}; empty {ratio('empty', 'peer'):.1f}x, thrifty {ratio('index', 'peer'):.1f}x, "
        f"with its default policy {ratio('default', 'peer'):.1f}x |",
        f"| decisions and their outcomes in turn: thrifty, an index policy | {ours('index with outcomes')} |",
        f"| the same, the default policy | {ours('default with outcomes')} |",
        f"| the same, the peer | {rate('peer with outcomes')}; thrifty "
        f"{ratio('index with outcomes', 'peer with outcomes'):.1f}x, with its default policy "
        f"{ratio('default with outcomes', 'peer with outcomes'):.1f}x |",
    ]


def peer_python() -> Path:
    """The interpreter of an environment with the peer in it, made on first use."""
    python = PEER / "bin" / "python"
    if not (PEER / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEER_PACKAGES], check=True)
        (PEER / "ready").touch()
    return python


def wrk(url: str, script: Path, seconds: int) -> tuple[float, float]:
    """Requests a second, and the 99th percentile in milliseconds."""
    command = ["wrk", "-t1", "-c32", f"-d{seconds}", "--latency", "-s", str(script), url]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in shown:
        raise RuntimeError(shown)
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", shown)[0])
    value, unit = re.findall(r"99%\s+([\d.]+)(us|ms|s)", shown)[0]
    return rate, float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]
