"""Evaluation: reward and cost of today's choices, of the best arms and of the cheapest arms above the floor, by every estimator."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs.bounds import COST, DELTA, REWARD, bound_assumed, bound_logged
from thrifty.logs.estimators import ESTIMATORS, SegmentEstimates
from thrifty.logs.evidence import (
    OVERALL,
    Comparable,
    Evidence,
    Progress,
    assumptions,
    crosswise,
    crosswise_value,
    examine,
    floor_choice,
    logged_value,
    spread,
)
from thrifty.logs.reading import Log
from thrifty.logs.rejection import PLAYS, replay_policy, replayed_value
from thrifty.logs.source import require_polars
from thrifty.policies import DEFAULT_POLICY, Policy, distinct_policies
from thrifty.problem import checked_alpha
from thrifty.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Replay(Findings):
    """What `replay` returns.

    `policies` is a polars frame with one row per policy, alpha and estimator. `segments` has the same rows for every segment, by
    the first estimator. `evidence` is the source of both.
    """

    policies: Any
    segments: Any
    evidence: Evidence

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions behind the numbers, in words."""
        return assumptions(self.evidence)

    @property
    def frames(self) -> dict[str, Any]:
        """All policies over all segments, every policy in every segment, and the arms of the log."""
        return {"policies": self.policies, "segments": self.segments, "profile": self.evidence.profile.arms}

    def headline(self) -> str:
        """What was evaluated."""
        names = ", ".join(self.policies["policy"].unique(maintain_order=True).to_list())
        return f"{self.evidence.aggregates.rows:,} rows, {len(self.evidence.estimates)} segments; {names}"

    def table(self) -> Table:
        """Every policy by its first estimator."""
        first = self.policies.unique(["policy", "alpha"], keep="first", maintain_order=True)
        formats = {"policy": "", "alpha": "g", "estimator": "", "reward": ".4f", "cost": ".4g", "saving": ".1%"}
        return interval_table(first.to_dicts(), formats)


def replay(
    log: Log,
    alphas: Sequence[float] = (0.02, 0.05, 0.1),
    *,
    policies: Sequence[str | Policy] = (DEFAULT_POLICY,),
    seed: int = 0,
    plays: int = PLAYS,
    progress: Progress | None = None,
) -> Replay:
    """Estimate what other choices would have brought and cost over the span of a log.

    Parameters
    ----------
    log : see `Log`
    alphas : subsidy factors in [0, 1]
    policies : learning policies to play through the log by rejection replay; each reads the log once more
    seed : of the bootstrap and of the plays
    plays : how often each policy is played through
    progress : called with (the current step, rows read so far)

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> found = replay(Log(frame), [0.1], policies=[])
    >>> found.policies.filter(estimator="dr")["policy"].to_list()
    ['always the best', 'always the cheapest', 'cheapest above the floor']

    """
    alphas = [checked_alpha(alpha) for alpha in alphas]
    chosen = distinct_policies(policies) if policies else []
    evidence = examine(log, seed=seed, progress=progress)
    overall, by_segment = [_today(evidence)], []
    for choice in _fixed_choices(alphas) if evidence.comparable else ():
        overall += [_fixed(evidence, evidence.comparable, choice, estimator) for estimator in ESTIMATORS]
        by_segment += [_fixed(evidence, [each], choice, "dr") for each in evidence.comparable]
    for each in chosen:
        report = None if progress is None else (lambda rows, label=each.label: progress(f"replaying {label}", rows))
        played = replay_policy(log, evidence.aggregates, evidence.estimates, each, alphas, seed=seed, plays=plays, progress=report)
        for alpha, replayed in played.items():
            overall.append(_played(evidence, replayed, list(evidence.estimates), each.label, alpha))
            pairs = zip(replayed, evidence.estimates, strict=True)
            by_segment += [_played(evidence, [one], [about], each.label, alpha) for one, about in pairs]
    return Replay(_frame(overall), _frame(by_segment), evidence)


