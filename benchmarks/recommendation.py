"""Do recommended policies keep their alpha in the true world, and how much worth is lost? Prints a table.

    python benchmarks/recommendation.py --logs 100               # about a quarter of an hour on two cores
    python benchmarks/recommendation.py --logs 20 --kind segments

Each log is drawn from a world of its own: five arms whose prices rise with their quality and 3,000 rows, or seven such segments
whose prices are up to 20 times apart (1,500 rows each). `recommend` chooses a policy and an alpha, or a fixed arm, for each
segment. Every candidate is then played in the true world, `--runs` times with the same random streams; a fixed arm is valued
exactly. A choice keeps its alpha if the mean share of the best arm's quality that it gives up, learning included, is at most its
alpha. A segment without a choice counts as always taking the arm that looks best in the log. The worth of the choices is compared
with two others:

- the best candidate: the one that is worth the most in the true world among those that keep their alpha there. Nobody who sees only
  the log can name it, so no rule reaches it;
- the informed choice: that of somebody who sees the log and also knows the law that worlds are drawn from, and takes the fixed arm
  with the highest posterior worth among those that more likely than not keep the largest alpha.

Whatever was tuned was tuned on seeds above 900,000.
"""

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars

from thrifty.advice import Criteria, Effort, recommend
from thrifty.advice.criteria import EXCHANGE
from thrifty.advice.fit import SegmentFit, SegmentTruth, fit_segments
from thrifty.advice.fixed import FIXED, fixed_label, score_arms
from thrifty.advice.play import play
from thrifty.advice.recommendation import ALPHAS, CANDIDATES
from thrifty.advice.selection import SegmentChoice
from thrifty.logs import Columns, Log, examine
from thrifty.policies import policy
from thrifty.table import aligned

ARMS = 5
KINDS = {"one": (1, 3000), "segments": (7, 1500)}
"""Segments of a log, and rows of each."""


@dataclass(frozen=True)
class Task:
    """One log to judge."""

    kind: str
    seed: int
    runs: int
    confidence: float | None
    worlds: int
    warm: bool


@dataclass(frozen=True)
class Verdict:
    """What became of one segment of a log. Without a choice `said` and `runs_kept` are NaN."""

    kind: str
    seed: int
    chosen: bool
    kept: bool
    said: float
    runs_kept: float
    worth: float
    best: float
    informed: float


