"""The leaderboard report: a page in Markdown, and a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thrifty.files import write_whole
from thrifty.leaderboard import Board
from thrifty.leaderboard.board import MinimaxRank, Rank
from thrifty.leaderboard.entry import HELD_OUT, TUNING
from thrifty.leaderboard.first_edition import first_edition
from thrifty.reports.drawing import COLOURS, house_style, make_axes, save, thin_ticks
from thrifty.reports.labels import label_points
from thrifty.reports.page import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HALVES = {"All instances": None, "Held-out half": HELD_OUT, "Tuning half": TUNING}


@dataclass(frozen=True)
class RankedHalf:
    """The rankings of some of the instances."""

    title: str
    n_instances: int
    ranking: list[Rank]
    minimax: list[MinimaxRank]


@dataclass(frozen=True)
class BoardException:
    """An instance on which the leader is more than twice as bad as the best policy."""

    instance: str
    ratio: float
    total: float
    best: str
    best_total: float


@dataclass(frozen=True)
class BoardCell:
    """Total regret of one policy on one instance with its standard error, as texts; empty where it cannot play."""

    total: str
    error: str
    is_best: bool


@dataclass(frozen=True)
class LeaderRow:
    """How the runs of the leader are spread on one instance."""

    name: str
    mean: float
    median: float
    high: float
    stuck: float


@dataclass(frozen=True)
class BoardRow:
    """One instance with the regret of every policy."""

    name: str
    horizon: str
    half: str
    cells: list[BoardCell]


def write_leaderboard(board: Board, path: Path, *, command: str) -> None:
    """Write the page into `path`, and its picture beside it as SVG."""
    picture = path.with_suffix(".svg")
    write_whole(path, leaderboard_page(board, command=command, picture=picture.name).encode())
    save(draw_leaderboard(board), picture)


def leaderboard_page(board: Board, *, command: str, picture: str | None) -> str:
    """The whole page, in Markdown."""
    return render(
        "leaderboard.md.j2",
        command=command,
        leader=_leader(board),
        halves=_ranked_halves(board),
        duels=board.duels(_leader(board)),
        spreads=_leader_rows(board),
        picture=picture,
        exceptions=_exceptions(board),
        policies=board.policies,
        instances=[_board_row(board, number) for number in range(len(board.entries))],
    )


def draw_leaderboard(board: Board) -> "Figure":
    """Quality against cost: the geometric mean over instances of each regret plus 1, one point per policy."""
    with house_style():
        figure, axes = make_axes(1, 1, size=(6.0, 4.2))
        ax = axes[0][0]
        known = ~np.isnan(board.total).any(axis=1)
        means = [np.exp(np.log1p(values[known]).mean(axis=0)) for values in (board.quality, board.cost)]
        points = np.transpose(means)
        for number, point in enumerate(points):
            ax.plot(*point, "o", color=COLOURS[number % len(COLOURS)], markersize=6)
        ax.set(xscale="log", yscale="log", xlabel="quality regret + 1, geometric mean", ylabel="cost regret + 1, geometric mean")
        ax.margins(0.2)
        ax.autoscale_view()
        for axis in (ax.xaxis, ax.yaxis):
            thin_ticks(axis)
        ax.set_title(f"Lower left is better ({int(known.sum())} instances with known costs)", fontsize=9)
        label_points(ax, points, board.policies, fontsize=8)
    return figure


def _leader(board: Board) -> str:
    return board.ranking()[0].policy


def _ranked_halves(board: Board) -> list[RankedHalf]:
    found = [
        RankedHalf(title, len(board.rows(half)), board.ranking(half), board.minimax_ranking(half))
        for title, half in _HALVES.items()
        if board.rows(half)
    ]
    first = len(first_edition())
    if len(board.entries) > first:
        found.append(RankedHalf("The instances of the first edition", first, board.ranking(first=first), []))
    return found


def _leader_rows(board: Board) -> list[LeaderRow]:
    column = board.policies.index(_leader(board))
    values = (board.total, board.median, board.high, board.stuck)
    return [LeaderRow(board.entries[row].name, *(float(value[row, column]) for value in values)) for row in board.rows()]


def _exceptions(board: Board) -> list[BoardException]:
    leader = board.policies.index(_leader(board))
    ratios, best = board.ratios[:, leader], np.nanargmin(board.total, axis=1)
    return [
        BoardException(
            board.entries[row].name,
            float(ratios[row]),
            float(board.total[row, leader]),
            board.policies[best[row]],
            float(board.total[row, best[row]]),
        )
        for row in board.rows()
        if ratios[row] > 2.0
    ]


def _board_row(board: Board, number: int) -> BoardRow:
    entry, best = board.entries[number], np.nanmin(board.total[number])
    cells = [
        BoardCell("", "", False) if np.isnan(total) else BoardCell(f"{total:,.0f}", f"{error:,.0f}", bool(total == best))
        for total, error in zip(board.total[number], board.error[number], strict=True)
    ]
    return BoardRow(entry.name, f"{entry.horizon:,}", entry.half, cells)
