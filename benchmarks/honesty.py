"""Does the advice hold in the true world? Writes docs/honesty.md.

    python -m benchmarks.honesty                              # everything, a quarter of an hour on two cores
    python -m benchmarks.honesty coverage --logs 300          # intervals of the named arm, and the floor
    python -m benchmarks.honesty confounding --logs 100
    python -m benchmarks.honesty alarms --logs 200
    python -m benchmarks.honesty obp                          # beside the estimators of obp

Every log is drawn from a new world. Seeds start at 1; whatever was tuned was tuned on seeds above 900,000.
"""

import argparse
import multiprocessing
import os
import platform
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars
from benchmarks.cross_check import OBP, cross_check
from numpy.typing import NDArray

from thrifty.logs import Columns, Log, examine, frontier
from thrifty.logs.evidence import OVERALL

PAGE = Path(__file__).parent.parent / "docs" / "honesty.md"
ALPHAS = (0.0, 0.02, 0.05, 0.1, 0.2)
VALUES = ("quality", "cost", "saving")
START = 1_767_225_600.0
OBP_LOGS = 5
ARMS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm")


# --- coverage


@dataclass(frozen=True, eq=False)
class TrueWorld:
    """(S, K) true qualities and prices of the arms of every segment, (S,) shares of the traffic, and how random costs are."""

    quality: NDArray[np.float64]
    price: NDArray[np.float64]
    share: NDArray[np.float64]
    cost_cv: float

    def log(self, rows: int, rng: np.random.Generator) -> polars.DataFrame:
        """A log in which arms were chosen evenly at random."""
        segment = rng.choice(self.share.size, rows, p=self.share)
        arm = rng.integers(0, self.quality.shape[1], rows)
        noise = rng.gamma(self.cost_cv**-2, self.cost_cv**2, rows) if self.cost_cv > 0.0 else 1.0
        return polars.DataFrame(
            {
                "segment": [f"s{code}" for code in segment],
                "arm": [ARMS[code] for code in arm],
                "reward": (rng.random(rows) < self.quality[segment, arm]).astype(float),
                "cost": self.price[segment, arm] * noise,
            }
        )


def one_segment(rng: np.random.Generator, cost_cv: float) -> TrueWorld:
    """Five arms, prices rising with quality."""
    quality = np.sort(rng.uniform(0.6, 0.95, (1, 5)), axis=1)
    return TrueWorld(quality, np.cumsum(rng.uniform(0.5, 1.5, (1, 5)), axis=1), np.ones(1), cost_cv)


def seven_segments(rng: np.random.Generator, cost_cv: float) -> TrueWorld:
    """Seven segments of five arms, prices rising with quality in each; the dearest segment costs 20 times the cheapest."""
    quality = np.sort(rng.uniform(0.6, 0.95, (7, 5)), axis=1)
    price = np.cumsum(rng.uniform(0.5, 1.5, (7, 5)), axis=1) * np.geomspace(1.0, 20.0, 7)[rng.permutation(7), np.newaxis]
    return TrueWorld(quality, price, rng.dirichlet(np.full(7, 8.0)), cost_cv)


WORLDS: dict[str, tuple[Callable[[np.random.Generator, float], TrueWorld], float]] = {
    "one segment, prices": (one_segment, 0.0),
    "one segment, random costs": (one_segment, 0.6),
    "7 segments, prices": (seven_segments, 0.0),
    "7 segments, random costs": (seven_segments, 0.6),
}


