"""Arm against arm: chance alone seldom calls one pair of many different, and intervals hold the truth all at once."""

import numpy as np
import polars
import pytest

from tests.questions.logs import log, quick
from thrifty.logs import Columns, Log
from thrifty.questions import compare_arms


def test_equal_arms_are_seldom_told_apart_however_many_there_are() -> None:
    """200 logs, 4 segments of 5 equal arms, 40 pairs each: more than 18 or fewer than 3 false alarms have a probability of 1%."""
    alarms = [compare_arms(quick([[0.8] * 5] * 4, 4000, 40 + seed)).pairs["p"].min() < 0.05 for seed in range(200)]
    assert 3 <= sum(alarms) <= 18


def test_all_intervals_of_a_log_hold_at_once() -> None:
    """200 logs of 3 segments with different arms: fewer than 182 hold all 9 differences with a probability of 1%."""
    rates = [[0.9, 0.8, 0.6], [0.5, 0.5, 0.7], [0.95, 0.9, 0.85]]
    held = 0
    for seed in range(200):
        rows = compare_arms(quick(rates, 4000, 700 + seed)).pairs.to_dicts()
        names = ("Elm", "Fir", "Oak")
        truth = [
            rates[int(row["segment"][1])][names.index(row["arm"])] - rates[int(row["segment"][1])][names.index(row["other"])]
            for row in rows
        ]
        held += all(row["difference_low"] <= true <= row["difference_high"] for row, true in zip(rows, truth, strict=True))
    assert held >= 182


def test_a_clear_difference_is_found_and_listed_prices_have_no_error() -> None:
    found = compare_arms(log([[0.9, 0.7]], 3000, 1, costs=(1e-5, 4e-5)))
    (row,) = found.pairs.to_dicts()
    assert row["p"] < 0.01
    assert row["difference_low"] > 0.1
    assert (row["cost_difference_low"], row["cost_difference_high"]) == pytest.approx((-3e-5, -3e-5), rel=1e-6)
    assert row["p_cost"] < 0.01
    assert found.headline().startswith("1 of 1 pairs of arms differ")


def test_a_log_without_two_arms_to_compare_says_so() -> None:
    rows = {"arm": ["Elm"] * 50 + ["Fir"] * 5, "reward": [1.0] * 55, "cost": [1.0] * 55}
    with pytest.raises(ValueError, match="no segment has two arms with enough rows to compare"):
        compare_arms(Log(polars.DataFrame(rows)))


def test_of_very_many_arms_those_with_the_most_rows_are_compared() -> None:
    rows = [(f"a{number:02}", 40 + number) for number in range(45)]
    frame = polars.DataFrame({"arm": [arm for arm, n in rows for _ in range(n)]}).with_columns(reward=0.5, cost=1.0)
    found = compare_arms(Log(frame.sample(fraction=1.0, shuffle=True, seed=1)))
    assert found.pairs.height == 40 * 39 // 2
    assert "a04" not in found.pairs["arm"].to_list()
    assert "only the 40 arms with the most rows are compared, of 45" in next(iter(found.left_out.values()))


def test_equal_prices_do_not_differ() -> None:
    """Sums of the same price differ by rounding, which is no difference."""
    rng = np.random.default_rng(0)
    arms = rng.integers(0, 3, 6000)
    reward = 1.0 * (rng.random(6000) < np.array([0.9, 0.8, 0.85])[arms])
    times = 1_767_225_600.0 + 864_000.0 * np.sort(rng.random(6000))
    frame = polars.DataFrame({"arm": np.array(["a", "b", "c"])[arms], "reward": reward, "cost": 0.02, "at": times})
    pairs = compare_arms(Log(frame, Columns(time="at"))).pairs
    assert pairs["cost_difference"].to_list() == [0.0] * 3
    assert pairs["p_cost"].to_list() == [1.0] * 3
