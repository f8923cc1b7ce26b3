"""Evaluation: what today's choice, the best arms, and the cheapest arms above the floor bring and cost, by every estimator."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.policies import DEFAULT_POLICY, Policy, policy
from thrifty.policies.selection import cheapest_feasible, highest
from thrifty.problem import checked_alpha, checked_count
from thrifty.replay.aggregates import Aggregates, C, R, aggregate
from thrifty.replay.bootstrap import REPLICATES, block_weights, interval
from thrifty.replay.bounds import COST, DELTA, REWARD, bound_assumed, bound_logged
from thrifty.replay.estimators import ESTIMATORS, SegmentEstimates, estimate_segment, intervals
from thrifty.replay.profile import Profile, profile
from thrifty.replay.reading import Log
from thrifty.replay.rejection import PLAYS, replay_policy, replayed_value
from thrifty.replay.source import require_polars

Floats = NDArray[np.float64]
Progress = Callable[[str, int], None]

ESTIMATED = "propensities are not logged: arms are assumed to have been chosen at random within a segment and stretch of time"
LOGGED = "propensities are taken from the log as they are"
FEW_REPLICATES, MANY_SEGMENTS = 300, 500


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known after one pass: aggregates, estimates of every segment, bootstrap weights, profile. Made by `examine`."""

    log: Log
    aggregates: Aggregates
    weights: Floats
    estimates: tuple[SegmentEstimates, ...]
    profile: Profile
    seed: int

    @property
    def assumption(self) -> str:
        """Where the propensities come from, in words."""
        return LOGGED if self.aggregates.weighted else ESTIMATED

    @property
    def today(self) -> tuple[Floats, Floats]:
        """(1 + B,) mean reward and mean cost of the log, with replicates."""
        return logged_value(self.estimates, self.weights)


def examine(log: Log, *, seed: int = 0, progress: Progress | None = None) -> Evidence:
    """Read the log once and estimate everything that does not need another pass.

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> examine(Log(frame)).estimates[0].reward().round(2).tolist()
    [1.0, 0.5]
    """
    seed = checked_count("seed", seed, low=0)
    aggregates = aggregate(log, None if progress is None else lambda rows: progress("reading", rows))
    replicates = REPLICATES if len(aggregates.segments) <= MANY_SEGMENTS else FEW_REPLICATES
    weights = block_weights(aggregates.starts.size, replicates, seed=seed)
    estimates = tuple(estimate_segment(each, weights, weighted=aggregates.weighted) for each in aggregates.segments)
    return Evidence(log, aggregates, weights, estimates, profile(aggregates, estimates), seed)


def logged_value(estimates: Sequence[SegmentEstimates], weights: Floats) -> tuple[Floats, Floats]:
    """(1 + B,) mean reward and mean cost of what was done, over these segments."""
    traffic = np.add.reduce([each.traffic for each in estimates])
    totals = np.add.reduce([each.sums.sums.sum(axis=0) for each in estimates])
    return weights @ totals[:, R] / traffic, weights @ totals[:, C] / traffic


def floor_choice(estimates: SegmentEstimates, alpha: float) -> int:
    """The cheapest arm whose estimated reward reaches (1 - alpha) times the best, among those about which something is said."""
    told = np.flatnonzero(estimates.usable)
    rewards, costs = estimates.reward()[told], estimates.cost()[told]
    return int(told[cheapest_feasible(rewards, costs, (1.0 - alpha) * rewards.max())])


def best_choice(estimates: SegmentEstimates) -> int:
    """The arm with the highest estimated reward, among those about which something is said."""
    told = np.flatnonzero(estimates.usable)
    return int(told[highest(estimates.reward()[told])])


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
    told = [each for each in evidence.estimates if each.usable.sum() > 1]
    overall, by_segment = [_today(evidence)], []
    fixed: list[tuple[str, float | None, Callable[[SegmentEstimates], int]]] = [
        ("always the best", None, best_choice),
        ("always the cheapest", None, lambda each: floor_choice(each, 1.0)),
        *(("cheapest above the floor", alpha, lambda each, alpha=alpha: floor_choice(each, alpha)) for alpha in alphas),
    ]
    for name, alpha, choose in fixed if told else ():
        arms = [choose(each) for each in told]
        overall += [_fixed(evidence, told, arms, name, alpha, estimator) for estimator in ESTIMATORS]
        by_segment += [_fixed(evidence, [each], [arm], name, alpha, "dr") for each, arm in zip(told, arms, strict=True)]
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