def cover(task: tuple[str, int, int]) -> list[tuple[tuple[str, float], dict[str, float]]]:
    """One log: by kind of row and alpha, whether the intervals of the named arms hold the truth, and the floor, said and true."""
    name, rows, seed = task
    make, cost_cv = WORLDS[name]
    rng = np.random.default_rng([seed, len(name)])
    world = make(rng, cost_cv)
    found = frontier(Log(world.log(rows, rng), Columns(segment="segment")), ALPHAS, seed=seed)
    results = []
    for alpha in ALPHAS:
        points = found.points.filter(alpha=alpha)
        named = [row for row in points.to_dicts() if row["segment"] != OVERALL]
        place = np.array([(int(row["segment"][1:]), ARMS.index(row["arm"]), ARMS.index(row["best_arm"])) for row in named]).T
        truths = [_truth(world, one[:, np.newaxis]) for one in place.T]
        held = [one["quality"] >= (1.0 - alpha) * world.quality[s].max() - 1e-12 for one, s in zip(truths, place[0], strict=True)]
        for row, truth, is_held in zip(named, truths, held, strict=True):
            results.append(((f"{name}: a segment", alpha), _judge(row, truth, is_held)))
        if len(named) > 1:
            weights = world.share[place[0]] / world.share[place[0]].sum()
            whole = points.filter(segment=OVERALL).to_dicts()[0]
            results.append(((f"{name}: all segments", alpha), _judge(whole, _truth(world, place), float(weights @ held))))
    return results


def _truth(world: TrueWorld, place: NDArray[np.int64]) -> dict[str, float]:
    """The true values of arms in segments; `place` is (3, n): segments, arms, and best arms."""
    segment, arm, best = place
    share = world.share[segment] / world.share[segment].sum()
    cost, best_cost = share @ world.price[segment, arm], share @ world.price[segment, best]
    return {"quality": float(share @ world.quality[segment, arm]), "cost": float(cost), "saving": float(1.0 - cost / best_cost)}


def _judge(row: dict[str, Any], truth: dict[str, float], held: float) -> dict[str, float]:
    judged: dict[str, float] = {"said": row["floor_held"], "true": float(held)}
    for value in VALUES:
        low, high = row[f"{value}_low"], row[f"{value}_high"]
        slack = 1e-9 * max(abs(truth[value]), 1.0)
        judged[value] = float(low - slack <= truth[value] <= high + slack)
        judged[f"{value} exact"] = float(high - low <= slack)
        judged[f"{value} width"] = high - low
    return judged


def coverage(logs: int, rows: int, first_seed: int) -> list[dict[str, Any]]:
    """By kind of world, of row and alpha: how often intervals hold the truth. One without width is exact, and not counted."""
    tasks = [(name, rows, first_seed + number) for name in WORLDS for number in range(logs)]
    sums: dict[tuple[str, float], list[dict[str, float]]] = {}
    for results in in_parallel(cover, tasks):
        for key, judged in results:
            sums.setdefault(key, []).append(judged)
    table = []
    for (kind, alpha), all_judged in sums.items():
        row: dict[str, Any] = {"log": kind, "alpha": alpha}
        for value in VALUES:
            counted = [each[value] for each in all_judged if not each[f"{value} exact"]]
            exact = [each[value] for each in all_judged if each[f"{value} exact"]]
            row[value] = f"{np.mean(counted):.1%}" if len(counted) >= len(exact) else "exact" if np.mean(exact) == 1.0 else "wrong"
        said, true = (float(np.mean([each[name] for each in all_judged])) for name in ("said", "true"))
        row |= {
            "floor held, said": f"{said:.1%}",
            "true": f"{true:.1%}",
            "width": float(np.mean([e["quality width"] for e in all_judged])),
        }
        table.append(row)
    return table