@dataclass(frozen=True, eq=False)
class _Estimate:
    """One row of the result: what a policy brings and costs in one segment or overall, by one estimator.

    `reward`, `cost`, `change` (of the reward, against today) and `saving` are (value, low, high). `sure` has the distribution-free
    bounds (low, high) of reward and cost.
    """

    policy: str
    alpha: float | None
    estimator: str
    segment: str
    rows: float
    effective: float
    traffic: float
    reward: Floats
    cost: Floats
    sure: tuple[Floats, Floats]
    change: Floats
    saving: Floats
    arm: str = ""
    refused: str = ""

    def row(self) -> dict[str, Any]:
        """The estimate as a row of the frame."""
        first = {"policy": self.policy, "alpha": self.alpha, "estimator": self.estimator, "segment": self.segment, "arm": self.arm}
        sizes = {"rows": round(self.rows), "effective_rows": float(self.effective), "traffic": self.traffic}
        return {
            **first,
            **sizes,
            **_with_interval("reward", self.reward),
            **_with_interval("cost", self.cost),
            **_interval("reward_sure", self.sure[0]),
            **_interval("cost_sure", self.sure[1]),
            **_with_interval("reward_change", self.change),
            **_with_interval("saving", self.saving),
            "refused": self.refused,
        }


def _with_interval(name: str, values: Floats) -> dict[str, float]:
    return {name: float(values[0]), **_interval(name, values[1:])}


def _interval(name: str, ends: Floats) -> dict[str, float]:
    return {f"{name}_low": float(ends[0]), f"{name}_high": float(ends[1])}


def _frame(estimates: list[_Estimate]) -> Any:
    return require_polars().DataFrame([estimate.row() for estimate in estimates], infer_schema_length=None)


_NOTHING = np.full(3, np.nan)
_NO_BOUND = np.full(2, np.nan)


def _today(evidence: Evidence) -> _Estimate:
    reward, cost = evidence.today
    n = evidence.weights.shape[1]
    rows = evidence.aggregates.rows
    return _Estimate(
        "today",
        None,
        "mean of the log",
        OVERALL,
        rows=rows,
        effective=rows,
        traffic=1.0,
        reward=spread(reward, n),
        cost=spread(cost, n),
        sure=(_hoeffding(float(reward[0]), rows), _NO_BOUND),
        change=np.zeros(3),
        saving=np.zeros(3),
    )


def _hoeffding(mean: float, rows: float) -> Floats:
    """(2,) Hoeffding's bound of a mean of independent rewards in [0, 1]."""
    half = math.sqrt(math.log(2.0 / DELTA) / (2.0 * rows)) if rows else math.nan
    return _in_unit(np.array([mean - half, mean + half]))


class _FixedChoice(NamedTuple):
    """Always the cheapest arm above the floor of `level`: level 0 is the best arm, level 1 the cheapest."""

    name: str
    alpha: float | None
    level: float


def _fixed_choices(alphas: Sequence[float]) -> list[_FixedChoice]:
    extremes = [_FixedChoice("always the best", None, 0.0), _FixedChoice("always the cheapest", None, 1.0)]
    return [*extremes, *(_FixedChoice("cheapest above the floor", alpha, alpha) for alpha in alphas)]