def draw_world(rng: np.random.Generator, segments: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Mean rewards and prices by segment; both rise from arm to arm."""
    found = {}
    for number in range(segments):
        means, prices = np.sort(rng.uniform(0.5, 0.95, ARMS)), np.sort(rng.uniform(0.2, 1.0, ARMS))
        scale = 1.0 if segments == 1 else 20.0 ** (number / (segments - 1))
        found[f"s{number}"] = means, scale * prices
    return found


def draw_log(world: dict[str, tuple[np.ndarray, np.ndarray]], rng: np.random.Generator, rows: int) -> Log:
    """A log in which every arm is used equally often."""
    frames = []
    for segment, (means, prices) in world.items():
        arm = rng.integers(0, ARMS, rows)
        columns = {"arm": [f"a{each}" for each in arm], "reward": 1.0 * (rng.random(rows) < means[arm]), "cost": prices[arm]}
        frames.append(polars.DataFrame(columns).with_columns(segment=polars.lit(segment)))
    return Log(polars.concat(frames).sample(fraction=1.0, shuffle=True, seed=int(rng.integers(2**31))), Columns(segment="segment"))


def judge(task: Task) -> list[Verdict]:
    """Recommend from one log, and play every candidate in its true world."""
    segments, rows = KINDS[task.kind]
    rng = np.random.default_rng([task.seed, segments])
    world = draw_world(rng, segments)
    log = draw_log(world, rng, rows)
    criteria, effort = Criteria(confidence=task.confidence), Effort(worlds=task.worlds)
    evidence = examine(log, seed=task.seed)
    said: dict[str, float] = {}
    chosen: dict[str, SegmentChoice] = {}
    try:
        found = recommend(evidence, criteria=criteria, effort=effort, warm=task.warm)
    except ValueError as error:
        if "keeps its alpha" not in str(error):
            raise
    else:
        chosen = {choice.fit.name: choice for choice in found.choices}
        said = dict(found.segments.select("segment", "floor_held").rows())
    return [_judge_segment(task, fit, world[fit.name], chosen.get(fit.name), said) for fit in fit_segments(evidence)]


def _judge_segment(
    task: Task, fit: SegmentFit, world: tuple[np.ndarray, np.ndarray], choice: SegmentChoice | None, said: dict[str, float]
) -> Verdict:
    truth = true_scores(fit, world, task, EXCHANGE)
    best = max(value for (alpha, _), (lost, value, _) in truth.items() if lost <= alpha)
    informed = truth[ALPHAS[-1], fixed_label(informed_choice(fit, world[1], task.seed))][1]
    if choice is None:
        kept = truth[ALPHAS[-1], fixed_label(fit.arms[int(np.argmax(fit.quality))])]
        return Verdict(task.kind, task.seed, False, True, np.nan, np.nan, kept[1], best, informed)
    given_up, worth, runs_kept = truth[choice.alpha, choice.policy]
    return Verdict(task.kind, task.seed, True, given_up <= choice.alpha, said[fit.name], runs_kept, worth, best, informed)


def informed_choice(fit: SegmentFit, prices: np.ndarray, seed: int) -> str:
    """The fixed arm that is worth the most in the posterior of the law that worlds are drawn from; see the top of this file."""
    rng = np.random.default_rng([seed, 5])
    grid = np.linspace(0.5, 0.95, 451)
    rows = fit.quality * (1.0 - fit.quality) / np.maximum(fit.error, 1e-3) ** 2
    fits = rows[:, np.newaxis] * (
        fit.quality[:, np.newaxis] * np.log(grid) + (1.0 - fit.quality[:, np.newaxis]) * np.log(1.0 - grid)
    )
    places = np.searchsorted(grid, np.sort(np.clip(fit.quality, 0.5, 0.95))).clip(0, grid.size - 1)
    draws = []
    for step in range(1000):  # Gibbs sampling: each mean lies between those of its neighbours in price
        for arm in range(ARMS):
            low = places[arm - 1] if arm else 0
            high = places[arm + 1] if arm < ARMS - 1 else grid.size - 1
            likely = np.cumsum(np.exp(fits[arm, low : high + 1] - fits[arm, low : high + 1].max()))
            places[arm] = low + np.searchsorted(likely, rng.random() * likely[-1])
        if step >= 100:
            draws.append(grid[places])
    means = np.array(draws)
    costs, best = prices[[int(arm[1:]) for arm in fit.arms]], means.argmax(axis=1)
    given_up = 1.0 - means / means.max(axis=1, keepdims=True)
    values = (1.0 - costs / costs[best][:, np.newaxis] - EXCHANGE * given_up).mean(axis=0)
    return fit.arms[int(np.argmax(np.where((given_up <= ALPHAS[-1]).mean(axis=0) >= 0.5, values, -np.inf)))]


def true_scores(
    fit: SegmentFit, world: tuple[np.ndarray, np.ndarray], task: Task, exchange: float
) -> dict[tuple[float, str], tuple[float, float, float]]:
    """(alpha, policy or fixed arm) -> mean share given up, mean worth, and the share of runs that kept alpha."""
    order = [int(arm[1:]) for arm in fit.arms]
    truth = SegmentTruth(world[0][order][np.newaxis], world[1][order][np.newaxis], np.ones(1))
    found = {}
    for label, (each,) in score_arms(fit, [truth], ALPHAS[-1], exchange).items():
        found[ALPHAS[-1], label] = each.given_up, each.worth, float(each.given_up <= ALPHAS[-1])
    for alpha in ALPHAS:
        scores = play(
            fit,
            truth,
            alpha,
            [policy(each) for each in CANDIDATES if each != FIXED],
            rounds=fit.rows,
            seed=task.seed,
            exchange=exchange,
            runs=task.runs,
            warm=task.warm,
        )
        for label, each in scores.items():
            lost = np.array([score.given_up for score in each])
            found[alpha, label] = float(lost.mean()), float(np.mean([score.worth for score in each])), float((lost <= alpha).mean())
    return found


def row(kind: str, verdicts: list[Verdict]) -> tuple[str, ...]:
    """One line of the table."""
    chosen = [each for each in verdicts if each.chosen]
    logs = {each.seed for each in verdicts}
    broken = {each.seed for each in verdicts if not each.kept}
    worth, best, informed = (np.mean([getattr(each, name) for each in verdicts]) for name in ("worth", "best", "informed"))
    said, runs_kept = (np.mean([getattr(each, name) for each in chosen]) for name in ("said", "runs_kept"))
    return (
        kind,
        f"{len(logs)}",
        f"{len(chosen)} of {len(verdicts)}",
        f"{np.mean([each.kept for each in chosen]):.1%}",
        f"{1.0 - len(broken) / len(logs):.1%}",
        f"{said:.1%}",
        f"{runs_kept:.1%}",
        f"{100 * worth:.2f}",
        f"{100 * best:.2f}",
        f"{100 * informed:.2f}",
        f"{worth / best:.1%} +- {share_error(verdicts):.1%}",
    )


def share_error(verdicts: list[Verdict]) -> float:
    """The standard error of the worth as a share of the best candidate's, by a jackknife over the logs."""
    seeds = sorted({each.seed for each in verdicts})
    sums = np.array([[sum(getattr(e, name) for e in verdicts if e.seed == seed) for name in ("worth", "best")] for seed in seeds])
    left_out = sums.sum(axis=0) - sums
    shares = left_out[:, 0] / left_out[:, 1]
    return float(np.sqrt((len(seeds) - 1) * np.mean((shares - shares.mean()) ** 2)))


def main() -> None:
    """Judge the logs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--kind", choices=tuple(KINDS), nargs="*", default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1, help="of the first log")
    parser.add_argument("--runs", type=int, default=40, help="in the true world")
    parser.add_argument("--confidence", type=float, help="default: that of recommend")
    parser.add_argument("--cold", action="store_true", help="policies start from nothing, not with what the log knows")
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    tasks = [
        Task(kind, options.seed + number, options.runs, options.confidence, options.worlds, not options.cold)
        for kind in options.kind
        for number in range(options.logs)
    ]
    os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1")  # read by the processes when they start
    found: list[Verdict] = []
    with ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done, verdicts in enumerate(pool.map(judge, tasks), 1):
            found += verdicts
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done} of {len(tasks)} logs")
    judged = ("kind", "logs", "segments with a choice", "choices kept", "logs in which all kept", "said", "runs kept")
    header = (*judged, "worth, % of cost", "best candidate", "informed choice", "share of best")
    print(aligned([header, *(row(kind, [each for each in found if each.kind == kind]) for kind in options.kind)]))


if __name__ == "__main__":
    main()
