"""What decisions wait while something slow happens beside them: 200 a second on a warm router, over HTTP.

.venv/bin/python benchmarks/stalls.py             # about ten minutes, of which most go into the log of five million rows
.venv/bin/python benchmarks/stalls.py --small     # every event at a size that only shows that it works
.venv/bin/python benchmarks/stalls.py --folder /dev/shm   # in memory: what is left is the service's own doing, not the disk's

The first line is the disk alone: a page written and flushed 200 times a second by a bare loop. No commit can be faster.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from http_load import free_port, wait_for
from thrifty.store import open_store
from thrifty.store.log import DECISION, OUTCOME, Row

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres import Postgres

RATE = 200
ARMS = {"a": 0.0079, "b": 0.0062, "c": 0.0041}


class Service:
    """A `thrifty serve` process with a warm router `hot` and a cache of its own."""

    def __init__(self, folder: Path, store: str) -> None:
        self.port, self.folder, self.store = free_port(), folder, store
        self.url = f"http://127.0.0.1:{self.port}"
        self.cache = folder / "cache"
        environment = {**os.environ, "THRIFTY_CACHE": str(self.cache)}
        subprocess.run(
            [sys.executable, "-m", "thrifty.cli", "warm", "cs-ts", "cs-ids"], env=environment, check=True, stdout=subprocess.DEVNULL
        )
        self.log = (folder / "serve.log").open("w")
        command = [sys.executable, "-m", "thrifty.cli", "serve", "--store", store, "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=environment, stderr=self.log)
        wait_for(f"{self.url}/healthz")
        while httpx.get(f"{self.url}/readyz").status_code != 200:
            time.sleep(0.1)
        self.put("hot", policy="cs-ts")

    def put(self, name: str, **settings: Any) -> None:
        """Make or change a router."""
        body = {"arms": ARMS, "alpha": 0.05, **settings}
        httpx.put(f"{self.url}/v1/routers/{name}", json=body, timeout=300).raise_for_status()

    def add_arm(self, name: str) -> None:
        """Add an arm to a router."""
        httpx.post(f"{self.url}/v1/routers/{name}/arms/w:add", json={"price": 0.1}, timeout=300).raise_for_status()

    def decide(self, requests: list[dict[str, Any]]) -> list[str]:
        """Ids of a batch of decisions."""
        answer = httpx.post(f"{self.url}/v1/decisions", json=requests, timeout=300)
        answer.raise_for_status()
        return [each["decision_id"] for each in answer.json()]

    def record(self, ids: list[str]) -> None:
        """Successes."""
        body = [{"decision_id": each, "status": "success"} for each in ids]
        httpx.post(f"{self.url}/v1/outcomes", json=body, timeout=300).raise_for_status()

    def fill(self, name: str, decisions: int, segments: int = 1, batch: int = 1000) -> None:
        """Decisions and their outcomes, in batches."""
        for first in range(0, decisions, batch):
            requests = [{"router": name, "segment": f"s{n % segments}"} for n in range(first, first + batch)]
            self.record(self.decide(requests))

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        self.log.close()


async def drive(port: int, seconds: float, stop: Any) -> list[float]:
    """Latencies in milliseconds of decisions sent at a fixed rate, each from when it should have been sent."""
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
    body = json.dumps({"router": "hot", "segment": "DE"}).encode()
    head = b"POST /v1/decisions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(
        body
    )
    free: asyncio.Queue[Any] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    found: list[float] = []

    async def one(due: float) -> None:
        reader, writer = await free.get()
        writer.write(head + body)
        status = await reader.readline()
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        assert b" 200 " in status, status
        found.append(1000 * (time.perf_counter() - due))
        free.put_nowait((reader, writer))

    tasks, started = [], time.perf_counter()
    for n in range(int(seconds * RATE)):
        due = started + n / RATE
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        tasks.append(asyncio.create_task(one(due)))
        if stop.is_set() and n > 2 * RATE:
            break
    await asyncio.gather(*tasks)
    for _, writer in connections:
        writer.close()
    return found


def beside(service: Service, event: Callable[[], object], *, most_s: float = 120.0) -> str:
    """Percentiles of decisions while `event` runs, and for a second on each side."""
    # In a process of its own: events that are started from here would make the driver late, not the service.
    processes = multiprocessing.get_context("spawn")
    stop, results = processes.Event(), processes.SimpleQueue()
    driver = processes.Process(target=drive_apart, args=(service.port, most_s, stop, results))
    driver.start()
    time.sleep(2.0)
    started = time.perf_counter()
    event()
    took = time.perf_counter() - started
    time.sleep(1.0)
    stop.set()
    latencies = results.get()
    driver.join()
    return f"{percentiles(latencies)}; it took {took:.1f} s"


def drive_apart(port: int, seconds: float, stop: Any, results: Any) -> None:
    """`drive`, with the latencies put into a queue."""
    results.put(asyncio.run(drive(port, seconds, stop)))


def disk_alone(folder: Path, seconds: float) -> str:
    """Percentiles of flushing one page."""
    found, started = [], time.perf_counter()
    with (folder / "page").open("wb", buffering=0) as file:
        for n in range(int(seconds * RATE)):
            time.sleep(max(started + n / RATE - time.perf_counter(), 0.0))
            began = time.perf_counter()
            os.pwrite(file.fileno(), bytes(4096), n % 256 * 4096)
            os.fdatasync(file.fileno())
            found.append(1000 * (time.perf_counter() - began))
    return percentiles(found)


def percentiles(latencies: list[float]) -> str:
    """The median, the 99th percentile and the longest."""
    found = sorted(latencies)
    return f"p50 {found[len(found) // 2]:.1f}, p99 {found[int(0.99 * len(found))]:.1f}, max {found[-1]:.1f} ms"


def compiled(service: Service, name: str) -> None:
    """Wait until a router is compiled."""
    gauge = f'thrifty_compiled{{router="{name}"}} 1'
    until = time.monotonic() + 90
    while gauge not in (text := httpx.get(f"{service.url}/metrics").text) and time.monotonic() < until:
        time.sleep(0.1)
    if gauge not in text:
        raise RuntimeError(f"{name} was not compiled in 90 s: {[line for line in text.splitlines() if 'compiled' in line]}")


def write_long_log(store: str, rows: int) -> None:
    """Add the log of a router of its own, `long`: decisions and their outcomes in turn."""
    opened = open_store(store)
    journal = opened.journal("long")
    body = {"arms": ARMS, "settings": {"alpha": 0.05, "policy": "cs-ts"}}
    position = journal.append(Row("c", 0, 0, 0.0, None, None, None, None, None, "create", json.dumps(body)))
    for n in range(rows // 2):
        journal.append(Row(DECISION, journal.replica, n + 1, 1e9 + n, "DE", None, "a", 1.0, 0.0079, "exploit", None))
        position = journal.append(Row(OUTCOME, journal.replica, n + 1, 1e9 + n, None, None, "a", 1.0, 0.0079, "recorded", None))
        if n % 5_000 == 0:
            journal.wait(position)
    journal.wait(position)
    opened.close()


def sqlite_rows(folder: Path, small: bool) -> None:
    """Every event on SQLite."""
    store = f"sqlite:///{folder / 's.db'}"
    service = Service(folder, store)

    def row(name: str, event: Callable[[], object]) -> None:
        print(f"| {name} | {beside(service, event)} |", flush=True)

    try:
        service.fill("hot", 2000)
        row("nothing", lambda: time.sleep(5))
        row("a policy compiled cold", lambda: (service.put("etc", policy="cs-etc"), compiled(service, "etc")))
        row("another, with forgetting", lambda: (service.put("ucb", policy="cs-ucb+window=100"), compiled(service, "ucb")))
        row(
            "the first arm added",
            lambda: httpx.post(f"{service.url}/v1/routers/etc/arms/w:add", json={"price": 0.001}).raise_for_status(),
        )
        row(
            "the same on the busy router",
            lambda: httpx.post(f"{service.url}/v1/routers/hot/arms/w:add", json={"price": 0.1}).raise_for_status(),
        )
        segments = 500 if small else 9_900
        service.put("wide", policy="cs-ids", max_segments=20_000)
        service.fill("wide", segments, segments)
        row(
            f"alpha changed with {segments:,} segments",
            lambda: service.put("wide", policy="cs-ids", max_segments=20_000, alpha=0.1),
        )
        row(f"decisions in {segments:,} segments after that", lambda: service.fill("wide", segments, segments))
        service.fill("wide", 2_000 if small else 24_000, segments)
        row("a snapshot of them", lambda: service.fill("wide", 200 if small else 3_000, segments, batch=20))
        service.put("tiny", policy="cs-etc", memory_bytes=65_536)
        ids = service.decide([{"router": "tiny"}] * 1000)
        row("200 cold look-ups", lambda: [service.record([each]) for each in ids[:200]])
    finally:
        service.close()


def long_log_rows(folder: Path, small: bool) -> None:
    """What reads a log of five million rows beside a service."""
    store, rows = f"sqlite:///{folder / 's.db'}", 10_000 if small else 5_000_000
    write_long_log(store, rows)
    os.sync()  # or else the disk is still busy with what was just written
    service = Service(folder, store)
    commands = {
        f"an export of {rows:,} rows": ["export", store, "--out", str(folder / "out.csv")],
        f"a backup of {rows:,} rows": ["backup", store, str(folder / "copy.db")],
    }
    try:
        row = beside(service, lambda: time.sleep(2 if small else 60))
        print(f"| nothing for as long, with a long log | {row} |", flush=True)
        for name, command in commands.items():
            line = [sys.executable, "-m", "thrifty.cli", *command]
            found = beside(service, lambda line=line: subprocess.run(line, check=True, stdout=subprocess.DEVNULL))
            print(f"| {name} | {found} |", flush=True)
    finally:
        service.close()


def postgres_rows(folder: Path) -> None:
    """What is special about PostgreSQL."""
    postgres = Postgres()
    service = Service(folder, postgres.database())

    def hang() -> None:
        postgres.pause()
        time.sleep(4.0)
        postgres.resume()

    try:
        service.fill("hot", 1000, batch=2)
        for name, event in (("nothing, on PostgreSQL", lambda: time.sleep(3)), ("PostgreSQL hangs for four seconds", hang)):
            print(f"| {name} | {beside(service, event)} |", flush=True)
    finally:
        service.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--folder", help="where stores are made; PostgreSQL keeps its own in the folder for temporary files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(f"| the disk alone | {disk_alone(Path(folder), 2 if options.small else 60)} |", flush=True)
        postgres_rows(Path(folder))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        sqlite_rows(Path(folder), options.small)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        long_log_rows(Path(folder), options.small)


if __name__ == "__main__":
    main()
