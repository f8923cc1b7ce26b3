"""Faults of a user's rule that show without playing it."""

import builtins
import dis
import random
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np

from thrifty.fingerprint import referred_names
from thrifty.policies.contract import Policy, Rule
from thrifty.policies.refusals import is_users_file, place_of


class Fault(NamedTuple):
    """What is wrong with a rule. A fault that is not grave shows only where the rule is interpreted, as in a router at first.

    `slow`: a call did not return in time.
    """

    text: str
    grave: bool = True
    slow: bool = False


def is_users(chosen: Policy) -> bool:
    """Whether any function of the policy was written by a user."""
    plain = (getattr(function, "py_func", function) for function in _functions_of(chosen))
    return any(is_users_file(function.__code__.co_filename) for function in plain)


def users_functions_of(chosen: Policy) -> list[FunctionType]:
    """Every compiled function of a user that a policy has or calls, as plain Python; its choose first, if it is one."""
    found = list(users_functions(_functions_of(chosen)))
    choose = getattr(chosen.rule.choose, "py_func", chosen.rule.choose)
    return sorted(found, key=lambda function: function is not choose)


def _functions_of(chosen: Policy) -> list[Any]:
    rules = [rule for rule in (chosen.rule, chosen.rule_for_unknown_costs) if rule is not None]
    return [*(each for rule in rules for each in (rule.init, rule.choose, rule.observe, rule.propensity)), *chosen.parts().values()]


def look_at_functions(rule: Rule, parts: Any) -> Iterator[Fault]:
    """Functions that are not compiled, random numbers that the seed does not reach, and prints."""
    named = [("init", rule.init), ("choose", rule.choose), ("observe", rule.observe), ("propensity", rule.propensity)]
    named += list(parts._asdict().items())
    for name, function in named:
        if isinstance(function, FunctionType) and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            decorator = "@builder" if name == "init" else "@kernel"
            yield Fault(f"{place_of(function.__code__)}: {name} is not compiled: put {decorator} above it")
    for function in users_functions([function for _, function in named]):
        yield from _foreign_calls(function, function.__code__)


def users_functions(roots: list[Any]) -> Iterator[FunctionType]:
    """Every compiled function of a user that these functions are or call, as plain Python."""
    met: set[int] = set()
    while roots:
        value = roots.pop()
        function = getattr(value, "py_func", None)
        if function is None or id(function) in met or not is_users_file(function.__code__.co_filename):
            continue
        met.add(id(function))
        yield function
        names = list(referred_names(function.__code__))
        known = [function.__globals__[name] for name in names if name in function.__globals__]
        modules = [value for value in known if isinstance(value, ModuleType)]
        roots += [*known, *(getattr(module, name) for module in modules for name in names if hasattr(module, name))]
        roots += [cell.cell_contents for cell in function.__closure__ or ()]


def _foreign_calls(function: FunctionType, code: CodeType) -> Iterator[Fault]:
    before: Any = None
    for step in dis.get_instructions(code):
        value = _global(function, step.argval) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
        if before is np and step.argval == "random" and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            value = np.random
        line = step.positions.lineno if step.positions else None
        if _draws(value):
            yield Fault(
                f"{place_of(code, line)}: draws random numbers that the seed does not reach: draw from stream, "
                "with uniform, below, normal or beta of thrifty.streams"
            )
        if value is print and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            yield Fault(f"{place_of(code, line)}: prints in every round: leave it out; with NUMBA_DISABLE_JIT=1 it may stay")
        before = value if step.opname != "PRECALL" else before
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _foreign_calls(function, constant)


def _global(function: FunctionType, name: str) -> Any:
    return function.__globals__.get(name, getattr(builtins, name, None))


def _draws(value: Any) -> bool:
    """Whether a value is a source of random numbers, or a function of one."""
    sources = (np.random.RandomState, np.random.Generator, random.Random)
    return (
        value is np.random or value is random or isinstance(value, sources) or isinstance(getattr(value, "__self__", None), sources)
    )
