"""Plans: an arm that a rule plays for several decisions, because an outcome more would hardly change its mind.

A plan is (2,): the arm, and for how many decisions more. A rule that plans keeps it in its memory as `plan`, and has the `observe`
and `propensity` of this module.
"""

import math

import numpy as np

from thrifty.compiled import builder, kernel
from thrifty.policies.contract import Number

PLAN = Number(0.02, "for which share of the outcomes of an arm a choice is kept", low=0.0, high=1.0)


@builder
def no_plan():
    """A plan that is used up.

    >>> no_plan().tolist()
    [0, 0]
    """
    return np.zeros(2, np.int64)


@kernel
def make_plan(terms, plan, arm, looks):
    """Play `arm` until its `looks` have grown by a share of `plan`, and at least once."""
    plan[0], plan[1] = arm, max(1, int(terms.parameters.plan * looks))


@kernel
def follow(plan):
    """The arm of a plan that is not used up."""
    plan[1] -= 1
    return plan[0]


@kernel
def observe(terms, stats, memory, outcome):
    """An outcome leaves the plan. A correction, or a change of the terms, ends it."""
    if math.isnan(outcome.propensity):
        memory.plan[1] = 0


@kernel
def propensity(terms, stats, memory, arm):
    """A rule that plans draws nothing."""
    return 1.0
