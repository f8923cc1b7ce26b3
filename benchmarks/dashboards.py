"""What open dashboards cost: requests a second, requests for a second of processor time of the service, and the 99th percentile.

Measured in turns with none and with several open. Requests for a second of processor time depend least on what else runs.

.venv/bin/python benchmarks/dashboards.py                        # needs wrk; ten dashboards, ten turns of five seconds each
.venv/bin/python benchmarks/dashboards.py --turns 2 --seconds 2  # only shows that it works

A dashboard is a client that does what the script of a page does: it follows the events of a router and asks for the parts of the
page after each. It runs in a process of its own at the lowest priority, because dashboards are open on other machines.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import httpx

from http_load import DECIDE_AND_RECORD, free_port, wait_for, wrk

ROUTER = "sms"
QUICK = ("tags", "head", "picture", "arms", "decisions")
SLOW = {"series": 2, "segments": 3, "rollout": 3, "changes": 5}
"""Parts that are asked for after every event, and the others with the seconds between two requests."""


async def dashboard(url: str) -> None:
    """Follow a router as a page does."""
    async with (
        httpx.AsyncClient(base_url=url, timeout=30.0) as client,
        client.stream("GET", f"/v1/events?router={ROUTER}") as events,
    ):
        seconds = 0
        async for chunk in events.aiter_raw():
            if b"event:" not in chunk:
                continue
            seconds += 1
            moment = f"{zlib.crc32(chunk[-2000:]):x}"
            parts = [f"{','.join(QUICK)}&moment={moment}"] + [part for part, every in SLOW.items() if seconds % every == 0]
            for part in parts:
                await client.get(f"/dashboard/routers/{ROUTER}?part={part}&size=wide")


async def open_dashboards(url: str, number: int) -> None:
    """Several at once."""
    os.nice(19)
    await asyncio.gather(*(dashboard(url) for _ in range(number)))


Turn = tuple[float, float, float]
"""Requests a second, requests for a second of processor time of the service, and the 99th percentile in milliseconds."""


def cpu_s(process: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def turn(url: str, script: Path, seconds: int, process: int) -> Turn:
    """One measurement."""
    before = cpu_s(process)
    rate, p99 = wrk(f"{url}/v1/decisions", script, seconds)
    return rate, rate * seconds / (cpu_s(process) - before), p99


def measure(folder: Path, *, seconds: int, turns: int, number: int) -> list[tuple[Turn, Turn]]:
    """Pairs of measurements, without and with dashboards."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    serve = [sys.executable, "-m", "thrifty.cli", "serve", "--store", f"sqlite:///{folder / 'd.db'}", "--port", str(port)]
    service = subprocess.Popen([*serve, "--log-level", "error"], stderr=subprocess.DEVNULL)
    script = folder / "load.lua"
    script.write_text(DECIDE_AND_RECORD.replace("ROUTER", ROUTER))
    found = []
    try:
        wait_for(f"{url}/readyz")
        arms = {f"arm{number}": 0.001 * (number + 1) for number in range(8)}
        httpx.put(f"{url}/v1/routers/{ROUTER}", json={"arms": arms, "alpha": 0.05}, timeout=300.0).raise_for_status()
        wrk(f"{url}/v1/decisions", script, 2 * seconds)  # until everything is compiled
        for _ in range(turns):
            without = turn(url, script, seconds, service.pid)
            pages = subprocess.Popen([sys.executable, __file__, "--open", url, "--dashboards", str(number)])
            time.sleep(3.0)  # until they are open
            try:
                found.append((without, turn(url, script, seconds, service.pid)))
            finally:
                pages.terminate()
                pages.wait()
    finally:
        service.terminate()
        service.wait()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5, help="of one measurement")
    parser.add_argument("--turns", type=int, default=10, help="pairs of measurements")
    parser.add_argument("--dashboards", type=int, default=10, help="how many are open")
    parser.add_argument("--open", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        asyncio.run(open_dashboards(options.open, options.dashboards))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), seconds=options.seconds, turns=options.turns, number=options.dashboards)
    print("| requests/s without | with | ratio | for a CPU second without | with | ratio | p99 ms without | with | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for before, after in found:
        cells = [f"{value:,.4g}" for n in range(3) for value in (before[n], after[n], after[n] / before[n])]
        print(f"| {' | '.join(cells)} |")
    rates, work, tails = (statistics.median(after[n] / before[n] for before, after in found) for n in range(3))
    print(f"\nmedian ratios with {options.dashboards} dashboards:", end=" ")
    print(f"throughput {rates:.3f}, for a CPU second {work:.3f}, p99 {tails:.3f}")


if __name__ == "__main__":
    main()
