"""Games: every candidate is played in the same worlds of each segment; the best candidates are played in more worlds."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from thrifty.advice.fit import SegmentFit, SegmentTruth
from thrifty.advice.fixed import score_arms
from thrifty.advice.play import Score, play
from thrifty.advice.selection import COMMON, FINALISTS, Candidates, Scores, SegmentChoice, finalists
from thrifty.interruption import leave, start_jobs
from thrifty.policies import Policy
from thrifty.problem import checked_count

MOST_WORLDS = 10_000
"""Worlds of a segment at most: all games are listed before the first is played."""


@dataclass(frozen=True)
class Effort:
    """How much `recommend` simulates.

    Parameters
    ----------
    rounds : decisions of a simulated run, at least 100; a segment with fewer rows gets as many decisions as it has rows
    worlds : worlds drawn for each segment, from 2 to 10,000; the best candidates are played in four times as many more
    most : segments that get a recommendation, those with the most rows; the others are listed as refused

    >>> Effort(worlds=1)
    Traceback (most recent call last):
    ValueError: worlds must be a whole number of at least 2, got 1

    """

    rounds: int = 10_000
    worlds: int = 16
    most: int = 60

    def __post_init__(self) -> None:
        for name, low, high in (("rounds", 100, math.inf), ("worlds", 2, MOST_WORLDS), ("most", 1, math.inf)):
            object.__setattr__(self, name, checked_count(name, getattr(self, name), low=low, high=high))


_Played = dict[str, list[Score]]  # the scores of every policy of a game

_PATIENCE_S = 0.2  # how long games that have begun may still take when the others are dropped

FURTHER = 4
"""The finalists are played in so many times as many more worlds."""

EFFORT = Effort()
"""The usual effort."""


def play_all(
    fits: list[SegmentFit],
    candidates: Candidates,
    effort: Effort,
    *,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> Scores:
    """Every candidate in `effort.worlds` worlds, and the finalists of each segment in `FURTHER` times as many more.

    All candidates of a segment are played in the same worlds, with the same random streams. Fixed arms are scored in all of them.
    """
    worlds = effort.worlds
    total = len(fits) * worlds * (len(candidates.alphas) + FURTHER * min(FINALISTS + COMMON, len(candidates.pairs)))
    scores: Scores = {}

    def play_games(games: list[_Game], done: int) -> int:
        for game, played in _results(games, partial(_play, fits, candidates, effort, seed)):
            for label, found in played.items():
                scores.setdefault((fits[game.segment].name, game.alpha, label), []).extend(found)
            done += 1
            if progress is not None:
                progress(done, total)
        return done

    done = play_games(_first_games(len(fits), candidates, worlds), 0)
    last = _final_games(fits, candidates, worlds, scores)
    total = done + len(last)
    play_games(last, done)
    for segment, fit in enumerate(fits if candidates.fixed else ()):
        truths = [_draw_world(fit, seed, segment, world) for world in range((1 + FURTHER) * worlds)]
        for label, found in score_arms(fit, truths, candidates.alphas[-1], candidates.criteria.exchange).items():
            scores[fit.name, candidates.alphas[-1], label] = found
    return scores


def worth_of_the_start(
    fits: list[SegmentFit], choices: Sequence[SegmentChoice], candidates: Candidates, scores: Scores, effort: Effort, *, seed: int
) -> dict[str, float]:
    """By segment, what the warm start of its choice is worth, as a share of cost: the choice is also played from nothing.

    Both are played in the same `effort.worlds` worlds. Nothing for a fixed arm, which learns nothing.
    """
    chosen = {choice.fit.name: choice for choice in choices}
    policies, cold = {each.label: each for each in candidates.policies}, replace(candidates, warm=False)
    games = [
        _Game(segment, chosen[fit.name].alpha, world, [policies[chosen[fit.name].policy]])
        for segment, fit in enumerate(fits)
        if candidates.warm and fit.name in chosen and chosen[fit.name].policy in policies
        for world in range(effort.worlds)
    ]
    gains: dict[str, list[float]] = {}
    for game, played in _results(games, partial(_play, fits, cold, effort, seed)):
        ((label, (without,)),) = played.items()
        warm = scores[fits[game.segment].name, game.alpha, label][game.world]
        gains.setdefault(fits[game.segment].name, []).append(warm.worth - without.worth)
    return {choice.fit.name: float(np.mean(gains.get(choice.fit.name, [0.0]))) for choice in choices}


def _results(games: "list[_Game]", play_one: "Callable[[_Game], _Played]") -> "Iterator[tuple[_Game, _Played]]":
    """The games and what came of them, in order, played on all cores; those that have not begun are dropped if one fails."""
    futures = start_jobs([partial(play_one, game) for game in games], os.cpu_count() or 1)
    try:
        for game, future in zip(games, futures, strict=True):
            yield game, future.result()
    except BaseException:
        leave(futures, patience_s=_PATIENCE_S)
        raise


def _draw_world(fit: SegmentFit, seed: int, segment: int, world: int) -> SegmentTruth:
    return fit.draw(np.random.default_rng([seed, 2, segment, world]))


def _play(fits: list[SegmentFit], candidates: Candidates, effort: Effort, seed: int, game: "_Game") -> _Played:
    fit = fits[game.segment]
    return play(
        fit,
        _draw_world(fit, seed, game.segment, game.world),
        game.alpha,
        game.policies,
        rounds=max(min(effort.rounds, fit.rows), 2 * len(fit.arms)),
        seed=seed + 1000 * game.segment + game.world,
        exchange=candidates.criteria.exchange,
        warm=candidates.warm,
    )


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
        for segment, chosen in enumerate(finalists(fits, candidates, scores))
        for alpha, each in chosen
        for world in range(worlds, (1 + FURTHER) * worlds)
    ]
