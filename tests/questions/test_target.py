"""A policy that looks at each request is valued by a column with its probabilities."""

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import thrifty
from thrifty.cli.main import main
from thrifty.logs import Columns, Log

COLUMNS = Columns(propensity="p", segment="segment")


def rows(n: int, seed: int) -> polars.DataFrame:
    """Two arms, of which the cheap one is good for small amounts only; `q` takes it for 90% of these and for 20% of the others."""
    rng = np.random.default_rng(seed)
    small, segment = rng.random(n) < 0.5, rng.integers(0, 2, n)
    cheap = rng.random(n) < 0.4
    rate = np.where(cheap, np.where(small, 0.9, 0.3), 0.8) - 0.05 * segment
    q = np.where(small, 0.9, 0.2)
    return polars.DataFrame(
        {
            "arm": np.where(cheap, "cheap", "dear"),
            "reward": 1.0 * (rng.random(n) < rate),
            "cost": np.where(cheap, 1.0, 3.0),
            "p": np.where(cheap, 0.4, 0.6),
            "q": np.where(cheap, q, 1.0 - q),
            "segment": np.array(["one", "two"])[segment],
        }
    )


REWARD = 0.5 * (0.9 * 0.9 + 0.1 * 0.8) + 0.5 * (0.2 * 0.3 + 0.8 * 0.8) - 0.025
COST = 0.5 * (0.9 + 0.1 * 3.0) + 0.5 * (0.2 + 0.8 * 3.0)


def test_intervals_hold_the_true_value_of_the_policy() -> None:
    """30 logs of 2,000 rows: fewer than 25 of 30 intervals with the truth have a probability of 0.4% if 95% have it."""
    held = np.zeros(2)
    for seed in range(30):
        whole = thrifty.value_of(Log(rows(2000, seed), COLUMNS), target="q").segments.to_dicts()[-1]
        for place, (name, truth) in enumerate((("reward", REWARD), ("cost", COST))):
            held[place] += whole[f"{name}_low"] <= truth <= whole[f"{name}_high"]
    assert (held >= 25).all()


def test_shares_that_do_not_look_at_requests_have_the_same_value_as_a_column() -> None:
    log = rows(20_000, 3).with_columns(q=polars.when(polars.col("arm") == "cheap").then(0.3).otherwise(0.7))
    by_column = thrifty.value_of(Log(log, COLUMNS), target="q").segments.to_dicts()[-1]
    by_shares = thrifty.value_of(Log(log, COLUMNS), {"cheap": 0.3, "dear": 0.7}).segments.to_dicts()[-1]
    for name in ("reward", "cost", "saving"):
        assert by_column[name] == pytest.approx(by_shares[name], abs=0.01)


def test_the_policy_of_the_log_has_the_value_of_the_log() -> None:
    found = thrifty.value_of(Log(rows(3000, 1).with_columns(q=polars.col("p")), COLUMNS), target="q")
    assert found.segments["reward_change"].to_list() == pytest.approx([0.0, 0.0, 0.0])
    assert found.notes == ("policy by column 'q': 3,000 effective rows of 3,000",)


@pytest.mark.parametrize(
    ("change", "columns", "asked", "words"),
    [
        ({}, Columns(), "q", "--target 'q' needs the probabilities of the log too: name their column with --propensity"),
        ({}, COLUMNS, "qq", "no column 'qq' for --target: "),
        ({}, COLUMNS, "p", "--target and --propensity both name the column 'p'"),
        ({"q": polars.lit(1.5)}, COLUMNS, "q", r"--target must be a probability in \[0, 1\], got '1.5' in row 1 of column 'q'"),
        ({"q": polars.lit("often")}, COLUMNS, "q", "got 'often' in row 1"),
        ({"q": polars.lit(None, polars.Float64)}, COLUMNS, "q", "got 'None' in row 1"),
        ({"q": polars.lit(1.0)}, COLUMNS, "q", "it must be the probability with which the policy takes the arm of that row"),
        ({"q": polars.lit(0.0)}, COLUMNS, "q", "it must be the probability with which the policy takes the arm of that row"),
    ],
)
def test_a_column_that_cannot_be_a_policy_is_one_line(change: dict[str, Any], columns: Columns, asked: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        thrifty.value_of(Log(rows(600, 1).with_columns(**change), columns), target=asked)


def test_the_command_takes_shares_or_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows(2000, 1).write_csv(tmp_path / "log.csv")
    asked = ["value", str(tmp_path / "log.csv"), "--propensity", "p"]
    assert main([*asked, "--target", "q"]) == 0
    assert "policy by column 'q': " in capsys.readouterr().out
    for flags, words in (
        ([], "give one of --shares and --target"),
        (["--shares", "cheap=1", "--target", "q"], "give one of --shares and --target"),
        (["--target", "q", "--price", "cheap=9"], "--price changes them: leave one of them out"),
    ):
        assert main([*asked, *flags]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_a_policy_that_the_log_says_little_about_is_refused() -> None:
    rare = rows(600, 1).with_columns(q=polars.when(polars.int_range(polars.len()) % 60 == 0).then(0.5).otherwise(0.0))
    with pytest.raises(ValueError, match=r"no segment has an estimate of this routing .* effective rows, 30 are needed"):
        thrifty.value_of(Log(rare, COLUMNS), target="q")
