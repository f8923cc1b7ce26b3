"""The recommendation: the policy and alpha to run in each segment, chosen by playing candidates in worlds drawn from the log."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thrifty.advice.criteria import CRITERIA, Criteria
from thrifty.advice.expectation import candidate_row, expected_rows
from thrifty.advice.fit import SegmentFit, fit_segments
from thrifty.advice.fixed import FIXED, fixed_label
from thrifty.advice.games import EFFORT, Effort, play_all, worth_of_the_start
from thrifty.advice.selection import WORTH, Candidates, Scores, SegmentChoice, choose_all
from thrifty.findings import Findings, interval_table
from thrifty.logs import Evidence, examine
from thrifty.logs.evidence import OVERALL
from thrifty.logs.frontier import Frontier, frontier
from thrifty.logs.savings import saving_in_words
from thrifty.logs.source import require_polars
from thrifty.policies import Policy, distinct_policies, policy
from thrifty.problem import checked_alphas
from thrifty.table import Table

CANDIDATES = ("cs-worth", "cs-ids", "cs-balance", "cs-ts", "cs-ucb", FIXED)
ALPHAS = (0.02, 0.05, 0.1)


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation(Findings):
    """What `recommend` returns.

    `choices` has one entry per segment. `segments` and `candidates` are polars frames: what is expected of the choice in each
    segment and overall, and of every candidate in every segment, each with the middle 95% of the worlds. `refused` has the reason
    why a segment has no choice. `frontier` is that of the log, on a grid. `warm` says whether policies start with what the log
    knows; `start` in `segments` is what that is worth, as a share of cost, against a start from nothing.
    """

    choices: tuple[SegmentChoice, ...]
    segments: Any
    candidates: Any
    refused: dict[str, str]
    frontier: Frontier
    rounds: int
    worlds: int
    criteria: Criteria
    seed: int
    warm: bool

    @property
    def evidence(self) -> Evidence:
        """The estimates from the log."""
        return self.frontier.evidence

    @property
    def frames(self) -> dict[str, Any]:
        """The choices by segment and overall, and every candidate."""
        return {"segments": self.segments, "candidates": self.candidates}

    def headline(self) -> str:
        """What the choices save together."""
        whole = self.segments.filter(segment=OVERALL).to_dicts()[0]
        saves = saving_in_words(whole["saving"], "today's cost")
        about = f"{len(self.choices)} segments; {saves}, quality {whole['quality_change']:+.2%}"
        start = f"; the start from the log is worth {whole['start']:.1%} of cost" if self.warm else ""
        return f"{about}{start} ({self.frontier.verdict})"

    def table(self) -> Table:
        """The choice of every segment."""
        words = {"segment": "", "rows": ",", "policy": "", "alpha": "g", "arm": ""}
        numbers = {"quality": ".4f", "quality_change": "+.4f", "saving": ".1%", "floor_held": ".0%"}
        return interval_table(self.segments.to_dicts(), words | numbers)


def recommend(
    source: Any,
    alphas: Sequence[float] | float = ALPHAS,
    *,
    policies: Sequence[str | Policy] = CANDIDATES,
    criteria: Criteria = CRITERIA,
    effort: Effort = EFFORT,
    warm: bool = True,
    seed: int = 0,
    reading: Callable[[str, int], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recommendation:
    """Choose a policy and an alpha for each segment.

    Every candidate is played in worlds drawn from the estimates of the segment's arms. Alpha is a limit: a candidate that gives up
    more of the best arm's quality than its alpha, learning included, in too many of the worlds is out. Among the others the one
    with the highest expected worth is chosen: the share of cost saved against always taking the best arm, less an exchange times
    the share of quality given up. With "fixed" among the policies, always taking one arm is a candidate too ("always Elm").
    Segments get the same policy, and so share a router, where it is as good as the best in each.

    Policies start with what the log knows of the arms, and so do the routers that `advised_routers` describes, unless the estimates
    are not to be trusted. "cs-worth", which aims at worth, is then preferred unless another candidate is surely better.

    Parameters
    ----------
    source : a log, or anything that `Log` takes (a path, a frame, ...), or the evidence that `examine` made of one
    alphas : the subsidy factors to choose from
    policies : the candidates; "fixed" stands for every arm of the log
    criteria : the price of quality, and how surely alpha is to be kept
    effort : how much is simulated
    warm : whether policies may start with what the log knows; False lets all of them start from nothing
    seed : of the bootstrap, the worlds and the runs
    reading, progress : called with (the current step, rows read so far), and with (plays done, all plays)

    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(1)
    >>> arm = rng.integers(0, 2, 4000)
    >>> frame = polars.DataFrame({"arm": [f"r{a}" for a in arm], "reward": 1.0 * (rng.random(4000) < 0.9), "cost": 1.0 + arm})
    >>> found = recommend(frame, [0.1], policies=["cs-ts"], effort=Effort(rounds=500, worlds=4))
    >>> [(each.policy, each.alpha) for each in found.choices]
    [('cs-ts', 0.1)]

    """
    candidates = _checked_candidates(policies, alphas, criteria)
    evidence = examine(source, seed=seed, progress=reading)
    knowing = warm and evidence.confounding.trusted
    candidates = replace(candidates, warm=knowing, criteria=criteria.settled(warm=knowing))
    largest = candidates.alphas[-1]
    found = frontier(evidence, sorted({*candidates.alphas, *_grid_up_to(largest)}))
    fits, refused = _largest(fit_segments(evidence), effort.most)
    scores = play_all(fits, candidates, effort, seed=evidence.seed, progress=progress)
    return _recommendation(fits, candidates, scores, found, {**found.refused, **refused}, effort)


def _checked_candidates(policies: Sequence[str | Policy], alphas: Sequence[float] | float, criteria: Criteria) -> Candidates:
    given = [policies] if isinstance(policies, (str, Policy)) else policies
    fixed = isinstance(given, (list, tuple)) and FIXED in given
    if fixed and set(given) == {FIXED}:
        raise ValueError(
            f"{FIXED} stands for the arms of the log, and is no policy: name a policy beside it, such as cs-ids,{FIXED}"
        )
    grid, chosen = checked_alphas(alphas), distinct_policies([each for each in given if each != FIXED] if fixed else given)
    knowing = [each.label for each in chosen if each.known_truths]
    if knowing:
        raise ValueError(f"{knowing[0]} knows the true means, which nobody knows outside a simulation: leave it out")
    return Candidates([_at_exchange(each, criteria.exchange) for each in chosen], grid, criteria, fixed)


def _at_exchange(chosen: Policy, exchange: float) -> Policy:
    """A policy that aims at worth, with the exchange that candidates are judged by, unless it has one of its own."""
    usual = chosen.name != WORTH or "exchange" in chosen.settings or exchange == chosen.parameters["exchange"].default
    return chosen if usual else policy(chosen, exchange=exchange)


def _largest(fits: list[SegmentFit], most: int) -> tuple[list[SegmentFit], dict[str, str]]:
    """The segments with the most rows, and the reason why each of the others is left out."""
    largest = {fit.name for fit in sorted(fits, key=lambda fit: (-fit.rows, fit.name))[:most]}
    reason = f"not among the {most} segments with the most rows: raise --most, or use the choice of a similar segment"
    return [fit for fit in fits if fit.name in largest], {fit.name: reason for fit in fits if fit.name not in largest}


def _grid_up_to(largest: float) -> list[float]:
    return [round(0.01 * step, 2) for step in range(round(100 * min(max(largest * 2, 0.1), 1.0)) + 1)]


def _fixed(fit: SegmentFit, candidates: Candidates) -> list[tuple[float, str]]:
    return [(candidates.alphas[-1], fixed_label(arm)) for arm in fit.arms] if candidates.fixed else []


def _recommendation(
    fits: list[SegmentFit],
    candidates: Candidates,
    scores: Scores,
    found: Frontier,
    refused: dict[str, str],
    effort: Effort,
) -> Recommendation:
    choices, out = choose_all(fits, candidates, scores)
    if not choices:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(out.items())[:1])
        raise ValueError(f"no segment has a candidate that keeps its alpha ({reasons})")
    rows = [
        candidate_row(fit, alpha, label, scores)
        for fit in fits
        for alpha, label in [*((alpha, each.label) for alpha, each in candidates.pairs), *_fixed(fit, candidates)]
    ]
    pl = require_polars()
    start = worth_of_the_start(fits, choices, candidates, scores, effort, seed=found.evidence.seed)
    return Recommendation(
        choices,
        pl.DataFrame(expected_rows(choices, scores, found, start), infer_schema_length=None),
        pl.DataFrame(rows, infer_schema_length=None),
        {**refused, **out},
        found,
        effort.rounds,
        effort.worlds,
        candidates.criteria,
        found.evidence.seed,
        candidates.warm,
    )