def assumptions(evidence: Evidence) -> tuple[str, ...]:
    """What every number of a log rests on, in words."""
    columns = evidence.log.columns
    missing = {
        "failure": "a row without an outcome counts as a failure",
        "ignore": "rows without an outcome are left out: outcomes are assumed to go missing whether good or bad",
        "censored": f"a row without an outcome counts as a failure after {columns.deadline_s:g} seconds; younger rows are left out",
    }[columns.missing or "failure"]
    return (
        evidence.assumption,
        missing,
        "traffic and rates stay as they were over the span of the log, and what one request gets does not change the others",
        "intervals are 95% bootstrap intervals over blocks of time; sure bounds hold for any law with rewards in [0, 1], with 95%",
        "arms were picked by the same rows that value them, which flatters a choice among near equals a little",
    )


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


def spread(replicates: Floats, n_blocks: int) -> Floats:
    """(3,) an estimate with its interval."""
    low, high = interval(replicates[:, np.newaxis], n_blocks)
    return np.array([replicates[0], low[0], high[0]])


_NOTHING = np.full(3, np.nan)


def _today(evidence: Evidence) -> dict[str, Any]:
    reward, cost = evidence.today
    n = evidence.weights.shape[1]
    rows = evidence.aggregates.rows
    half = math.sqrt(math.log(2.0 / DELTA) / (2.0 * rows))
    sure = np.clip([reward[0] - half, reward[0] + half], 0.0, 1.0)
    return _row(
        "today", None, "mean of the log", "all segments", "", rows=rows, effective=rows, traffic=1.0, reward=spread(reward, n),
        cost=spread(cost, n), sure=(sure, np.full(2, np.nan)), change=np.zeros(3), saving=np.zeros(3), refused="",
    )  # fmt: skip


def _fixed(
    evidence: Evidence, told: list[SegmentEstimates], arms: list[int], name: str, alpha: float | None, estimator: str
) -> dict[str, Any]:
    """One arm per segment, all the time."""
    n = evidence.weights.shape[1]
    traffic = np.add.reduce([each.traffic for each in told])
    reward, cost = (
        np.add.reduce([each.traffic * each.replicates[estimator][metric][:, arm] for each, arm in zip(told, arms, strict=True)])
        / traffic
        for metric in (0, 1)
    )
    was_reward, was_cost = logged_value(told, evidence.weights)
    one = len(told) == 1
    reward_spread = spread(reward, n)
    if one:
        reward_spread[1:] = intervals(told[0], estimator)[0, :, arms[0]]
    return _row(
        name, alpha, estimator, told[0].sums.name if one else "all segments", told[0].sums.arms[arms[0]] if one else "",
        rows=sum(each.sums.totals[arm, 0] for each, arm in zip(told, arms, strict=True)),
        effective=1.0 / sum((each.traffic[0] / traffic[0]) ** 2 / each.effective[arm] for each, arm in zip(told, arms,
        strict=True)), traffic=float(traffic[0]) / evidence.aggregates.rows, reward=reward_spread, cost=spread(cost, n),
        sure=_sure(evidence, told, arms), change=spread(reward - was_reward, n),
        saving=spread(1.0 - cost / np.maximum(was_cost, 1e-300), n), refused="",
    )  # fmt: skip


def _sure(evidence: Evidence, told: list[SegmentEstimates], arms: list[int]) -> tuple[Floats, Floats]:
    """Distribution-free bounds of reward and cost of a fixed choice over several segments."""
    pairs = list(zip(told, arms, strict=True))
    if evidence.aggregates.weighted:
        both = [bound_logged([(each.sums, arm) for each, arm in pairs], columns) for columns in (REWARD, COST)]
        return both[0], both[1]
    rows = sum(each.sums.rows for each in told)
    shares = np.array([each.sums.rows / rows for each in told])
    found = []
    for metric, columns in ((0, REWARD), (1, COST)):
        value = sum(share * each.replicates["dm"][metric][0, arm] for share, (each, arm) in zip(shares, pairs, strict=True))
        scales = np.array([1.0 if metric == 0 else each.sums.cost_max[arm] for each, arm in pairs])
        spread = float((shares**2 * scales**2 * np.array([each.spread[arm] for each, arm in pairs])).sum())
        unseen = float((shares * scales * np.array([each.unseen[arm] for each, arm in pairs])).sum())
        found.append(bound_assumed(float(value), spread, unseen, 1.0, columns))
    return found[0], found[1]


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
        name, alpha, "rejection replay", estimates[0].sums.name if len(estimates) == 1 else "all segments", "",
        rows=matches, effective=matches, traffic=sum(float(each.traffic[0]) for each in told) / evidence.aggregates.rows,
        reward=reward, cost=cost, sure=(np.clip([reward[0] - half, reward[0] + half], 0.0, 1.0), np.full(2, np.nan)),
        change=change, saving=saving, refused=refused,
    )  # fmt: skip


def finite(value: Any) -> Any:
    """`value` with None in place of numbers that JSON does not know.

    >>> finite({"a": [float("nan"), 1.0]})
    {'a': [None, 1.0]}
    """
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
