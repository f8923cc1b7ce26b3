"""Laws as arrays, and the kernel that draws from them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import driver, kernel, rare, record, stay_apart
from thrifty.environments.laws import Bernoulli, Beta, ClippedGaussian, Law, Resampled
from thrifty.streams import below, beta, normal, uniform

_BERNOULLI, _BETA, _CLIPPED, _RESAMPLED = Bernoulli.kind, Beta.kind, ClippedGaussian.kind, Resampled.kind


LawRecord = record(
    [
        ("kind", np.int64),
        ("a", np.float64),
        ("b", np.float64),
        ("scale", np.float64),
        ("start", np.int64),  # values[start : start + count] are the data of a law that resamples
        ("count", np.int64),
    ]
)


class LawTable(NamedTuple):
    """The laws of all arms, one record per arm, and the data of those that resample."""

    laws: NDArray[np.void]
    values: NDArray[np.float64]


def tabulate(laws: Sequence[Law]) -> LawTable:
    """The arrays that `draw` reads."""
    counts = np.array([len(law.values) for law in laws], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    rows = [(law.kind, *law.shape, law.scale, start, count) for law, start, count in zip(laws, starts, counts, strict=True)]
    values = np.array([value for law in laws for value in law.values], dtype=np.float64)
    return LawTable(np.array(rows, dtype=LawRecord), values)


@driver  # not a kernel: it returns an array, and a kernel counts no references
def laws_of_piece(table, piece, n_arms):
    """The laws of the arms in one piece of a changing world, whose pieces were tabulated one after another."""
    return LawTable(table.laws[piece * n_arms : (piece + 1) * n_arms], table.values)


@kernel
def draw_reward(table, arm, stream):
    """One reward in [0, 1] from the law of `arm`."""
    law = table.laws[arm]
    if law.kind == _BERNOULLI:
        return 1.0 * (uniform(stream) < law.a)  # a product, not a branch: nobody can predict it
    return _draw_other(table, arm, stream)


@kernel
def draw_cost(table, arm, stream):
    """One cost from the law of `arm`: a draw in [0, 1] times its scale."""
    return table.laws[arm].scale * draw_reward(table, arm, stream)


@rare
def _draw_other(table, arm, stream):
    stay_apart()
    law = table.laws[arm]
    if law.kind == _BETA:
        return beta(stream, law.a, law.b)
    if law.kind == _CLIPPED:
        return min(max(law.a + law.b * normal(stream), 0.0), 1.0)
    if law.kind == _RESAMPLED:
        return table.values[law.start + below(stream, law.count)]
    return law.a
