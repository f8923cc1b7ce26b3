"""`make bench`: how fast a round is, beside C and beside the peers, as ratios taken in one run. Writes docs/benchmarks.md.

Machines are shared and noisy: every comparison alternates between the two sides, and the median of the ratios is what counts.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import distributed
import numpy as np

from thrifty import Instance, World, list_policies, simulate
from thrifty import policy as as_policy
from thrifty.environments.families import table_1
from thrifty.simulation.runner import _Task
from thrifty.sweep import Setting, sweep

HERE = Path(__file__).parent
BUILD = HERE / "build"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PEERS = {"pybandits": "pybandits==8.4.1", "mabwiser": "mabwiser==2.7.4", "river": "river==0.22.0"}
FIGURE_1 = Instance([0.5, 0.46], [1.0, 0.0], 0.1)


def instance_of(n_arms: int) -> Instance:
    """Figure 1's instance for two arms; random means and increasing random costs for more."""
    if n_arms == 2:
        return Instance([0.46, 0.5], [0.0, 1.0], 0.1)
    rng = np.random.default_rng(1)
    return Instance(rng.uniform(0.2, 0.7, n_arms), np.sort(rng.uniform(0.0, 1.0, n_arms)), 0.1)


@cache
def task_of(policy: str, n_arms: int, horizon: int, runs: int) -> _Task:
    """Everything a measurement needs, made beforehand."""
    world = World.of(instance_of(n_arms))
    return _Task(as_policy(policy), world.terms(horizon), world, np.array([horizon]), runs=runs, seed=1, trace=False)


def jitted_ns(policy: str, n_arms: int, horizon: int, runs: int) -> float:
    """Nanoseconds per round on one thread."""
    task = task_of(policy, n_arms, horizon, runs)
    started = time.perf_counter()
    task.play(0, runs, np.zeros(1, np.int64), np.zeros(1, np.bool_))
    return 1e9 * (time.perf_counter() - started) / (horizon * runs)


def compile_c() -> Path:
    """The C program, compiled on the spot."""
    BUILD.mkdir(exist_ok=True)
    program = BUILD / "floor"
    subprocess.run(["gcc", "-O3", "-march=native", "-o", str(program), str(HERE / "floor.c"), "-lm"], check=True)
    return program


