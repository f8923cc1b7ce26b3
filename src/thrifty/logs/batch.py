"""A batch: rows of a log that count, as arrays."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, eq=False)
class LogBatch:
    """Rows that count, as arrays of the same length.

    Arms and segments are codes, see `Names`. Times are seconds, or row numbers in a log without times. Propensities are NaN where
    none are logged, delays NaN where they are unknown. `answered` is False where the outcome is missing and was assumed. `rows` are
    row numbers in the log, from 0; rows that are left out have numbers too. `context` has the other columns that were asked for.
    """

    arms: NDArray[np.int32]
    segments: NDArray[np.int32]
    rewards: NDArray[np.float64]
    costs: NDArray[np.float64]
    times: NDArray[np.float64]
    propensities: NDArray[np.float64]
    delays_s: NDArray[np.float64]
    answered: NDArray[np.bool_]
    rows: NDArray[np.float64]
    context: "polars.DataFrame | None" = None