def _fixed(evidence: Evidence, segments: list[Comparable], choice: _FixedChoice, estimator: str) -> _Estimate:
    """One arm per segment, chosen and valued crosswise. In one segment alone, the arm named is the choice of the whole log."""
    n = evidence.weights.shape[1]
    parts = [part for _, halves in segments for part in crosswise(halves, choice.level)]
    reward, cost = crosswise_value(parts, estimator)
    was_reward, was_cost = logged_value([whole for whole, _ in segments], evidence.weights)
    rows = sum(each.sums.rows for each, _, _ in parts)
    one = segments[0].whole if len(segments) == 1 else None
    return _Estimate(
        choice.name,
        choice.alpha,
        estimator,
        OVERALL if one is None else one.sums.name,
        arm="" if one is None else one.sums.arms[floor_choice(one, choice.level)],
        rows=sum(each.sums.totals[arm, 0] for each, arm, _ in parts),
        effective=1.0 / sum((each.sums.rows / rows) ** 2 / max(each.effective[arm], 1e-300) for each, arm, _ in parts),
        traffic=rows / evidence.aggregates.rows,
        reward=_in_unit(spread(reward, n)),
        cost=spread(cost, n),
        sure=_sure(evidence, segments, choice.level),
        change=spread(reward - was_reward, n),
        saving=spread(1.0 - cost / np.maximum(was_cost, 1e-300), n),
    )


def _in_unit(values: Floats) -> Floats:
    return np.asarray(np.clip(values, 0.0, 1.0), dtype=np.float64)


def _sure(evidence: Evidence, segments: list[Comparable], alpha: float) -> tuple[Floats, Floats]:
    """Distribution-free bounds of reward and cost of a choice: the mean of the bounds of both halves."""
    rows = sum(whole.sums.rows for whole, _ in segments)
    crossed = [crosswise(halves, alpha) for _, halves in segments]
    found = []
    for metric, columns in ((0, REWARD), (1, COST)):
        bound = np.zeros(2)
        for half in (0, 1):
            parts = [both[half][:2] for both in crossed]
            share = sum(each.sums.rows for each, _ in parts) / rows
            if share > 0:
                bound += share * _sure_half(parts, metric, columns, weighted=evidence.aggregates.weighted)
        found.append(bound)
    return found[0], found[1]


def _sure_half(parts: list[tuple[SegmentEstimates, int]], metric: int, columns: tuple[int, ...], *, weighted: bool) -> Floats:
    parts = [(each, arm) for each, arm in parts if each.sums.rows > 0]
    if weighted:
        return bound_logged([(each.sums, arm) for each, arm in parts], columns, DELTA / 2.0)
    rows = sum(each.sums.rows for each, _ in parts)
    shares = np.array([each.sums.rows / rows for each, _ in parts])
    value = sum(share * each.replicates["dm"][metric][0, arm] for share, (each, arm) in zip(shares, parts, strict=True))
    scales = np.array([1.0 if metric == 0 else each.sums.cost_max[arm] for each, arm in parts])
    squared = float((shares**2 * scales**2 * np.array([each.spread[arm] for each, arm in parts])).sum())
    unseen = float((shares * scales * np.array([each.unseen[arm] for each, arm in parts])).sum())
    return bound_assumed(float(value), squared, unseen, 1.0, columns, DELTA / 2.0)


def _played(evidence: Evidence, replayed: list[Any], estimates: list[SegmentEstimates], name: str, alpha: float) -> _Estimate:
    """A learning policy, by rejection replay."""
    matched = [about for one, about in zip(replayed, estimates, strict=True) if not one.refusal]
    reward, cost, matches = replayed_value(replayed, estimates, evidence.weights)
    was = logged_value(matched, evidence.weights) if matched else (_NOTHING, _NOTHING)
    refusal = next((one.refusal for one in replayed if one.refusal), "")
    return _Estimate(
        name,
        alpha,
        "rejection replay",
        estimates[0].sums.name if len(estimates) == 1 else OVERALL,
        rows=matches,
        effective=matches,
        traffic=sum(float(each.traffic[0]) for each in matched) / evidence.aggregates.rows,
        reward=reward,
        cost=cost,
        sure=(_hoeffding(float(reward[0]), matches), _NO_BOUND),
        change=reward - was[0][0],
        saving=1.0 - cost[[0, 2, 1]] / max(float(was[1][0]), 1e-300) if matched else _NOTHING,
        refused=refusal if not matched or len(replayed) == 1 else "",
    )
