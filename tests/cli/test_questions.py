"""The commands of further questions: what they print, write and refuse."""

import json
from pathlib import Path

import pytest

from tests.questions.logs import frame
from thrifty.cli.main import main

RATES = [[0.9, 0.88, 0.6], [0.5, 0.5, 0.7]]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    frame(RATES, 3000, 1).write_csv(path)
    return [str(path), "--segment", "segment", "--time", "at"]


@pytest.mark.parametrize(
    ("command", "flags", "words", "file"),
    [
        ("power", ["--alpha", "0.05", "--only", "Fir"], "known with 95% confidence", "arms.csv"),
        ("arms", [], "p accounts for all of them (max-t)", "pairs.csv"),
        ("value", ["--shares", "Elm=0.5,Fir=0.5"], "change and saving are against today", "segments.csv"),
    ],
)
def test_a_question_is_answered_as_text_json_and_file(
    log: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, flags: list[str], words: str, file: str
) -> None:
    assert main([command, *log, *flags, "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert words in text
    assert "propensities are not logged" in text
    assert (tmp_path / file).read_text().count("\n") >= 2
    assert main([command, *log, *flags, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 3000
    assert found[file.removesuffix(".csv")]


def test_a_what_if_price_changes_the_costs_and_is_named(log: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["value", *log, "--shares", "Elm=1", "--price", "Elm=0.5", "--price", "Fir=-10%"]) == 0
    text = capsys.readouterr().out
    assert "what if: Elm=0.5, Fir=-10%; today's choices are valued at these prices too" in text
    assert main(["value", *log, "--shares", "Elm=1", "--price", "Elm=0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["segments"][-1]["cost"] == pytest.approx(0.5)
    small = ["--policies", "cs-ts", "--alpha", "0.1", "--rounds", "100", "--worlds", "2", "--soft"]
    assert main(["recommend", *log, *small, "--price", "Elm=0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["advised"]["routers"]["advised"]["arms"]["Elm"] == 0.5


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["power", "--only", "Elk"], "the log has no arm 'Elk': did you mean Elm?"),
        (["power", "--confidence", "95"], "write 0.95 for 95%"),
        (["value", "--shares", "Elm=0.4"], "must add up to 1, got 0.4"),
        (["value", "--shares", "nowhere.csv"], "cannot read the shares in nowhere.csv"),
        (["value", "--shares", "Elm=1", "--price", "Elm"], "--price must be ARM=PRICE or ARM=-10%, got 'Elm'"),
        (["arms", "--price", "Elm=-3"], "the price of 'Elm' must be finite and not negative"),
        (["recommend", "--price", "Oka=3"], "the log has no arm 'Oka': did you mean Oak?"),
    ],
)
def test_wrong_questions_are_one_line(log: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], words: str) -> None:
    assert main([flags[0], *log, *flags[1:]]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
