import math

import numpy as np
import pytest

from tests.leaderboard.boards import small_board
from thrifty.cli.main import main
from thrifty.leaderboard import entries, play
from thrifty.leaderboard.instances import HELD_OUT, TUNING


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


def test_an_instance_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "--only", "nonsense"]) == 2
    assert "no instance has 'nonsense' in its name" in capsys.readouterr().err


def test_policies_that_cannot_play_unknown_costs_are_left_out_there() -> None:
    random = [entry for entry in entries() if not entry.world.costs_known][:1]
    board = play(random, ["cs-ucb", "pe-cs"], share=0.01)
    assert np.isnan(board.total[0, 1])
    assert board.total[0, 0] > 0
