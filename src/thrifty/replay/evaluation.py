"""Evaluation: what today's choice, the best arms, and the cheapest arms above the floor bring and cost, by every estimator."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thrifty.arrays import Floats
from thrifty.policies import DEFAULT_POLICY, Policy, policy
from thrifty.problem import checked_alpha
from thrifty.replay.bounds import COST, DELTA, REWARD, bound_assumed, bound_logged
from thrifty.replay.estimators import ESTIMATORS, SegmentEstimates
from thrifty.replay.evidence import (
    OVERALL,
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
from thrifty.replay.reading import Log
from thrifty.replay.rejection import PLAYS, replay_policy, replayed_value
from thrifty.replay.source import require_polars


@dataclass(frozen=True, eq=False)
class Replay:
    """What `replay` returns.

    `policies` is a polars frame with one row per policy, alpha and estimator; `segments` has the same for every segment by the
    first estimator; `evidence` is what they were made from.
    """

    policies: Any
    segments: Any
    evidence: Evidence

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        return assumptions(self.evidence)


def replay(
    log: Log,
    alphas: Sequence[float] = (0.02, 0.05, 0.1),
    *,
    policies: Sequence[str | Policy] = (DEFAULT_POLICY,),
    seed: int = 0,
    plays: int = PLAYS,
    progress: Progress | None = None,
) -> Replay:
    """What other choices would have brought and cost over the span of a log.

    Parameters
    ----------
    log : see `Log`
    alphas : subsidy factors in [0, 1]
    policies : learning policies to play through the log by rejection replay, each of which reads it once more; may be none
    seed : of the bootstrap and of the plays
    plays : how often each policy is played through
    progress : called with (what is under way, rows read so far)

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> found = replay(Log(frame), [0.1], policies=[])
    >>> found.policies.filter(estimator="dr")["policy"].to_list()
    ['always the best', 'always the cheapest', 'cheapest above the floor']

    """
    alphas = [checked_alpha(alpha) for alpha in alphas]
    chosen = [policy(spec) for spec in policies]
    evidence = examine(log, seed=seed, progress=progress)
    told = [(whole, halves) for whole, halves in zip(evidence.estimates, evidence.halves, strict=True) if whole.usable.sum() > 1]
    overall, by_segment = [_today(evidence)], []
    ways: list[tuple[str, float | None]] = [("always the best", None), ("always the cheapest", None)]
    ways += [("cheapest above the floor", alpha) for alpha in alphas]
    for name, alpha in ways if told else ():
        overall += [_chosen(evidence, told, name, alpha, estimator) for estimator in ESTIMATORS]
        by_segment += [_chosen(evidence, [each], name, alpha, "dr") for each in told]
    for each_policy in chosen:
        report = None if progress is None else (lambda rows, label=each_policy.label: progress(f"replaying {label}", rows))
        played = replay_policy(
            log, evidence.aggregates, evidence.estimates, each_policy, alphas, seed=seed, plays=plays, progress=report
        )
        for alpha, replayed in played.items():
            overall.append(_played(evidence, replayed, list(evidence.estimates), each_policy.label, alpha))
            by_segment += [
                _played(evidence, [one], [about], each_policy.label, alpha)
                for one, about in zip(replayed, evidence.estimates, strict=True)
            ]
    pl = require_polars()
    return Replay(pl.DataFrame(overall, infer_schema_length=None), pl.DataFrame(by_segment, infer_schema_length=None), evidence)


def _row(
    name: str, alpha: float | None, estimator: str, segment: str, arm: str, *, rows: float, effective: float, traffic: float,
    reward: Floats, cost: Floats, sure: tuple[Floats, Floats], change: Floats, saving: Floats, refused: str,
) -> dict[str, Any]:  # fmt: skip
    ranges: dict[str, float] = {}
    for what, values in (("reward", reward), ("cost", cost)):
        ranges |= {what: values[0], f"{what}_low": values[1], f"{what}_high": values[2]}
    return {
        "policy": name, "alpha": alpha, "estimator": estimator, "segment": segment, "arm": arm, "rows": round(rows),
        "effective_rows": float(effective), "traffic": traffic, **{key: float(value) for key, value in ranges.items()},
        "reward_sure_low": float(sure[0][0]), "reward_sure_high": float(sure[0][1]),
        "cost_sure_low": float(sure[1][0]), "cost_sure_high": float(sure[1][1]),
        "reward_change": float(change[0]), "reward_change_low": float(change[1]), "reward_change_high": float(change[2]),
        "saving": float(saving[0]), "saving_low": float(saving[1]), "saving_high": float(saving[2]), "refused": refused,
    }  # fmt: skip


_NOTHING = np.full(3, np.nan)


def _today(evidence: Evidence) -> dict[str, Any]:
    reward, cost = evidence.today
    n = evidence.weights.shape[1]
    rows = evidence.aggregates.rows
    half = math.sqrt(math.log(2.0 / DELTA) / (2.0 * rows))
    sure = np.clip([reward[0] - half, reward[0] + half], 0.0, 1.0)
    return _row(
        "today", None, "mean of the log", OVERALL, "", rows=rows, effective=rows, traffic=1.0, reward=spread(reward, n),
        cost=spread(cost, n), sure=(sure, np.full(2, np.nan)), change=np.zeros(3), saving=np.zeros(3), refused="",
    )  # fmt: skip


Told = tuple[SegmentEstimates, tuple[SegmentEstimates, SegmentEstimates]]


def _chosen(evidence: Evidence, told: list[Told], name: str, alpha: float | None, estimator: str) -> dict[str, Any]:
    """One arm per segment, chosen and valued crosswise; the arm named is that of the whole log."""
    n = evidence.weights.shape[1]
    level = alpha if alpha is not None else 0.0 if name == "always the best" else 1.0
    parts = [part for _, halves in told for part in crosswise(halves, level)]
    reward, cost = crosswise_value(parts, estimator)
    was_reward, was_cost = logged_value([whole for whole, _ in told], evidence.weights)
    rows = sum(each.sums.rows for each, _, _ in parts)
    one = told[0][0] if len(told) == 1 else None
    return _row(
        name, alpha, estimator, OVERALL if one is None else one.sums.name,
        "" if one is None else one.sums.arms[floor_choice(one, level)],
        rows=sum(each.sums.totals[arm, 0] for each, arm, _ in parts),
        effective=1.0 / sum((each.sums.rows / rows) ** 2 / max(each.effective[arm], 1e-300) for each, arm, _ in parts),
        traffic=rows / evidence.aggregates.rows, reward=_in_unit(spread(reward, n)), cost=spread(cost, n),
        sure=_sure(evidence, told, level), change=spread(reward - was_reward, n),
        saving=spread(1.0 - cost / np.maximum(was_cost, 1e-300), n), refused="",
    )  # fmt: skip


def _in_unit(values: Floats) -> Floats:
    return np.asarray(np.clip(values, 0.0, 1.0), dtype=np.float64)


def _sure(evidence: Evidence, told: list[Told], alpha: float) -> tuple[Floats, Floats]:
    """Distribution-free bounds of reward and cost of a way of choosing: each half has its own, and they are averaged."""
    rows = sum(whole.sums.rows for whole, _ in told)
    crossed = [crosswise(halves, alpha) for _, halves in told]
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


def _played(evidence: Evidence, replayed: list[Any], estimates: list[SegmentEstimates], name: str, alpha: float) -> dict[str, Any]:
    """A learning policy, by rejection replay."""
    told = [about for one, about in zip(replayed, estimates, strict=True) if not one.refusal]
    reward, cost, matches = replayed_value(replayed, estimates, evidence.weights)
    was = logged_value(told, evidence.weights) if told else (_NOTHING, _NOTHING)
    refused = next((one.refusal for one in replayed if one.refusal), "") if not told or len(replayed) == 1 else ""
    half = math.sqrt(math.log(2.0 / DELTA) / (2.0 * matches)) if matches else math.nan
    change = reward - was[0][0]
    saving = 1.0 - cost[[0, 2, 1]] / max(float(was[1][0]), 1e-300) if told else _NOTHING
    return _row(
        name, alpha, "rejection replay", estimates[0].sums.name if len(estimates) == 1 else OVERALL, "",
        rows=matches, effective=matches, traffic=sum(float(each.traffic[0]) for each in told) / evidence.aggregates.rows,
        reward=reward, cost=cost, sure=(np.clip([reward[0] - half, reward[0] + half], 0.0, 1.0), np.full(2, np.nan)),
        change=change, saving=saving, refused=refused,
    )  # fmt: skip
