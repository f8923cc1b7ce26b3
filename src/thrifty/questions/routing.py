"""The value of a given routing: shares of the requests by segment and arm, fixed beforehand.

Nothing is chosen from the log, so the estimate is a weighted mean of the arms' doubly robust estimates, and its interval is that
of the bootstrap as it stands.
"""

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs import Evidence, examine
from thrifty.logs.estimators import SegmentEstimates
from thrifty.logs.evidence import OVERALL, logged_value, spread
from thrifty.logs.savings import saving_in_words, share_saved
from thrifty.logs.source import require_polars
from thrifty.questions.checking import checked_arm
from thrifty.questions.target import target_notes, target_value, weigh_rows
from thrifty.table import Table

Shares = Mapping[str, float]
"""Shares by arm; they add up to 1."""

ANY = "*"
"""The name of all segments for which no shares are given."""


@dataclass(frozen=True)
class Routing:
    """Shares of the requests by segment and arm; the segment * stands for all that are not named.

    >>> Routing.load("Elm=0.7,Fir=0.3").of("DE")
    {'Elm': 0.7, 'Fir': 0.3}
    >>> Routing({"*": {"Elm": 0.7}})
    Traceback (most recent call last):
    ValueError: the shares of segment '*' must add up to 1, got 0.7
    """

    shares: Mapping[str, Shares]

    def __post_init__(self) -> None:
        for segment, shares in self.shares.items():
            if not isinstance(shares, Mapping):
                raise ValueError(f"the shares of segment {segment!r:.80} must be a mapping of arm to share, got {shares!r:.80}")
            wrong = [arm for arm, share in shares.items() if not 0.0 <= share <= 1.0]
            if wrong:
                raise ValueError(
                    f"the share of {wrong[0]!r:.80} in segment {segment!r:.80} must be in [0, 1], got {shares[wrong[0]]}"
                )
            if not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-6):
                raise ValueError(f"the shares of segment {segment!r:.80} must add up to 1, got {sum(shares.values()):g}")

    @classmethod
    def load(cls, given: "str | Mapping[str, Any] | Routing") -> "Routing":
        """From "arm=share,arm=share", shares by arm, shares by segment and arm, or a CSV file with arm, share and segment."""
        if isinstance(given, Routing):
            return given
        if isinstance(given, Mapping):
            nested = all(isinstance(value, Mapping) for value in given.values())
            return cls(dict(given) if nested and given else {ANY: {str(arm): _number(arm, share) for arm, share in given.items()}})
        if "=" in given:
            pairs = [item.partition("=") for item in given.split(",")]
            names = [arm.strip() for arm, _, _ in pairs]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"there are two shares of {twice!r:.80}: give one")
            return cls({ANY: {name: _number(name, share) for name, (_, _, share) in zip(names, pairs, strict=True)}})
        return cls(_read(Path(given)))

    def of(self, segment: str) -> Shares:
        """The shares of a segment."""
        if segment not in self.shares and ANY not in self.shares:
            named = ", ".join(list(self.shares)[:10])
            raise ValueError(
                f"there are no shares for segment {segment!r:.80}: add them, or shares of the segment {ANY} for all but {named}"
            )
        return self.shares.get(segment, self.shares.get(ANY, {}))


def _number(arm: Any, share: Any) -> float:
    try:
        return float(share)
    except (TypeError, ValueError):
        raise ValueError(f"the share of {arm!r:.80} must be a number from 0 to 1, got {share!r:.80}") from None


