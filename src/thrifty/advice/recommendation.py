"""The recommendation: which policy and alpha to run in each segment, chosen by playing all of them in worlds drawn from the log."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from thrifty.advice.fit import SegmentFit, fit_segments
from thrifty.advice.play import EXCHANGE, Score, play
from thrifty.arrays import Floats
from thrifty.policies import Policy, policy
from thrifty.problem import checked_alpha, checked_count
from thrifty.replay import Evidence, Log, examine
from thrifty.replay.evidence import OVERALL
from thrifty.replay.frontier import Frontier, frontier
from thrifty.replay.source import require_polars

CANDIDATES = ("cs-ids", "cs-ts", "cs-ucb", "cs-etc")
ALPHAS = (0.02, 0.05, 0.1)
ROUNDS, WORLDS, FINALISTS, MOST = 10_000, 16, 3, 60


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate to run in one segment, and the fit it was chosen by."""

    fit: SegmentFit
    policy: str
    alpha: float


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What `recommend` returns.

    `choices` has one entry per segment; `segments` and `candidates` are polars frames: what is expected of the choice in each
    segment and overall, and of every candidate in every segment, each with the middle 95% of the worlds. `refused` says why a
    segment has no choice; `frontier` is the log's own, on a grid.
    """

    choices: tuple[Choice, ...]
    segments: Any
    candidates: Any
    refused: dict[str, str]
    frontier: Frontier
    rounds: int
    worlds: int
    exchange: float
    seed: int

    @property
    def evidence(self) -> Evidence:
        """What it rests on."""
        return self.frontier.evidence


def recommend(
    source: Log | Evidence,
    alphas: Sequence[float] = ALPHAS,
    *,
    policies: Sequence[str | Policy] = CANDIDATES,
    exchange: float = EXCHANGE,
    rounds: int = ROUNDS,
    worlds: int = WORLDS,
    most: int = MOST,
    seed: int = 0,
    reading: Callable[[str, int], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recommendation:
    """Which policy and alpha to run in each segment.

    Every candidate is played in worlds drawn from what the log says about the segment's arms, and the one with the highest
    expected worth is chosen: the share of cost saved against always taking the best arm, less `exchange` times the share of
    quality given up.

    Parameters
    ----------
    source : a log, or the evidence that `examine` made of one
    alphas : the subsidy factors that may be chosen; they are the limit of what may be given up
    policies : the candidates
    exchange : how many per cent of cost one per cent of quality is worth
    rounds : decisions of a simulated run; at most the rows of the segment
    worlds : how many worlds are drawn for each segment; the three best candidates are played in twice as many more
    most : segments to choose for, those with the most rows; the others are listed as refused
    seed : of the bootstrap, the worlds and the runs
    reading, progress : called with (what is under way, rows read so far), and with (plays done, plays in all)

    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(1)
    >>> arm = rng.integers(0, 2, 4000)
    >>> frame = polars.DataFrame({"arm": [f"r{a}" for a in arm], "reward": 1.0 * (rng.random(4000) < 0.9), "cost": 1.0 + arm})
    >>> found = recommend(Log(frame), [0.1], policies=["cs-ts"], rounds=500, worlds=4)
    >>> [(each.policy, each.alpha) for each in found.choices]
    [('cs-ts', 0.1)]

    """
    grid = sorted({checked_alpha(alpha) for alpha in alphas})
    chosen = [policy(spec) for spec in policies]
    told = [each.label for each in chosen if each.known_truths]
    if not grid or not chosen:
        raise ValueError("give at least one alpha and one policy to choose from")
    if told:
        raise ValueError(f"{told[0]} is told the truth, and nobody can run it: leave it out")
    if not 0.0 <= exchange < float("inf"):
        raise ValueError(f"exchange must be 0 or more, got {exchange}: 3 says that 1% of quality is worth 3% of cost")
    rounds, worlds = checked_count("rounds", rounds, low=100), checked_count("worlds", worlds, low=2)
    evidence = source if isinstance(source, Evidence) else examine(source, seed=seed, progress=reading)
    found = frontier(evidence, sorted({*grid, *_grid_up_to(grid[-1])}))
    everyone = fit_segments(evidence)
    largest = {fit.name for fit in sorted(everyone, key=lambda fit: (-fit.rows, fit.name))[: checked_count("most", most)]}
    fits = [fit for fit in everyone if fit.name in largest]
    small = f"not among the {most} segments with the most rows: raise --most, or give it the choice of a segment like it"
    refused = {**found.refused, **{fit.name: small for fit in everyone if fit.name not in largest}}
    scores = _play_all(fits, chosen, grid, exchange=exchange, rounds=rounds, worlds=worlds, seed=evidence.seed, progress=progress)
    labels = [each.label for each in chosen]
    choices = tuple(_choose(fit, grid, chosen, scores) for fit in fits)
    pl = require_polars()
    candidates = pl.DataFrame(
        [_candidate(fit, alpha, label, scores) for fit in fits for alpha in grid for label in labels], infer_schema_length=None
    )
    segments = pl.DataFrame(_expected(choices, scores, found), infer_schema_length=None)
    return Recommendation(choices, segments, candidates, refused, found, rounds, worlds, exchange, evidence.seed)


Scores = dict[tuple[str, float, str], list[Score]]


def _grid_up_to(largest: float) -> list[float]:
    return [round(0.01 * step, 2) for step in range(round(100 * min(max(largest * 2, 0.1), 1.0)) + 1)]


def _play_all(
    fits: list[SegmentFit], policies: list[Policy], alphas: list[float], *, exchange: float, rounds: int, worlds: int, seed: int,
    progress: Callable[[int, int], None] | None,
) -> Scores:  # fmt: skip
    """Every candidate in `worlds` worlds, and the `FINALISTS` best of each segment in twice as many more.

    The same worlds and the same luck serve all candidates of a segment.
    """
    everything = {(number, alpha): policies for number in range(len(fits)) for alpha in alphas}
    games = [(number, alpha, world) for number, alpha in everything for world in range(worlds)]
    total = len(games) + 2 * worlds * len(fits) * min(FINALISTS, len(alphas) * len(policies))
    scores: Scores = {}

    def run(game: tuple[int, float, int], those: list[Policy]) -> dict[str, list[Score]]:
        number, alpha, world = game
        fit = fits[number]
        course = fit.draw(np.random.default_rng([seed, 2, number, world]))
        length = max(min(rounds, fit.rows), 2 * len(fit.arms))
        return play(fit, course, alpha, those, rounds=length, seed=seed + 1000 * number + world, exchange=exchange)

    def take(games: list[tuple[int, float, int]], those: list[list[Policy]], done: int) -> int:
        for game, result in zip(games, pool.map(run, games, those), strict=True):
            for label, found in result.items():
                scores.setdefault((fits[game[0]].name, game[1], label), []).extend(found)
            done += 1
            if progress is not None:
                progress(done, total)
        return done

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            done = take(games, [everything[number, alpha] for number, alpha, _ in games], 0)
            final = [(number, *each) for number, fit in enumerate(fits) for each in _finalists(fit, alphas, policies, scores)]
            more = [(number, alpha, world) for number, alpha, _ in final for world in range(worlds, 3 * worlds)]
            take(more, [[each] for _, _, each in final for _ in range(2 * worlds)], done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return scores


def _finalists(fit: SegmentFit, alphas: list[float], policies: list[Policy], scores: Scores) -> list[tuple[float, Policy]]:
    pairs = [(alpha, each) for alpha in alphas for each in policies]
    values = [-_mean_worth(scores[fit.name, alpha, each.label]) for alpha, each in pairs]
    return [pairs[place] for place in np.argsort(np.round(values, 9), kind="stable")[:FINALISTS]]


def _mean_worth(found: list[Score]) -> float:
    return float(np.mean([score.worth for score in found]))


def _choose(fit: SegmentFit, alphas: list[float], policies: list[Policy], scores: Scores) -> Choice:
    """The finalist with the highest mean worth; equal ones go to the smaller alpha, then to the policy named first."""
    pairs = [(alpha, each.label) for alpha in alphas for each in policies]
    most = max(len(scores[fit.name, alpha, label]) for alpha, label in pairs)
    final = [pair for pair in pairs if len(scores[fit.name, *pair]) == most]
    alpha, label = final[int(np.argmax(np.round([_mean_worth(scores[fit.name, *pair]) for pair in final], 9)))]
    return Choice(fit, label, alpha)


def _middle(values: list[float] | Floats, name: str) -> dict[str, float]:
    """Mean and the middle 95% of the worlds."""
    low, high = np.percentile(values, [2.5, 97.5])
    return {name: float(np.mean(values)), f"{name}_low": float(low), f"{name}_high": float(high)}


def _candidate(fit: SegmentFit, alpha: float, label: str, scores: Scores) -> dict[str, Any]:
    found = scores[fit.name, alpha, label]
    row: dict[str, Any] = {"segment": fit.name, "alpha": alpha, "policy": label, "worlds": len(found)}
    for name in ("quality", "cost", "quality_regret", "cost_regret", "worth", "regret"):
        row |= _middle([getattr(score, name) for score in found], name)
    return row


def _expected(choices: tuple[Choice, ...], scores: Scores, found: Frontier) -> list[dict[str, Any]]:
    """What is expected of the choice: in each segment, and over all of them by their traffic."""
    rows = []
    together: dict[str, Any] = {
        "quality": 0.0,
        "cost": 0.0,
        "today_quality": 0.0,
        "today_cost": 0.0,
        "best_quality": 0.0,
        "best_cost": 0.0,
    }
    traffic = sum(choice.fit.rows for choice in choices)
    for choice in choices:
        fit, mine = choice.fit, scores[choice.fit.name, choice.alpha, choice.policy]
        quality, cost = np.array([score.quality for score in mine]), np.array([score.cost for score in mine])
        point = found.points.filter(segment=fit.name, alpha=choice.alpha).to_dicts()[0]
        best = found.points.filter(segment=fit.name, alpha=0.0).to_dicts()[0]
        against = {
            "today_quality": fit.today[0],
            "today_cost": fit.today[1],
            "best_quality": best["quality"],
            "best_cost": best["cost"],
        }
        rows.append(
            _expected_row(
                fit.name,
                fit.rows,
                choice,
                {"quality": quality, "cost": cost, **against},
                arm=point["arm"],
                held=point["floor_held"],
            )
            | {
                name: float(np.mean([getattr(score, name) for score in mine]))
                for name in ("quality_regret", "cost_regret", "worth")
            }
        )
        for name, value in {"quality": quality, "cost": cost, **against}.items():
            together[name] = together[name] + fit.rows / traffic * np.asarray(value)
    whole = _expected_row(OVERALL, traffic, None, together, arm="", held=float("nan"))
    for name in ("quality_regret", "cost_regret", "worth"):
        whole[name] = sum(row[name] * row["rows"] for row in rows) / traffic
    return [*rows, whole]


def _expected_row(
    segment: str, rows: int, choice: Choice | None, values: dict[str, Any], *, arm: str, held: float
) -> dict[str, Any]:
    quality, cost = values["quality"], values["cost"]
    row: dict[str, Any] = {
        "segment": segment, "rows": rows, "policy": "" if choice is None else choice.policy,
        "alpha": None if choice is None else choice.alpha, "arm": arm, "floor_held": held,
    }  # fmt: skip
    row |= _middle(quality, "quality") | _middle(cost, "cost")
    row |= _middle(quality - values["today_quality"], "quality_change")
    row |= _middle(1.0 - cost / max(float(values["today_cost"]), 1e-300), "saving")
    row |= _middle(1.0 - quality / max(float(values["best_quality"]), 1e-300), "given_up_to_best")
    row |= _middle(1.0 - cost / max(float(values["best_cost"]), 1e-300), "saving_to_best")
    return row
