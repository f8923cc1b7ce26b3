"""The value of a given routing: its formula, its coverage, and what is refused."""

from pathlib import Path

import numpy as np
import polars
import pytest

from tests.questions.logs import frame, log, quick
from thrifty.logs import Columns, Log, examine
from thrifty.questions import Routing, value_of

RATES = [[0.9, 0.8, 0.6], [0.5, 0.5, 0.7]]


def test_the_value_is_the_weighted_mean_of_the_arms_and_segments() -> None:
    evidence = examine(log(RATES, 6000, 1))
    shares = {"s0": {"Elm": 0.25, "Fir": 0.75}, "*": {"Oak": 1.0}}
    rows = {row["segment"]: row for row in value_of(evidence, shares).segments.to_dicts()}
    one, two = evidence.estimates
    first, second = 0.25 * one.reward()[0] + 0.75 * one.reward()[1], two.reward()[2]
    assert rows["s0"]["reward"] == pytest.approx(first)
    assert rows["s0"]["cost"] == pytest.approx(0.25 * 5 + 0.75 * 4)
    weight = one.sums.rows / 6000
    assert rows["all segments"]["reward"] == pytest.approx(weight * first + (1 - weight) * second)
    today = evidence.today[1][0]
    assert rows["all segments"]["saving"] == pytest.approx(1 - (weight * 4.25 + (1 - weight) * 3) / today)


def test_intervals_of_a_given_routing_hold_the_truth() -> None:
    """200 logs: 181 to 198 hold it with a probability of 99%, if the coverage is 95%."""
    true = 0.5 * (0.5 * 0.9 + 0.5 * 0.6) + 0.5 * (0.5 * 0.5 + 0.5 * 0.7)
    held = 0
    for seed in range(200):
        row = value_of(quick(RATES, 2000, 50 + seed), "Elm=0.5,Oak=0.5").segments.to_dicts()[-1]
        held += row["reward_low"] <= true <= row["reward_high"]
    assert 181 <= held <= 198


def test_a_stochastic_policy_is_asked_for_every_segment() -> None:
    found = value_of(log(RATES, 3000, 1), lambda segment, arms: {arms[0]: 1.0} if segment == "s0" else dict.fromkeys(arms, 1 / 3))
    same = value_of(log(RATES, 3000, 1), {"s0": {"Elm": 1.0}, "s1": {"Elm": 1 / 3, "Fir": 1 / 3, "Oak": 1 / 3}})
    assert found.segments.equals(same.segments)


def test_a_policy_that_says_no_shares_is_refused_by_its_segment() -> None:
    with pytest.raises(ValueError, match="the shares of segment 's0' must be a mapping of arm to share, got None"):
        value_of(log(RATES, 3000, 1), lambda *_: None)  # type: ignore[arg-type]


def test_shares_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("segment,arm,share\ns0,Elm,1\n*,Fir,0.5\n*,Oak,0.5\n")
    assert Routing.load(str(path)) == Routing({"s0": {"Elm": 1.0}, "*": {"Fir": 0.5, "Oak": 0.5}})
    path.write_bytes(b"\xef\xbb\xbfarm,share\nElm,1\n")
    assert Routing.load(str(path)) == Routing({"*": {"Elm": 1.0}})
    path.write_text("arm,share\nElm,1\nElm,0\n")
    with pytest.raises(ValueError, match=r"there are two shares of 'Elm' in segment '\*'"):
        Routing.load(str(path))
    path.write_text("arm\nElm\n")
    with pytest.raises(ValueError, match="must have the columns arm and share"):
        Routing.load(str(path))
    with pytest.raises(ValueError, match=r"cannot read the shares in .*nowhere\.csv"):
        Routing.load(str(tmp_path / "nowhere.csv"))


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ("Elm=0.5,Elm=0.5", "there are two shares of 'Elm': give one"),
        ("Elm=0.5", "must add up to 1, got 0.5"),
        ("Elm=half,Fir=0.5", "the share of 'Elm' must be a number from 0 to 1, got 'half'"),
        ({"Elm": 1.5, "Fir": -0.5}, "the share of 'Elm' in segment '\\*' must be in \\[0, 1\\], got 1.5"),
        ("Elk=1", "the log has no arm 'Elk': did you mean Elm\\?"),
        ({"s0": {"Elm": 1.0}}, "there are no shares for segment 's1': add them, or shares of the segment \\*"),
        ({"s7": {"Elm": 1.0}, "*": {"Elm": 1.0}}, "the log has no segment 's7': it has s0, s1"),
        ({"Elm": float("nan")}, "must be in \\[0, 1\\], got nan"),
        ({}, "must add up to 1, got 0"),
    ],
)
def test_wrong_shares_are_one_line(shares: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        value_of(log(RATES, 600, 1), shares)  # type: ignore[arg-type]


def test_a_segment_without_the_arm_is_refused_by_name_and_the_others_are_valued() -> None:
    rows = frame(RATES, 3000, 1)
    rows = rows.filter(~((rows["segment"] == "s1") & (rows["arm"] == "Elm")))
    found = value_of(Log(rows, Columns(segment="segment")), "Elm=1")
    assert found.refused == {"s1": "Elm was never used there"}
    assert found.segments["segment"].to_list() == ["s0", "all segments"]
    thin = frame([[0.5] * 5], 40, 2).with_columns(segment=polars.lit("t"))
    mixed = polars.concat([rows.filter(rows["segment"] == "s1"), thin]).sample(fraction=1.0, shuffle=True, seed=1)
    both = Log(mixed, Columns(segment="segment"))
    with pytest.raises(
        ValueError, match=r"no segment has an estimate of this routing \(s1: Elm was never used there; t: Yew has only"
    ):
        value_of(both, {"s1": {"Elm": 1.0}, "t": {"Yew": 1.0}})


def test_costs_of_nothing_have_no_share_that_is_saved() -> None:
    row = value_of(log(RATES, 2000, 1, costs=np.zeros(5).tolist()), "Elm=1").segments.to_dicts()[-1]
    assert row["saving"] is None
    assert row["cost_change"] == 0.0
