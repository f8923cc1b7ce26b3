"""Read-outs: the intervals hold when one looks after every outcome, and the groups are those that the log says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from thrifty import Router
from thrifty.cli.main import main
from thrifty.questions import readout
from thrifty.sequences import RATES, WEIGHTS, boundary, guesses, log_wealth, running_mean
from thrifty.store import open_store


@pytest.mark.parametrize("mean", [0.98, 0.6])
def test_an_interval_that_is_looked_at_after_every_outcome_is_seldom_ever_wrong(mean: float) -> None:
    """200 sequences of 2,000 outcomes whose mean moves, all looked at: more than 18 misses at a level of 5% have a chance of 1%."""
    rng = np.random.default_rng(7)
    target = -np.log(0.05 / 2.0)
    missed = 0
    for _ in range(200):
        means = np.clip(mean + 0.1 * np.sin(np.linspace(0.0, 9.0, 2000)), 0.0, 1.0)
        values = (rng.random(2000) < means).astype(np.float64)
        excess, squares = np.cumsum(values - means), np.cumsum((values - guesses(values)) ** 2)
        missed += bool((log_wealth(excess, squares) >= target).any() or (log_wealth(-excess, squares) >= target).any())
    assert missed <= 18


def test_the_usual_interval_is_often_wrong_when_it_is_looked_at_after_every_outcome() -> None:
    """Why all this: an interval for one look misses in most sequences. The check above can tell the two apart."""
    rng = np.random.default_rng(7)
    count = np.arange(1, 2001)
    missed = 0
    for _ in range(100):
        means = np.cumsum(rng.random(2000) < 0.6) / count
        half = 1.96 * np.sqrt(0.24 / count)
        missed += bool((np.abs(means - 0.6) > half)[20:].any())
    assert missed > 30


def test_the_interval_is_where_the_wealth_reaches_its_target() -> None:
    assert WEIGHTS.sum() < 1.0
    assert RATES.max() < 1.0
    squares = np.array([0.0, 3.0, 500.0])
    assert log_wealth(boundary(squares, 0.01), squares) == pytest.approx(np.full(3, np.log(100.0)))
    values = np.tile([0.2, 0.4], 300)
    found = running_mean(values, np.array([600.0]), level=0.02, largest=2.0)
    spread = float(((values / 2.0 - guesses(values / 2.0)) ** 2).sum())
    assert found.means[0] == pytest.approx(0.3)
    assert found.high[0] - 0.3 == pytest.approx(2.0 * boundary(np.array([spread]), 0.01)[0] / 600)
    assert guesses(np.array([1.0, 0.0, 1.0])) == pytest.approx([0.5, 0.75, 0.5])


def test_intervals_of_both_groups_and_metrics_hold_together() -> None:
    """60 tests with a holdout of a tenth, 60 looks each: more than 8 wrong ones have a probability of 1% at a level of 5%."""
    wrong = 0
    for seed in range(60):
        rows = readout(ab_test(3000, seed, (0.9, 0.95)), by="group", control="best").looks.to_dicts()
        wrong += any(
            not (row["difference_low"] <= -0.05 <= row["difference_high"] and row["saving_low"] <= 0.5 <= row["saving_high"])
            for row in rows
        )
    assert wrong <= 8


def ab_test(rows: int, seed: int, rates: tuple[float, float]) -> polars.DataFrame:
    """Rows of two groups: 90% routed at a cost of 1 on average, 10% best at a cost of 2."""
    rng = np.random.default_rng(seed)
    best = rng.random(rows) < 0.1
    reward = 1.0 * (rng.random(rows) < np.where(best, rates[1], rates[0]))
    cost = np.where(best, 2.0, rng.choice([0.5, 1.5], rows))
    return polars.DataFrame(
        {"at": np.arange(rows, dtype=float), "group": np.where(best, "best", "routed"), "reward": reward, "cost": cost}
    )


@pytest.mark.parametrize(("rates", "verdict"), [((0.94, 0.95), "kept"), ((0.6, 0.95), "broken"), ((0.86, 0.95), "open")])
def test_the_verdict_is_what_is_known_about_alpha(rates: tuple[float, float], verdict: str) -> None:
    found = readout(ab_test(12_000, 1, rates), by="group", control="best", alpha=0.1)
    assert found.verdict == verdict
    assert f"alpha 0.1 is {verdict}" in found.headline()


def served(url: str, decisions: int, *, wait: int = 0, **settings: Any) -> None:
    """A store with a router that has decided and got its outcomes, but for the last few."""
    store, rng = open_store(url), np.random.default_rng(1)
    router = Router({"good": 1.0, "cheap": 0.1}, 0.1, store=store, name="sms", **settings)
    for number in range(decisions):
        decision = router.decide(request_id=f"{number}")
        if number < decisions - wait:
            router.record(decision.id, reward=float(rng.random() < (0.9 if decision.arm == "good" else 0.88)))
    router.close()
    store.close()


def test_a_holdout_is_read_out_from_a_store_and_from_its_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'thrifty.db'}"
    served(url, 600, wait=5, holdout=0.3)
    found = readout(url)
    now = found.looks.to_dicts()[-1]
    assert (found.experiment.treated, found.experiment.control, found.alpha) == ("routed", "holdout", 0.1)
    assert 120 < now["control"] < 240
    assert now["saving"] > 0.5
    assert "5 decisions since the first that still waits for its outcome are left out" in found.notes
    assert main(["export", url, "--out", str(tmp_path / "log.csv")]) == 0
    capsys.readouterr()
    assert main(["readout", str(tmp_path / "log.csv"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["looks"][-1]["difference"] == pytest.approx(now["difference"])
    assert main(["readout", url, "--router", "sms", "--out", str(tmp_path)]) == 0
    assert "every interval of every look holds at once with 95%" in capsys.readouterr().out
    assert (tmp_path / "looks.csv").read_text().startswith("until,treated,control,")


def test_decisions_before_the_holdout_began_do_not_count() -> None:
    rows = ab_test(2000, 1, (0.9, 0.9)).with_columns(
        code=polars.when(polars.col("group") == "best").then(polars.lit("holdout")).otherwise(polars.lit("exploit"))
    )
    rows = rows.with_columns(code=polars.when(polars.col("at") < 500).then(polars.lit("exploit")).otherwise(polars.col("code")))
    rows = rows.with_columns(code=polars.when(polars.col("at") > 1900).then(polars.lit("pinned")).otherwise(polars.col("code")))
    found = readout(rows)
    first = rows.filter(code="holdout")["at"].min()
    assert found.experiment.at.min() == first
    assert found.experiment.at.max() == 1900
    zero = rows.with_columns(holdout=polars.when(polars.col("at") > 1000).then(0.0).otherwise(0.1))
    assert readout(zero).experiment.at.max() == 1000


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "the log has no column 'code', which names the decisions of a holdout: name the column of the groups with --by"),
        ({"by": "gruop", "control": "best"}, "the log has no column 'gruop' for --by: did you mean group?"),
        ({"by": "group"}, "say which group is the control, with --control: "),
        ({"by": "group", "control": "bets"}, "the control 'bets' is no group of column 'group': did you mean best?"),
        ({"by": "at", "control": "best"}, "a read-out compares two groups with outcomes, column 'at' has 200"),
        ({"by": "group", "control": "best", "alpha": 2}, "alpha must be in [0, 1], got 2"),
    ],
)
def test_wrong_questions_are_one_line(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        readout(ab_test(200, 1, (0.9, 0.9)), **settings)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_logs_that_cannot_be_read_out_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ab_test(200, 1, (0.9, 0.9))
    rows.with_columns(code=polars.lit("exploit")).write_csv(tmp_path / "none.csv")
    rows.with_columns(reward=polars.col("reward") * 7).write_csv(tmp_path / "seven.csv")
    rows.drop("cost").write_csv(tmp_path / "free.csv")
    (tmp_path / "empty.csv").write_text("")
    groups = ["--by", "group", "--control", "best"]
    for file, flags, words in (
        ("none.csv", [], "no decision was taken by a holdout: set one"),
        ("seven.csv", groups, "a reward must be in [0, 1], or a status with --success, got '7.0' in row "),
        ("free.csv", groups, "no column 'cost' and no column 'price': name what a decision cost with --cost"),
        ("empty.csv", groups, "is empty: it has no header"),
        ("missing.csv", groups, "cannot read"),
        ("log.doc", groups, "a log must end in .csv"),
    ):
        assert main(["readout", str(tmp_path / file), *flags]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert main(["readout", f"sqlite:///{tmp_path / 'no.db'}"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_costs_of_nothing_are_compared_without_a_share() -> None:
    found = readout(ab_test(500, 1, (0.9, 0.9)).with_columns(cost=0.0), by="group", control="best", alpha=0.1)
    assert found.looks["saving"].to_list()[-1] is None
    assert "saves" not in found.headline()


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (
            {"cost": "free"},
            "a cost must be a number from 0 to 1e+15, got 'free' in row 3 of column 'cost' (such cells: 1): correct",
        ),
        ({"cost": "-1"}, "a cost must be a number from 0 to 1e+15, got '-1' in row 3"),
        ({"cost": "1e300"}, "a cost must be a number from 0 to 1e+15, got '1e300' in row 3"),
        ({"reward": "yes"}, "a reward must be in [0, 1], or a status with --success, got 'yes' in row 3 of column 'reward'"),
        ({"at": "soon"}, "a time must be a date and time or seconds since 1970, got 'soon' in row 3 of column 'at'"),
    ],
)
def test_bad_cells_are_refused_with_their_row(cells: dict[str, str], words: str) -> None:
    third = polars.int_range(polars.len()) == 2
    changes = {
        name: polars.when(third).then(polars.lit(cell)).otherwise(polars.col(name).cast(polars.String))
        for name, cell in cells.items()
    }
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        readout(ab_test(200, 1, (0.9, 0.9)).with_columns(**changes), by="group", control="best")
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


def test_rows_without_a_cost_are_left_out_as_in_a_replay() -> None:
    rows = ab_test(200, 1, (0.9, 0.9))
    fifth = polars.int_range(polars.len()) % 5 == 0
    found = readout(rows.with_columns(cost=polars.when(~fifth).then("cost")), by="group", control="best")
    assert found.experiment.at.size == 160
    assert "40 decisions have no cost and are left out" in found.notes
    found = readout(rows.with_columns(cost=polars.lit(None, polars.Float64)), by="group", control="best")
    assert found.notes == ("no decision has a cost: only rewards are compared",)


def test_times_may_be_dates_and_rewards_may_all_be_0() -> None:
    rows = ab_test(200, 1, (0.9, 0.9)).with_columns(reward=0.0)
    assert "best has no reward so far" in readout(rows, by="group", control="best").headline()
    moments = polars.from_epoch(1_767_225_600 + polars.col("at").cast(polars.Int64))
    for when in (moments, moments.dt.strftime("%Y-%m-%dT%H:%M:%SZ")):
        found = readout(rows.with_columns(at=when), by="group", control="best")
        assert found.experiment.timed
        assert found.experiment.at[0] == 1_767_225_600


def test_a_log_of_ones_own_is_read_out_by_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ab_test(3000, 1, (0.9, 0.9))
    days = polars.from_epoch(polars.col("at").cast(polars.Int64) * 60 + 1_700_000_000).dt.strftime("%d/%m/%Y %H:%M")
    own = rows.select(when=days, status=polars.when(polars.col("reward") > 0).then(polars.lit("ok")).otherwise(polars.lit("no")))
    own.with_columns(paid=rows["cost"], group=rows["group"]).write_csv(tmp_path / "own.csv", separator="^")
    flags = ["--time", "when", "--reward", "status", "--success", "ok", "--cost", "paid", "--separator", "^"]
    asked = ["readout", str(tmp_path / "own.csv"), *flags, "--by", "group", "--control", "best", "--json"]
    assert main([*asked, "--time-format", "day-first"]) == 0
    last = json.loads(capsys.readouterr().out)["looks"][-1]
    plain = readout(rows, by="group", control="best").looks.to_dicts()[-1]
    assert last["reward"] == pytest.approx(plain["reward"])
    assert last["saving"] == pytest.approx(plain["saving"])
    for wrong, words in (
        (["--success", "okay"], "--success 'okay' matches no row"),
        (["--time", "wen"], "the log has no column 'wen' for --time: did you mean when?"),
        (["--router", "sms"], "--router 'sms': the log has no column 'router'"),
    ):
        assert main([*asked, "--time-format", "day-first", *wrong]) == 2
        assert words in capsys.readouterr().err


def test_a_ragged_line_is_not_read_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("at,group,reward,cost\n1,a,1,1\n2,b,1\n")
    assert main(["readout", str(path), "--by", "group", "--control", "a"]) == 2
    assert "line 3 does not have the fields of the header: correct it or take it out" in capsys.readouterr().err


def test_a_dearer_group_costs_more_in_words() -> None:
    rows = ab_test(3000, 1, (0.9, 0.9))
    said = readout(rows, by="group", control=next(name for name in rows["group"].unique() if name != "best")).headline()
    assert "saves -" not in said
    assert "costs" in said
