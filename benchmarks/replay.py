"""How well replay tells the truth, and how fast: writes docs/replay-benchmarks.md.

    python benchmarks/replay.py                       # everything, about twenty minutes on two cores
    python benchmarks/replay.py coverage --logs 300 --log-rows 20000
    python benchmarks/replay.py regret --runs 40
    python benchmarks/replay.py speed --rows 10000000

`coverage` generates logs of the example worlds and counts how often intervals hold the truth. `regret` lets `recommend` choose
from the example logs, plays every candidate in the true world, and compares. `speed` profiles and replays a long log in a
process of its own. Seeds of the generated logs start at 1; whatever was tuned was tuned on seeds above 900,000.
"""

import argparse
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars

from thrifty.advice import Effort
from thrifty.advice.criteria import EXCHANGE
from thrifty.advice.fit import SegmentFit, SegmentTruth
from thrifty.advice.games import EFFORT
from thrifty.advice.play import play
from thrifty.advice.recommendation import ALPHAS, CANDIDATES, Recommendation, recommend
from thrifty.examples import EXAMPLES, Specification
from thrifty.examples.generator import arrivals, generate, truth, write_example
from thrifty.logs import Columns, Log, examine, replay
from thrifty.logs.estimators import intervals
from thrifty.logs.selective import choose_arm
from thrifty.policies import policy

PAGE = Path(__file__).parent.parent / "docs" / "replay-benchmarks.md"
COLUMNS = {
    "sms": Columns(
        arm="aggregator",
        reward="status",
        success=("delivered",),
        cost="price",
        segment="country",
        time="sent_at",
        propensity="propensity",
        outcome_time="received_at",
        missing="failure",
    ),
    "llm": Columns(
        arm="model",
        reward="quality",
        cost="cost",
        segment="task",
        time="sent_at",
        propensity="propensity",
        outcome_time="received_at",
    ),
}
PIECES = 48


def columns_of(name: str, *, logged: bool) -> Columns:
    """How to read an example log, with its propensities or without."""
    described = {**COLUMNS[name].__dict__, **({} if logged else {"propensity": None})}
    return Columns(**described)


# --- coverage


def cover_one(task: tuple[str, int, int]) -> list[tuple[str, int, int, float]]:
    """One generated log: (kind of interval, how many hold the truth, how many there are, sum of widths)."""
    name, rows, seed = task
    specification = EXAMPLES[name]
    facts = truth(specification)["segments"]
    frame = polars.concat(list(generate(specification, rows, seed=seed)))
    found: list[tuple[str, int, int, float]] = []
    for logged in (True, False):
        how = f"{name}, propensities {'logged' if logged else 'estimated'}"
        result = replay(Log(frame, columns_of(name, logged=logged), now=2e9), ALPHAS, policies=[], seed=seed)
        for each in result.evidence.estimates:
            arms = facts[each.sums.name]["arms"]
            rates, prices = (np.array([arms[arm][key] for arm in each.sums.arms]) for key in ("reported", "price"))
            for estimator in ("dr", "ips", "snips", "dm"):
                low, high = intervals(each, estimator)[0]
                found.append(_held(f"{how}: always one arm, reward, {estimator}", low, high, rates, each.usable))
            if not _listed(name):
                found.append(_held(f"{how}: always one arm, cost, dr", *intervals(each)[1], prices, each.usable))
            found.append(_held(f"{how}: always one arm, reward, sure bound", *each.bound[0], rates, each.usable))
        found += _cover_policies(how, result, facts)
    return found


def _listed(name: str) -> bool:
    return name == "sms"


def _cover_policies(how: str, result: Any, facts: dict[str, Any]) -> list[tuple[str, int, int, float]]:
    """Ways of choosing, over all segments: the truth is that of the arms chosen."""
    ways: dict[tuple[str, float | None], float] = {("always the best", None): 0.0, ("always the cheapest", None): 1.0}
    ways |= {("cheapest above the floor", alpha): alpha for alpha in ALPHAS}
    found = []
    for (name, alpha), level in ways.items():
        chosen = [choose_arm(each, level) for each in result.evidence.comparable]
        about = [facts[each.estimates.sums.name] for each in chosen]
        value = sum(one["share"] * one["arms"][each.name]["reported"] for one, each in zip(about, chosen, strict=True))
        value /= sum(one["share"] for one in about)
        for row in result.policies.filter(policy=name).filter(polars.col("alpha").eq_missing(alpha)).to_dicts():
            kind = f"{how}: choices over all segments, reward"
            one, exact = np.ones(1, dtype=bool), np.array([value])
            ends = np.array([row["reward_low"]]), np.array([row["reward_high"]])
            found.append(_held(f"{kind}, {row['estimator']}", *ends, exact, one))
            if row["estimator"] == "dr":
                sure = np.array([row["reward_sure_low"]]), np.array([row["reward_sure_high"]])
                found.append(_held(f"{kind}, sure bound", *sure, exact, one))
    return found


