"""The contract of a rule: three compiled functions over what the decider knows and has seen.

    init(terms) -> memory                            once, before the first decision; may allocate; `terms.parts` is empty
    choose(terms, stats, memory, stream) -> arm      any number of times between two outcomes
    observe(terms, stats, memory, outcome) -> None   after `outcome` was added to `stats`

A rule never sees the truth, a clock, a file or a socket. A driver counts decisions and outcomes in `stats`: see
`thrifty.policies.step`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from thrifty.arrays import Floats, Integers
from thrifty.compiled import builder, kernel
from thrifty.forgetting import KEEP_ALL, Forgetting, forgetting
from thrifty.policies.files import load_from_file, sources_of
from thrifty.problem import Terms
from thrifty.statistics import Outcome
from thrifty.suggestions import did_you_mean


class RuleTerms(NamedTuple):
    """What a rule knows before the first decision, as its compiled functions read it.

    `costs` (NaN where unknown), `by_cost` (arms from cheapest to dearest, equal costs in index order), `alpha`, `horizon` (the
    decisions to reckon with: T, or `next_horizon` of those so far where T is unknown, so that it may grow between two calls),
    the policy's own `parameters` (numbers) and `parts` (compiled functions), both by name.
    """

    costs: Floats
    by_cost: Integers
    alpha: float
    horizon: int
    parameters: Any
    parts: Any


@kernel
def next_horizon(decisions, n_arms):
    """The horizon to reckon with after `decisions` of them, where nobody knows the true one: an eighth more, and K at least.

    A driver raises `terms.horizon` to this whenever the decisions have reached it, and then calls `refresh`. Steps this small
    keep every bound and quota within a few per cent of what the decisions so far would give, and there are few of them.
    """
    return decisions + max(decisions // 8, n_arms)


@kernel
def refresh(observe, terms, stats, memory, arm):
    """Let a rule work out anew what it keeps about `arm`: other terms or statistics, and no new outcome."""
    seen = max(stats[arm].seen, 1.0)
    observe(terms, stats, memory, Outcome(arm, stats[arm].reward_sum / seen, stats[arm].cost_sum / seen, np.nan))


@kernel
def refresh_all(observe, terms, stats, memory):
    """`refresh` every arm that has outcomes."""
    for arm in range(stats.size):
        if stats[arm].seen > 0.0:
            refresh(observe, terms, stats, memory, arm)


@dataclass(frozen=True)
class Rule:
    """The compiled functions of a rule. `init` and `observe` may be left out by a rule that remembers nothing.

    `propensity(terms, stats, memory, arm)` is the probability with which the last `choose` took `arm`, given what the rule had
    drawn before; a rule that does not know it says NaN. A rule that weighs outcomes by it finds it in `outcome.propensity` and says
    so by `weighs_outcomes`; every other rule can derive its memory from the statistics, so it need not see each outcome.
    """

    choose: Callable[..., Any]
    init: Callable[..., Any] = field(default_factory=lambda: remember_nothing)
    observe: Callable[..., Any] = field(default_factory=lambda: ignore_outcome)
    propensity: Callable[..., Any] = field(default_factory=lambda: unknown_propensity)
    weighs_outcomes: bool = False


@builder
def remember_nothing(terms):
    """The `init` of a rule without memory."""
    return ()


@kernel
def ignore_outcome(terms, stats, memory, outcome):
    """The `observe` of a rule that reads the statistics and nothing else."""


@kernel
def unknown_propensity(terms, stats, memory, arm):
    """The `propensity` of a rule that does not know it."""
    return np.nan


@dataclass(frozen=True)
class Number:
    """A numeric parameter. A default of None is worked out from the terms by the policy's `settle`."""

    default: float | None
    meaning: str
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    def read(self, name: str, value: Any) -> float:
        """`value` as a number, or a ValueError that says what `name` must be."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not self.low <= number <= self.high or not math.isfinite(number) or (self.whole and number != number // 1):
            kind = "a whole number" if self.whole else "a number"
            raise ValueError(f"{name} must be {kind}{_range(self.low, self.high)}, got {value}")
        return number


@dataclass(frozen=True)
class KernelParameter:
    """A parameter that is a compiled function: one of the named ones, a user's own, or a file that defines one by this name."""

    options: Mapping[str, Callable[..., Any]]
    default: str
    meaning: str

    def read(self, name: str, value: Any) -> Callable[..., Any]:
        """The compiled function that `value` is, names, or holds as a file."""
        if callable(value):
            return value  # type: ignore[no-any-return]
        if isinstance(value, str) and value.endswith(".py"):
            return load_from_file(value, name)  # type: ignore[no-any-return]
        if value not in self.options:
            raise ValueError(f"{name} must be one of {', '.join(self.options)}, or a .py file that defines {name}; got {value}")
        return self.options[value]