def _read(path: Path) -> dict[str, dict[str, float]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the shares in {path}: {error}") from None
    if not rows or not {"arm", "share"} <= set(rows[0]):
        raise ValueError(f"{path} must have the columns arm and share, and may have segment")
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        mine = found.setdefault(row.get("segment") or ANY, {})
        if row["arm"] in mine:
            raise ValueError(f"{path}: there are two shares of {row['arm']!r:.80} in segment {row.get('segment') or ANY!r:.80}")
        mine[row["arm"]] = _number(row["arm"], row["share"])
    return found


Policy = Callable[[str, tuple[str, ...]], Shares]
"""A stochastic policy: called with a segment and its arms, it says the probability of each."""


@dataclass(frozen=True, eq=False, repr=False)
class RoutingValue(Findings):
    """What `value_of` returns.

    `segments` is a polars frame with a row per segment and one for all: mean reward and cost of the routing, their change against
    today, and the share of today's cost that is saved, each with a 95% interval. `refused` has the reason why a segment has no
    estimate, `notes` what else should be known.
    """

    segments: Any
    refused: dict[str, str]
    evidence: Evidence
    notes: tuple[str, ...] = ()

    @property
    def frames(self) -> dict[str, Any]:
        """One frame, the segments."""
        return {"segments": self.segments}

    def headline(self) -> str:
        """What the routing brings and saves in all segments together."""
        whole = self.segments.filter(segment=OVERALL).to_dicts()[0]
        saving = saving_in_words(whole["saving"], "today's cost")
        about = f"mean reward {whole['reward']:.4f}, {whole['reward_change']:+.4f} against today; {saving}"
        return f"{about} ({self.evidence.confounding.verdict()})"

    def table(self) -> Table:
        """Every segment, and all together."""
        columns = {"segment": "", "rows": ",", "reward": ".4f", "reward_change": "+.4f", "cost": ".4g", "saving": ".1%"}
        return interval_table(self.segments.to_dicts(), columns)


def value_of(
    source: Any, routing: str | Mapping[str, Any] | Routing | Policy | None = None, *, target: str | None = None, seed: int = 0
) -> RoutingValue:
    """What a given routing would have brought and cost over the span of a log.

    Parameters
    ----------
    source : a log, or anything that `Log` takes (a path, a frame, ...), or the evidence that `examine` made of one
    routing : shares by arm ("Elm=0.7,Fir=0.3" or a mapping), shares by segment and arm (a mapping, or a CSV file with the columns
        segment, arm and share), or a stochastic policy: a function that is called with a segment and its arms and returns shares
    target : in place of a routing: the column with the probability that a policy, which may look at each request, takes the arm of
        that row; the log must have its own propensities too
    seed : of the bootstrap

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> found = value_of(frame, "a=0.5,b=0.5").to_polars().to_dicts()[0]
    >>> round(found["reward"], 9), round(found["cost"], 9)
    (0.75, 0.15)

    """
    if (routing is None) == (target is None):
        raise ValueError("give one of --shares and --target: shares by arm, or a column with the probabilities of a policy")
    evidence = examine(source, seed=seed)
    if target is not None:
        return _value_of_target(evidence, target)
    assert routing is not None
    if callable(routing):
        routing = Routing({each.sums.name: routing(each.sums.name, each.sums.arms) for each in evidence.estimates})
    plan = Routing.load(routing)
    for name in {name for shares in plan.shares.values() for name, share in shares.items() if share > 0.0}:
        checked_arm(name, evidence.aggregates.arms)
    _check_segments(plan, evidence)
    parts, refused = [], {}
    for each in evidence.estimates:
        shares = plan.of(each.sums.name)
        reason = _reason(each, shares)
        if reason:
            refused[each.sums.name] = reason
        else:
            rewards, costs = each.replicates["dr"]
            arms = _weights(each, shares)
            parts.append(_Part(each, rewards @ arms, costs @ arms))
    return _found(evidence, parts, refused)


def _value_of_target(evidence: Evidence, column: str) -> RoutingValue:
    """The value of a policy whose probabilities are in a column."""
    sums = weigh_rows(evidence, column)
    parts, refused = [], {}
    for each in evidence.estimates:
        value = target_value(evidence, sums[each.sums.name])
        if isinstance(value, str):
            refused[each.sums.name] = value
        else:
            parts.append(_Part(each, *value))
    return replace(_found(evidence, parts, refused), notes=tuple(target_notes(evidence, sums, column)))


class _Part(NamedTuple):
    """A segment, and (1 + B,) mean reward and mean cost of the routing in it."""

    estimates: SegmentEstimates
    reward: Floats
    cost: Floats


def _found(evidence: Evidence, parts: list[_Part], refused: dict[str, str]) -> RoutingValue:
    if not parts:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(refused.items())[:3])
        raise ValueError(f"no segment has an estimate of this routing ({reasons})")
    rows = [_row(evidence, [part], part.estimates.sums.name) for part in parts]
    rows.append(_row(evidence, parts, OVERALL))
    return RoutingValue(require_polars().DataFrame(rows, infer_schema_length=None), refused, evidence)


def _check_segments(plan: Routing, evidence: Evidence) -> None:
    names = {each.sums.name for each in evidence.estimates}
    unknown = [name for name in plan.shares if name != ANY and name not in names]
    if unknown:
        raise ValueError(f"the log has no segment {unknown[0]!r:.80}: it has {', '.join(sorted(names)[:10])}")


def _reason(estimates: SegmentEstimates, shares: Shares) -> str:
    """Why there is no estimate of these shares; empty where there is one."""
    for arm, share in shares.items():
        if share <= 0.0:
            continue
        if arm not in estimates.sums.arms:
            return f"{arm} was never used there"
        refusal = estimates.refusals[estimates.sums.arms.index(arm)]
        if refusal and len(estimates.sums.arms) > 1:
            return f"{arm} has {refusal}"
    return ""


def _weights(estimates: SegmentEstimates, shares: Shares) -> Floats:
    return np.array([shares.get(arm, 0.0) for arm in estimates.sums.arms])


def _row(evidence: Evidence, parts: list[_Part], name: str) -> dict[str, Any]:
    segments = [part.estimates for part in parts]
    traffic = np.add.reduce([each.traffic for each in segments])
    reward = np.add.reduce([part.estimates.traffic * part.reward for part in parts]) / traffic
    cost = np.add.reduce([part.estimates.traffic * part.cost for part in parts]) / traffic
    was_reward, was_cost = logged_value(segments, evidence.weights)
    values = {"reward": reward, "cost": cost, "reward_change": reward - was_reward, "cost_change": cost - was_cost}
    row: dict[str, Any] = {"segment": name, "rows": sum(each.sums.rows for each in segments)}
    saving = share_saved(cost, was_cost)
    if not np.isnan(saving).any():
        values["saving"] = saving
    for what, replicates in values.items():
        middle, low, high = (float(value) for value in spread(replicates, evidence.weights.shape[1]))
        row |= {what: middle, f"{what}_low": low, f"{what}_high": high}
    return row if "saving" in values else row | dict.fromkeys(("saving", "saving_low", "saving_high"))
