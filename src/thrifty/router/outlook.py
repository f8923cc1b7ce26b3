"""Looking at a router from outside: its sums are copied once, and everything else happens without its lock.

A look at the copy uses the same kernel as a decision, at any alpha, prices and arms: so a page, a preview and a decision agree.
"""

import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thrifty.router.arms import Arms, ArmsAndPrices
from thrifty.router.engine import Engine
from thrifty.router.frame import BEST, FACTS, FLOOR, GREEDY
from thrifty.router.packing import Layout
from thrifty.router.rule_instance import frame_for
from thrifty.router.settings import Settings
from thrifty.router.state import State

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

PIECE_BYTES = 1 << 20
"""Of statistics that are copied while the lock is held once: some tenths of a millisecond."""

DERIVED_AT_ONCE = 20
"""Segments whose remembered statistics are derived while the lock is held once."""


class SumsCopy(NamedTuple):
    """The statistics of a router at one moment, about: each row is whole, and rows may be some milliseconds apart.

    `sums`, `recent` (None if nothing is forgotten) and `parents` have a row per segment, the root first, parents before children.
    """

    at: float  # seconds since 1970
    version: int
    counts: tuple[int, int, int, int]  # decisions, outcomes, passed deadlines, and decisions that wait
    groups: dict[str, list[Any]]
    arms: Arms
    settings: Settings
    engine: Engine
    fallback: bool  # whether the guardrail has made the router fall back to its baseline
    names: list[str]
    sums: NDArray[Any]
    recent: NDArray[Any] | None
    parents: NDArray[np.int64]

    def own(self, field: str) -> NDArray[Any]:
        """Per segment the sum of a field over all arms, without what the segments below it count."""
        totals = self.sums[field].sum(axis=1)
        own: NDArray[Any] = totals.copy()
        np.subtract.at(own, self.parents[1:], totals[1:])
        return own

    def path(self, number: int) -> list[int]:
        """A segment and those above it, up to the root."""
        path = [number]
        while self.parents[path[-1]] >= 0:
            path.append(int(self.parents[path[-1]]))
        return path


class Look(NamedTuple):
    """What is known about some arms of a segment: the numbers of the arms; means (-1 if unknown), outcomes and costs of each."""

    arms: tuple[int, ...]
    means: tuple[float, ...]
    outcomes: tuple[float, ...]
    costs: tuple[float, ...]
    floor: float
    best: int | None  # places in `arms`
    chosen: int | None


Brief = tuple[float, int | None, int | None]
"""The floor, and the places of the best and of the chosen arm."""


class Looker:
    """Looks at segments of a copy at some arms, prices and alpha; for one thread."""

    def __init__(self, copied: SumsCopy, settings: Settings, choice: ArmsAndPrices) -> None:
        self._arms, engine = choice[0], copied.engine
        layout = Layout(frame := frame_for(engine, settings, choice, 1))
        self._packed = layout.pack(frame)
        self._facts: memoryview = layout.views(self._packed).facts.data  # read faster than the array
        self._look, self._tables = engine.counting.look.call, (copied.sums, copied.recent, copied.parents)

    def at(self, number: int) -> Look:
        """What is known in the segment of this number."""
        k, (floor, best, chosen) = len(self._arms), self.brief(number)
        facts = self._facts.tolist()
        means, outcomes, costs = (tuple(facts[FACTS + n * k : FACTS + (n + 1) * k]) for n in range(3))
        return Look(self._arms, means, outcomes, costs, floor, best, chosen)

    def brief(self, number: int) -> Brief:
        """The floor in the segment of this number, and the places of the best and of the chosen arm; None if nothing is known."""
        facts = self._facts
        self._look(self._packed, *self._tables, number)
        greedy = facts[GREEDY]
        return (facts[FLOOR], int(facts[BEST]), int(greedy)) if greedy >= 0 else (facts[FLOOR], None, None)


class Outlook:
    """Copies the sums of a router for whoever reads; one copy serves all readers of the same moment."""

    def __init__(self) -> None:
        self._lock, self._copy, self._key = threading.Lock(), None, ()
        self._made_at = 0.0

    _copy: SumsCopy | None
    _key: tuple[Any, ...]

    def copy(self, router: "RouterView", *, max_age_s: float = 0.0) -> SumsCopy:
        """A copy that is at most so old, or of a state that has not changed since. Takes milliseconds: not for the event loop."""
        with self._lock:
            key, now = _moment(router), time.monotonic()
            same = self._key[:3] == key[:3] and (self._key == key or now - self._made_at < max_age_s)
            if self._copy is None or not same:
                self._copy, self._key, self._made_at = copy_sums(router), key, now
            return self._copy


def _moment(router: "RouterView") -> tuple[Any, ...]:
    """What differs when the state has changed; the first three numbers whenever arms, settings or the lives of sums have."""
    state = router.state
    position = router.log.position if router.log.journal is not None else time.monotonic()  # without rows nothing tells
    return id(state), state.version, state.reset_at, state.decided, position


def copy_sums(router: "RouterView") -> SumsCopy:
    """Copy all sums piece by piece; from the beginning again if the router is changed meanwhile."""
    while True:
        copied = _try_to_copy(router)
        if copied is not None:
            return copied


def _try_to_copy(router: "RouterView") -> SumsCopy | None:
    with router.lock:
        state = router.known_state()
        generation = state.segments.generation
        table, segments = state.segments.sums, list(state.segments.by_number)
        above = table.parents[: len(segments)].copy()
        arms, settings, engine, version = state.arms.copy(), state.settings, state.engine, state.version
        fallback = state.configuration.fallback is not None
        counts, at = (state.decided, state.arrived, state.expired, state.waiting), time.time()
        groups = {name: list(group) for name, group in state.groups.items()}
        kind, n_arms, forgets = table.sums.dtype, table.n_arms, table.forgets
    listed = [each for each in segments if not each.provisional]
    names, known = [each.name for each in listed], np.array([each.number for each in listed], np.int64)
    parents = above if known.size == above.size else np.searchsorted(known, above[known]).astype(np.int64)
    parents[0] = -1
    sums = np.zeros((known.size, n_arms), kind)
    recent = np.zeros_like(sums) if forgets else None
    row, rows = 0, max(1, PIECE_BYTES // max(sums[:1].nbytes, 1))
    while row < known.size:
        with router.lock:
            if router.state is not state or state.segments.generation != generation or state.segments.sums is not table:
                return None
            row = _copy_rows(state, known, row, rows, sums, recent)
    return SumsCopy(at, version, counts, groups, arms, settings, engine, fallback, names, sums, recent, parents)


def _copy_rows(state: State, known: NDArray[np.int64], first: int, rows: int, sums: Any, recent: Any) -> int:
    """Copy some rows from the one numbered `first` on; the number of the next one."""
    table, end = state.segments.sums, min(first + rows, known.size)
    if recent is not None:
        derived = 0
        for place in range(first, end):
            derived += table.remember_now(int(known[place]))
            if derived >= DERIVED_AT_ONCE:
                end = place + 1
                break
    whole = int(known[-1]) == known.size - 1  # a slice is copied faster than rows by number
    chosen: Any = slice(first, end) if whole else known[first:end]
    if recent is not None:
        recent[first:end] = table.recent[chosen]
    sums[first:end] = table.sums[chosen]
    return end
