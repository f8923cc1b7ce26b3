"""How fast a long log is summed up: on this machine, and by one and two Dask workers; checks that the bytes are the same.

    python benchmarks/logs.py                          # ten million rows in twenty Parquet files
    python benchmarks/logs.py --rows 30000000 --files 40 --repeats 5

Each worker is a process with one thread (POLARS_MAX_THREADS=1). Every cluster sums up the log once before it is timed, so that
kernels are compiled and files are in the cache of the disk. The shortest of the repeats is shown: other work on the machine only
adds to it. CPU seconds, of the workers and of this process (which cannot be shared out), hardly change with other work: together
they say what two workers can reach on a machine that is idle.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars

from thrifty.examples import EXAMPLES
from thrifty.examples.generator import write_example
from thrifty.logs import Aggregates, Columns, Log, aggregate

COLUMNS = Columns(
    arm="aggregator",
    reward="status",
    success=("delivered",),
    cost="price",
    segment="country",
    time="sent_at",
    propensity="propensity",
    outcome_time="received_at",
)


def write_log(folder: Path, rows: int, files: int) -> None:
    """A log of the SMS world in Parquet files of equal size."""
    whole, _ = write_example(EXAMPLES["sms"], folder / "whole", rows=rows, seed=1, kind="parquet")
    (folder / "log").mkdir()
    for number in range(files):
        first, last = number * rows // files, (number + 1) * rows // files
        part = polars.scan_parquet(whole).slice(first, last - first)
        part.sink_parquet(folder / "log" / f"part-{number:03d}.parquet")


def as_bytes(sums: Aggregates) -> bytes:
    """Everything that was summed up."""
    return b"".join([sums.starts.tobytes(), *(each.sums.tobytes() + each.delays.tobytes() for each in sums.segments)])


def timed(folder: Path, backend: str, repeats: int) -> tuple[float, float, bytes]:
    """The shortest time in seconds, the least CPU seconds of this process, and the sums."""
    seconds, spent, found = [], [], b""
    for _ in range(repeats + 1):
        started, used = time.perf_counter(), time.process_time()
        found = as_bytes(aggregate(Log(folder / "log", COLUMNS, now=2e9, backend=backend)))
        seconds.append(time.perf_counter() - started)
        spent.append(time.process_time() - used)
    return min(seconds[1:]), min(spent[1:]), found


def alone(folder: Path, repeats: int) -> dict[str, Any]:
    """On this machine, in a process of its own."""
    code = (
        "import json, resource, sys; from pathlib import Path; from benchmarks.logs import timed; "
        "seconds, spent, _ = timed(Path(sys.argv[1]), 'local', int(sys.argv[2])); "
        "print(json.dumps([seconds, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))"
    )
    root = Path(__file__).parent.parent
    ran = subprocess.run(
        [sys.executable, "-c", code, str(folder), str(repeats)], check=True, capture_output=True, text=True, cwd=root
    )
    seconds, spent, peak = json.loads(ran.stdout)
    return {"where": f"this machine, {os.cpu_count()} cores", "seconds": seconds, "CPU s": spent, "peak MB": peak}


def on_cluster(folder: Path, workers: int, repeats: int) -> tuple[dict[str, Any], bytes]:
    """On a Dask cluster with so many workers, each with one thread."""
    from distributed import LocalCluster

    one = {"POLARS_MAX_THREADS": "1"}
    with LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, env=one) as cluster:
        before = _worker_cpu(cluster)
        seconds, here, found = timed(folder, cluster.scheduler_address.replace("tcp://", "dask://"), repeats)
        spent = (_worker_cpu(cluster) - before) / (repeats + 1)
    return {"where": f"Dask, {workers} workers", "seconds": seconds, "CPU s of workers": spent, "CPU s here": here}, found


def _worker_cpu(cluster: Any) -> float:
    from distributed import Client

    with Client(cluster) as client:
        usages = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF)).values()
    return float(sum(each.ru_utime + each.ru_stime for each in usages))


def main() -> None:
    """Write a log, sum it up in each way, print a table."""
    parser = argparse.ArgumentParser(description="How fast a long log is summed up.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder, options.rows, options.files)
        print(f"{options.rows:,} rows in {options.files} Parquet files; load average {os.getloadavg()[0]:.1f}")
        print(alone(folder, options.repeats))
        one, first = on_cluster(folder, 1, options.repeats)
        two, second = on_cluster(folder, 2, options.repeats)
        here = timed(folder, "local", 1)[2]
        print(one)
        print(two)
        print(f"two workers against one: {one['seconds'] / two['seconds']:.2f}; same bytes: {first == second == here}")


if __name__ == "__main__":
    main()
