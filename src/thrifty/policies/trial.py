"""A user's rule is tried in plain Python before it is compiled: compiled code checks nothing, and says nothing when it is wrong.

A trial plays some rounds of a small made-up world. It finds arms that are not there, exceptions, calls that do not return, indices
out of range, functions that are not compiled, and random numbers that the seed does not reach. Rules of the package are not tried.
"""

import sys
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from itertools import chain
from types import CodeType, CoroutineType, FrameType, GeneratorType, TracebackType
from typing import Any, Self

import numpy as np

from thrifty.compiled import interpreted
from thrifty.fingerprint import fingerprint
from thrifty.policies.contract import Policy, Rule, RuleTerms
from thrifty.policies.inspection import Fault, is_users, look_at_functions
from thrifty.policies.refusals import is_users_file, place_of
from thrifty.problem import Terms
from thrifty.statistics import ArmStatistics, Outcome
from thrifty.streams import make_streams

_ROUNDS = 300
_LIMIT_S = 5.0
"""How long one call of a rule may take."""

_LINES_BETWEEN_LOOKS = 2000
_MOST_ARMS, _FEW_ARMS, _LONGEST = 100, 3, 10_000
_BUDGET_S = 0.5
_tried: set[tuple[str, int, bool]] = set()


class EndlessCallError(Exception):
    """A call of a rule took too long."""


def check_users_rule(chosen: Policy, kernels: Any, terms: Terms, numbers: dict[str, float]) -> None:
    """A ValueError of one line if a user's rule cannot be played. Each rule is tried once in a process; the package's never."""
    if not is_users(chosen):
        return
    key = fingerprint(kernels), terms.n_arms, terms.costs is not None
    if key in _tried:
        return
    rule = chosen.rule_under(terms)
    for fault in chain(look_at_functions(rule, kernels.parts), try_under(rule, kernels.parts, terms, numbers, 0, _BUDGET_S)):
        if fault.grave:
            raise ValueError(f"{chosen.name}: {fault.text}")
    _tried.add(key)


def try_under(rule: Rule, parts: Any, terms: Terms, numbers: dict[str, float], delay: int, budget_s: float) -> Iterator[Fault]:
    """`try_rule` under these terms, or smaller ones: it is interpreted.

    A call that does not return with many arms may only have much to do, so it is tried with few.
    """
    found = list(_try_with(min(terms.n_arms, _MOST_ARMS), rule, parts, terms, numbers, delay, budget_s))
    if found and found[0].slow and terms.n_arms > _FEW_ARMS:
        found = list(_try_with(_FEW_ARMS, rule, parts, terms, numbers, delay, budget_s))
    yield from found


def _try_with(
    n_arms: int, rule: Rule, parts: Any, terms: Terms, numbers: dict[str, float], delay: int, budget_s: float
) -> Iterator[Fault]:
    costs = np.full(n_arms, np.nan) if terms.costs is None else np.array(terms.costs[:n_arms], dtype=np.float64)
    horizon = min(terms.horizon or _LONGEST, _LONGEST)
    parameters = namedtuple("Parameters", numbers)(**numbers)
    known = RuleTerms(costs, np.argsort(costs, kind="stable"), terms.alpha, horizon, parameters, ())
    yield from try_rule(rule, parts, known, delay=delay, budget_s=budget_s)


