"""The recommendation's files: the same log writes the same bytes, and names from a log cannot harm the page."""

import json
from dataclasses import replace
from pathlib import Path

import polars
import pytest

from tests.logs.logs import frame
from tests.reports.hostile import NAMES, assert_escaped
from thrifty.advice import Criteria, Effort, recommend
from thrifty.cli.main import main
from thrifty.examples import SMS
from thrifty.examples.generator import write_example
from thrifty.logs import Columns, Log
from thrifty.reports.evidence import less_or_more
from thrifty.reports.recommendation import lead, recommendation_files

COLUMNS = Columns(
    arm="aggregator",
    reward="status",
    success=("delivered",),
    cost="price",
    segment="country",
    time="sent_at",
    outcome_time="received_at",
)
NOW = 2e9
SOFT, SMALL = Criteria(confidence=0.0), Effort(rounds=200, worlds=2)


def test_the_same_log_and_seed_write_the_same_bytes(tmp_path: Path) -> None:
    path, _ = write_example(SMS, tmp_path, rows=6000, seed=1, kind="parquet")
    first, second = (
        recommendation_files(
            recommend(Log(path, COLUMNS, now=NOW), [0.05], policies=["cs-ts"], criteria=SOFT, effort=SMALL, seed=3)
        )
        for _ in range(2)
    )
    assert first == second
    assert b"<svg" not in first["recommendation.html"]  # pictures are inside as data
    assert b"http://" not in first["recommendation.html"]
    other = recommendation_files(
        recommend(Log(path, COLUMNS, now=NOW), [0.05], policies=["cs-ts"], criteria=SOFT, effort=SMALL, seed=4)
    )
    assert other["segments.csv"] != first["segments.csv"]


def test_the_commands_write_their_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example-log", "llm", "--rows", "6000", "--out", str(tmp_path)]) == 0
    assert "thrifty replay" in capsys.readouterr().out
    columns = ["--arm", "model", "--reward", "quality", "--segment", "task", "--time", "sent_at", "--now", "2e9"]
    flags = [str(tmp_path / "llm.csv"), *columns]
    assert main(["frontier", *flags, "--alpha", "0,0.05,0.1", "--out", str(tmp_path / "f")]) == 0
    assert "propensities are not logged" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "f").iterdir()} >= {"frontier.html", "frontier.csv", "frontier.png", "frontier.svg"}
    small = ["--policies", "cs-ts", "--rounds", "200", "--worlds", "2", "--soft"]
    assert main(["recommend", *flags, *small, "--name", "models", "--out", str(tmp_path / "r")]) == 0
    assert "are expected to cost" in capsys.readouterr().out
    page = (tmp_path / "r" / "recommendation.html").read_text()
    assert "propensities are not logged" in page
    assert "/v1/routers/models" in page
    advised = json.loads((tmp_path / "r" / "routers.json").read_text())
    assert advised["routers"]["models"]["arms"]["giant"] is None
    assert main(["recommend", *flags, *small, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["advised"]["segments"]) == {"summarise", "extract", "code"}


def test_arms_and_segments_with_hostile_names_are_escaped(tmp_path: Path) -> None:
    arms = {"dear": NAMES[0], "fair": NAMES[1], "cheap": NAMES[3]}
    rows = frame(n=3000, drift=0.0).with_columns(
        polars.col("arm").replace_strict(arms), polars.col("segment").replace_strict({"s0": NAMES[2], "s1": NAMES[0]})
    )
    rows.write_csv(tmp_path / "log.csv")
    flags = ["--segment", "segment", "--time", "at", "--policies", "cs-ts", "--rounds", "200", "--worlds", "2", "--soft"]
    assert main(["recommend", str(tmp_path / "log.csv"), *flags, "--out", str(tmp_path)]) == 0
    assert_escaped((tmp_path / "recommendation.html").read_text())
    advised = json.loads((tmp_path / "routers.json").read_text())
    assert all(set(body["arms"]) == set(arms.values()) for body in advised["routers"].values())
    assert set(advised["segments"]) == {NAMES[2], NAMES[0]}


def test_a_start_that_is_worth_less_than_none_is_said_so() -> None:
    log = Log(frame(n=2000), Columns(segment="segment", time="at", propensity="p"))
    found = recommend(log, [0.1], policies=["cs-ts"], criteria=SOFT, effort=SMALL)
    start = polars.when(polars.col("segment") == "all segments").then(-0.031).otherwise("start")
    said = lead(replace(found, segments=found.segments.with_columns(start=start)))
    assert "from nothing, the same choices would be worth 3.1% of cost more, their alpha kept or not: compare with --cold" in said
    assert "that is worth" not in said


def test_a_saving_of_nothing_is_neither_more_nor_negative() -> None:
    nothing = {"saving": -1e-17, "saving_low": -1e-17, "saving_high": 0.0}
    assert less_or_more(nothing, "saving") == "0.0% less (0.0% to 0.0%)"