def c_ns(program: Path, policy: str, n_arms: int, horizon: int, runs: int) -> float:
    """Nanoseconds per round of the C program."""
    instance = instance_of(n_arms)
    arms = "\n".join(f"{mean!r} {cost!r}" for mean, cost in zip(instance.means.tolist(), instance.costs.tolist(), strict=True))
    shown = subprocess.run(
        [str(program), policy, "0.1", str(horizon), str(runs)],
        input=f"{n_arms}\n{arms}\n",
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return float(shown.split()[0])


def side_by_side(ours: Callable[[], float], theirs: Callable[[], float], repeats: int) -> tuple[float, float, float]:
    """Medians of both sides and of their ratio, taken in turns."""
    ours()  # compile, load, warm up
    pairs = [(ours(), theirs()) for _ in range(repeats)]
    mine, other = zip(*pairs, strict=True)
    return statistics.median(mine), statistics.median(other), statistics.median(a / b for a, b in pairs)


def against_c(repeats: int) -> list[str]:
    """The table of ratios to C."""
    program = compile_c()
    lines = ["| policy | K | T | thrifty, ns | C, ns | ratio | C program |", "|---|---|---|---|---|---|---|"]
    cases = [
        ("cs-ucb", "cs-ucb-plain", 2, 10_000, 100, "as the paper writes it"),
        ("cs-etc", "cs-etc-plain", 2, 10_000, 100, "as the paper writes it"),
        ("cs-ts", "cs-ts", 2, 10_000, 20, "as the paper writes it"),
        ("cs-ucb", "cs-ucb", 2, 10_000, 100, "incremental"),
        ("cs-etc", "cs-etc", 2, 10_000, 100, "incremental"),
        ("cs-ucb", "cs-ucb", 100, 1_000_000, 1, "incremental"),
        ("cs-etc", "cs-etc", 100, 1_000_000, 1, "incremental"),
        ("cs-ts", "cs-ts", 100, 10_000, 1, "as the paper writes it"),
        ("cs-ucb", "cs-ucb", 10_000, 1_000_000, 1, "incremental"),
        ("cs-etc", "cs-etc", 10_000, 1_000_000, 1, "incremental"),
    ]
    for policy, rival, n_arms, horizon, runs, kind in cases:
        mine, other, ratio = side_by_side(
            lambda p=policy, k=n_arms, t=horizon, r=runs: jitted_ns(p, k, t, r),
            lambda p=rival, k=n_arms, t=horizon, r=runs: c_ns(program, p, k, t, r),
            repeats,
        )
        lines.append(f"| {policy} | {n_arms:,} | {horizon:,} | {mine:,.1f} | {other:,.1f} | {ratio:.2f} | {kind} |")
        print(lines[-1], flush=True)
    return lines


def every_policy() -> list[str]:
    """Nanoseconds per round of every policy at four numbers of arms."""
    sizes = (2, 10, 20, 100, 10_000)
    lines = ["| policy | " + " | ".join(f"K = {k:,}" for k in sizes) + " |", "|---|" + "---|" * len(sizes)]
    for policy in list_policies():
        cells = []
        for n_arms in sizes:
            if policy == "cs-ids" and n_arms > 1000:
                cells.append("-")  # it weighs pairs of arms: minutes, and not what it is for
                continue
            scan = policy not in ("cs-ucb", "cs-etc", "one-shot-etc", "cheapest", "uniform", "oracle")
            horizon = max(n_arms, 200_000 // (n_arms if scan else 1)) if n_arms < 10_000 else 20_000 if scan else 1_000_000
            jitted_ns(policy, n_arms, n_arms, 1)
            cells.append(f"{min(jitted_ns(policy, n_arms, horizon, 1) for _ in range(3)):,.0f}")
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def against_peers() -> list[str]:
    """Microseconds per round of the peers, each in its own environment, and how many times thrifty's CS-TS is faster."""
    sizes = (2, 10, 100)
    ours = {k: min(jitted_ns("cs-ts", k, 20_000 // k * 10, 1) for _ in range(5)) / 1000 for k in sizes}
    lines = [
        "| library | " + " | ".join(f"K = {k}: us a round (times thrifty's)" for k in sizes) + " |",
        "|---|" + "---|" * len(sizes),
        "| **thrifty cs-ts** | " + " | ".join(f"{ours[k]:.3f}" for k in sizes) + " |",
    ]
    for name, requirement in PEERS.items():
        python = BUILD / name / "bin" / "python"
        if not python.exists():
            print(f"installing {requirement}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", str(BUILD / name)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement], check=True)
        shown = subprocess.run(
            [str(python), "-W", "ignore", str(HERE / "peers" / f"{name}_round.py"), *map(str, sizes)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        ).stdout
        found = json.loads(shown.splitlines()[-1])
        cells = [f"{found['microseconds'][str(k)]:,.1f} ({found['microseconds'][str(k)] / ours[k]:,.0f}x)" for k in sizes]
        lines.append(f"| {found['name']} {found['version']} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def whole_program() -> list[str]:
    """Threads, memory, import time and the command line."""

    def seconds(threads: int) -> float:
        started = time.perf_counter()
        simulate(FIGURE_1, "cs-ts", horizon=50_000, runs=400, seed=1, threads=threads, checkpoints=1)
        return time.perf_counter() - started

    two, one, ratio = side_by_side(lambda: seconds(2), lambda: seconds(1), 7)
    simulate(FIGURE_1, "cs-etc", horizon=1000, runs=1, threads=1)  # compiled before memory is looked at
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    simulate(FIGURE_1, "cs-etc", horizon=100_000_000, runs=1, seed=1, threads=1)
    long_run = time.perf_counter() - started
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    imports = statistics.median(_command("-c", "import thrifty; thrifty.Instance") for _ in range(9))
    bare = statistics.median(_command("-c", "pass") for _ in range(9))
    compare = ["-m", "thrifty.cli", "compare", "--means", "0.5,0.46", "--costs", "1,0", "--alpha", "0.1", "--horizon", "5000"]
    command = statistics.median(_command(*compare) for _ in range(5))
    return [
        "| what | measured |",
        "|---|---|",
        f"| two threads against one (CS-TS, 400 runs of 50,000 rounds) | {1 / ratio:.2f}x ({one:.2f} s, {two:.2f} s) |",
        f"| 10^8 rounds of CS-ETC in one run | {long_run:.1f} s, resident memory grew by {grown:.1f} MB |",
        f"| `import thrifty` and its first class, above an empty interpreter | {1000 * (imports - bare):.0f} ms |",
        f"| `thrifty compare` of three policies, T = 5,000, 50 runs, warm cache | {command:.2f} s in all |",
    ]


def sweeps() -> list[str]:
    """Two workers against one, on threads of this process and on running Dask clusters of one and two processes, in turns."""
    settings = [Setting(table_1(0.30 + 0.01 * step), "cs-ts", 50_000, 40, step) for step in range(31)]

    def seconds(workers: int, backend: str) -> float:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            sweep(settings, folder, workers=workers, backend=backend)
            return time.perf_counter() - started

    def cluster(workers: int) -> distributed.LocalCluster:
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        )

    lines = ["| backend | one worker, s | two workers, s | times faster |", "|---|---|---|---|"]
    with cluster(1) as single, cluster(2) as double:
        for backend, addresses in {
            "local": ("local", "local"),
            "dask": (single.scheduler_address, double.scheduler_address),
        }.items():
            alone, together = (address.replace("tcp://", "dask://") for address in addresses)
            two, one, ratio = side_by_side(lambda a=together: seconds(2, a), lambda a=alone: seconds(1, a), 7)
            lines.append(f"| {backend} | {one:.2f} | {two:.2f} | {1 / ratio:.2f} |")
            print(lines[-1], flush=True)
    return lines


def reproduction() -> list[str]:
    """How long `thrifty reproduce` takes with a warm cache, into an empty folder."""
    lines = ["| command | seconds |", "|---|---|"]
    for items in (["fig1", "fig2", "table1"], ["--quick"]):
        with tempfile.TemporaryDirectory() as folder:
            seconds = _command("-m", "thrifty.cli", "reproduce", *items, "--out", folder)
        lines.append(f"| `thrifty reproduce {' '.join(items)}` | {seconds:.1f} |")
        print(lines[-1], flush=True)
    return lines


def _command(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="pairs per comparison with C")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out: their environments take a gigabyte")
    options = parser.parse_args()
    sections = {
        "Beside C": (
            "`benchmarks/floor.c`, gcc -O3 -march=native, one thread. "
            "*As the paper writes it* recomputes every bound in every round; "
            "*incremental* touches only the pulled arm while the choice stands, and is the fastest we know how to write. "
            "Medians of pairs taken in turns.",
            against_c(options.repeats),
        ),
        "Every policy": ("Nanoseconds per round, one thread, the best of three.", every_policy()),
        "The whole program": ("", whole_program()),
        "Sweeps": (
            "31 settings of CS-TS, 40 runs of 50,000 rounds each; Dask is up beforehand. Medians of pairs taken in turns.",
            sweeps(),
        ),
        "The paper, reproduced": ("Warm cache, empty folder.", reproduction()),
    }
    if not options.no_peers:
        sections["Beside the peers"] = (
            "Choose, observe, update: one round, each library in its own environment. Only pybandits knows a cost subsidy; "
            "the others run plain Thompson sampling.",
            against_peers(),
        )
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, numba {_version('numba')}, numpy {np.__version__}"
    text = (
        f"# Benchmarks\n\nWritten by `make bench` on {machine}. Absolute times are of that machine; ratios were taken in one run.\n"
    )
    for title, (about, lines) in sections.items():
        text += f"\n## {title}\n\n" + (f"{about}\n\n" if about else "") + "\n".join(lines) + "\n"
    PAGE.write_text(text)
    print(f"wrote {PAGE.relative_to(HERE.parent)}")


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


if __name__ == "__main__":
    main()