@dataclass(frozen=True, eq=False)
class Policy:
    """A decision rule with a name and parameters: what `simulate`, the router and the replayer take.

    Parameters
    ----------
    name : how it is called on the command line
    summary : one line that says what it does
    rule : its compiled functions
    rule_for_unknown_costs : the same where costs are unknown; None when the policy needs to know them
    parameters : what can be set, by name
    settle : (terms, numbers) -> numbers, which fills in the defaults that depend on the terms and rejects what does not fit
    known_truths : attributes of the true instance that a benchmark such as the oracle is given, as parameters of the same names
    settings : the values of parameters that differ from the defaults
    forgetting : how its statistics forget the past
    sources : the text of the files outside this package that it was read from

    """

    name: str
    summary: str
    rule: Rule
    rule_for_unknown_costs: Rule | None = None
    parameters: Mapping[str, Number | KernelParameter] = field(default_factory=dict)
    settle: Callable[[Terms, dict[str, Any]], dict[str, Any]] = lambda _terms, numbers: numbers
    known_truths: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    forgetting: Forgetting = KEEP_ALL
    sources: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name with the settings that differ from the defaults, as one would type it."""
        shown = ",".join(f"{name}={_shown(value)}" for name, value in self.settings.items())
        named = f"{self.name}:{shown}" if shown else self.name
        return f"{named}+{self.forgetting.label}" if self.forgetting.label else named

    def that_forgets(self, method: str | Forgetting) -> "Policy":
        """The same policy with a forgetting method: "window=500", "discount=0.999" or "restart".

        >>> from thrifty import policy
        >>> policy("cs-ids").that_forgets("window=500").label
        'cs-ids+window=500'
        """
        return replace(self, forgetting=forgetting(method))

    def configured(self, **settings: Any) -> "Policy":
        """The same policy with some parameters set.

        >>> from thrifty import policy
        >>> policy("cs-etc").configured(tau=100).label
        'cs-etc:tau=100'
        """
        for name, value in settings.items():
            if name not in self.parameters or name in self.known_truths:
                raise ValueError(self._unknown_parameter(name))
            self.parameters[name].read(name, value)
        files = [value for value in settings.values() if isinstance(value, str) and value.endswith(".py")]
        outside = tuple(text for file in files for text in sources_of(file))
        return replace(self, settings={**self.settings, **settings}, sources=self.sources + outside)

    def check_keeps_all(self, where: str, *, remedy: str = "leave out what follows +") -> None:
        """A ValueError if this policy forgets: `where` names what plays only policies that do not."""
        if self.forgetting.forgets:
            raise ValueError(f"{where} plays policies that keep all they have seen, got {self.label}: {remedy}")

    def rule_under(self, terms: Terms) -> Rule:
        """The compiled functions to use, given whether costs are known."""
        if terms.costs is not None:
            return self.rule
        if self.rule_for_unknown_costs is None:
            raise ValueError(f"{self.name} needs to know the costs, and they are unknown here: try cs-etc or cs-ucb")
        return self.rule_for_unknown_costs

    def numbers(self, terms: Terms, truth: Mapping[str, float] = MappingProxyType({})) -> dict[str, float]:
        """Every numeric parameter, settled for these terms. `truth` holds the values of `known_truths`."""
        given = {
            name: parameter.read(name, self.settings[name]) if name in self.settings else truth.get(name, parameter.default)
            for name, parameter in self.parameters.items()
            if isinstance(parameter, Number)
        }
        return {name: float(value) for name, value in self.settle(terms, given).items()}

    def parts(self) -> dict[str, Callable[..., Any]]:
        """Every parameter that is a compiled function."""
        return {
            name: parameter.read(name, self.settings.get(name, parameter.default))
            for name, parameter in self.parameters.items()
            if isinstance(parameter, KernelParameter)
        }

    def _unknown_parameter(self, name: str) -> str:
        known = [known for known in self.parameters if known not in self.known_truths]
        if not known:
            return f"{self.name} has no parameters, got {name}"
        hint = did_you_mean(name, known, otherwise=f"it has {', '.join(known)}")
        return f"{self.name} has no parameter {name}: {hint}"


def _range(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f" in [{low:g}, {high:g}]"
    return f" of at least {low:g}" if math.isfinite(low) else ""


def _shown(value: Any) -> str:
    if callable(value):
        return getattr(value, "__name__", repr(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
