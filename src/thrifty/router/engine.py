"""The engine of a router: the kernels of one policy, shared by all routers of a process that use it."""

import math
import threading
from collections import deque, namedtuple
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from thrifty.compiled import interpreted
from thrifty.fingerprint import fingerprint
from thrifty.forgetting import KEEP_APART, Forgetting
from thrifty.policies import Policy, policy
from thrifty.policies.binding import explaining_refusals
from thrifty.policies.contract import RuleTerms
from thrifty.problem import Terms
from thrifty.router.arms import ArmsAndPrices
from thrifty.router.compiling import COMPILER, Job, Kernel, compile_mode
from thrifty.router.counting import ForgettingKernels, count_outcome, probe_arm
from thrifty.router.frame import empty_frame
from thrifty.router.kernels import PackedRule, choose_arm, look, observe_outcome
from thrifty.router.packing import Bytes, Layout, tuple_maker
from thrifty.router.records import DecisionRecord
from thrifty.router.segment_sums import SegmentSums

_making = threading.RLock()  # engines, codes and kernels
_loading = threading.Lock()  # one at a time: the compiler uses all of a core


class Counting(NamedTuple):
    """The kernels that do not depend on the rule, only on how statistics forget."""

    look: Kernel
    count_outcome: Kernel
    probe: Kernel | None

    @property
    def compiled(self) -> bool:
        """Whether all of them are."""
        return all(kernel.compiled for kernel in self if kernel is not None)

    @property
    def cached(self) -> bool:
        """Whether all of them can be loaded."""
        return all(kernel.cached for kernel in self if kernel is not None)


_countings: dict[str, Counting] = {}


def counting_for(forgetting: Forgetting) -> Counting:
    """The kernels for a kind of forgetting; made once."""
    kind = forgetting.label.partition("=")[0] if forgetting.forgets else ""
    if kind not in _countings:
        sums, shared = SegmentSums(1, forgetting), "forgets" if kind else "keeps"
        unpack = sums.recollection_layout.unpacker() if sums.recollection_layout else Layout(()).unpacker()
        kernels = ForgettingKernels(forgetting.take_in, forgetting.probe, unpack)
        _countings[kind] = Counting(
            _shared_kernel(look, shared),
            Kernel(count_outcome, {"forgetting": kernels}, name=f"count_outcome_{kind or 'all'}"),
            Kernel(probe_arm, {"forgetting": kernels}, name="probe") if forgetting.probes else None,
        )
    return _countings[kind]


@cache
def _shared_kernel(drive: Callable[..., Any], kind: str) -> Kernel:
    """A kernel that depends only on whether anything is forgotten."""
    return Kernel(drive, {}, name=f"{drive.__name__}_{kind}")


class RuleCode:
    """The kernels of one policy with known or with unknown costs, for any number of arms."""

    def __init__(self, chosen: Policy, spec: str, known_costs: bool, *, forgetting: Forgetting) -> None:
        self.policy, self.known_costs, self.forgetting, self._spec = chosen, known_costs, forgetting, spec
        self.counting = counting_for(forgetting)
        example = _example_terms(known_costs)
        rule, parts, numbers = chosen.rule_under(example), chosen.parts(), chosen.numbers(example)
        self._parameters = namedtuple("Parameters", numbers)  # type: ignore[misc]
        self._init = interpreted(rule.init)
        memory = self.new_memory(example, numbers, 2)
        kernels = PackedRule(
            choose=rule.choose,
            observe=rule.observe,
            propensity=rule.propensity,
            parts=namedtuple("Parts", parts)(**parts),
            parameters=tuple_maker(self._parameters),
            unpack=Layout(memory).unpacker(),
        )
        kernel = partial(Kernel, constants={"rule": kernels}, name=chosen.name)
        self.choose = kernel(choose_arm)
        self.observe = kernel(observe_outcome) if rule.weighs_outcomes else None

    @property
    def compiled(self) -> bool:
        """Whether every kernel that a decision or an outcome needs is compiled."""
        return self.choose.compiled and (self.observe is None or self.observe.compiled) and self.counting.compiled

    def new_memory(self, terms: Terms, numbers: dict[str, float], horizon: int) -> Any:
        """The rule's memory before its first decision."""
        costs = np.full(terms.n_arms, math.nan) if terms.costs is None else np.asarray(terms.costs, dtype=np.float64)
        by_cost = np.argsort(costs, kind="stable")
        return self._init(RuleTerms(costs, by_cost, terms.alpha, horizon, self._parameters(**numbers), ()))

    def prepare(self) -> Job | None:
        """Load what is in the cache; compile the rest now, or in the background by the job returned, as THRIFTY_COMPILE says."""
        mode = compile_mode()
        if self.compiled or mode == "never":
            return None
        cached = self.choose.cached and (self.observe is None or self.observe.cached) and self.counting.cached
        if mode == "wait" or cached:
            self.load()
            return None
        return COMPILER.start((self._spec, self.known_costs, self.forgetting is KEEP_APART), self.load)

    def load(self) -> None:
        """Load or compile all kernels here; a ValueError of one line where the compiler refuses a user's rule."""
        with _loading, explaining_refusals(self.policy):
            if not self.compiled:
                _Rehearsal(self).load()


