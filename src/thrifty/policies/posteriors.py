"""Posteriors of an arm's mean reward, each as one draw from it. A user's own is a kernel with the same four arguments."""

import math

from thrifty.compiled import kernel
from thrifty.policies.contract import Number
from thrifty.statistics import mean_reward
from thrifty.streams import beta, normal


@kernel
def draw_beta(terms, stats, arm, stream):
    """Beta(a + S, b + n - S) after n outcomes that sum to S; rewards between 0 and 1 count as fractions of a success."""
    won = stats[arm].reward_sum
    a, b = terms.parameters.a + won, terms.parameters.b + max(stats[arm].seen - won, 0.0)
    weight = 1.0 + expected(terms, stats, arm) / (a + b)
    return beta(stream, weight * a, weight * b)


@kernel
def expected(terms, stats, arm):
    """How many outcomes a posterior counts as if they had come back, at the mean it has already.

    Decisions that are still pending will say something. A posterior that ignores them stays as wide as it was, and a rule that
    draws from it goes on exploring what it has just sent a whole burst to explore: see docs/changing-worlds.md.
    """
    return terms.parameters.pending * stats[arm].pending


PENDING = Number(1.0, "how much a decision without an outcome yet counts, as if it had come back at the mean", low=0.0, high=1.0)


@kernel
def draw_gaussian(terms, stats, arm, stream):
    """N(mean, 1/n) [Sinha2021] Theorem 1; N(1/2, 1) before the first outcome."""
    n = stats[arm].seen
    if n == 0:
        return 0.5 + normal(stream)
    return mean_reward(stats, arm) + normal(stream) / math.sqrt(n)


@kernel
def draw_shrunk(terms, stats, arm, stream):
    """N(S / (s_n^2/s_0^2 + n), 1 / (1/s_0^2 + n/s_n^2)): a N(0, s_0^2) prior under noise N(0, s_n^2) [Sinha2021] appendix."""
    prior, noise = terms.parameters.sigma_0**2, terms.parameters.sigma_n**2
    n = stats[arm].seen
    mean = stats[arm].reward_sum / (noise / prior + n)
    return mean + normal(stream) / math.sqrt(1.0 / prior + n / noise)
