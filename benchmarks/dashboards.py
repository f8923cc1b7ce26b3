"""What open dashboards cost: requests a second, requests for a second of processor time of the service, and the 99th percentile.

Measured in turns: with none open, with several open on a second service that has nothing else to do, and with several open here.
The second shows what the clients cost on a machine with few processors, where in truth dashboards are open on other machines. The
ratio of the third to the second is what the dashboards cost the decisions. Requests for a second of processor time depend least on
what else runs.

.venv/bin/python benchmarks/dashboards.py                        # needs wrk; ten dashboards, ten turns of five seconds each
.venv/bin/python benchmarks/dashboards.py --turns 2 --seconds 2  # only shows that it works

A dashboard is a client that does what the script of a page does: it follows the events of a router and asks for the parts of the
page after each. All run in a process of their own at the lowest priority, and so does the second service.
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


async def keep_deciding(url: str) -> None:
    """A few decisions a second, so that there is something new to show, whatever else is sent."""
    async with httpx.AsyncClient(base_url=url, timeout=30.0) as client:
        while True:
            await client.post("/v1/decisions", json={"router": ROUTER})
            await asyncio.sleep(0.2)


async def open_dashboards(url: str, number: int) -> None:
    """Several at once."""
    os.nice(19)
    await asyncio.gather(keep_deciding(url), *(dashboard(url) for _ in range(number)))


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


class Service:
    """A service with one router, in a process of its own."""

    def __init__(self, store: Path, *, niceness: int = 0) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        serve = [sys.executable, "-m", "thrifty.cli", "serve", "--store", f"sqlite:///{store}", "--port", str(port)]
        self.process = subprocess.Popen(
            [*serve, "--log-level", "error"], stderr=subprocess.DEVNULL, preexec_fn=lambda: os.nice(niceness)
        )
        wait_for(f"{self.url}/readyz")
        arms = {f"arm{number}": 0.001 * (number + 1) for number in range(8)}
        httpx.put(f"{self.url}/v1/routers/{ROUTER}", json={"arms": arms, "alpha": 0.05}, timeout=300.0).raise_for_status()

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


def measure(folder: Path, *, seconds: int, turns: int, number: int) -> list[tuple[Turn, ...]]:
    """Measurements without dashboards, with dashboards on another service, and with dashboards here."""
    script = folder / "load.lua"
    script.write_text(DECIDE_AND_RECORD.replace("ROUTER", ROUTER))
    found, services = [], [Service(folder / "here.db")]
    try:
        services.append(Service(folder / "there.db", niceness=19))
        here, there = services
        for each in services:
            wrk(f"{each.url}/v1/decisions", script, 2 * seconds)  # until everything is compiled
        for _ in range(turns):
            without = turn(here.url, script, seconds, here.process.pid)
            looked_at = []
            for each in (there, here):
                pages = subprocess.Popen([sys.executable, __file__, "--open", each.url, "--dashboards", str(number)])
                time.sleep(3.0)  # until they are open
                try:
                    looked_at.append(turn(here.url, script, seconds, here.process.pid))
                finally:
                    pages.terminate()
                    pages.wait()
            found.append((without, *looked_at))
    finally:
        for each in services:
            each.stop()
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
    kinds = ("none", "elsewhere", "here")
    units = ("requests/s", "for a CPU second", "p99 ms")
    print("| " + " | ".join(f"{unit}, {kind}" for unit in units for kind in kinds) + " |")
    print("|---" * 9 + "|")
    for row in found:
        print("| " + " | ".join(f"{each[n]:,.4g}" for n in range(3) for each in row) + " |")
    for kind, base in (("none", 0), ("as many elsewhere", 1)):
        ratios = [statistics.median(row[2][n] / row[base][n] for row in found) for n in range(3)]
        print(f"\n{options.dashboards} dashboards against {kind}, median ratios:", end=" ")
        print("throughput {:.3f}, for a CPU second {:.3f}, p99 {:.3f}".format(*ratios))


if __name__ == "__main__":
    main()