class Engine:
    """A policy at work in a router: its forgetting, and its code for known and for unknown costs.

    With `apart`, statistics that forget nothing are kept in a table of their own: see `KEEP_APART`.
    """

    def __init__(self, spec: str, *, apart: bool = False) -> None:
        self.spec, self.policy = spec, policy(spec)
        self.forgetting = KEEP_APART if apart and not self.policy.forgetting.forgets else self.policy.forgetting
        self.counting = counting_for(self.forgetting)
        self.weighs_outcomes = self.policy.rule.weighs_outcomes
        self._codes: dict[bool, RuleCode] = {}

    def code(self, known_costs: bool) -> RuleCode:
        """The rule's code; a ValueError where the policy needs to know the costs."""
        found = self._codes.get(known_costs)
        if found is None:
            with _making:
                found = self._codes.get(known_costs) or self._make_code(known_costs)
                self._codes = {**self._codes, known_costs: found}
        return found

    def _make_code(self, known_costs: bool) -> RuleCode:
        return RuleCode(self.policy, self.spec, known_costs, forgetting=self.forgetting)

    def prepare(self, arms_and_prices: ArmsAndPrices) -> Job | None:
        """Load or compile the code for these arms; see `RuleCode.prepare`. A ValueError where the policy cannot work with them."""
        self.forgetting.check(len(arms_and_prices[0]))
        return self.code(not any(price is None for price in arms_and_prices[1])).prepare()

    @property
    def compiled(self) -> bool:
        """Whether nothing that is in use is interpreted."""
        return all(code.compiled for code in self._codes.values())

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all code that rules are made of: what another version of it remembered is of no use."""
        rules = [rule for rule in (self.policy.rule, self.policy.rule_for_unknown_costs) if rule is not None]
        functions = [(rule.init, rule.choose, rule.observe, rule.propensity) for rule in rules]
        return fingerprint(choose_arm, functions, self.policy.parts())


_engines: WeakValueDictionary[tuple[str, tuple[str, ...], bool], Engine] = WeakValueDictionary()
"""Engines that a router uses. One that no router uses any more is freed, or memory would grow with every policy ever tried."""

_recent: deque[Engine] = deque(maxlen=32)
"""Engines that were asked for last: a log in which the policy changes to and fro asks for the same ones again and again."""


def engine_for(spec: str, *, apart: bool = False) -> Engine:
    """The engine of a policy by its specification; made once, and anew when a file that it was read from has changed."""
    key = spec, policy(spec).sources, apart
    with _making:
        engine = _engines.get(key)
        if engine is None:
            engine = _engines[key] = Engine(spec, apart=apart)
        if engine not in _recent:
            _recent.append(engine)
        return engine


def _example_terms(known_costs: bool) -> Terms:
    return Terms(n_arms=2, costs=np.array([0.0, 1.0]) if known_costs else None, alpha=0.1, horizon=None)


class _Rehearsal:
    """Small arguments of the right types for every kernel, so that each is loaded or compiled by a call."""

    def __init__(self, code: RuleCode) -> None:
        self._code = code
        terms = _example_terms(code.known_costs)
        numbers = code.policy.numbers(terms)
        self._sums = SegmentSums(2, code.forgetting)
        self._sums.add(-1)
        if self._sums.recollections is not None:
            self._sums.remember(0)
        frame = empty_frame(2, len(numbers))
        frame.numbers[:], frame.arms[:], frame.by_cost[:] = tuple(numbers.values()), (0, 1), (0, 1)
        frame.scalars[:], frame.progress[:] = (0.1, math.inf, 1.0, 0.0), (0, 2, 2, 1)
        frame.costs[:] = (0.0, 1.0) if code.known_costs else math.nan
        self._frame: Bytes = Layout(frame).pack(frame)
        memory = code.new_memory(terms, numbers, 2)
        self._memory: Bytes = Layout(memory).pack(memory)
        self._records = np.zeros(1, DecisionRecord)

    def load(self) -> None:
        """Load every kernel of the code."""
        code, counting = self._code, self._code.counting
        counting.look.load(lambda call: call(self._frame, *self._sums.tables, 0))
        code.choose.load(lambda call: call(self._frame, self._memory, self._memory.copy(), 1, 1, -1))
        if code.observe is not None:
            code.observe.load(lambda call: call(self._frame, self._memory, 0, 1.0, 1.0))
        counting.count_outcome.load(lambda call: call(self._records, 0, 0, 1.0, 0.5, *self._sums.everything))
        if counting.probe is not None:
            sums = self._sums
            counting.probe.load(lambda call: call(sums.sums, sums.recent, sums.recollections, 0))