def in_parallel(function: Callable[[Any], Any], tasks: list[Any]) -> Iterable[Any]:
    """The results of all tasks, on all cores, in their order."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1")  # read by the processes when they start
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for done, result in enumerate(pool.map(function, tasks, chunksize=4), 1):
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done} of {len(tasks)} logs")
            yield result


# --- alarms


KINDS: dict[str, dict[str, Any]] = {
    "small rates": {"rates": (0.02, 0.01, 0.03), "rows": 20_000},
    "random costs": {"cost_cv": 0.8, "rows": 20_000},
    "few rows": {"rates": (0.3, 0.2, 0.1), "rows": 1500, "cost_cv": 0.8},
    "scores": {"spread": 0.3, "rows": 8000, "cost_cv": 1.5},
    "outage": {"down": 0.1, "rows": 6000},
    "outage of small rates": {"rates": (0.05, 0.08, 0.05), "down": 0.1, "rows": 40_000},
    "half an outage": {"down": 0.1, "left": 0.4, "rows": 6000},
}
"""Kinds of steady logs, and of logs with an outage of Birch during a tenth of the span."""


def steady_log(kind: str, seed: int) -> polars.DataFrame:
    """A log over 30 days in which nothing changes, but for the outage that its kind says."""
    how: dict[str, Any] = {"rates": (0.9, 0.8, 0.7), "cost_cv": 0.0, "spread": 0.0, "down": 0.0, "left": 0.0, **KINDS[kind]}
    rng = np.random.default_rng([seed, 7, len(kind)])
    rows = how["rows"]
    when = np.sort(rng.random(rows))
    arm = rng.integers(0, 3, rows)
    start = rng.uniform(0.35, 0.55)
    rate = np.array(how["rates"])[arm]
    rate = np.where((arm == 1) & (when > start) & (when < start + how["down"]), how["left"] * rate, rate)
    noise = rng.gamma(how["cost_cv"] ** -2, how["cost_cv"] ** 2, rows) if how["cost_cv"] > 0.0 else 1.0
    scores = np.clip(rate + how["spread"] * rng.standard_normal(rows), 0.0, 1.0)
    return polars.DataFrame(
        {
            "at": START + 30 * 86_400.0 * when,
            "arm": [ARMS[code] for code in arm],
            "reward": scores if how["spread"] else (rng.random(rows) < rate).astype(float),
            "cost": np.array([3.0, 2.0, 1.0])[arm] * noise,
        }
    )


def alarms_in(log: polars.DataFrame) -> list[str]:
    """The notes about outages and changed prices."""
    notes = examine(Log(log, Columns(time="at"), now=2e9)).profile.notes
    return [note for note in notes if "outage" in note or "price changed" in note]


def _alarm(task: tuple[str, int]) -> bool:
    kind, seed = task
    notes = alarms_in(steady_log(kind, seed))
    return any("Birch" in note for note in notes) if "outage" in kind else bool(notes)


def alarms(logs: int, first_seed: int) -> list[dict[str, Any]]:
    """By kind of log: how often there is an alarm."""
    table = []
    for kind in KINDS:
        found = list(in_parallel(_alarm, [(kind, first_seed + number) for number in range(logs)]))
        asked = "outage found" if "outage" in kind else "false alarm"
        table.append({"log": kind, "rows": KINDS[kind]["rows"], "asked": asked, "share of logs": f"{np.mean(found):.1%}"})
    return table


# --- confounding


def confounded_log(seed: int, *, confounded: bool, rows: int = 6000) -> polars.DataFrame:
    """Two good arms and a cheap one; requests are easy or hard (`difficulty`, 0 to 1), and the better arm gets the hard ones.

    The good arm is the best for every request, and looks worse than the others by its mean. `region` and `device` are noise, and
    `size` goes with the difficulty.
    """
    rng = np.random.default_rng([seed, 11])
    difficulty = rng.random(rows)
    pull = 3.0 * (difficulty - 0.5) if confounded else np.zeros(rows)
    weights = np.exp(np.column_stack([pull, 0.0 * pull, -pull]))
    arm = (rng.random((rows, 1)) > np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :2]).sum(axis=1)
    rate = np.array([0.95, 0.90, 0.82])[arm] - 0.45 * difficulty
    return polars.DataFrame(
        {
            "arm": [("good", "fair", "cheap")[code] for code in arm],
            "reward": (rng.random(rows) < rate).astype(float),
            "cost": np.array([3.0, 2.0, 1.0])[arm],
            "difficulty": difficulty.round(3),
            "size": (100.0 * difficulty + 40.0 * rng.random(rows)).round(1),
            "region": [("north", "south", "east", "west")[code] for code in rng.integers(0, 4, rows)],
            "device": [("phone", "desk")[code] for code in rng.integers(0, 2, rows)],
            "ticket": [f"t{code}" for code in rng.permutation(rows)],
        }
    )


def _confound(task: tuple[str, int]) -> dict[str, float]:
    kind, seed = task
    log = confounded_log(seed, confounded=kind != "randomised")
    if kind == "hidden":
        log = log.drop("difficulty", "size")
    found = frontier(Log(log), [0.0])
    verdict = found.verdict
    return {
        "called confounded": "the choice follows" in verdict and "follows none" not in verdict,
        "called randomised": verdict.startswith("randomised"),
        "right arm named": found.points.filter(segment="all")["arm"].item() == "good",
        "bound in the headline": "hidden cause" in found.headline(),
    }


def confounding(logs: int, first_seed: int) -> list[dict[str, Any]]:
    """By kind of log: what the headline says, and whether the best arm is named."""
    table = []
    for kind in ("confounded", "randomised", "hidden"):
        found = list(in_parallel(_confound, [(kind, first_seed + number) for number in range(logs)]))
        table.append({"log": kind, **{name: f"{np.mean([one[name] for one in found]):.0%}" for name in found[0]}})
    return table


# --- the page


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as Markdown."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(_cell(row[name]) for name in head) + " |" for row in rows])


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


SECTIONS: dict[str, tuple[str, str, Callable[[argparse.Namespace], list[dict[str, Any]]]]] = {
    "coverage": (
        "Do the intervals of the named arm hold the truth?",
        "{logs} logs of each kind, {rows:,} rows each. Every log has a world of its own: five arms in each segment, prices rising "
        "with quality; the prices of seven segments are 20 times apart. Costs are prices, or random around them (standard "
        "deviation 0.6 of the mean). A coverage of 95% is measured to within 2.5 points by 300 logs, and within 1 by "
        "2,100 segments. Where costs are prices, the cost and saving of an arm are known exactly. `width` is the mean width of the "
        "interval of quality.",
        lambda options: coverage(options.logs, options.log_rows, options.seed),
    ),
    "confounding": (
        "Is a confounded log called so?",
        "{logs} logs of each kind, 6,000 rows, no propensities. The good arm is the best for every request. In a confounded log it "
        "gets the hard requests, so that it looks worst; the difficulty is a column, or (hidden) is not.",
        lambda options: confounding(options.logs, options.seed),
    ),
    "alarms": (
        "Are alarms true?",
        "{logs} logs of each kind, three arms, 30 days; outages last a tenth of the span, at a random place.",
        lambda options: alarms(options.logs, options.seed),
    ),
    "obp": (
        "Beside obp",
        f"The value of always one arm in {OBP_LOGS} logs of the example `llm`, 20,000 rows each, by the estimators of {OBP} in an "
        "environment of its own. Its direct method and doubly robust estimate are given our means by stratum as their regression "
        "model. Its intervals draw rows one by one: they treat the model of the direct method as known, and the normaliser of "
        "SNIPS as fixed.",
        lambda options: cross_check(OBP_LOGS, 20_000, options.seed),
    ),
}
"""The parts of the page: title, text, and what measures the table."""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*SECTIONS, []], default=[])
    parser.add_argument("--logs", type=int, default=300, help="generated logs of each kind")
    parser.add_argument("--log-rows", type=int, default=3000, help="rows of each log of the coverage")
    parser.add_argument("--seed", type=int, default=1, help="of the first log")
    parser.add_argument("--dry", action="store_true", help="print, and leave the page alone")
    options = parser.parse_args()
    parts = options.what or list(SECTIONS)
    text = [
        "# Honesty, measured",
        f"Written by `python -m benchmarks.honesty` on {os.cpu_count()} cores, Python {platform.python_version()}, polars "
        f"{polars.__version__}.",
    ]
    for part in parts:
        title, about, measure = SECTIONS[part]
        text += [f"## {title}", about.format(logs=options.logs, rows=options.log_rows), table(measure(options))]
    page = "\n\n".join(text) + "\n"
    if options.dry or set(parts) != set(SECTIONS):
        print(page)
    else:
        PAGE.write_text(page)
        print(PAGE)


if __name__ == "__main__":
    main()
