import math
from pathlib import Path

import numpy as np
import pytest

from thrifty import DEFAULT_POLICY
from thrifty.cli.main import main
from thrifty.leaderboard import Board, entries, play
from thrifty.leaderboard.board import CONTENDERS
from thrifty.leaderboard.instances import HELD_OUT, TUNING
from thrifty.leaderboard.page import as_markdown


def small_board() -> Board:
    listed = entries()
    chosen = (listed[0], listed[15])
    total = np.array([[10.0, 5.0, np.nan], [0.0, 99.0, 8.0]])
    return Board(chosen, ("a", "b", "c"), total, total * 0.1, total * 0.5, total * 0.5)


def test_there_are_enough_instances_of_both_halves() -> None:
    listed = entries()
    assert len(listed) >= 40
    assert len({entry.name + entry.half for entry in listed}) == len(listed)
    assert min(sum(entry.half == half for entry in listed) for half in (TUNING, HELD_OUT)) >= 15
    assert {1000, 1_000_000} <= {entry.horizon for entry in listed}
    assert {2, 100} <= {entry.world.instance.n_arms for entry in listed}


def test_ratios_are_to_the_best_of_each_instance() -> None:
    assert small_board().ratios[0, :2].tolist() == [11 / 6, 1.0]
    assert small_board().ratios[1].tolist() == [1.0, 100.0, 9.0]


def test_the_ranking_is_by_geometric_mean_over_what_was_played() -> None:
    ranking = small_board().ranking()
    assert [name for name, _, _ in ranking] == ["a", "c", "b"]
    assert ranking[0][1] == pytest.approx(math.sqrt(11 / 6))
    assert ranking[2][2] == 100.0


def test_the_page_names_the_leader_and_its_exceptions() -> None:
    page = as_markdown(small_board(), command="thrifty leaderboard", picture=None)
    assert "First by geometric mean: `a`" in page
    assert "Nowhere." in page
    assert "**5** ± 0" in page


def test_a_policy_of_ones_own_can_be_entered_and_the_page_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "board.md"
    assert main(["leaderboard", "--quick", "--only", "mu_2 = 0.30", "--enter", "cs-etc:tau=50", "--out", str(page)]) == 0
    assert "cs-etc:tau=50" in capsys.readouterr().out
    assert "![" in page.read_text()
    assert page.with_suffix(".svg").read_text().startswith("<?xml")


def test_an_instance_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "--only", "nonsense"]) == 2
    assert "no instance has 'nonsense' in its name" in capsys.readouterr().err


def test_policies_that_cannot_play_unknown_costs_are_left_out_there() -> None:
    random = [entry for entry in entries() if not entry.world.costs_known][:1]
    board = play(random, ["cs-ucb", "pe-cs"], share=0.01)
    assert np.isnan(board.total[0, 1])
    assert board.total[0, 0] > 0


def test_the_published_page_says_the_default_leads() -> None:
    page = (Path(__file__).parents[2] / "docs" / "leaderboard.md").read_text()
    assert f"First by geometric mean: `{DEFAULT_POLICY}`" in page
    assert all(f"`{name}`" in page for name in CONTENDERS)
