"""Evaluation: reward and cost of today's choices, of the best arms and of the cheapest arms above the floor, by every estimator."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats
from thrifty.findings import Findings, interval_table
from thrifty.logs.bounds import COST, DELTA, REWARD, bound_assumed, bound_logged
from thrifty.logs.estimators import ESTIMATORS, SegmentEstimates
from thrifty.logs.evidence import OVERALL, Beliefs, Evidence, Progress, assumptions, examine, logged_value, spread
from thrifty.logs.rejection import MOST_PLAYS, PLAYS, replay_policy, replayed_value
from thrifty.logs.savings import share_saved
from thrifty.logs.selective import ChosenArm, Target, choose_arm, mean_target, selective, with_ends
from thrifty.logs.source import require_polars
from thrifty.logs.success_cost import cost_per_success, logged_cost_per_success
from thrifty.policies import DEFAULT_POLICY, Policy, distinct_policies
from thrifty.problem import checked_alphas, checked_count
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
        about = f"{self.evidence.aggregates.rows:,} rows, {len(self.evidence.estimates)} segments; {names}"
        return f"{about} ({self.evidence.confounding.verdict()})"

    def table(self) -> Table:
        """Every policy by its first estimator."""
        first = self.policies.unique(["policy", "alpha"], keep="first", maintain_order=True)
        formats = {"policy": "", "alpha": "g", "estimator": "", "reward": ".4f", "cost": ".4g", "saving": ".1%"}
        return interval_table(first.to_dicts(), formats)


def replay(
    source: Any,
    alphas: Sequence[float] | float = (0.02, 0.05, 0.1),
    *,
    policies: Sequence[str | Policy] = (DEFAULT_POLICY,),
    seed: int = 0,
    plays: int = PLAYS,
    progress: Progress | None = None,
) -> Replay:
    """Estimate what other choices would have brought and cost over the span of a log.

    Parameters
    ----------
    source : a log, or anything that `Log` takes (a path, a frame, ...)
    alphas : subsidy factors in [0, 1]
    policies : learning policies to play through the log by rejection replay; each reads the log once more
    seed : of the bootstrap and of the plays
    plays : how often each policy is played through
    progress : called with (the current step, rows read so far)

    >>> import polars
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 500, "reward": [1, 1, 1, 0] * 250, "cost": [0.2, 0.1] * 500})
    >>> found = replay(frame, [0.1], policies=[])
    >>> found.policies.filter(estimator="dr")["policy"].to_list()
    ['always the best', 'always the cheapest', 'cheapest above the floor']

    """
    alphas = checked_alphas(alphas)
    plays = checked_count("plays", plays, high=MOST_PLAYS)
    chosen = distinct_policies(policies) if policies else []
    evidence = examine(source, seed=seed, progress=progress)
    estimators = ESTIMATORS if evidence.aggregates.weighted else ESTIMATORS[:1]  # without propensities they are all the same
    beliefs = evidence.beliefs([0.0, 1.0, *alphas]) if evidence.comparable else Beliefs({}, {})
    overall, by_segment = [_today(evidence)], []
    for choice in _fixed_choices(alphas) if evidence.comparable else ():
        overall += [_fixed(evidence, evidence.comparable, choice, estimator, beliefs) for estimator in estimators]
        by_segment += [_fixed(evidence, [each], choice, "dr", beliefs) for each in evidence.comparable]
    for each in chosen:
        report = None if progress is None else (lambda rows, label=each.label: progress(f"replaying {label}", rows))
        played = replay_policy(
            evidence.log, evidence.aggregates, evidence.estimates, each, alphas, seed=seed, plays=plays, progress=report
        )
        for alpha, replayed in played.items():
            overall.append(_played(evidence, replayed, list(evidence.estimates), each.label, alpha))
            pairs = zip(replayed, evidence.estimates, strict=True)
            by_segment += [_played(evidence, [one], [about], each.label, alpha) for one, about in pairs]
    return Replay(_frame(overall), _frame(by_segment), evidence)


@dataclass(frozen=True, eq=False)
class _Estimate:
    """One row of the result: what a policy brings and costs in one segment or overall, by one estimator.

    `reward`, `cost`, `change` (of the reward, against today), `saving` and `per_success` (the cost of one) are (value, low, high).
    `sure` has the distribution-free bounds (low, high) of reward and cost.
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
    per_success: Floats
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
            **_with_interval("cost_per_success", self.per_success),
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
        per_success=logged_cost_per_success(reward, cost, n),
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