class _Watch:
    """Traces a user's lines: ends a call that does not return, and remembers where a function returned last."""

    def __init__(self) -> None:
        self.deadline, self.returned = float("inf"), dict[CodeType, int]()
        self._lines, self._before = 0, sys.gettrace()

    def __enter__(self) -> Self:
        sys.settrace(self._enter_frame)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        sys.settrace(self._before)

    def _enter_frame(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._look if is_users_file(frame.f_code.co_filename) else None

    def _look(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "return":
            self.returned[frame.f_code] = frame.f_lineno
        self._lines += 1
        if self._lines % _LINES_BETWEEN_LOOKS == 0 and time.monotonic() > self.deadline:
            raise EndlessCallError
        return self._look


def try_rule(rule: Rule, parts: Any, terms: RuleTerms, *, delay: int, budget_s: float) -> Iterator[Fault]:
    """Play some rounds in plain Python; the first fault that they show, if any.

    Parameters
    ----------
    rule, parts : the compiled functions
    terms : what the rule knows; `parts` is empty
    delay : rounds until an outcome comes back
    budget_s : when to stop trying, if nothing was found

    """
    watch, name, rounds = _Watch(), "init", 0
    functions = {each: interpreted(getattr(rule, each)) for each in ("init", "choose", "propensity", "observe")}
    full = terms._replace(parts=interpreted(parts))

    def call(each: str, *arguments: Any) -> Any:
        nonlocal name, rounds
        rounds += each == "choose"
        name, watch.deadline = each, time.monotonic() + _LIMIT_S
        return functions[each](*arguments)

    try:
        with watch, np.errstate(all="ignore"):
            for wrong in _play(call, terms, full, delay, time.monotonic() + budget_s):
                if wrong is not None:
                    code = rule.choose.py_func.__code__  # type: ignore[attr-defined]
                    yield Fault(f"{place_of(code, watch.returned.get(code))}: {wrong}")
                    return
    except Exception as error:
        code = getattr(rule, name).py_func.__code__
        yield _fault_of(error, f"{name} in round {rounds}" if rounds else name, code)


def _play(call: Callable[..., Any], terms: RuleTerms, full: RuleTerms, delay: int, until: float) -> Iterator[str | None]:
    """Rounds with rewards that alternate; yields for each what is wrong with its arm, None if nothing is."""
    n_arms = terms.costs.size
    stats, stream = np.zeros(n_arms, ArmStatistics), make_streams(1, np.array([[0]]))[0]
    memory, late = call("init", terms), list[Outcome]()
    _check_memory(memory)
    for t in range(_ROUNDS):
        arm = call("choose", full, stats, memory, stream)
        wrong = _wrong(arm, n_arms, t)
        yield wrong
        if wrong is not None or time.monotonic() > until:
            return
        chance = call("propensity", full, stats, memory, arm)
        stats[arm].sent += 1
        stats[arm].pending += 1
        cost = np.nan if not np.isnan(terms.costs).any() else 0.1 + 0.1 * int(arm)
        late.append(Outcome(int(arm), float((t + int(arm)) % 3 > 0), cost, chance))
        if len(late) > delay:
            outcome = late.pop(0)
            known = stats[outcome.arm]
            known.pending -= 1
            known.seen += 1.0
            known.reward_sum += outcome.reward
            known.reward_squares += outcome.reward**2
            known.cost_sum += 0.0 if np.isnan(outcome.cost) else outcome.cost
            known.cost_squares += 0.0 if np.isnan(outcome.cost) else outcome.cost**2
            call("observe", full, stats, memory, outcome)


def _check_memory(memory: Any) -> None:
    if isinstance(memory, tuple):
        for part in memory:
            _check_memory(part)
    elif memory is not None and not isinstance(memory, (np.ndarray, np.generic, int, float)):
        raise TypeError(f"the memory holds a {type(memory).__name__}: keep arrays, numbers and (named) tuples of them")


def _wrong(arm: Any, n_arms: int, t: int) -> str | None:
    if isinstance(arm, (GeneratorType, CoroutineType)):
        arm.close()
        return "choose yields or awaits: return the number of an arm"
    if not isinstance(arm, (int, np.integer, np.bool_)):
        return f"choose returned {arm!r:.60} in round {t + 1}, which is no whole number: return the number of an arm"
    if not 0 <= arm < n_arms:
        return f"choose returned arm {int(arm)} in round {t + 1}, and the number of arms is {n_arms}: return 0 to {n_arms - 1}"
    return None


def _fault_of(error: Exception, where: str, code: CodeType) -> Fault:
    line, trace = place_of(code), error.__traceback__
    while trace is not None:
        if is_users_file(trace.tb_frame.f_code.co_filename):
            line = place_of(trace.tb_frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, EndlessCallError):
        return Fault(f"{line}: {where} did not return within {_LIMIT_S:g} seconds: let the loop end", slow=True)
    only_plain = isinstance(error, (ArithmeticError, NotImplementedError)) or "math domain error" in str(error)
    message = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    remark = _remark(error, only_plain, where)
    return Fault(f"{line}: {where} raises {message}{remark}", grave=not only_plain)


_ARGUMENTS = {
    "init": "(terms)",
    "choose": "(terms, stats, memory, stream)",
    "observe": "(terms, stats, memory, outcome)",
    "propensity": "(terms, stats, memory, arm)",
}


def _remark(error: Exception, only_plain: bool, where: str) -> str:
    """What else to say about an exception."""
    if only_plain:
        return " (a router, which interprets it at first, would stop; compiled code goes on with inf or NaN)"
    if isinstance(error, IndexError):
        return " (compiled code would read or write past the end of the array)"
    if isinstance(error, AttributeError):
        return ": docs/how-to/own-policy.md has all that a rule sees"
    name = where.split()[0]
    if isinstance(error, TypeError) and f"{name}()" in str(error) and "positional argument" in str(error):
        return f": {name} takes {_ARGUMENTS[name]}"
    return ""
