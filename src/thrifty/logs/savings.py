"""Savings: the share of a cost that another cost saves, in numbers and in words. The one rule for all questions."""

import math

import numpy as np

from thrifty.arrays import Floats


def share_saved(cost: Floats | float, reference: Floats | float) -> Floats:
    """The share of a reference cost that a cost saves; NaN where the reference is free.

    >>> share_saved(np.array([0.5, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.75, nan]
    """
    known = np.asarray(reference, dtype=float)
    return 1.0 - np.asarray(cost) / np.where(known > 0.0, known, np.nan)


def saving_in_words(saving: float | None, whose: str) -> str:
    """A share of a cost in words.

    >>> saving_in_words(0.2, "today's cost"), saving_in_words(-0.494, "today's cost")
    ("saves 20.0% of today's cost", "costs 49.4% more than today's cost")
    >>> saving_in_words(float("nan"), "today's cost")
    'has no cost to save'
    """
    if saving is None or math.isnan(saving):
        return "has no cost to save"
    if round(saving, 3) >= 0.0:
        return f"saves {abs(saving):.1%} of {whose}"
    return f"costs {-saving:.1%} more than {whose}"
