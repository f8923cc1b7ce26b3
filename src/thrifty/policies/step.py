"""The step of every driver: make a decision, and take its outcome.

A driver keeps a `RuleState`, calls `decide`, brings about the outcome in its own manner (draws it, waits for it, finds it in a
log), and then calls `take_outcome`. A recollection is what forgetting keeps beside the statistics; None if nothing is forgotten.
It is an argument of its own: numba then drops, before it compiles, what only a policy that forgets needs.
"""

from typing import Any, NamedTuple

import numpy as np

from thrifty.compiled import driver, index, inlined, kernel, rare, stay_apart
from thrifty.forgetting import EVERYTHING, NOTHING_ELSE, RESTART
from thrifty.policies.contract import RuleTerms, refresh, refresh_all
from thrifty.statistics import no_statistics

REFUSED = np.uint64(0)
"""The last two words of a stream that tells of a wrong arm. A stream that is in use has them once in 2^128 rounds."""


class RuleKernels(NamedTuple):
    """The compiled functions of a policy: those of its rule, of its forgetting, and its parameters. Constants of a driver."""

    init: Any
    choose: Any
    observe: Any
    propensity: Any
    begin: Any
    take_in: Any
    probe: Any
    parts: Any  # the parameters that are compiled functions, as a named tuple
    Parameters: Any  # the class of the parameters that are numbers, a named tuple


class GivenTerms(NamedTuple):
    """The terms as arrays and numbers, from which a driver makes the `RuleTerms`."""

    numbers: Any  # the policy's parameters, a tuple of floats in the order of `RuleKernels.Parameters`
    costs: Any  # (K,) NaN if unknown; (pieces, K) in a world that changes
    by_cost: Any  # arms from cheapest to dearest, of the same shape
    alpha: float
    horizon: int  # 0 if unknown


class RuleState(NamedTuple):
    """What a rule reads and changes."""

    stats: Any
    memory: Any


@inlined
def rule_terms(rule, given):
    """The terms of a rule whose costs and horizon do not change."""
    return RuleTerms(given.costs, given.by_cost, given.alpha, given.horizon, rule.Parameters(*given.numbers), rule.parts)


@inlined
def start_memory(rule, terms):
    """The memory of a rule before its first decision.

    An `init` is not inlined, so it does not get the parts: their addresses would keep numba from caching the kernel.
    """
    return rule.init(RuleTerms(terms.costs, terms.by_cost, terms.alpha, terms.horizon, terms.parameters, ()))


@inlined
def start_state(rule, terms):
    """The state of a rule before its first decision."""
    return RuleState(no_statistics(terms.costs.size), start_memory(rule, terms))


@driver
def start_rule(rule, given):
    """`start_state`, for a caller in Python that keeps the state."""
    return start_state(rule, rule_terms(rule, given))


class ArmOutOfRangeError(ValueError):
    """A rule chose an arm that is not there. `thrifty.policies.binding.explaining_faults` says which, and whose rule it is."""


@inlined
def decide(rule, terms, state, recollection, stream, t):
    """Take the arm that is due for a probe, else ask the rule, and count the decision.

    Returns the arm and the probability with which it was chosen: NaN for a probe, and for a rule that does not know it.
    An `ArmOutOfRangeError` if the rule chooses an arm that is not there in round `t`.
    """
    arm, propensity = rule.probe(state.stats, recollection, t), np.nan
    if arm < 0:
        arm = rule.choose(terms, state.stats, state.memory, stream)
        if np.uint64(np.int64(arm)) >= np.uint64(state.stats.size):  # a negative one is very large here
            refuse_arm(stream, arm, t)
        propensity = rule.propensity(terms, state.stats, state.memory, arm)
    arm = index(arm)
    state.stats[arm].sent += 1
    return arm, propensity


@rare
def refuse_arm(stream, arm, t):
    """Raise an error. Compiled code can only raise a fixed text, so the stream, now of no use, tells the arm and the round."""
    stay_apart()
    stream[0], stream[1], stream[2], stream[3] = np.int64(arm), np.int64(t), REFUSED, REFUSED
    raise ArmOutOfRangeError("the policy chose an arm that is not there")


@inlined
def take_outcome(rule, terms, state, recollection, outcome, change, costs):
    """Add an outcome or the correction of one to the statistics, and let the rule observe it.

    `change` is what it adds to the sums: `counted(outcome)`, or the differences. `costs` is None if costs are known.
    Returns True if the rule should begin again from what the statistics hold now.
    """
    changed = rule.take_in(state.stats, recollection, outcome.arm, change, costs)
    rule.observe(terms, state.stats, state.memory, outcome)
    again = False
    if recollection is not None and changed != NOTHING_ELSE:
        again = refresh_changed(rule.observe, terms, state, changed)
    return again


@kernel
def refresh_changed(observe, terms, state, changed):
    """Refresh the arms of which outcomes were forgotten, as `take_in` names them. True if the rule should begin again."""
    if changed >= 0:
        refresh(observe, terms, state.stats, state.memory, index(changed))
    elif changed == EVERYTHING:
        refresh_all(observe, terms, state.stats, state.memory)
    return changed == RESTART
