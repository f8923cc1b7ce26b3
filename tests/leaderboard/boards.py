"""A board small enough to check by hand."""

import numpy as np
from numpy.typing import NDArray

from thrifty.leaderboard import Board, entries


def small_board(policies: tuple[str, ...] = ("a", "b", "c"), total: NDArray[np.float64] | None = None) -> Board:
    """Three policies on two instances, one of each half; the third policy cannot play the first instance."""
    listed = entries()
    total = np.array([[10.0, 5.0, np.nan], [0.0, 99.0, 8.0]]) if total is None else total
    half, stuck = total * 0.5, np.where(np.isnan(total), np.nan, 0.0)
    return Board((listed[0], listed[15]), policies, total, total * 0.1, half, half, total, total * 2.0, stuck)
