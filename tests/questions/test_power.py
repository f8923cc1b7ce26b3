"""Power: requests that it names are enough as often as it says, and what it calls known is known."""

from typing import Any

import numpy as np
import polars
import pytest

from tests.questions.logs import BLOCKS, log, quick
from thrifty.logs import Log
from thrifty.questions import power
from thrifty.questions.contrasts import contrast, quantile, reward_variance

RATES = [[0.9, 0.87]]


def test_so_many_requests_show_the_floor_in_four_logs_of_five() -> None:
    """300 logs of the size that is named; 219 to 261 show it with a probability of more than 99%."""
    rate = 0.9 * 0.9, 0.87
    margin = rate[1] - rate[0]
    variance = 2 * (0.87 * 0.13 + 0.81 * 0.9 * 0.1)
    needed = ((quantile(0.95, BLOCKS) + 0.8416) / margin) ** 2 * variance
    row = power(log(RATES, 40_000, 1), 0.1, arm="Fir").arms.to_dicts()[0]
    assert row["requests"] == pytest.approx(needed, rel=0.35)  # the margin of one log, squared
    assert row["even"] == pytest.approx(row["requests"], rel=0.1)
    shown = [power(quick(RATES, round(needed), 100 + seed), 0.1, arm="Fir").arms["verdict"][0] == "holds" for seed in range(300)]
    assert 219 <= sum(shown) <= 261


def test_an_arm_at_the_floor_is_seldom_called_above_or_below_it() -> None:
    """300 logs, the arm exactly at the floor of two others: more than 24 wrong verdicts one way have a probability of 1%."""
    verdicts = [power(quick([[0.9, 0.9, 0.81]], 3000, 500 + seed), 0.1, arm="Oak").arms["verdict"][0] for seed in range(300)]
    assert verdicts.count("holds") <= 24
    assert verdicts.count("fails") <= 24


def test_days_are_the_missing_requests_at_the_pace_of_the_log() -> None:
    row = power(log([[0.9, 0.815], [0.5, 0.1]], 4000, 2), 0.1).arms.filter(segment="s0").to_dicts()[0]
    assert row["verdict"] == "open"
    assert row["more"] == row["requests"] - row["rows"]
    assert row["days"] == pytest.approx(row["more"] * 4000 / row["rows"] / 1440, rel=1e-3)
    worse = power(log([[0.9, 0.815], [0.5, 0.1]], 4000, 2), 0.1).arms.filter(segment="s1").to_dicts()[0]
    assert (worse["verdict"], worse["more"], worse["days"]) == ("fails", 0.0, 0.0)


def test_an_arm_that_never_failed_is_not_known_from_a_few_rows() -> None:
    rows = {"arm": ["Elm", "Fir"] * 40, "reward": [1.0] * 80, "cost": [1.0] * 80}
    row = power(Log(polars.DataFrame(rows)), 0.02, arm="Fir").arms.to_dicts()[0]
    assert row["verdict"] == "open"
    assert row["requests"] > 80
    assert row["days"] is None  # no times


def test_a_margin_of_nothing_needs_no_number_of_requests() -> None:
    rows = {"arm": ["Elm", "Fir"] * 400, "reward": [1.0, 1.0, 0.0, 0.0] * 200, "cost": [1.0] * 800}
    row = power(Log(polars.DataFrame(rows)), 0.0, arm="Fir").arms.to_dicts()[0]
    assert (row["verdict"], row["requests"], row["more"], row["even"]) == ("open", None, None, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"arm": 3}, "an arm must be named by text, got 3: write '3'"),
        ({"arm": "Elk"}, "the log has no arm 'Elk': did you mean Elm\\?"),
        ({"alpha": 1.2}, "alpha must be in \\[0, 1\\], got 1.2"),
        ({"confidence": 95}, "confidence must be a number above 0.5 and below 1, got 95: write 0.95 for 95%"),
        ({"chance": 0.0}, "chance must be a number above 0.5 and below 1, got 0"),
        ({"confidence": float("nan")}, "confidence must be a number above 0.5 and below 1, got nan"),
    ],
)
def test_wrong_questions_are_one_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        power(log(RATES, 500, 1), **settings)


def test_arms_with_too_few_rows_are_named() -> None:
    rows = {"arm": ["Elm"] * 50 + ["Fir"] * 5, "reward": [1.0] * 55, "cost": [1.0] * 55}
    with pytest.raises(ValueError, match="no segment has two arms with enough rows for 'Fir'"):
        power(Log(polars.DataFrame(rows)), arm="Fir")


def test_a_contrast_is_the_difference_with_the_error_of_its_replicates() -> None:
    from thrifty.logs import examine

    (estimates,) = examine(log(RATES, 4000, 3)).estimates
    found = contrast(estimates, 1, 0, factor=0.9)
    reward = estimates.reward()
    assert found.value == pytest.approx(reward[1] - 0.9 * reward[0])
    assert found.error == pytest.approx(np.sqrt((0.87 * 0.13 + 0.81 * 0.09) / 2000), rel=0.25)
    assert reward_variance(estimates, 1) == pytest.approx(0.87 * 0.13, rel=0.2)