def _fixed(
    evidence: Evidence, segments: list[SegmentEstimates], choice: _FixedChoice, estimator: str, beliefs: Beliefs
) -> _Estimate:
    """One arm per segment, the choice of the whole log; its value is given that it was chosen."""
    n = evidence.weights.shape[1]
    chosen = [choose_arm(each, choice.level) for each in segments]
    reward, cost = (mean_target(chosen, metric, estimator) for metric in (0, 1))
    was_reward, was_cost = logged_value(segments, evidence.weights)
    rows = sum(each.sums.rows for each in segments)
    pairs = [(each.estimates, each.arm) for each in chosen]
    shown, change = float(reward.replicates[0]) - beliefs.flattered(chosen), reward.replicates - was_reward
    return _Estimate(
        choice.name,
        choice.alpha,
        estimator,
        segments[0].sums.name if len(segments) == 1 else OVERALL,
        arm=chosen[0].name if len(segments) == 1 else "",
        rows=sum(each.sums.totals[arm, 0] for each, arm in pairs),
        effective=1.0 / sum((each.sums.rows / rows) ** 2 / max(each.effective[arm], 1e-300) for each, arm in pairs),
        traffic=rows / evidence.aggregates.rows,
        reward=_in_unit(with_ends(shown, selective(reward, chosen, n))),
        cost=np.maximum(with_ends(float(cost.replicates[0]), selective(cost, chosen, n)), 0.0),
        sure=_sure(pairs, weighted=evidence.aggregates.weighted),
        change=with_ends(shown - float(was_reward[0]), selective(replace(reward, replicates=change), chosen, n)),
        saving=_saving(cost, was_cost, chosen, n),
        per_success=cost_per_success(chosen, n, reward=shown, estimator=estimator),
    )


def _saving(cost: Target, was: Floats, chosen: list[ChosenArm], n_blocks: int) -> Floats:
    """(3,) the share of today's cost that is saved; NaN where today costs nothing."""
    saved = share_saved(cost.replicates, was)
    if np.isnan(saved).any():
        return _NOTHING
    ratio = Target(1.0 - saved, cost.parts / float(was[0]))
    return with_ends(float(saved[0]), 1.0 - selective(ratio, chosen, n_blocks)[::-1])


def _in_unit(values: Floats) -> Floats:
    return np.asarray(np.clip(values, 0.0, 1.0), dtype=np.float64)


def _sure(pairs: list[tuple[SegmentEstimates, int]], *, weighted: bool) -> tuple[Floats, Floats]:
    """Distribution-free bounds of reward and cost. They hold for every choice of arms at once, so for the one that was made."""
    delta = DELTA * math.exp(-sum(math.log(each.usable.sum()) for each, _ in pairs))
    return _sure_of(pairs, 0, REWARD, delta, weighted=weighted), _sure_of(pairs, 1, COST, delta, weighted=weighted)


def _sure_of(
    pairs: list[tuple[SegmentEstimates, int]], metric: int, columns: tuple[int, ...], delta: float, *, weighted: bool
) -> Floats:
    if weighted:
        return bound_logged([(each.sums, arm) for each, arm in pairs], columns, delta)
    rows = sum(each.sums.rows for each, _ in pairs)
    shares = np.array([each.sums.rows / rows for each, _ in pairs])
    value = sum(share * each.replicates["dm"][metric][0, arm] for share, (each, arm) in zip(shares, pairs, strict=True))
    scales = np.array([1.0 if metric == 0 else each.sums.cost_max[arm] for each, arm in pairs])
    squared = float((shares**2 * scales**2 * np.array([each.spread[arm] for each, arm in pairs])).sum())
    unseen = float((shares * scales * np.array([each.unseen[arm] for each, arm in pairs])).sum())
    return bound_assumed(float(value), squared, unseen, 1.0, columns, delta)


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
        saving=share_saved(cost[[0, 2, 1]], float(was[1][0])),
        per_success=_played_per_success(reward, cost),
        refused=refusal if not matched or len(replayed) == 1 else "",
    )


def _played_per_success(reward: Floats, cost: Floats) -> Floats:
    """(3,) cost per success of a policy that was played; both intervals at once make a cautious one."""
    return np.array([cost[0] / reward[0], cost[1] / reward[2], cost[2] / max(reward[1], 1e-300)]) if reward[0] > 0.0 else _NOTHING
