from pathlib import Path

import numpy as np
import pytest

from tests.leaderboard.boards import small_board
from tests.reports.hostile import NAMES, assert_escaped
from thrifty.cli.main import main
from thrifty.leaderboard import entries
from thrifty.leaderboard.board import CONTENDERS
from thrifty.reports.drawing import image
from thrifty.reports.leaderboard import draw_leaderboard, leaderboard_page


def test_the_page_names_the_leader_and_has_every_regret() -> None:
    page = leaderboard_page(small_board(), command="thrifty leaderboard", picture=None)
    assert "Written by `thrifty leaderboard`." in page
    assert "First by geometric mean: `a`" in page
    assert "Nowhere." in page
    assert "| 10 ± 1 | **5** ± 0 |  |\n" in page


def test_instances_where_the_leader_is_bad_are_listed_with_the_best_policy() -> None:
    board = small_board(total=np.array([[90.0, 5.0, np.nan], [0.0, 999.0, 8.0]]))
    page = leaderboard_page(board, command="thrifty leaderboard", picture=None)
    assert f"| {board.entries[0].name} | 15.2 | 90 | `b` 5 |" in page


def test_tables_have_no_gaps_and_sections_do() -> None:
    page = leaderboard_page(small_board(), command="thrifty leaderboard", picture="board.svg")
    blocks = page.rstrip("\n").split("\n\n")
    assert all(block.startswith(("#", "|", "!", "*")) or "|" not in block for block in blocks)
    assert all(block.count("\n") == 0 or block.startswith("|") for block in blocks)


def test_strange_policies_are_escaped_in_page_and_picture() -> None:
    page = leaderboard_page(small_board(policies=NAMES[:3]), command=NAMES[0], picture=None)
    assert_escaped(page, NAMES[:3])
    assert image(draw_leaderboard(small_board(policies=(NAMES[3], *NAMES[:2]))), ".svg").startswith(b"<?xml")


def test_a_policy_of_ones_own_can_be_entered_and_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "board.md"
    assert main(["leaderboard", "--quick", "--only", "mu_2 = 0.30", "--enter", "cs-etc:tau=50", "--out", str(page)]) == 0
    assert "cs-etc:tau=50" in capsys.readouterr().out
    assert "![" in page.read_text()
    assert page.with_suffix(".svg").read_text().startswith("<?xml")


def test_the_published_page_has_every_policy_and_instance_and_the_leader_that_the_docs_name() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "leaderboard.md").read_text()
    assert "First by geometric mean: `cof`" in page
    assert "COF leads" in (docs / "theory" / "algorithms.md").read_text()
    assert all(f"`{name}`" in page for name in CONTENDERS)
    assert all(f"| {entry.name} |" in page for entry in entries())
