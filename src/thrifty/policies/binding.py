"""Binding: a driver compiled for one rule. The simulator, the router and the replayer are drivers."""

from collections import namedtuple
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from thrifty.compiled import bind
from thrifty.policies.contract import Policy
from thrifty.problem import Terms

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def bind_rule(
    drive: Callable[..., Any], chosen: Policy, terms: Terms, numbers: dict[str, float], more: Mapping[str, Any] = _NOTHING
) -> Callable[..., Any]:
    """`drive` for the rule of this policy under these terms.

    Parameters
    ----------
    drive : a driver whose first arguments are init, choose, observe, parts, Parameters and then those of `more`
    chosen : the policy
    terms : they say whether costs are known
    numbers : the settled parameters, by name
    more : further constants of the driver, by name

    """
    rule, parts = chosen.rule_under(terms), chosen.parts()
    constants = {
        "init": rule.init,
        "choose": rule.choose,
        "observe": rule.observe,
        "parts": namedtuple("Parts", parts)(**parts),
        "Parameters": namedtuple("Parameters", numbers),
        **more,
    }
    return bind(drive, constants, name=chosen.name, outside_sources=chosen.sources)
