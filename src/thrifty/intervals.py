"""Confidence bounds on the mean of rewards in [0, 1]."""

import math

from thrifty.compiled import kernel


@kernel
def paper_level(horizon):
    """2 ln T: what the paper's radius divides by the number of outcomes. Constant over a run."""
    return 2.0 * math.log(horizon)


@kernel
def radius(level, seen):
    """sqrt(level / n); with `paper_level`, the paper's beta_i(t) = sqrt(2 ln T / T_i(t)) [Sinha2021] Alg. 1-3."""
    return math.sqrt(level / seen)


@kernel
def clipped_above(mean, width):
    """The upper bound min(mean + width, 1)."""
    bound = mean + width
    return bound if bound < 1.0 else 1.0


@kernel
def clipped_below(mean, width):
    """The lower bound max(mean - width, 0)."""
    bound = mean - width
    return bound if bound > 0.0 else 0.0