def _held(kind: str, low: Any, high: Any, value: Any, told: Any) -> tuple[str, int, int, float]:
    held = (low <= value) & (value <= high)
    return kind, int((held & told).sum()), int(told.sum()), float(((high - low) * told).sum())


def coverage(logs: int, rows: int, first_seed: int, workers: int) -> list[dict[str, Any]]:
    """Over many generated logs of both worlds: share of intervals that hold the truth, by kind."""
    tasks = [(name, rows, first_seed + number) for name in COLUMNS for number in range(logs)]
    sums: dict[str, list[float]] = {}
    os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1")  # read by the processes when they start
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done, result in enumerate(pool.map(cover_one, tasks, chunksize=4), 1):
            for kind, held, of, width in result:
                total = sums.setdefault(kind, [0, 0, 0.0])
                total[0], total[1], total[2] = total[0] + held, total[1] + of, total[2] + width
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done} of {len(tasks)} logs")
    return [
        {"interval": kind, "covered": held / of, "intervals": int(of), "mean width": width / of}
        for kind, (held, of, width) in sums.items()
    ]


# --- regret in the true world


def true_course(specification: Specification, fit: SegmentFit) -> SegmentTruth:
    """What is true of a segment over the span of its log, in `PIECES` equal shares of its requests, as outcomes are reported."""
    segment = specification.segment(fit.name)
    order = [[route.arm for route in segment.routes].index(arm) for arm in fit.arms]
    reported = np.array([1.0 - route.loss for route in segment.routes])
    means, costs = [], []
    for piece in range(PIECES):
        when = arrivals(specification, (piece + (np.arange(50) + 0.5) / 50) / PIECES)
        means.append((specification.rates(segment, when).mean(axis=0) * reported)[order])
        costs.append([float(f"{price:.6g}") for price in specification.prices(segment, when[24:25])[0][order]])
    return SegmentTruth(np.array(means), np.array(costs), np.full(PIECES, 1.0 / PIECES))


def true_regrets(found: Recommendation, specification: Specification, runs: int) -> dict[str, dict[tuple[float, str], float]]:
    """Segment -> candidate -> mean regret of worth when played in the true world."""
    policies = [policy(spec) for spec in CANDIDATES]
    regrets: dict[str, dict[tuple[float, str], float]] = {}
    for number, choice in enumerate(found.choices):
        course = true_course(specification, choice.fit)
        rounds = max(min(found.rounds, choice.fit.rows), 2 * len(choice.fit.arms))
        for alpha in ALPHAS:
            scores = play(
                choice.fit,
                course,
                alpha,
                policies,
                rounds=rounds,
                seed=77_000 + number,
                exchange=found.criteria.exchange,
                runs=runs,
            )
            for label, each in scores.items():
                regrets.setdefault(choice.fit.name, {})[alpha, label] = float(np.mean([score.regret for score in each]))
    return regrets


def regret(name: str, rows: int | None, runs: int, rounds: int, worlds: int) -> dict[str, Any]:
    """Let `recommend` choose from an example log; the regret of its choices beside those of the candidates, in the true world."""
    specification = EXAMPLES[name]
    with tempfile.TemporaryDirectory() as folder:
        path, _ = write_example(specification, Path(folder), rows=rows, seed=1)
        started = time.perf_counter()
        found = recommend(examine(Log(path, COLUMNS[name], now=2e9), seed=1), effort=Effort(rounds=rounds, worlds=worlds))
        seconds = time.perf_counter() - started
    regrets = true_regrets(found, specification, runs)
    traffic = {choice.fit.name: choice.fit.rows for choice in found.choices}
    total = sum(traffic.values())
    mine = sum(traffic[c.fit.name] * regrets[c.fit.name][c.alpha, c.policy] for c in found.choices) / total
    best_each = sum(traffic[segment] * min(values.values()) for segment, values in regrets.items()) / total
    everywhere = {
        candidate: sum(traffic[segment] * values[candidate] for segment, values in regrets.items()) / total
        for candidate in next(iter(regrets.values()))
    }
    best = min(everywhere, key=lambda candidate: everywhere[candidate])
    return {
        "log": name,
        "rows": found.evidence.aggregates.rows,
        "rounds": rounds,
        "recommended": mine,
        "best candidate for all segments": everywhere[best],
        "which": f"{best[1]} at alpha {best[0]:g}",
        "best candidate of each segment": best_each,
        "ratio": mine / everywhere[best],
        "ratio, each": mine / best_each,
        "seconds": seconds,
    }


