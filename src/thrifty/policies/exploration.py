"""Exploration by quota: every arm is sent a number of times before the rule's own choice begins."""

import math

import numpy as np

from thrifty.compiled import builder, kernel, rare, record, stay_apart


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


_Quota = record([("horizon", np.int64), ("pulls", np.float64)])


@builder
def start_quota():
    """The quota of `pulls_due`, as a record that it fills in."""
    return np.zeros(1, _Quota)


@kernel
def pulls_due(terms, quota):
    """How often every arm is to be explored: tau, or (T/K)^(2/3) rounded up where tau = 0 leaves it to the horizon.

    Where the horizon grows with the decisions, so does the quota: exploration keeps pace with t^(2/3), and no outcome is
    thrown away.
    """
    if terms.parameters.tau > 0.0:
        return terms.parameters.tau
    if quota[0].horizon != terms.horizon:
        _renew(quota, terms.horizon, terms.costs.size)
    return quota[0].pulls


@rare
def _renew(quota, horizon, n_arms):
    stay_apart()
    quota[0].horizon = horizon
    quota[0].pulls = math.ceil((horizon / n_arms) ** (2.0 / 3.0))
