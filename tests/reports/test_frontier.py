"""The frontier's files: what the page says, that it is always the same, and that names from a log cannot harm it."""

from pathlib import Path

import polars
import pytest

from tests.logs.logs import frame
from tests.reports.hostile import NAMES, assert_escaped
from thrifty.cli.main import main
from thrifty.logs import Columns, Log, frontier
from thrifty.logs.evidence import ESTIMATED, LOGGED
from thrifty.reports.frontier import frontier_files

COLUMNS = Columns(segment="segment", time="at", propensity="p")


@pytest.fixture(scope="module")
def steady() -> polars.DataFrame:
    return frame(n=40_000, drift=0.0)


def test_the_page_says_where_propensities_come_from(steady: polars.DataFrame) -> None:
    logged = frontier_files(frontier(Log(steady, COLUMNS), [0.0, 0.1]))["frontier.html"].decode()
    assumed = frontier_files(frontier(Log(steady, Columns(segment="segment", time="at")), [0.0, 0.1]))["frontier.html"].decode()
    assert LOGGED in logged
    assert ESTIMATED not in logged
    assert ESTIMATED in assumed


def test_the_same_log_and_seed_write_the_same_frontier(steady: polars.DataFrame) -> None:
    one, other = (frontier_files(frontier(Log(steady, COLUMNS), [0.0, 0.1], seed=3)) for _ in range(2))
    assert one == other
    assert frontier_files(frontier(Log(steady, COLUMNS), [0.0, 0.1], seed=4))["frontier.csv"] != one["frontier.csv"]


def test_arms_and_segments_with_hostile_names_are_escaped(tmp_path: Path) -> None:
    arms = {"dear": NAMES[0], "fair": NAMES[1], "cheap": NAMES[3]}
    rows = frame(n=6000, drift=0.0).with_columns(
        polars.col("arm").replace_strict(arms), polars.col("segment").replace_strict({"s0": NAMES[2], "s1": NAMES[0]})
    )
    rows.write_csv(tmp_path / "log.csv")
    flags = ["--segment", "segment", "--time", "at", "--propensity", "p", "--alpha", "0,0.05,0.1,0.5"]
    assert main(["frontier", str(tmp_path / "log.csv"), *flags, "--out", str(tmp_path)]) == 0
    assert_escaped((tmp_path / "frontier.html").read_text())


def test_a_refused_segment_and_its_reason_are_escaped(steady: polars.DataFrame) -> None:
    name = NAMES[1]
    lonely = steady.filter((polars.col("segment") == "s0") | (polars.col("arm") == "fair"))
    renamed = lonely.with_columns(polars.col("segment").replace({"s1": name}))
    page = frontier_files(frontier(Log(renamed, COLUMNS), [0.0, 0.1]))["frontier.html"].decode()
    assert_escaped(page, (f"no estimate for {name}",))
