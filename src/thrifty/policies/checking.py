"""Whether a policy of a user can be played: it is tried in plain Python, and then compiled."""

from collections import namedtuple
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from thrifty.compiled import driver, kernel
from thrifty.interruption import run_interruptibly
from thrifty.policies.binding import bind_rule, explaining_faults, given_terms
from thrifty.policies.contract import Policy, Rule
from thrifty.policies.inspection import Fault, look_at_functions
from thrifty.policies.refusals import shows_trace
from thrifty.policies.registry import policy
from thrifty.policies.step import decide, rule_terms, start_state, take_outcome
from thrifty.policies.trial import try_under
from thrifty.problem import Instance, Terms
from thrifty.statistics import Outcome, counted
from thrifty.streams import make_streams

_BUDGET_S = 3.0


def check_policy(spec: str | Policy) -> list[str]:
    """Every fault that a trial in plain Python, and then the compiler, find in a policy; one line each.

    >>> check_policy("cs-etc:tau=5")
    []
    """
    try:
        chosen = policy(spec)
        faults = list(dict.fromkeys(fault.text for fault in _faults(chosen)))
        return faults or list(_refusals(chosen))
    except ValueError as error:
        if shows_trace():
            raise
        return [str(error)]


_WORLDS = (
    (Instance([0.5, 0.46], [1.0, 0.0], 0.1), 0),
    (Instance([0.3, 0.6, 0.1, 0.6, 0.5], [0.5, 0.5, 0.0, 1.0, 0.2], 0.2), 7),
    (Instance([0.5], [1.0], 0.0), 0),
)
"""Worlds to try a policy in, and after how many rounds outcomes come back."""


def _rules_of(chosen: Policy, world: Instance) -> Iterator[tuple[Rule, Terms, dict[str, float]]]:
    """The rule for known and, where there is one, for unknown costs."""
    for costs in (world.costs, None):
        if costs is not None or chosen.rule_for_unknown_costs is not None:
            terms = Terms(n_arms=world.n_arms, costs=costs, alpha=world.alpha, horizon=1000)
            truth = {name: float(getattr(world, name)) for name in chosen.known_truths}
            yield chosen.rule_under(terms), terms, chosen.numbers(terms, truth)


def _faults(chosen: Policy) -> list[Fault]:
    """The faults that show in the first world that shows any."""
    parts = _parts(chosen)
    for world, delay in _WORLDS:
        found: list[Fault] = []
        for rule, terms, numbers in _rules_of(chosen, world):
            found += list(look_at_functions(rule, parts)) or try_under(rule, parts, terms, numbers, delay, _BUDGET_S)
        if found:
            return found
    return []


def _parts(chosen: Policy) -> Any:
    parts = chosen.parts()
    return namedtuple("Parts", parts)(**parts)


def _refusals(chosen: Policy) -> Iterator[str]:
    for _, terms, numbers in _rules_of(chosen, _WORLDS[0][0]):
        streams, given = make_streams(1, np.array([[0]])), given_terms(terms, numbers)
        try:
            play = partial(bind_rule(play_few, chosen, terms, numbers), given, streams[0], 100)
            with explaining_faults(chosen, terms.n_arms, streams):
                run_interruptibly(play)
        except ValueError as error:
            if shows_trace():
                raise
            yield str(error).removeprefix(f"{chosen.name}: ")


@driver
def play_few(rule, given, stream, rounds):
    """Some rounds of a rule whose rewards are all 1."""
    terms = rule_terms(rule, given)
    play_some(rule, terms, start_state(rule, terms), stream, rounds)


@kernel
def play_some(rule, terms, state, stream, rounds):
    """See `play_few`; a kernel, in which a rule must not allocate."""
    for t in range(rounds):
        arm, propensity = decide(rule, terms, state, None, stream, t)
        outcome = Outcome(arm, 1.0, 0.5, propensity)
        take_outcome(rule, terms, state, None, outcome, counted(outcome), terms.costs)
