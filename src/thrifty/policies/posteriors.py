"""Posteriors of an arm's mean reward, each as one draw from it. A user's own is a kernel with the same four arguments."""

import math

from thrifty.compiled import kernel
from thrifty.policies.contract import Number
from thrifty.statistics import mean_reward
from thrifty.streams import beta, normal


@kernel
def draw_beta(terms, stats, arm, stream):
    """Beta(a + S, b + n - S) after n outcomes that sum to S; rewards between 0 and 1 count as fractions of a success."""
    return _draw_beta(terms, stats, arm, 1.0, stream)


@kernel
def draw_weighted(terms, stats, arm, stream):
    """`draw_beta`, where rewards of low variance count for more outcomes: see `evidence_weight`."""
    return _draw_beta(terms, stats, arm, evidence_weight(stats, arm), stream)


@kernel
def _draw_beta(terms, stats, arm, each, stream):
    """A draw from the Beta posterior in which each outcome counts for so many."""
    won = stats[arm].reward_sum
    a, b = terms.parameters.a + won, terms.parameters.b + max(stats[arm].seen - won, 0.0)
    weight = (1.0 + expected(terms, stats, arm) / (a + b)) * each
    return beta(stream, weight * a, weight * b)


@kernel
def evidence_weight(stats, arm):
    """How many successes or failures one outcome of an arm is worth: their variance over that of its rewards, at least 1.

    Rewards in [0, 1] with mean m have a variance of m (1 - m) if they are 0 or 1, and less otherwise: scores that are all about
    0.9 say more about their mean than nine successes in ten. Two outcomes of variance 1/4 are added to both sides, as to a uniform
    prior. For rewards of 0 and 1 it is exactly 1.

    >>> from thrifty.statistics import Outcome, add_to_sums, counted, no_statistics
    >>> stats = no_statistics(2)
    >>> for reward in (0.75, 0.25):
    ...     add_to_sums(stats, 0, counted(Outcome(0, reward, math.nan)), None)
    ...     add_to_sums(stats, 1, counted(Outcome(1, round(reward), math.nan)), None)
    >>> evidence_weight(stats, 0), evidence_weight(stats, 1)
    (1.6, 1.0)
    """
    if stats[arm].seen <= 0.0:
        return 1.0
    won = stats[arm].reward_sum
    squared = won * (won / stats[arm].seen)
    most, found = max(won - squared, 0.0), max(stats[arm].reward_squares - squared, 0.0)
    return max((most + 0.5) / (found + 0.5), 1.0)


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
