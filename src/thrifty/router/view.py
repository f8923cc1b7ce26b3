"""A view: one rule at work on some arms of a segment, at given prices."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.policies import policy
from thrifty.policies.binding import bind_rule
from thrifty.policies.contract import next_horizon
from thrifty.problem import Terms
from thrifty.router.kernels import FACTS, State, catch_up, choose_arm, fold, start_rule, survey, weigh_arm
from thrifty.router.memory import copier, flatten, pack, unpacker
from thrifty.router.settings import Settings
from thrifty.statistics import no_statistics
from thrifty.streams import Stream

Key = tuple[tuple[int, ...], tuple[float | None, ...]]
"""What a view is of: arms of the segment, and their prices."""


class Kit:
    """The compiled functions of one policy, with known or with unknown costs; made once, for arms of any number."""

    def __init__(self, settings: Settings, words: Stream) -> None:
        self.settings, self.words = settings, words
        self.policy = policy(settings.policy)
        self.bound: dict[bool, dict[str, Callable[..., Any]]] = {}

    def functions(self, terms: Terms, numbers: dict[str, float], state: State | None) -> dict[str, Callable[..., Any]]:
        """Those for terms like these; `state` is None before there is one."""
        known = terms.costs is not None
        if known not in self.bound:
            self.bound[known] = {"start": bind_rule(start_rule, self.policy, terms, numbers)}
        if state is not None and "choose" not in self.bound[known]:
            more = {"unpack": unpacker(state), "copy": copier(state.memory)}
            drivers: dict[str, Callable[..., Any]] = {
                "choose": choose_arm,
                "weigh": weigh_arm,
                "fold": fold,
                "catch_up": catch_up,
                "survey": survey,
            }
            for name, drive in drivers.items():
                self.bound[known][name] = bind_rule(drive, self.policy, terms, numbers, more)
        return self.bound[known]


class View:
    """One rule over `key`; it knows the segment's statistics `truth` and keeps its own copy of the part it sees.

    `book` is where compiled code finds it; `parent` is the book of the segment above, which is told what this one is told.
    """

    def __init__(self, kit: Kit, key: Key, truth: NDArray[np.void], outcomes: NDArray[np.int64], parent: int = 0) -> None:
        self.arms, self.prices = key
        n_arms, alpha = len(self.arms), kit.settings.alpha
        known = not any(price is None for price in self.prices)
        costs = np.array([math.nan if price is None else price for price in self.prices])
        if not known:
            costs[:] = math.nan
        terms = Terms(n_arms=n_arms, costs=costs if known else None, alpha=alpha, horizon=None)
        numbers = kit.policy.numbers(terms)
        by_cost = np.argsort(costs, kind="stable")
        start = kit.functions(terms, numbers, None)["start"]
        horizon = np.array([next_horizon(int(truth["sent"][list(self.arms)].sum()), n_arms)])
        known_before = (tuple(numbers.values()), costs, by_cost, alpha)
        places = np.full(truth.size, -1)
        places[list(self.arms)] = np.arange(n_arms)
        self.facts = np.zeros(FACTS + 3 * n_arms)
        self.peek = memoryview(self.facts.data)  # the same numbers; reading one from Python is five times faster
        self.state = State(
            *known_before, horizon, truth, np.array(self.arms, dtype=np.int64), places, no_statistics(n_arms),
            start(*known_before, int(horizon[0])), start(*known_before, int(horizon[0])), kit.words, np.zeros(4, np.uint64),
            self.facts, outcomes, parent,
        )  # fmt: skip
        self._packed = pack(self.state)
        self.book = self._packed.address
        functions = kit.functions(terms, numbers, self.state)
        self.choose, self.weigh, self.fold = functions["choose"], functions["weigh"], functions["fold"]
        self._catch_up, self._survey = functions["catch_up"], functions["survey"]
        self.names: tuple[str, ...] | None = None  # of the arms, filled in by the router
        self.catch_up()

    def catch_up(self) -> None:
        """See what the segment has seen."""
        self._catch_up(self.book)

    def look(self) -> None:
        """Fill in the facts without asking the rule."""
        self._survey(self.book)

    def dump(self) -> list[bytes]:
        """What the rule remembers, bit for bit."""
        return [np.asarray(leaf).tobytes() for leaf in flatten((self.state.horizon, self.state.stats, self.state.memory))]

    def load(self, dumped: list[bytes]) -> None:
        """Remember what was dumped."""
        for leaf, content in zip(flatten((self.state.horizon, self.state.stats, self.state.memory)), dumped, strict=True):
            if isinstance(leaf, np.ndarray):
                leaf[:] = np.frombuffer(content, dtype=leaf.dtype)


def rehearse(kit: Kit, key: Key, *, newcomers: bool) -> None:
    """Run the kernels once on nothing, so that no decision need wait for the compiler."""
    view = View(kit, key, no_statistics(max(key[0]) + 1), np.zeros(1, np.int64))
    view.choose(view.book, 1, 1)
    view.fold(view.book, key[0][0], 0, 0, 0.0, 0.0)
    view.look()
    if newcomers:
        view.weigh(view.book, 1, 1, 0)
