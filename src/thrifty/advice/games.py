"""Games: every candidate is played in the same worlds of each segment; the best candidates are played in more worlds."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from thrifty.advice.fit import SegmentFit
from thrifty.advice.play import Score, play
from thrifty.policies import Policy
from thrifty.problem import checked_count

FINALISTS = 3
"""How many candidates of a segment are played in more worlds."""

Scores = dict[tuple[str, float, str], list[Score]]
"""(segment, alpha, policy) -> one score per world."""


@dataclass(frozen=True)
class Effort:
    """How much `recommend` simulates.

    Parameters
    ----------
    rounds : decisions of a simulated run, at least 100; a segment with fewer rows gets as many decisions as it has rows
    worlds : worlds drawn for each segment, at least 2; the three best candidates are played in twice as many more
    most : segments that get a recommendation, those with the most rows; the others are listed as refused

    >>> Effort(worlds=1)
    Traceback (most recent call last):
    ValueError: worlds must be a whole number of at least 2, got 1

    """

    rounds: int = 10_000
    worlds: int = 16
    most: int = 60

    def __post_init__(self) -> None:
        for name, low in (("rounds", 100), ("worlds", 2), ("most", 1)):
            object.__setattr__(self, name, checked_count(name, getattr(self, name), low=low))


EFFORT = Effort()
"""The usual effort."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """All policies with all alphas, and the exchange that they are scored by."""

    policies: list[Policy]
    alphas: list[float]
    exchange: float

    @property
    def pairs(self) -> list[tuple[float, Policy]]:
        """Every candidate: smaller alphas first, then the order of the policies."""
        return [(alpha, each) for alpha in self.alphas for each in self.policies]


def play_all(
    fits: list[SegmentFit],
    candidates: Candidates,
    effort: Effort,
    *,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Scores:
    """Every candidate in `effort.worlds` worlds, and the `FINALISTS` best of each segment in twice as many more.

    All candidates of a segment are played in the same worlds, with the same random streams.
    """
    worlds = effort.worlds
    total = len(fits) * worlds * (len(candidates.alphas) + 2 * min(FINALISTS, len(candidates.pairs)))
    scores: Scores = {}

    def play_one(game: _Game) -> dict[str, list[Score]]:
        fit = fits[game.segment]
        truth = fit.draw(np.random.default_rng([seed, 2, game.segment, game.world]))
        rounds = max(min(effort.rounds, fit.rows), 2 * len(fit.arms))
        world_seed = seed + 1000 * game.segment + game.world
        return play(fit, truth, game.alpha, game.policies, rounds=rounds, seed=world_seed, exchange=candidates.exchange)

    def play_games(games: list[_Game], done: int) -> int:
        for game, result in zip(games, pool.map(play_one, games), strict=True):
            for label, found in result.items():
                scores.setdefault((fits[game.segment].name, game.alpha, label), []).extend(found)
            done += 1
            if progress is not None:
                progress(done, total)
        return done

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            done = play_games(_first_games(len(fits), candidates, worlds), 0)
            play_games(_final_games(fits, candidates, worlds, scores), done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return scores


class _Game(NamedTuple):
    """Some policies at one alpha in one world of a segment; segments and worlds are numbered."""

    segment: int
    alpha: float
    world: int
    policies: list[Policy]


def _first_games(segments: int, candidates: Candidates, worlds: int) -> list[_Game]:
    return [
        _Game(segment, alpha, world, candidates.policies)
        for segment in range(segments)
        for alpha in candidates.alphas
        for world in range(worlds)
    ]


def _final_games(fits: list[SegmentFit], candidates: Candidates, worlds: int, scores: Scores) -> list[_Game]:
    return [
        _Game(segment, alpha, world, [each])
        for segment, fit in enumerate(fits)
        for alpha, each in _finalists(fit, candidates, scores)
        for world in range(worlds, 3 * worlds)
    ]


def _finalists(fit: SegmentFit, candidates: Candidates, scores: Scores) -> list[tuple[float, Policy]]:
    values = [-mean_worth(scores[fit.name, alpha, each.label]) for alpha, each in candidates.pairs]
    return [candidates.pairs[place] for place in np.argsort(np.round(values, 9), kind="stable")[:FINALISTS]]


def mean_worth(found: list[Score]) -> float:
    """The mean worth over worlds."""
    return float(np.mean([score.worth for score in found]))
