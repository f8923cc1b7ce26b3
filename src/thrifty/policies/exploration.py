"""Exploration by quota: every arm is sent a number of times before the rule's own choice begins."""

import numpy as np

from thrifty.compiled import builder, kernel


@builder
def start_exploration():
    """The position in the round robin, as an array that `next_due` moves."""
    return np.zeros(1, np.int64)


@kernel
def next_due(stats, position, quota):
    """The next arm, in round-robin order, that was sent fewer than `quota` times; -1 when there is none.

    From empty statistics this is arm t mod K for the first K * quota decisions. It counts decisions sent, not outcomes seen,
    so late feedback does not make it send more.
    """
    n_arms = stats.size
    end = n_arms * int(quota)
    while position[0] < end:
        arm = position[0] % n_arms
        position[0] += 1
        if stats[arm].sent < quota:
            return arm
    return -1
