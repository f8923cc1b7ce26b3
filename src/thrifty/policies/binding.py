"""Binding: a driver compiled for one policy. The simulator, rejection replay and the reduction are drivers."""

from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import bind
from thrifty.policies.contract import Policy
from thrifty.policies.inspection import is_users, users_functions_of
from thrifty.policies.refusals import explain_refusal, shows_trace
from thrifty.policies.step import REFUSED, ArmOutOfRangeError, GivenTerms, RuleKernels
from thrifty.policies.trial import check_users_rule
from thrifty.problem import Terms


def bind_rule(drive: Callable[..., Any], chosen: Policy, terms: Terms, numbers: dict[str, float]) -> Callable[..., Any]:
    """`drive` for the rule of this policy under these terms. A user's rule is tried in plain Python first.

    Parameters
    ----------
    drive : a driver whose first argument is a `RuleKernels`
    chosen : the policy
    terms : they say whether costs are known
    numbers : the settled parameters, by name

    """
    kernels = rule_kernels(chosen, terms, numbers)
    check_users_rule(chosen, kernels, terms, numbers)
    return bind(drive, {"rule": kernels}, name=chosen.name)


def rule_kernels(chosen: Policy, terms: Terms, numbers: dict[str, float]) -> RuleKernels:
    """The compiled functions of a policy under these terms, as a driver takes them."""
    rule, parts, forgetting = chosen.rule_under(terms), chosen.parts(), chosen.forgetting
    return RuleKernels(
        init=rule.init,
        choose=rule.choose,
        observe=rule.observe,
        propensity=rule.propensity,
        begin=forgetting.begin,
        take_in=forgetting.take_in,
        probe=forgetting.probe,
        parts=namedtuple("Parts", parts)(**parts),
        Parameters=namedtuple("Parameters", numbers),
    )


def given_terms(terms: Terms, numbers: dict[str, float]) -> GivenTerms:
    """The terms and the settled parameters as a driver takes them.

    >>> given_terms(Terms(n_arms=2, costs=None, alpha=0.1, horizon=None), {"tau": 5.0}).by_cost.tolist()
    [0, 1]
    """
    costs = terms.costs if terms.costs is not None else np.full(terms.n_arms, np.nan)
    return GivenTerms(tuple(numbers.values()), costs, np.argsort(costs, kind="stable"), terms.alpha, terms.horizon or 0)


@contextmanager
def explaining_faults(chosen: Policy, n_arms: int, streams: NDArray[np.uint64]) -> Iterator[None]:
    """Around the call of a driver: what goes wrong in a rule is a ValueError of one line.

    An arm that is not there: the line names policy, arm, number of arms and round. What the compiler refuses in a user's rule: the
    line names file, line and remedy.

    Parameters
    ----------
    chosen : the policy that is played
    n_arms : how many arms there are
    streams : (runs, 4) the policy's random streams, as they were given to the driver

    """
    try:
        # The streams wrap around by design; compiled code does not warn, plain Python would.
        with explaining_refusals(chosen), np.errstate(over="ignore"):
            yield
    except ArmOutOfRangeError:
        marked = streams[(streams[:, 2:] == REFUSED).all(axis=1)].view(np.int64)
        arm, t = (int(number) for number in marked[0, :2])
        raise ValueError(
            f"{chosen.label} chose arm {arm} in round {t + 1}, and there are {n_arms} arms: "
            f"choose must return a whole number from 0 to {n_arms - 1}"
        ) from None


@contextmanager
def explaining_refusals(chosen: Policy) -> Iterator[None]:
    """Around a call that may compile a rule: what the compiler refuses in a user's rule is a ValueError of one line."""
    try:
        yield
    except ArmOutOfRangeError:
        raise
    except Exception as error:
        if not is_users(chosen):
            raise
        line = f"{chosen.name}: {explain_refusal(error, users_functions_of(chosen))}"
        raise ValueError(line) from (error if shows_trace() else None)
