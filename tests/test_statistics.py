"""Sums and sums of squares, as the simulator, forgetting and late feedback keep them, against lists of outcomes."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.policies.by_hand import plain
from thrifty.environments.feedback import Feedback
from thrifty.forgetting import Forgetting, discount, restart, window
from thrifty.forgetting.contract import KEEP_ALL
from thrifty.policies.step import RuleState
from thrifty.simulation import loop
from thrifty.simulation.calendar import new_calendar
from thrifty.statistics import (
    ArmStatistics,
    Outcome,
    SumsChange,
    add_to_sums,
    cost_variance,
    counted,
    no_statistics,
    reward_variance,
    sample_variance,
)

UNKNOWN = np.full(3, np.nan)
SUMS = ["seen", "reward_sum", "cost_sum", "reward_squares", "cost_squares"]


def test_variances_are_those_of_numpy() -> None:
    rng = np.random.default_rng(3)
    rewards, costs = rng.random(50), rng.exponential(1e-5, 50)
    stats = no_statistics(1)
    for reward, cost in zip(rewards, costs, strict=True):
        add_to_sums(stats, 0, counted(Outcome(0, reward, cost)), UNKNOWN)
    assert reward_variance(stats, 0) == pytest.approx(rewards.var(ddof=1), rel=1e-12)
    assert cost_variance(stats, 0) == pytest.approx(costs.var(ddof=1), rel=1e-9)


@pytest.mark.parametrize(
    ("sums", "variance"),
    [
        ((0.0, 0.0, 0.0), 0.0),
        ((-1.0, 0.0, 5.0), 0.0),
        ((1.0, 3.0, 9.5), 0.0),  # one outcome says nothing about their spread
        ((1.5, 1.0, 1.0), 1.0 / 3.0),
        ((3.0, 0.3, 0.03 - 1e-17), 0.0),  # rounding
        ((2.0, 1e200, np.inf), 0.0),  # squares beyond the largest number
        ((2.0, np.inf, np.inf), 0.0),
    ],
)
def test_a_variance_is_never_negative(sums: tuple[float, float, float], variance: float) -> None:
    assert float(sample_variance(*sums)) == pytest.approx(variance, abs=1e-12)
    assert float(plain(sample_variance)(*sums)) == float(sample_variance(*sums))


def test_scaling_costs_by_a_power_of_two_scales_their_variance_exactly() -> None:
    rng = np.random.default_rng(4)
    stats = no_statistics(2)
    for cost in rng.exponential(1.0, 30):
        add_to_sums(stats, 0, counted(Outcome(0, 1.0, cost)), UNKNOWN)
        add_to_sums(stats, 1, counted(Outcome(1, 1.0, cost * 2.0**-20)), UNKNOWN)
    assert float(cost_variance(stats, 1)) == float(cost_variance(stats, 0)) * 2.0**-40


def taken_in(forgetting: Forgetting, outcomes: list[tuple[int, float, float]]) -> Any:
    stats, recollection = np.zeros(3, ArmStatistics), forgetting.begin_plain(3)
    take_in = plain(forgetting.take_in)
    for arm, reward, cost in outcomes:
        take_in(stats, recollection, arm, plain(counted)(Outcome(arm, reward, cost)), UNKNOWN)
    return stats


def weighted(outcomes: list[tuple[int, float, float]], weights: Any) -> Any:
    sums = np.zeros((3, 5))
    for (arm, reward, cost), weight in zip(outcomes, weights, strict=True):
        sums[arm] += weight * np.array([1.0, reward, cost, reward**2, cost**2])
    return sums


@pytest.mark.parametrize(
    ("forgetting", "weigh"),
    [
        (KEEP_ALL, lambda _: 1.0),
        (window(40), lambda age: float(age < 40)),
        (discount(0.9), lambda age: 0.9 ** (age + 1)),  # a block is one outcome long: sums fade after each of them
        (restart(1e9), lambda _: 1.0),
    ],
    ids=["all", "window", "discount", "restart"],
)
def test_forgetting_leaves_the_sums_of_what_is_remembered(forgetting: Forgetting, weigh: Callable[[int], float]) -> None:
    rng = np.random.default_rng(5)
    outcomes = [
        (int(arm), float(r), float(c)) for arm, r, c in zip(rng.integers(0, 3, 200), rng.random(200), rng.random(200), strict=True)
    ]
    found = taken_in(forgetting, outcomes)
    wanted = weighted(outcomes, [weigh(200 - 1 - t) for t in range(200)])
    for place, field in enumerate(SUMS):
        np.testing.assert_allclose(found[field], wanted[:, place], rtol=1e-9, atol=1e-12)


def test_a_restart_keeps_the_squares_of_the_outcomes_since_the_change() -> None:
    rewards = [0.9] * 200 + [0.1, 0.2] * 30
    stats, forgetting = np.zeros(3, ArmStatistics), restart()
    watch, take_in = forgetting.begin_plain(3), plain(forgetting.take_in)
    for reward in rewards:
        take_in(stats, watch, 0, plain(counted)(Outcome(0, reward, 2.0)), UNKNOWN)
        if watch.arms[0].changed:
            break
    kept = int(stats[0].seen)
    assert 0 < kept < 60
    since = rewards[200 : 200 + kept]
    assert stats[0].reward_squares == pytest.approx(sum(reward**2 for reward in since))
    assert stats[0].cost_squares == pytest.approx(4.0 * kept)


def test_statistics_from_before_a_window_keep_their_variance() -> None:
    stats = taken_in(KEEP_ALL, [(0, 0.25, 1.0), (0, 0.75, 3.0), (0, 0.5, 2.0), (0, 0.5, 2.0), (1, 1.0, 1.0)])
    forgetting = window(3)
    ring = forgetting.begin_plain(3)
    forgetting.recall(stats, ring)
    assert stats[0].seen == 2.0
    assert (stats[0].reward_squares, stats[0].cost_squares) == (0.5625, 9.0)  # 2 of 4 outcomes with 1.125 and 18
    np.testing.assert_array_equal(ring.kept["reward_square"][:2], 0.28125)


def test_a_late_outcome_corrects_the_squares_of_its_default() -> None:
    calendar, feedback = plain(new_calendar)(8, 8), Feedback(5, deadline=2, default=0.25).numbers
    stats = np.zeros(2, ArmStatistics)
    state, rule = RuleState(stats, None), SimpleNamespace(take_in=plain(KEEP_ALL.take_in), observe=lambda *_: None)
    plain(loop.send)(calendar, feedback, 0, Outcome(1, 0.75, 3.0), None)
    seen = []
    for t in range(6):
        plain(loop.take_due_outcomes)(rule, None, state, None, calendar, t, UNKNOWN)
        seen.append(tuple(float(stats[1][field]) for field in SUMS))
    assert seen[1] == (0.0,) * 5
    assert seen[2] == seen[4] == (1.0, 0.25, 3.0, 0.0625, 9.0)
    assert seen[5] == (1.0, 0.75, 3.0, 0.5625, 9.0)


def test_a_correction_is_not_the_square_of_a_difference() -> None:
    stats = no_statistics(1)
    add_to_sums(stats, 0, counted(Outcome(0, 1.0, 2.0)), UNKNOWN)
    add_to_sums(stats, 0, SumsChange(0.0, -0.5, 1.0, 0.25 - 1.0, 9.0 - 4.0), UNKNOWN)
    assert stats[0].tolist()[2:] == (1.0, 0.5, 3.0, 0.25, 9.0)
