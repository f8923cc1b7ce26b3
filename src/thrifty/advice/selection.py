"""Selection: which candidates are played further, and which one each segment gets.

A candidate is a policy with an alpha, or a fixed arm (see `fixed.py`). Alpha is a limit: a candidate is admissible in a segment if
it keeps its alpha, learning included, in the share of worlds that the criteria ask for. Among these the highest mean worth counts.
A policy is preferred to a fixed arm where its worth is within `AS_GOOD`, because it notices changes. Segments share a router where
that costs nothing: of the policies whose worth is within `AS_GOOD` of the best, the one that serves the most traffic is taken.

With a warm start CS-Worth at the largest alpha is *preferred*: it aims at worth itself. Another candidate is taken only where it is
not admissible, or surely better in the same worlds: the best of many candidates in some worlds is often the luckiest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thrifty.advice.criteria import Criteria
from thrifty.advice.fit import SegmentFit
from thrifty.advice.fixed import fixed_label
from thrifty.advice.play import Score, can_know
from thrifty.policies import Policy

WORTH = "cs-worth"
"""The policy that aims at worth."""

FINALISTS = 4
"""How many candidates of a segment are played in more worlds."""

COMMON = 2
"""Candidates that are finalists wherever they may be admissible, because they are good for the most traffic."""

MARGIN = 0.2
"""After the first worlds, a candidate that kept its alpha in so much less than the share asked for is not played further."""

SURELY = 3.0
"""A candidate is surely better than the preferred one if the mean difference of their worths is so many standard errors above 0."""

AS_GOOD = 0.005
"""Worths that differ by less than this share of cost are as good as each other."""

Scores = dict[tuple[str, float, str], list[Score]]
"""(segment, alpha, policy) -> one score per world."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """All policies with all alphas, whether fixed arms are candidates too, what all are judged by, and if policies know the log."""

    policies: list[Policy]
    alphas: list[float]
    criteria: Criteria
    fixed: bool = False
    warm: bool = False

    @property
    def pairs(self) -> list[tuple[float, Policy]]:
        """Every candidate: smaller alphas first, then the order of the policies."""
        return [(alpha, each) for alpha in self.alphas for each in self.policies]

    @property
    def preferred(self) -> int | None:
        """The place among the pairs of the candidate that is preferred; None if there is none."""
        by_worth = [place for place, (_, each) in enumerate(self.pairs) if each.name == WORTH]
        return by_worth[-1] if self.warm and by_worth else None


@dataclass(frozen=True, eq=False)
class SegmentChoice:
    """The policy and alpha to run in one segment, the fit that they were chosen by, and whether they start with what it knows."""

    fit: SegmentFit
    policy: str
    alpha: float
    warm: bool = False


def mean_worth(found: Sequence[Score]) -> float:
    """The mean worth over worlds, rounded so that equal candidates are equal."""
    return round(float(np.mean([score.worth for score in found])), 9)


def floor_held(found: Sequence[Score], alpha: float) -> float:
    """The share of worlds in which a candidate kept its alpha: learning included, it gave up no more of the best arm's quality.

    >>> floor_held([Score(0.9, 1, 0, 0, 0, 0, 1.0, 2), Score(0.96, 1, 0, 0, 0, 0, 1.0, 2)], 0.05)
    0.5
    """
    return float(np.mean([score.given_up <= alpha + 1e-9 for score in found]))


def finalists(fits: Sequence[SegmentFit], candidates: Candidates, scores: Scores) -> list[list[tuple[float, Policy]]]:
    """The candidates of each segment that are played in more worlds, in the order of `Candidates.pairs`."""
    good = [_promising(fit, candidates, scores) for fit in fits]
    pairs = list(zip(fits, good, strict=True))
    served = [-sum(fit.rows for fit, mine in pairs if place in mine[:FINALISTS]) for place in range(len(candidates.pairs))]
    common = np.argsort(served, kind="stable")[:COMMON]
    found = []
    for fit, mine in pairs:
        chosen = {*mine[:FINALISTS], *(int(place) for place in common if place in mine)}
        chosen |= set() if candidates.preferred is None else {candidates.preferred}
        if len(chosen) < FINALISTS:
            held = [-_held(fit, pair, scores) for pair in candidates.pairs]
            rest = [int(place) for place in np.argsort(held, kind="stable") if int(place) not in chosen]
            chosen |= set(rest[: FINALISTS - len(chosen)])
        found.append([candidates.pairs[place] for place in sorted(chosen)])
    return found


def _promising(fit: SegmentFit, candidates: Candidates, scores: Scores) -> list[int]:
    """The places of the candidates that may be admissible, the worthiest first."""
    enough = candidates.criteria.share - MARGIN
    places = [place for place, pair in enumerate(candidates.pairs) if _held(fit, pair, scores) >= enough]
    return sorted(places, key=lambda place: -mean_worth(_of(fit, candidates.pairs[place], scores)))


def _of(fit: SegmentFit, pair: tuple[float, Policy], scores: Scores) -> list[Score]:
    return scores[fit.name, pair[0], pair[1].label]


def _held(fit: SegmentFit, pair: tuple[float, Policy], scores: Scores) -> float:
    return floor_held(_of(fit, pair, scores), pair[0])


def choose_all(
    fits: Sequence[SegmentFit], candidates: Candidates, scores: Scores
) -> tuple[tuple[SegmentChoice, ...], dict[str, str]]:
    """The choice of every segment that has an admissible candidate, and the reason why each of the others has none."""
    as_good, fixed, refused = {}, {}, {}
    for fit in fits:
        worths, (label, value) = _admissible(fit, candidates, scores), best_fixed(fit, candidates, scores)
        if candidates.preferred in worths and not _surely_better(fit, candidates, scores, worths, label):
            as_good[fit.name] = {candidates.preferred: worths[candidates.preferred]}
        elif worths and max(worths.values()) >= value - AS_GOOD:
            as_good[fit.name] = {place: value for place, value in worths.items() if value >= max(worths.values()) - AS_GOOD}
        elif label:
            fixed[fit.name] = SegmentChoice(fit, label, candidates.alphas[-1], candidates.warm)
        else:
            refused[fit.name] = _why_none(fit, candidates, scores)
    taken: dict[str, int] = {}
    while open_fits := [fit for fit in fits if fit.name in as_good and fit.name not in taken]:
        place = _serves_most(open_fits, as_good)
        taken |= {fit.name: place for fit in open_fits if place in as_good[fit.name]}
    chosen = [(fit, *candidates.pairs[taken[fit.name]]) for fit in fits if fit.name in taken]
    learning = {fit.name: SegmentChoice(fit, each.label, alpha, candidates.warm and can_know(each)) for fit, alpha, each in chosen}
    choices = learning | fixed
    return tuple(choices[fit.name] for fit in fits if fit.name in choices), refused


def _surely_better(fit: SegmentFit, candidates: Candidates, scores: Scores, worths: dict[int, float], fixed: str) -> bool:
    """Whether an admissible policy, or the best fixed arm, is surely better than the preferred candidate."""
    assert candidates.preferred is not None
    others = [_of(fit, candidates.pairs[place], scores) for place in worths if place != candidates.preferred]
    others += [scores[fit.name, candidates.alphas[-1], fixed]] if fixed else []
    mine = np.array([score.worth for score in _of(fit, candidates.pairs[candidates.preferred], scores)])
    for each in others:
        gains = np.array([score.worth for score in each[: mine.size]]) - mine
        if gains.mean() > SURELY * gains.std(ddof=1) / math.sqrt(gains.size):
            return True
    return False


def best_fixed(fit: SegmentFit, candidates: Candidates, scores: Scores) -> tuple[str, float]:
    """The fixed arm that is worth the most among those that keep the largest alpha surely enough; ("", -inf) if none does."""
    alpha = candidates.alphas[-1]
    found = {label: scores[fit.name, alpha, label] for label in map(fixed_label, fit.arms if candidates.fixed else ())}
    kept = {label: each for label, each in found.items() if floor_held(each, alpha) >= candidates.criteria.share}
    return max(((label, mean_worth(each)) for label, each in kept.items()), key=lambda pair: pair[1], default=("", -math.inf))


def _admissible(fit: SegmentFit, candidates: Candidates, scores: Scores) -> dict[int, float]:
    """The worth of every finalist that keeps its alpha surely enough, by its place."""
    most = max(len(_of(fit, pair, scores)) for pair in candidates.pairs)
    final = [place for place, pair in enumerate(candidates.pairs) if len(_of(fit, pair, scores)) == most]
    kept = [place for place in final if _held(fit, candidates.pairs[place], scores) >= candidates.criteria.share]
    return {place: mean_worth(_of(fit, candidates.pairs[place], scores)) for place in kept}


def _serves_most(fits: Sequence[SegmentFit], as_good: dict[str, dict[int, float]]) -> int:
    """The candidate that is as good as the best for the most traffic. Ties go to the higher worth, then to the smaller place."""
    rows: dict[int, int] = {}
    worths: dict[int, float] = {}
    for fit in fits:
        for place, value in as_good[fit.name].items():
            rows[place] = rows.get(place, 0) + fit.rows
            worths[place] = worths.get(place, 0.0) + fit.rows * value
    return min(rows, key=lambda place: (-rows[place], -worths[place], place))


def _why_none(fit: SegmentFit, candidates: Candidates, scores: Scores) -> str:
    alpha, each = max(candidates.pairs, key=lambda pair: _held(fit, pair, scores))
    best = fit.arms[int(np.argmax(fit.quality))]
    return (
        f"no candidate keeps its alpha in {candidates.criteria.share:.0%} of the worlds; the nearest is {each.label} at alpha "
        f"{alpha:g} with {_held(fit, (alpha, each), scores):.0%}, because learning costs quality too. Take {best}, the best arm of "
        "the log, or give a larger --alpha, or --soft"
    )
