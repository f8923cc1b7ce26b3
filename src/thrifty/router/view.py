"""A view: one rule at work on some arms of a segment, at given prices."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.borrowing import Kin
from thrifty.forgetting import KEEP_ALL, Forgetting
from thrifty.policies import policy
from thrifty.policies.binding import bind_rule
from thrifty.policies.contract import next_horizon
from thrifty.problem import Terms
from thrifty.router.kernels import FACTS, Level, State, Tools, decide, start_rule, survey, tell, weigh_arm
from thrifty.router.memory import copier, flatten, pack, unpacker
from thrifty.router.settings import Settings
from thrifty.statistics import ArmStatistics, no_statistics
from thrifty.streams import Stream

Key = tuple[tuple[int, ...], tuple[float | None, ...]]
"""What a view is of: arms of the segment, and their prices."""


class Kit:
    """The compiled functions of one policy, with known or with unknown costs; made once, for arms of any number."""

    def __init__(self, settings: Settings, words: Stream, names: list[str]) -> None:
        self.settings, self.words, self.names = settings, words, names
        self.policy = policy(settings.policy)
        self.bound: dict[bool, dict[str, Callable[..., Any]]] = {}

    def functions(self, terms: Terms, numbers: dict[str, float], state: State | None) -> dict[str, Callable[..., Any]]:
        """Those for terms like these; `state` is None before there is one."""
        known = terms.costs is not None
        if known not in self.bound:
            self.bound[known] = {"start": bind_rule(start_rule, self.policy, terms, numbers)}
        if state is not None and "decide" not in self.bound[known]:
            way, said = self.policy.forgetting, self.policy.rule_under(terms).propensity
            more = {"tools": Tools(unpacker(state), unpacker(state, Level), copier(state.memory), way.take_in, way.probe, said)}
            drivers: dict[str, Callable[..., Any]] = {
                "decide": decide,
                "tell": tell,
                "weigh": weigh_arm,
                "survey": survey,
            }
            for name, drive in drivers.items():
                self.bound[known][name] = bind_rule(drive, self.policy, terms, numbers, more)
        return self.bound[known]


class Sums(NamedTuple):
    """What a segment counts: statistics of all arms, how the segments below it differ, and what forgetting keeps.

    `recent` are the statistics as far as they are not forgotten; they are the same array where nothing is.
    """

    truth: NDArray[np.void]
    kin: NDArray[np.void]
    recent: NDArray[np.void]
    recollection: Any
    restarts: NDArray[np.int64]

    def leaves(self) -> list[NDArray[Any]]:
        """All arrays."""
        recent = () if self.recent is self.truth else self.recent
        return list(flatten((self.truth, self.kin, recent, self.recollection, self.restarts)))


def no_sums(forgetting: Forgetting, n_arms: int) -> Sums:
    """Those before the first decision."""
    truth = np.zeros(n_arms, ArmStatistics)
    recent, recollection = truth, ()
    if forgetting.take_in is not KEEP_ALL.take_in:
        recent, recollection = np.zeros(n_arms, ArmStatistics), forgetting.begin(n_arms, forgetting.numbers)
    return Sums(truth, np.zeros(n_arms, Kin), recent, recollection, np.zeros(1, np.int64))


class View:
    """One rule over `key`, in a segment with these `sums`. What it goes by is brought up to date whenever it is asked.

    `book` is where compiled code finds it; `parent` is the book of the segment above, which is told what this one is told.
    `decide` and `tell` are the kernels of these names, called with it.
    """

    def __init__(
        self,
        kit: Kit,
        key: Key,
        sums: Sums,
        *,
        parent: int = 0,
        segment: str = "",
        number: int = 0,
    ) -> None:
        self.arms, self.prices = key
        self.segment, self.names = segment, tuple([kit.names[arm] for arm in self.arms])
        n_arms, alpha, forgetting = len(self.arms), kit.settings.alpha, kit.policy.forgetting
        known = not any(price is None for price in self.prices)
        prices = np.array([math.nan if price is None else price for price in self.prices])
        costs = prices if known else np.full(n_arms, math.nan)
        terms = Terms(n_arms=n_arms, costs=costs if known else None, alpha=alpha, horizon=None)
        numbers = kit.policy.numbers(terms)
        by_cost = np.argsort(costs, kind="stable")
        start = kit.functions(terms, numbers, None)["start"]
        decisions = int(sums.truth["sent"][list(self.arms)].sum())
        horizon = np.array([forgetting.horizon(next_horizon(decisions, n_arms), n_arms)])
        known_before = (tuple(numbers.values()), costs, by_cost, alpha)
        begin = (*known_before, int(horizon[0]))
        places = np.full(sums.truth.size, -1)
        places[list(self.arms)] = np.arange(n_arms)
        self.facts = np.zeros(FACTS + 3 * n_arms)
        self.peek = memoryview(self.facts.data)  # the same numbers; reading one from Python is five times faster
        memories = start(*begin), start(*begin), start(*begin)
        self.state = State(
            *known_before, horizon, sums.truth, sums.recent, sums.recollection, sums.restarts, forgetting.span,
            int(sums.recent is not sums.truth), np.array(self.arms, dtype=np.int64), places, prices, no_statistics(n_arms),
            no_statistics(n_arms), sums.kin, int(kit.settings.leaning), *memories,
            sums.restarts.copy(), kit.words, np.zeros(4, np.uint64), self.facts, parent, number,
        )  # fmt: skip
        self._packed = pack(self.state)
        self.book = self._packed.address
        functions = kit.functions(terms, numbers, self.state)
        self.decide, self.tell, self._weigh = functions["decide"], functions["tell"], functions["weigh"]
        self._survey = functions["survey"]

    def choose(self, sequence: int, draws: int) -> int:
        """The place of the arm that the rule takes in the decision of this number; nothing is counted."""
        return int(self.decide(self.book, sequence, draws, 0, -1, 0.0, 0.0, 0, 0))

    def weigh(self, sequence: int, draws: int, place: int) -> float:
        """The probability that the rule, asked now, would take the arm of a place."""
        return float(self._weigh(self.book, sequence, draws, place))

    def fold(self, arm: int, sent: int, seen: int, reward: float, cost: float, chance: float = math.nan) -> None:
        """Add to the sums of an arm, numbered as in the segment, here and in all segments above; see the kernel `fold`."""
        self.tell(self.book, arm, sent, seen, reward, cost, chance, 0, 0, -1, 0.0, 0)

    def look(self) -> None:
        """Fill in the facts without asking the rule."""
        self._survey(self.book)

    def dump(self) -> list[bytes]:
        """What the rule remembers, bit for bit."""
        return [np.asarray(leaf).tobytes() for leaf in self._remembered()]

    def _remembered(self) -> tuple[Any, ...]:
        return flatten((self.state.horizon, self.state.begun, self.state.stats, self.state.memory))

    def load(self, dumped: list[bytes]) -> None:
        """Remember what was dumped."""
        for leaf, content in zip(self._remembered(), dumped, strict=True):
            if isinstance(leaf, np.ndarray):
                leaf[:] = np.frombuffer(content, dtype=leaf.dtype)


def rehearse(kit: Kit, key: Key, *, newcomers: bool) -> None:
    """Run the kernels once on nothing, so that no decision need wait for the compiler."""
    view = View(kit, key, no_sums(kit.policy.forgetting, max(key[0]) + 1))
    view.choose(1, 1)
    view.fold(key[0][0], 0, 0, 0.0, 0.0)
    view.look()
    if newcomers:
        view.weigh(1, 1, 0)
