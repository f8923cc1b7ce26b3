"""Laws as arrays, and the kernel that draws from them."""

import itertools
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
        ("failure", np.int64),  # of a cost: one more than the place of the law after a failure; 0 if the reward does not matter
    ]
)


class LawTable(NamedTuple):
    """The laws of all arms, one record per arm, and the data of those that resample.

    Of a law that depends on the outcome the record is the law after a success; `failures` holds the laws after a failure.
    """

    laws: NDArray[np.void]
    values: NDArray[np.float64]
    failures: NDArray[np.void]


def tabulate(laws: Sequence[Law]) -> LawTable:
    """The arrays that `draw` reads."""
    dependent = [law for law in laws if law.depends_on_outcome]
    every = [*(law.on_success for law in laws), *(law.on_failure for law in dependent)]
    counts = np.array([len(law.values) for law in every], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    numbers = itertools.count(1)
    failures = [next(numbers) if law.depends_on_outcome else 0 for law in laws] + [0] * len(dependent)
    rows = [
        (law.kind, *law.shape, law.scale, start, count, failure)
        for law, start, count, failure in zip(every, starts, counts, failures, strict=True)
    ]
    values = np.array([value for law in every for value in law.values], dtype=np.float64)
    table = np.array(rows, dtype=LawRecord)
    return LawTable(table[: len(laws)], values, table[len(laws) :])


@driver  # not a kernel: it returns an array, and a kernel counts no references
def laws_of_piece(table, piece, n_arms):
    """The laws of the arms in one piece of a changing world, whose pieces were tabulated one after another."""
    return LawTable(table.laws[piece * n_arms : (piece + 1) * n_arms], table.values, table.failures)


@kernel
def draw_reward(table, arm, stream):
    """One reward in [0, 1] from the law of `arm`."""
    return _draw(table.laws, table.values, arm, stream)


@kernel
def draw_cost(table, arm, reward, stream):
    """One cost from the law of `arm`, after this reward: a draw in [0, 1] times its scale.

    Where a cost depends on the outcome, a reward between 0 and 1 is a success with that probability.
    """
    failure = table.laws[arm].failure
    if failure > 0 and (reward <= 0.0 or (reward < 1.0 and uniform(stream) >= reward)):
        return table.failures[failure - 1].scale * _draw(table.failures, table.values, failure - 1, stream)
    return table.laws[arm].scale * _draw(table.laws, table.values, arm, stream)


@kernel
def _draw(laws, values, row, stream):
    law = laws[row]
    if law.kind == _BERNOULLI:
        return 1.0 * (uniform(stream) < law.a)  # a product, not a branch: nobody can predict it
    return _draw_other(laws, values, row, stream)


@rare
def _draw_other(laws, values, row, stream):
    stay_apart()
    law = laws[row]
    if law.kind == _BETA:
        return beta(stream, law.a, law.b)
    if law.kind == _CLIPPED:
        return min(max(law.a + law.b * normal(stream), 0.0), 1.0)
    if law.kind == _RESAMPLED:
        return values[law.start + below(stream, law.count)]
    return law.a
