"""When a simulation counts pulls."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from thrifty.problem import checked_count

_USUAL = 100
_LARGEST_COUNTS = 50_000_000  # numbers kept per policy before the default gets coarser


def checked_checkpoints(checkpoints: int | Sequence[int] | str, horizon: int, counts_each: int) -> NDArray[np.int64]:
    """The rounds after which pulls are counted, increasing, the last of them the horizon.

    Parameters
    ----------
    checkpoints : "linear" or "log" for a hundred or so, a number of linear ones, or the rounds themselves
    horizon : T
    counts_each : how many numbers one checkpoint keeps; the default takes fewer checkpoints where that would fill the memory

    >>> checked_checkpoints(4, 100, 2).tolist()
    [25, 50, 75, 100]
    >>> checked_checkpoints("log", 1000, 2)[[0, -1]].tolist()
    [1, 1000]

    """
    usual = max(2, min(_USUAL, _LARGEST_COUNTS // counts_each))
    if isinstance(checkpoints, str):
        if checkpoints == "linear":
            return _spaced(np.linspace(horizon / usual, horizon, usual))
        if checkpoints == "log":
            return _spaced(np.geomspace(1, horizon, usual))
        raise ValueError(f"checkpoints must be linear, log, a number, or a list of rounds; got {checkpoints!r}")
    if isinstance(checkpoints, (int, np.integer)):
        count = checked_count("checkpoints", checkpoints)
        return _spaced(np.linspace(horizon / count, horizon, count))
    if not isinstance(checkpoints, (list, tuple, np.ndarray)):
        raise ValueError(f"checkpoints must be linear, log, a number, or a list of rounds; got {checkpoints!r:.80}")
    rounds = np.unique([checked_count("a checkpoint", checkpoint) for checkpoint in checkpoints]).astype(np.int64)
    if rounds.size == 0 or rounds[-1] > horizon:
        last = "none" if rounds.size == 0 else rounds[-1]
        raise ValueError(f"checkpoints must be rounds from 1 to the horizon {horizon}, got {last}")
    return np.union1d(rounds, [horizon])


def _spaced(positions: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.unique(np.maximum(np.rint(positions), 1).astype(np.int64))
