"""How fast the router and the service are, as ratios taken in one run. Writes docs/service-benchmarks.md.

.venv/bin/python benchmarks/service.py            # needs wrk for the HTTP part, which is left out without it
.venv/bin/python benchmarks/service.py --small    # every measurement at a size that only shows that it works; writes nothing
"""

import argparse
import os
import platform
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from http_load import http
from thrifty import Router
from thrifty.router.records import DecisionRecord
from thrifty.store.group_commit import GroupCommit

PAGE = Path(__file__).parents[1] / "docs" / "service-benchmarks.md"


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


def kernels_us(router: Router, rounds: int) -> float:
    """Microseconds of what compiled code does for one decide and one record: look, choose, count the outcome."""
    state, best = router.state, float("inf")
    segments, counting, table = state.segments, state.engine.counting, np.zeros(512, DecisionRecord)
    rule, everything = segments.rule(segments.root), segments.sums.everything()
    for _ in range(5):
        started = time.perf_counter()
        for n in range(rounds):
            place = rule.choose(segments.sums, n, 0)
            counting.count_outcome.call(table, n & 511, place, 1.0, 0.5, *everything)
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
    for policy in ("cs-ucb", "cs-etc:tau=10", "cs-ts", "cs-ids"):
        router = make_router(10, policy)
        shown = f"{policy}{'' if policy.startswith(('cs-ucb', 'cs-etc')) else ' with its propensities'}"
        lines.append(f"| `decide` + `record`, {shown}, K = 10, no segment | {pair_us(router, 1000, ['']):.1f} us |")
        if policy == "cs-ucb":
            lines.append(f"| of that, compiled code and getting there, the floor | {kernels_us(router, 5000):.1f} us |")
    one, many = make_router(20, "cs-etc:tau=10"), make_router(20, "cs-etc:tau=10")
    names = [f"s{n}" for n in range(1000)]
    decide_us(one, ["s0"], 1000)
    decide_us(many, names, 1000)
    ratios = [decide_us(many, names, 5000) / decide_us(one, ["s0"], 5000) for _ in range(7)]
    lines.append(f"| `decide` with 1,000 segments x 20 arms against one segment | {statistics.median(ratios):.2f}x |")
    return lines


def memory(decisions: int) -> list[str]:
    """Resident memory over many decisions, of which nine in ten get an outcome."""
    router = make_router(10, "cs-etc:tau=10")

    def play(rounds: int) -> float:
        for n in range(rounds):
            decision = router.decide(f"s{n % 10}")
            if n % 10:
                router.record(decision.id, reward=1)
        return resident_mb()

    before = play(3 * router.state.records_limit())
    grown = play(decisions) - before
    return [
        f"| resident memory, growth over {decisions:,} decisions, nine in ten with outcomes | {grown:+.1f} MB of {before:.0f} MB |",
        f"| decisions that wait for an outcome then, {router.state.records_limit():,} fit in memory | {router.pending:,} |",
    ]


