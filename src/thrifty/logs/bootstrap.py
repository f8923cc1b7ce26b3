"""Bootstrap over blocks of time, inside groups of neighbours.

Rows of one block are correlated, so blocks are drawn, not rows. A rate that drifts over the log is no sampling error, so blocks are
drawn within groups of four adjacent ones. A plain bootstrap of m blocks shows (m - 1)/m of the variance. Drawing m - 1 blocks, each
with the weight m/(m - 1), shows all of it [Rao1988].

References
----------
[Rao1988] Rao, Wu, "Resampling inference with complex survey data", JASA 83.

"""

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats

GROUP = 4
REPLICATES = 1000


def block_groups(n_blocks: int) -> list[NDArray[np.int64]]:
    """Adjacent blocks in groups of four; the last group takes what is left.

    >>> [group.size for group in block_groups(10)]
    [4, 6]
    """
    return [np.asarray(group) for group in np.split(np.arange(n_blocks), np.arange(GROUP, n_blocks - GROUP + 1, GROUP))]


def block_weights(n_blocks: int, replicates: int = REPLICATES, *, seed: int) -> Floats:
    """(1 + replicates, blocks) how often every block counts: once in the first row, resampled in the others.

    >>> weights = block_weights(8, 2, seed=1)
    >>> weights[0].tolist(), weights.sum(axis=1).round(9).tolist()
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [8.0, 8.0, 8.0])
    """
    rng = np.random.default_rng([seed, 1])
    weights = np.ones((1 + replicates, n_blocks))
    for group in block_groups(n_blocks):
        m = group.size
        if m > 1:
            weights[1:, group] = rng.multinomial(m - 1, np.full(m, 1.0 / m), size=replicates) * (m / (m - 1))
    return weights


def interval(replicates: Floats, n_blocks: int) -> tuple[Floats, Floats]:
    """The 95% interval: the estimate (row 0) and Student's t times the standard deviation of the replicates on both sides.

    Degrees of freedom are blocks less groups. Measured on example logs, percentiles of the replicates cover a point less.

    >>> low, high = interval(np.array([[2.0], [1.0], [3.0]]), 8)
    >>> round(float(high[0] - low[0]), 2)
    6.92
    """
    half = student(freedom(n_blocks)) * replicates[1:].std(axis=0, ddof=1)
    return replicates[0] - half, replicates[0] + half


def freedom(n_blocks: int) -> int:
    """Degrees of freedom of the bootstrap: blocks less groups.

    >>> freedom(10)
    8
    """
    return n_blocks - max(n_blocks // GROUP, 1)


def student(freedom: int) -> float:
    """The 97.5% quantile of Student's t, from that of the normal law by three terms of Cornish and Fisher; exact to 1% from 4 on.

    >>> round(student(10), 2), round(student(100), 3)
    (2.23, 1.984)
    """
    z, v = 1.959963985, max(freedom, 4)
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + terms[0] / v + terms[1] / v**2 + terms[2] / v**3
