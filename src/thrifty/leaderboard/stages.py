"""Play the leaderboard one instance after the other, so that Ctrl-C keeps what was played."""

from collections.abc import Callable, Sequence

import numpy as np

from thrifty.leaderboard.board import METRICS, Board, play
from thrifty.leaderboard.entry import Entry
from thrifty.policies import Policy


class BoardInterrupted(KeyboardInterrupt):
    """Raised after Ctrl-C. `board` has the instances that all policies had played; it is None if there are none."""

    def __init__(self, message: str, board: Board | None) -> None:
        super().__init__(message)
        self.board = board


def play_in_stages(
    entries: Sequence[Entry],
    contenders: Sequence[str | Policy],
    *,
    seed: int = 1,
    share: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Board:
    """`play`, with the same results; after Ctrl-C a `BoardInterrupted` that holds the instances so far.

    >>> from thrifty.leaderboard import entries
    >>> play_in_stages(entries()[:2], ["cs-etc"], share=0.02).total.shape
    (2, 1)
    """
    boards: list[Board] = []
    try:
        for number, entry in enumerate(entries):
            if progress is not None:
                progress(number, len(entries))
            boards.append(play([entry], contenders, seed=seed, share=share))
    except KeyboardInterrupt:
        message = f"stopped after {len(boards)} of {len(entries)} instances"
        raise BoardInterrupted(message, join(boards) if boards else None) from None
    return join(boards)


def join(boards: Sequence[Board]) -> Board:
    """One board of the instances of several, of the same policies."""
    tables = {metric: np.concatenate([getattr(board, metric) for board in boards]) for metric in METRICS}
    return Board(tuple(entry for board in boards for entry in board.entries), boards[0].policies, **tables)
