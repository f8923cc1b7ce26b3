"""How fast the router and the service are, as ratios taken in one run. Writes docs/service-benchmarks.md.

.venv/bin/python benchmarks/service.py            # needs wrk for the HTTP part, which is left out without it
"""

import argparse
import os
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from thrifty import Router

PAGE = Path(__file__).parents[1] / "docs" / "service-benchmarks.md"
EMPTY = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})
"""
SCRIPT = 'wrk.method = "POST"; wrk.body = \'{"router": "sms", "segment": "DE"}\''


def make_router(n_arms: int, policy: str, **settings: object) -> Router:
    """A router over arms of increasing price that knows a little about each."""
    router = Router({f"arm{n}": 0.001 * (n + 1) for n in range(n_arms)}, 0.1, policy=policy, **settings)
    for _ in range(10 * n_arms):
        router.record(router.decide().id, reward=1)
    return router


def pair_us(router: Router, rounds: int, segments: list[str]) -> float:
    """Microseconds of one decide and one record; the best of five."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for n in range(rounds):
            router.record(router.decide(segments[n % len(segments)]).id, reward=1)
        best = min(best, (time.perf_counter() - started) / rounds)
    return 1e6 * best


def decide_us(router: Router, segments: list[str], rounds: int) -> float:
    """Microseconds of one decide."""
    started = time.perf_counter()
    for n in range(rounds):
        router.decide(segments[n % len(segments)])
    return 1e6 * (time.perf_counter() - started) / rounds


def loop_us(rounds: int = 200_000) -> float:
    """A yardstick of this machine now: one turn of a loop that fills and empties a dict."""
    found: dict[int, float] = {}
    started = time.perf_counter()
    for n in range(rounds):
        found[n & 1023] = found.get(n & 1023, 0.0) + 1.0
    return 1e6 * (time.perf_counter() - started) / rounds


def embedded() -> list[str]:
    """Decide and record in memory."""
    lines = [
        "| what | measured |",
        "|---|---|",
        f"| one turn of a Python loop that updates a dict, for scale | {loop_us():.2f} us |",
    ]
    for policy in ("cs-ucb", "cs-etc:tau=10", "cs-ts"):
        router = make_router(10, policy, propensity_draws=0)
        lines.append(f"| `decide` + `record`, {policy}, K = 10, no segment | {pair_us(router, 5000, ['']):.1f} us |")
    one, many = make_router(20, "cs-etc:tau=10"), make_router(20, "cs-etc:tau=10")
    names = [f"s{n}" for n in range(1000)]
    decide_us(one, ["s0"], 1000)
    decide_us(many, names, 1000)
    ratios = [decide_us(many, names, 5000) / decide_us(one, ["s0"], 5000) for _ in range(7)]
    lines.append(f"| `decide` with 1,000 segments x 20 arms against one segment | {statistics.median(ratios):.2f}x |")
    return lines


def memory(decisions: int) -> list[str]:
    """Resident memory over many decisions with outcomes."""
    router = make_router(10, "cs-etc:tau=10")
    for n in range(120_000):
        router.record(router.decide(f"s{n % 10}").id, reward=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(decisions):
        router.record(router.decide(f"s{n % 10}").id, reward=1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return [f"| peak resident memory, growth over {decisions:,} decisions with outcomes | {grown:.1f} MB |"]


def durable(folder: Path) -> list[str]:
    """SQLite with synchronous=FULL, from eight threads, one decision at a time and in batches."""
    lines = []
    with Router({f"arm{n}": 0.1 for n in range(10)}, 0.1, policy="cs-etc:tau=10", store=f"sqlite:///{folder / 'b.db'}") as router:

        def from_threads(work: Callable[[], object], rounds: int) -> float:
            def repeat() -> None:
                for _ in range(rounds):
                    work()

            threads = [threading.Thread(target=repeat) for _ in range(8)]
            started = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return 8 * rounds / (time.perf_counter() - started)

        from_threads(router.decide, 50)
        lines.append(f"| durable decisions/s from 8 threads, one at a time | {from_threads(router.decide, 400):,.0f} |")
        batch = [{}] * 100
        rate = 100 * from_threads(lambda: router.decide_many(batch), 30)
        lines.append(f"| durable decisions/s from 8 threads, `decide_many` of 100 | {rate:,.0f} |")
    return lines


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


def http(folder: Path, seconds: int, repeats: int) -> list[str]:
    """The service beside an empty handler on the same server, in turns."""
    if shutil.which("wrk") is None:
        return ["| HTTP | left out: wrk is not installed |"]
    (folder / "empty_handler.py").write_text(EMPTY)
    (folder / "decide.lua").write_text(SCRIPT)
    ports = free_port(), free_port()
    service = subprocess.Popen(
        [sys.executable, "-m", "thrifty.cli", "serve", "--store", f"sqlite:///{folder / 'h.db'}", "--port", str(ports[0])],
        stderr=subprocess.DEVNULL,
    )
    empty = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "empty_handler:app", "--port", str(ports[1]), "--loop", "uvloop", "--http", "httptools",
         "--no-access-log", "--log-level", "error"], cwd=folder,
    )  # fmt: skip
    try:
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        for url in urls:
            wait_for(url)
        router = {"arms": {"a": 0.0079, "b": 0.0062, "c": 0.0041}, "alpha": 0.05}
        httpx.put(f"{urls[0]}/v1/routers/sms", json=router, timeout=120).raise_for_status()
        pairs = []
        for _ in range(repeats):
            pairs.append((wrk(f"{urls[0]}/v1/decisions", folder, seconds), wrk(urls[1], folder, seconds)))
    finally:
        for process in (service, empty):
            process.terminate()
            process.wait()
    ratio = statistics.median(ours[0] / theirs[0] for ours, theirs in pairs)
    rate, p99 = (statistics.median(ours[n] for ours, _ in pairs) for n in (0, 1))
    other, other_p99 = (statistics.median(theirs[n] for _, theirs in pairs) for n in (0, 1))
    return [
        f"| HTTP decisions/s, 32 connections, reply after a FULL commit | {rate:,.0f}, p99 {p99:.1f} ms |",
        f"| an empty ASGI handler on the same server | {other:,.0f}, p99 {other_p99:.1f} ms |",
        f"| ratio of the two | {ratio:.2f} |",
    ]


def wrk(url: str, folder: Path, seconds: int) -> tuple[float, float]:
    """Requests a second, and the 99th percentile in milliseconds."""
    command = ["wrk", "-t1", "-c32", f"-d{seconds}", "--latency", "-s", str(folder / "decide.lua"), url]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in shown:
        raise RuntimeError(shown)
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", shown)[0])
    value, unit = re.findall(r"99%\s+([\d.]+)(us|ms|s)", shown)[0]
    return rate, float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="for the memory measurement")
    parser.add_argument("--seconds", type=int, default=3, help="of each wrk run")
    parser.add_argument("--repeats", type=int, default=5, help="pairs of wrk runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = embedded()
        lines += durable(folder)
        lines += http(folder, options.seconds, options.repeats)
        lines += memory(options.decisions)
    load = os.getloadavg()[0]
    text = (
        "# Benchmarks of the router and the service\n\n"
        f"Written by `python benchmarks/service.py` on {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} "
        "at the end. Absolute times are of that machine at that time; ratios were taken in one run, in turns.\n\n"
    )
    PAGE.write_text(text + "\n".join(lines) + "\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
