import math

import numpy as np
import pytest

from tests.leaderboard.boards import small_board
from thrifty import World
from thrifty.cli.main import main
from thrifty.leaderboard import Entry, entries, play
from thrifty.leaderboard.board import METRICS, stuck_runs
from thrifty.leaderboard.entry import HELD_OUT, TUNING
from thrifty.leaderboard.stages import BoardInterrupted, play_in_stages


def test_there_are_enough_instances_of_both_halves() -> None:
    listed = entries()
    assert len(listed) >= 100
    assert len({entry.name for entry in listed}) == len(listed)
    assert min(sum(entry.half == half for entry in listed) for half in (TUNING, HELD_OUT)) >= 50
    assert {1000, 1_000_000} <= {entry.horizon for entry in listed}
    assert {2, 100, 1000} <= {entry.world.instance.n_arms for entry in listed}


def test_ratios_are_to_the_best_of_each_instance() -> None:
    assert small_board().ratios[0, :2].tolist() == [11 / 6, 1.0]
    assert small_board().ratios[1].tolist() == [1.0, 100.0, 9.0]


def test_the_ranking_is_by_geometric_mean_over_what_was_played() -> None:
    ranking = small_board().ranking()
    assert [rank.policy for rank in ranking] == ["a", "c", "b"]
    assert ranking[0].mean == pytest.approx(math.sqrt(11 / 6))
    assert ranking[2].worst == 100.0
    # Policy a: errors of 1 on 10 + 1, and of 0. sqrt(2 * (1/11)^2) / 2 is the error of the mean logarithm.
    assert ranking[0].error == pytest.approx(math.sqrt(11 / 6) * math.sqrt(2) / 22)
    assert [rank.policy for rank in small_board().ranking(first=1)] == ["b", "a"]


def test_the_minimax_view_takes_the_worst_share() -> None:
    board = small_board()
    scales = [entry.world.instance.n_arms ** (1 / 3) * entry.horizon ** (2 / 3) for entry in board.entries]
    ranking = board.minimax_ranking()
    assert [rank.policy for rank in ranking] == ["c", "a", "b"]
    assert ranking[1].largest == pytest.approx(10 / scales[0])
    assert ranking[1].where == board.entries[0].name
    assert ranking[1].mean == pytest.approx(5 / scales[0])


def test_a_duel_counts_what_is_beyond_two_standard_errors() -> None:
    # a: 10 +- 1 and 0; b: 5 +- 0.5 and 99 +- 9.9; c: none and 8 +- 0.8.
    assert small_board().duels("a") == [("b", 1, 1, 0), ("c", 1, 0, 0)]
    near = small_board(total=np.array([[10.0, 9.0, np.nan], [50.0, 50.0, 50.0]]))
    assert near.duels("a") == [("b", 0, 0, 2), ("c", 0, 0, 1)]


def test_a_run_is_stuck_if_it_ends_on_a_wrong_arm_that_matters() -> None:
    # Playing arm 0 for ever costs 1 a round, which matters; arm 2 loses 0.001 a round: 10 of 5 * 3^(1/3) * 464 = 3,347.
    entry = Entry("x", World([0.5, 0.46, 0.449], [1.0, 0.2, 0.2], 0.1), 10_000, TUNING)
    pulls = np.array([[[100, 8900, 0], [1000, 9000, 0]], [[0, 9000, 0], [400, 9600, 0]], [[0, 9000, 0], [0, 9000, 1000]]])
    assert stuck_runs(entry, pulls).tolist() == [True, False, False]


def test_costs_in_dollars_are_counted_in_their_unit() -> None:
    dollars = next(entry for entry in entries() if entry.unit != 1.0)
    board = play([dollars], ["cheapest", "best-known"], share=0.02)
    assert board.total[0].tolist() == pytest.approx((board.quality + board.cost)[0].tolist())
    assert board.cost[0, 1] > 100  # thousands of rounds, each of which costs about the range of costs more than the optimal arm


def test_an_instance_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "--only", "nonsense"]) == 2
    assert "no instance has 'nonsense' in its name" in capsys.readouterr().err


def test_policies_that_cannot_play_unknown_costs_are_left_out_there() -> None:
    random = [entry for entry in entries() if not entry.world.costs_known][:1]
    board = play(random, ["cs-ucb", "pe-cs"], share=0.01)
    assert np.isnan(board.total[0, 1])
    assert board.total[0, 0] > 0


def test_stages_make_the_same_board() -> None:
    chosen = [entry for entry in entries() if "T = 1,000" in entry.name and entry.horizon == 1000]
    whole, staged = (each(chosen, ["cs-etc", "cs-ucb"], share=0.05, seed=4) for each in (play, play_in_stages))
    assert staged.entries == whole.entries
    assert staged.policies == whole.policies
    for metric in METRICS:
        assert np.array_equal(getattr(staged, metric), getattr(whole, metric))


def test_an_interrupted_board_keeps_what_was_played(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def play_two(chosen: list[Entry], *_: object, **__: object) -> object:
        if chosen[0].name.endswith("0.36"):
            raise KeyboardInterrupt
        return play(chosen, ["cs-etc"], share=0.02)

    monkeypatch.setattr("thrifty.leaderboard.stages.play", play_two)
    assert main(["leaderboard", "--only", "Table 1"]) == 130
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()] == ["policy", "cs-etc"]
    assert shown.err == "thrifty leaderboard: stopped after 2 of 22 instances\n"
    with pytest.raises(BoardInterrupted, match="stopped after 0 of 1 instances") as stopped:
        play_in_stages([entry for entry in entries() if entry.name.endswith("0.36")], ["cs-etc"])
    assert stopped.value.board is None
