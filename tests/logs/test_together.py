"""Settings that exclude or need each other, and sources of every kind: one line that names the value and the remedy."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import polars
import pytest

import thrifty
from tests.logs.logs import frame
from thrifty.cli.main import main
from thrifty.logs import Columns, Log

ROWS = frame(n=600, segments=1)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    ROWS.drop("p").write_csv(path)
    return path


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--price", "dear=1,dear=9"], "--price names 'dear' twice (1 and 9): give one price"),
        (["--price", "dear=1", "--price", "dear=1"], "--price names 'dear' twice"),
        (["--prices", "dear=3,dear=1"], "--prices: row 2 is a second price of arm 'dear' for the same time: give one"),
        (["--cost", "cost", "--prices", "dear=3"], "--cost 'cost' and --prices both say what a row cost: give one of them"),
        (["--within", "60s"], "--within 60s is about chains of attempts: name the columns they share with --chain"),
        (["--zone", "Europe/Berlin"], "--zone Europe/Berlin is about times, and no column of times is named: name it with --time"),
        (["--time-format", "s"], "--time-format s is about times"),
        (["--outcome-time", "at"], "--outcome-time at is for delays, which need the time of the decision: name it with --time"),
        (["--router", "sms"], "--router 'sms' is for a store such as sqlite:///thrifty.db: leave it out"),
        (["--now", "nan"], "--now must be a time in seconds since 1970, got nan"),
        (["--arm", "reward"], "--arm and --reward both name the column 'reward': name the right column for each"),
        (["--segment", "arm"], "--arm and --segment both name the column 'arm'"),
        (["--segment", "segment,segment"], "--segment names the column 'segment' twice: name it once"),
        (["--deadline", "-3", "--missing", "censored", "--time", "at"], "--deadline must be a positive number of seconds, got -3"),
        (["--deadline", "60"], "--deadline 60 has no effect without --missing censored: add it, or leave it out"),
        (["--missing", "censored"], "--missing censored needs the time of every row: name its column with --time"),
        (["--tolerate", "3"], "--tolerate must be a share in [0, 1], got 3.0"),
        (["--reward", "at"], "if column 'at' holds statuses, name those that are a success with --success"),
    ],
)
def test_contradictions_on_the_command_line_are_one_line(
    log: Path, capsys: pytest.CaptureFixture[str], flags: list[str], words: str
) -> None:
    assert main(["frontier", str(log), "--alpha", "0.1", *flags]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_soft_and_a_confidence_exclude_each_other(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", str(log), "--soft", "--confidence", "0.9"]) == 2
    assert "--soft says that alpha is no limit, and --confidence 0.9 that it is one" in capsys.readouterr().err


def test_what_is_about_text_is_refused_for_other_files(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_parquet(tmp_path / "log.parquet")
    assert main(["frontier", str(tmp_path / "log.parquet"), "--separator", ";"]) == 2
    assert "--separator ';' is about text files" in capsys.readouterr().err
    (tmp_path / "log.csv").write_text(log.read_text().replace(",", "^"))
    assert main(["frontier", str(tmp_path / "log.csv"), "--alpha", "0.1"]) == 2
    assert "name what separates them with --separator, such as --separator '^'" in capsys.readouterr().err
    assert main(["frontier", str(tmp_path / "log.csv"), "--alpha", "0.1", "--separator", "^"]) == 0


def test_flags_beat_a_file_also_where_they_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "columns.toml").write_text('cost = "price"\n')
    columns = Columns.load({"prices": "dear=3,fair=2,cheap=1"}, file=tmp_path / "columns.toml")
    assert "cost" not in columns.named()
    (tmp_path / "both.toml").write_text('cost = "price"\nprices = "dear=3"\n')
    with pytest.raises(ValueError, match="--cost 'price' and --prices both say what a row cost"):
        Columns.load({}, file=tmp_path / "both.toml")
    with pytest.raises(ValueError, match="--cost 'fee' and --prices both"):
        Columns(cost="fee", prices=columns.prices)


def test_every_question_takes_what_a_log_takes(log: Path) -> None:
    """A path as text or object, a polars, pandas and lazy frame, an Arrow table: the same answer as from a Log."""
    wanted = thrifty.frontier(Log(log), [0.05]).points
    arrow = SimpleNamespace(__arrow_c_stream__=ROWS.drop("p").__arrow_c_stream__)
    for source in (
        str(log),
        log,
        ROWS.drop("p"),
        ROWS.drop("p").lazy(),
        pandas.DataFrame(ROWS.drop("p").to_dict(as_series=False)),
        arrow,
    ):
        assert thrifty.frontier(source, 0.05).points.equals(wanted)
    assert thrifty.replay(log, 0.05, policies=[]).policies.height == 4
    assert thrifty.power(log).arms.height == 2
    assert thrifty.compare_arms(log).pairs.height == 3
    assert thrifty.value_of(log, {"dear": 1.0}).segments.height == 2
    assert thrifty.with_prices(log, {"dear": 0.1}).estimates[0].cost()[1] == pytest.approx(0.1)


@pytest.mark.parametrize("ask", [thrifty.frontier, thrifty.replay, thrifty.recommend, thrifty.power, thrifty.examine])
@pytest.mark.parametrize("source", [None, 3, [1, 2], {"arm": "a"}, object()])
def test_what_is_no_log_is_one_line(ask: Any, source: Any) -> None:
    with pytest.raises(ValueError, match=r"^a log is a path, a polars or pandas frame, an Arrow table or a Query, got ") as caught:
        ask(source)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("alphas", ["0.05", [], None, {0.1: 1}, ["0.05"], [2], [None], [True]])
@pytest.mark.parametrize("ask", [thrifty.frontier, thrifty.replay, thrifty.recommend])
def test_wrong_alphas_are_one_line(ask: Any, alphas: Any) -> None:
    with pytest.raises(ValueError, match=r"^alphas? must be (numbers )?in \[0, 1\]"):
        ask(ROWS, alphas)


def test_a_log_without_a_success_is_refused_by_every_question() -> None:
    rows = ROWS.with_columns(reward=polars.lit(0.0))
    for ask in (thrifty.frontier, thrifty.replay, thrifty.power, thrifty.compare_arms):
        with pytest.raises(
            ValueError, match="no request succeeded: every reward in column 'reward' is 0; check --reward or --success"
        ):
            ask(rows)


def test_times_of_zero_are_pointed_out() -> None:
    rows = ROWS.with_columns(at=polars.when(polars.int_range(polars.len()) == 5).then(0.0).otherwise("at"))
    found = thrifty.examine(Log(rows, Columns(time="at")))
    assert any(note.startswith("1 rows are of 1970-01-01, long before all others") for note in found.profile.notes)
    assert not any("1970" in note for note in thrifty.examine(Log(ROWS, Columns(time="at"))).profile.notes)


def test_an_empty_segment_is_not_a_segment_called_all() -> None:
    cycle = polars.int_range(polars.len()) % 3
    names = polars.when(cycle == 0).then(polars.lit("all")).when(cycle == 1).then(polars.lit("")).otherwise(polars.lit("DE"))
    found = thrifty.examine(Log(ROWS.with_columns(segment=names), Columns(segment="segment")))
    assert {each.sums.name: each.sums.rows for each in found.estimates} == {"(empty)": 200, "DE": 200, "all": 200}
    assert "200 rows have no segment: taken as segment '(empty)'" in found.profile.notes


def test_control_characters_in_names_are_written_out() -> None:
    rows = ROWS.with_columns(arm=polars.col("arm").str.replace("dear", "de\x1b[31mar"))
    found = thrifty.frontier(rows, [0.0, 0.05])
    assert "de\\x1b[31mar" in found.evidence.aggregates.arms
    assert "\x1b" not in found.to_text() + found._repr_html_()


def test_only_the_best_arm_is_free(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frontier", str(log), "--alpha", "0.1", "--price", "dear=0", "--price", "fair=0"]) == 0
    text = capsys.readouterr().out
    assert "nothing costs anything" not in text
    assert "where the best arm is free there is no saving against it" in text
    assert main(["frontier", str(log), "--alpha", "0.1", "--price", "dear=0,fair=0,cheap=0"]) == 0
    assert "nothing costs anything in this log" in capsys.readouterr().out


def test_a_routing_that_costs_more_says_so(log: Path) -> None:
    said = thrifty.value_of(log, {"dear": 1.0}).headline()
    assert "saves -" not in said
    assert "more than today's cost" in said
