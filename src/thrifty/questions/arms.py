"""Arm against arm: all differences of mean reward and cost within the segments, judged together.

Among many comparisons some look significant by chance. Here all intervals of a metric hold at once with 95%, and p-values are
those of the largest standardised difference among all (max-t, [Westfall1993]): the replicates of the bootstrap know how the
comparisons go together, so this asks for less than Bonferroni's or Holm's method.

References
----------
[Westfall1993] Westfall, Young, "Resampling-based multiple testing", Wiley 1993, section 2.3.

"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs import Evidence, examine
from thrifty.logs.aggregates import N
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.source import require_polars
from thrifty.questions.contrasts import COST, REWARD, contrast, widening
from thrifty.table import Table

LEVEL = 0.05
_ROUNDING = 1e-12  # of the means: a smaller difference is that of sums of equal prices
MOST_ARMS = 40
"""Arms of a segment that are compared, those with the most rows."""


@dataclass(frozen=True, eq=False, repr=False)
class ArmComparison(Findings):
    """What `compare_arms` returns.

    `pairs` is a polars frame with a row per segment and pair of arms: the difference of mean reward and of mean cost (arm less
    other) with intervals that hold for all pairs at once, and p-values that account for the number of pairs. `left_out` are arms
    that are not compared, with the reason.
    """

    pairs: Any
    left_out: dict[str, str]
    evidence: Evidence

    @property
    def frames(self) -> dict[str, Any]:
        """One frame, the pairs."""
        return {"pairs": self.pairs}

    def headline(self) -> str:
        """How many pairs differ."""
        found = int((self.pairs["p"] < LEVEL).sum())
        about = (
            f"{found} of {self.pairs.height} pairs of arms differ in mean reward, with p < {LEVEL:g} for all comparisons together"
        )
        return f"{about} ({self.evidence.confounding.verdict()})"

    def table(self) -> Table:
        """Every pair, the clearest first."""
        words = {
            "segment": "",
            "arm": "",
            "other": "",
            "difference": "+.4f",
            "p": ".3f",
            "cost_difference": "+.4g",
            "p_cost": ".3f",
        }
        return interval_table(self.pairs.to_dicts(), words)


class _Pair(NamedTuple):
    """A pair of arms of a segment, by number."""

    estimates: SegmentEstimates
    arm: int
    other: int


def compare_arms(source: Any, *, seed: int = 0) -> ArmComparison:
    """Compare all pairs of arms of each segment, and account for the number of comparisons.

    Parameters
    ----------
    source : a log, or anything that `Log` takes (a path, a frame, ...), or the evidence that `examine` made of one
    seed : of the bootstrap

    >>> import numpy, polars
    >>> rng = numpy.random.default_rng(1)
    >>> arms = rng.integers(0, 3, 6000)
    >>> rewards = 1.0 * (rng.random(6000) < numpy.array([0.9, 0.9, 0.7])[arms])
    >>> log = polars.DataFrame({"arm": numpy.array(["Elm", "Fir", "Oak"])[arms], "reward": rewards, "cost": 1.0 + arms})
    >>> found = compare_arms(log).pairs
    >>> [(row["arm"], row["other"], row["p"] < 0.05) for row in found.to_dicts()]
    [('Elm', 'Oak', True), ('Fir', 'Oak', True), ('Elm', 'Fir', False)]

    """
    evidence = examine(source, seed=seed)
    pairs, left_out = [], {}
    for each in evidence.estimates:
        usable = [int(arm) for arm in np.flatnonzero(each.usable)]
        most_used = np.argsort(-each.sums.totals[usable, N], kind="stable")[:MOST_ARMS]
        kept = sorted(usable[place] for place in most_used)
        if len(usable) > MOST_ARMS:
            left_out[each.sums.name] = f"only the {MOST_ARMS} arms with the most rows are compared, of {len(usable)}"
        pairs += [_Pair(each, *both) for both in combinations(kept, 2)]
    if not pairs:
        raise ValueError("no segment has two arms with enough rows to compare: see the profile that thrifty replay prints")
    columns: dict[str, list[Any]] = {
        "segment": [pair.estimates.sums.name for pair in pairs],
        "arm": [pair.estimates.sums.arms[pair.arm] for pair in pairs],
        "other": [pair.estimates.sums.arms[pair.other] for pair in pairs],
    }
    for metric, name, p_name in ((REWARD, "difference", "p"), (COST, "cost_difference", "p_cost")):
        columns |= _judged(pairs, metric, name, p_name, widening(evidence.weights.shape[1]))
    frame = require_polars().DataFrame(columns).sort("p", maintain_order=True)
    return ArmComparison(frame, left_out, evidence)


def _judged(pairs: list[_Pair], metric: int, name: str, p_name: str, widened: float) -> dict[str, list[float]]:
    """Differences of a metric with intervals that hold at once, and p-values of the largest standardised difference."""
    values, errors = np.zeros(len(pairs)), np.zeros(len(pairs))
    largest: Floats = np.zeros(pairs[0].estimates.traffic.size - 1)
    for place, pair in enumerate(pairs):
        found = contrast(pair.estimates, pair.arm, pair.other, metric=metric)
        means = pair.estimates.replicates["dr"][metric][0][[pair.arm, pair.other]]
        rounding = _ROUNDING * float(np.abs(means).max())
        values[place] = found.value if abs(found.value) > rounding else 0.0
        errors[place] = found.error if found.error > rounding else 0.0
        if errors[place] > 0.0:
            largest = np.maximum(largest, np.abs(found.errors) / errors[place])
    largest = largest * widened
    half = float(np.quantile(largest, 1.0 - LEVEL)) * errors
    certain = np.where(np.abs(values) > 0.0, np.inf, 0.0)  # differences without an error, such as those of listed prices
    t = np.divide(np.abs(values), errors, out=certain, where=errors > 0.0)
    p = [(1.0 + float((largest >= each).sum())) / (1.0 + largest.size) for each in t]
    return {name: values.tolist(), f"{name}_low": (values - half).tolist(), f"{name}_high": (values + half).tolist(), p_name: p}