def resident_mb() -> float:
    """Of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def from_threads(work: Callable[[], object], rounds: int, threads: int = 8) -> float:
    """Calls a second from several threads."""

    def repeat() -> None:
        for _ in range(rounds):
            work()

    running = [threading.Thread(target=repeat) for _ in range(threads)]
    started = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return threads * rounds / (time.perf_counter() - started)


def durable(folder: Path, rounds: int) -> list[str]:
    """SQLite with synchronous=FULL, from eight threads, one decision at a time and in batches, beside inserts of nothing."""
    rows = sqlite3.connect(folder / "floor.db", isolation_level=None, check_same_thread=False)
    rows.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (n INTEGER PRIMARY KEY)")

    def commit(batch: list[tuple[int, object]]) -> None:
        rows.execute(f"INSERT INTO t VALUES {', '.join(['(?)'] * len(batch))}", [position for position, _ in batch])

    floor, singles, batches, commits = GroupCommit(commit, durable=0), [], [], []
    for turn in range(5):  # each with a router of its own, that remembers fewer decisions than it can
        url = f"sqlite:///{folder / f'b{turn}.db'}"
        with Router({f"arm{n}": 0.1 for n in range(10)}, 0.1, policy="cs-etc:tau=10", store=url) as router:
            from_threads(router.decide, 50)
            started, before = time.perf_counter(), floor.commits
            empty = from_threads(lambda: floor.wait(floor.append((), 0)), rounds)
            commits.append((floor.commits - before) / (time.perf_counter() - started))
            singles.append((from_threads(router.decide, rounds), empty))
            batches.append(100 * from_threads(lambda: router.decide_many([{}] * 100), max(rounds // 10, 5)))
    floor.close()
    ours, empty = (statistics.median(pair[n] for pair in singles) for n in (0, 1))
    share = statistics.median(a / b for a, b in singles)
    return [
        f"| commits/s of an empty row from 8 threads, what this disk gives | {statistics.median(commits):,.0f} |",
        f"| durable empty rows/s from 8 threads, one at a time, the floor | {empty:,.0f} |",
        f"| durable decisions/s from 8 threads, one at a time | {ours:,.0f}, {share:.2f} of the floor |",
        f"| durable decisions/s from 8 threads, `decide_many` of 100 | {statistics.median(batches):,.0f} |",
    ]


def start_up(folder: Path, decisions: int) -> list[str]:
    """From a log of so many decisions with outcomes to the first decision: with the last snapshot, and from the whole log."""
    url = f"sqlite:///{folder / 's.db'}"
    arms = {f"arm{n}": 0.001 * (n + 1) for n in range(10)}
    batch = [{"segment": f"s{n % 100}"} for n in range(1000)]
    with Router(arms, 0.1, policy="cs-etc:tau=10", store=url) as router:
        for _ in range(decisions // 1000):
            position = 0
            for decision in router.decide_many(batch):
                _, position = router.record_soon(decision.id, 1)
            router.wait(position)

    def first_decision_s() -> float:
        started = time.perf_counter()
        router = Router(arms, 0.1, policy="cs-etc:tau=10", store=url)
        router.decide("s1")
        taken = time.perf_counter() - started
        router._owned_store.close()
        return taken

    with_snapshot = first_decision_s()
    connection = sqlite3.connect(folder / "s.db")
    connection.execute("DELETE FROM snapshots")
    connection.commit()
    connection.close()
    whole = first_decision_s()
    return [
        f"| start-up after {decisions:,} decisions with outcomes, to the first decision | {with_snapshot:.1f} s |",
        f"| the same from the whole log, without a snapshot | {whole:.0f} s, {1e6 * whole / (2 * decisions):.0f} us a row |",
    ]


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="for the memory and the start-up")
    parser.add_argument("--seconds", type=int, default=3, help="of each wrk run")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of wrk runs")
    parser.add_argument("--small", action="store_true", help="try every measurement at a small size, and print")
    options = parser.parse_args()
    decisions, seconds, repeats = (20_000, 1, 1) if options.small else (options.decisions, options.seconds, options.repeats)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = embedded()
        for measure in (
            lambda: durable(folder, 40 if options.small else 400),
            lambda: http(folder, seconds, repeats),
            lambda: memory(decisions),
            lambda: start_up(folder, decisions),
        ):
            found = measure()
            print("\n".join(found), flush=True)  # it takes minutes; somebody may be watching
            lines += found
    load = os.getloadavg()[0]
    text = (
        "# Benchmarks of the router and the service\n\n"
        f"Written by `python benchmarks/service.py` on {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} "
        "at the end. Absolute times are of that machine at that time; ratios were taken in one run, in turns. The floor is what "
        "the same work costs without a router: on a disk that gives n commits a second, eight threads that each wait for theirs "
        "cannot have more than 8 n durable rows a second.\n\n" + "\n".join(lines) + "\n"
    )
    if not options.small:
        PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
