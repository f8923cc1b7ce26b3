from pathlib import Path

import pytest

from thrifty.cli.main import main
from thrifty.experiments import EXPERIMENTS


def test_the_items_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


def test_one_item_ends_with_the_path_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "fig1", "--runs", "2", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{tmp_path / 'report.html'}\n"
    assert captured.err == ""
    assert (tmp_path / "fig1.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig3"], "unknown item 'fig3'"),
        ([], "name what to run"),
        (["fig1", "--runs", "0"], "runs must be a whole number"),
        (["fig1", "--seed", "-1"], "seed must be a whole number"),
        (["fig1", "--workers", "0"], "workers must be a whole number"),
        (["fig1", "--backend", "spark"], "backend must be local, dask or"),
        (["fig1", "--backend", "dask://127.0.0.1:9"], "no Dask scheduler answers at 127.0.0.1:9"),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_an_unwritable_folder_is_one_line_and_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("mine")
    assert main(["reproduce", "fig1", "--runs", "2", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "out").read_text() == "mine"


def test_a_damaged_result_stops_before_anything_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "fig1", "--runs", "2", "--out", str(tmp_path)]
    assert main(arguments) == 0
    report = (tmp_path / "report.html").read_bytes()
    result = next((tmp_path / "results").rglob("*.npz"))
    result.write_bytes(result.read_bytes()[:100])
    (tmp_path / "fig1.csv").write_text("mine")
    capsys.readouterr()
    assert main(arguments) == 2
    assert "is damaged: delete it" in capsys.readouterr().err
    assert (tmp_path / "fig1.csv").read_text() == "mine"
    assert (tmp_path / "report.html").read_bytes() == report
    assert result.stat().st_size == 100