# --- speed


def speed(rows: int, kind: str) -> dict[str, Any]:
    """Profile a long log and replay it under one policy, in a process of its own; seconds and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        path, _ = write_example(EXAMPLES["sms"], Path(folder), rows=rows, seed=1, kind=kind)
        small, _ = write_example(EXAMPLES["sms"], Path(folder) / "small", rows=20_000, seed=1, kind=kind)
        _measure(small)  # kernels compiled and kept
        return {"log": f"{rows:,} rows of {kind}", **_measure(path)}


def _measure(path: Path) -> dict[str, Any]:
    text = (
        "import json, resource, sys, time; from benchmarks.replay import COLUMNS; from thrifty.logs import Log, replay; "
        "started = time.perf_counter(); log = Log(sys.argv[1], COLUMNS['sms'], now=2e9); "
        "found = replay(log, [0.05], policies=['cs-ids'], plays=1); "
        "print(json.dumps({'seconds': time.perf_counter() - started, 'rows': found.evidence.aggregates.rows, "
        "'peak MB': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))"
    )
    root = Path(__file__).parent.parent
    ran = subprocess.run([sys.executable, "-c", text, str(path)], check=True, capture_output=True, text=True, cwd=root)
    return dict(json.loads(ran.stdout))


# --- the page


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as Markdown."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(_cell(name, row[name]) for name in head) + " |" for row in rows])


def _cell(name: str, value: Any) -> str:
    if name == "covered":
        return f"{value:.1%}"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=("coverage", "regret", "speed"), default=["coverage", "regret", "speed"])
    parser.add_argument("--logs", type=int, default=300, help="generated logs of each world")
    parser.add_argument("--log-rows", type=int, default=20_000, help="rows of each of them")
    parser.add_argument("--seed", type=int, default=1, help="of the first generated log")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the long log")
    parser.add_argument("--runs", type=int, default=100, help="in the true world")
    parser.add_argument("--rounds", type=int, default=EFFORT.rounds)
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--example-rows", type=int, help="of the example logs that recommend reads; default: their own numbers")
    parser.add_argument("--dry", action="store_true", help="print, and leave the page alone")
    options = parser.parse_args()
    parts = [
        "# Replay, measured",
        f"Written by `python benchmarks/replay.py` on {os.cpu_count()} cores, Python {platform.python_version()}, polars "
        f"{polars.__version__}.",
    ]
    if "coverage" in options.what:
        rows = coverage(options.logs, options.log_rows, options.seed, os.cpu_count() or 1)
        parts += [
            "## Do 95% intervals hold the truth?",
            f"{options.logs} generated logs of each example world, {options.log_rows:,} rows each, seeds from {options.seed}. "
            "Arms about which nothing is said are not counted. Choices (always the best, the cheapest, the cheapest above the "
            "floor) are valued given that they were chosen. Sure bounds are meant to hold more often.",
            table(rows),
        ]
    if "regret" in options.what:
        found = [regret(name, options.example_rows, options.runs, options.rounds, options.worlds) for name in COLUMNS]
        parts += [
            "## Is the recommendation good in the true world?",
            "`recommend` chose policy and alpha for each segment from an example log; then every candidate "
            f"({', '.join(CANDIDATES)}; alpha {', '.join(map(str, ALPHAS))}) was played {options.runs} times in the true world. "
            f"Regret is of worth (share of cost, exchange {EXCHANGE:g}), a decision on average, against the most worthy fixed arm. "
            "The last ratio compares with the best candidate picked with hindsight in every segment.",
            table(found),
        ]
    if "speed" in options.what:
        parts += [
            "## How fast, in how much memory?",
            "Profiled, estimated and replayed under CS-IDS at alpha 0.05 (one play), kernels compiled beforehand.",
            table(
                [
                    speed(rows, kind)
                    for rows, kind in ((options.rows // 10, "parquet"), (options.rows, "parquet"), (options.rows, "csv"))
                ]
            ),
        ]
    text = "\n\n".join(parts) + "\n"
    if options.dry or set(options.what) != {"coverage", "regret", "speed"}:
        print(text)
    else:
        PAGE.write_text(text)
        print(PAGE)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
