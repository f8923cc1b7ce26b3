"""Power: how many requests until it is known that an arm holds the floor.

An arm holds the floor if its mean reward is at least (1 - alpha) times that of every other arm of its segment. Each other arm is a
hypothesis of its own and all must be shown, so each is tested at the full level (an intersection-union test): the floor is known
to hold if every one-sided bound of `confidence` is above 0. One better arm is enough to fail, so there the level is shared out.
With the margin m = reward - (1 - alpha) times the other's
reward, and s its standard error after n requests, a share `chance` of logs of n ((z_confidence + z_chance) s / m)^2 requests shows
it.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs import Evidence, examine
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.source import require_polars
from thrifty.problem import checked_alpha
from thrifty.questions.checking import checked_arm, checked_share
from thrifty.questions.contrasts import contrast, quantile, reward_variance
from thrifty.table import Table

HOLDS, FAILS, OPEN = "holds", "fails", "open"
"""What is known about an arm and the floor."""


@dataclass(frozen=True, eq=False, repr=False)
class Power(Findings):
    """What `power` returns.

    `arms` is a polars frame with a row per segment and arm. `against` is the arm that decides: the one that is hardest to tell
    from the floor, or the one that shows the arm to be below it. `margin` is the reward of the arm less (1 - alpha) times that of
    the other, with a 95% interval. `verdict` is holds, fails or open. `requests` are needed in all, with the arms used as in the
    log, if the margin is as estimated; `more` and `days` count from now. `even` requests are enough if the two arms get half each.
    All are null where the margin is 0.
    """

    arms: Any
    alpha: float
    confidence: float
    chance: float
    evidence: Evidence

    @property
    def frames(self) -> dict[str, Any]:
        """One frame, the arms."""
        return {"arms": self.arms}

    def headline(self) -> str:
        """How many arms are known to hold the floor, and when the others will be known."""
        counts = {verdict: int((self.arms["verdict"] == verdict).sum()) for verdict in (HOLDS, FAILS, OPEN)}
        known = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        chosen = self.evidence.confounding.verdict()
        return f"the floor at alpha {self.alpha:g}, with {self.confidence:.0%} confidence: {known} ({chosen})"

    def table(self) -> Table:
        """Every arm."""
        words = {"segment": "", "arm": "", "against": "", "rows": ",", "margin": "+.4f", "verdict": ""}
        return interval_table(self.arms.to_dicts(), words | {"requests": ",.0f", "more": ",.0f", "days": ",.1f", "even": ",.0f"})


def power(
    source: Any,
    alpha: float = 0.05,
    *,
    arm: str | None = None,
    confidence: float = 0.95,
    chance: float = 0.8,
    seed: int = 0,
) -> Power:
    """How many requests until it is known whether each arm holds the floor.

    Parameters
    ----------
    source : a log, or anything that `Log` takes (a path, a frame, ...), or the evidence that `examine` made of one
    alpha : the share of the best reward that one is willing to give up
    arm : only this arm; default all but the best of each segment
    confidence : with which it is to be known
    chance : the probability that so many requests are enough
    seed : of the bootstrap

    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(1)
    >>> arms = rng.integers(0, 2, 4000)
    >>> rewards = 1.0 * (rng.random(4000) < numpy.array([0.9, 0.89])[arms])
    >>> log = polars.DataFrame({"arm": numpy.array(["Elm", "Fir"])[arms], "reward": rewards, "cost": 2.0 - arms})
    >>> power(log, 0.1, arm="Fir").arms.select("against", "verdict").rows()
    [('Elm', 'holds')]

    """
    alpha, confidence = checked_alpha(alpha), checked_share("confidence", confidence, low=0.5)
    chance = checked_share("chance", chance, low=0.5)
    evidence = examine(source, seed=seed)
    if arm is not None:
        checked_arm(arm, evidence.aggregates.arms)
    plan = _Plan(alpha, confidence, NormalDist().inv_cdf(chance), evidence.weights.shape[1])
    rows = []
    for each in evidence.estimates:
        usable = np.flatnonzero(each.usable)
        if usable.size < 2:
            continue
        best = int(usable[np.argmax(each.reward()[usable])])
        wanted = [int(place) for place in usable if (int(place) != best if arm is None else each.sums.arms[place] == arm)]
        rows += [_row(evidence, each, place, plan) for place in wanted]
    if not rows:
        where = "" if arm is None else f" for {arm!r}"
        raise ValueError(f"no segment has two arms with enough rows{where}: see the profile that thrifty replay prints")
    frame = require_polars().DataFrame(rows, infer_schema_length=None)
    return Power(frame, alpha, confidence, chance, evidence)


class _Plan(NamedTuple):
    """Alpha, the confidence, the quantile of the chance, and the blocks of the log."""

    alpha: float
    confidence: float
    likely: float
    n_blocks: int

    @property
    def sure(self) -> float:
        """The quantile of one test at the full level."""
        return quantile(self.confidence, self.n_blocks)

    def sure_of_one(self, tests: int) -> float:
        """The quantile of one of several tests, if a single one that succeeds is enough (Bonferroni)."""
        return quantile(1.0 - (1.0 - self.confidence) / tests, self.n_blocks)


def _row(evidence: Evidence, estimates: SegmentEstimates, arm: int, plan: _Plan) -> dict[str, Any]:
    others = [int(other) for other in np.flatnonzero(estimates.usable) if other != arm]
    found = [contrast(estimates, arm, other, factor=1.0 - plan.alpha) for other in others]
    margins, errors = np.array([each.value for each in found]), np.maximum([each.error for each in found], 1e-12)
    if (margins - plan.sure * errors > 0.0).all():
        verdict = HOLDS
    elif (margins + plan.sure_of_one(len(others)) * errors < 0.0).any():
        verdict = FAILS
    else:
        verdict = OPEN
    place = _decisive(margins, errors)
    needed = _requests(margins[place], errors[place], float(estimates.sums.rows), plan)
    more = None if needed is None else max(needed - estimates.sums.rows, 0.0) if verdict == OPEN else 0.0
    half = quantile(0.975, evidence.weights.shape[1]) * errors[place]
    return {
        "segment": estimates.sums.name,
        "arm": estimates.sums.arms[arm],
        "against": estimates.sums.arms[others[place]],
        "rows": estimates.sums.rows,
        "margin": float(margins[place]),
        "margin_low": float(margins[place] - half),
        "margin_high": float(margins[place] + half),
        "verdict": verdict,
        "requests": needed,
        "more": more,
        "days": _days(evidence, estimates, more),
        "even": _even(estimates, (arm, others[place]), float(margins[place]), plan),
    }


def _decisive(margins: Floats, errors: Floats) -> int:
    """The other arm that shows the arm to be below the floor the most clearly, else the one that is hardest to tell from it."""
    return int(np.argmin(margins / errors))


def _requests(margin: float, error: float, rows: float, plan: _Plan) -> float | None:
    """Requests that show a margin of this size, if `rows` of them have this standard error."""
    if margin == 0.0:
        return None
    return float(math.ceil(rows * ((plan.sure + plan.likely) * error / margin) ** 2))


def _even(estimates: SegmentEstimates, arms: tuple[int, int], margin: float, plan: _Plan) -> float | None:
    """Requests that show a margin of this size if each of the two arms gets half of them."""
    arm, other = (reward_variance(estimates, each) for each in arms)
    error = math.sqrt(2.0 * arm + 2.0 * (1.0 - plan.alpha) ** 2 * other)
    return _requests(margin, error, 1.0, plan)


def _days(evidence: Evidence, estimates: SegmentEstimates, requests: float | None) -> float | None:
    """Days until a segment has so many requests, at the pace of the log; None if the log has no times."""
    span = evidence.aggregates.last - evidence.aggregates.first
    if requests is None or not evidence.aggregates.timed or span <= 0.0:
        return None
    return float(requests * span / 86_400.0 / estimates.sums.rows)
