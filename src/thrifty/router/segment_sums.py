"""Statistics of all segments of a router, as tables with a row per segment and a column per arm."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.forgetting import Forgetting
from thrifty.known import KnownOutcomes
from thrifty.router.frame import ArmSums
from thrifty.router.packing import Layout

_FIRST_ROOM = 8

_MOST = {"seen": None, "reward_sum": "seen", "cost_sum": None, "reward_squares": "reward_sum", "cost_squares": None}
"""Sums that are at least 0, and the sum that each is at most: rewards are in [0, 1]."""


class SegmentSums:
    """Sums of every segment. They add up: a segment counts its own decisions and those of all segments below it.

    Where statistics forget, `recent` are the sums as far as they are remembered, and a row of `recollections` is what forgetting
    keeps besides. A segment's row of both is derived when it is first needed (`remember`). Otherwise `recent` is `sums`.

    `tables` are what `look` takes: statistics, as remembered or None, and parents. `everything` is what `count_outcome` takes: the
    same, and what forgetting keeps besides, or None.
    """

    def __init__(self, n_arms: int, forgetting: Forgetting) -> None:
        self.count = 0
        self.sums: NDArray[Any] = np.zeros((_FIRST_ROOM, n_arms), ArmSums)
        self.parents: NDArray[np.int64] = np.full(_FIRST_ROOM, -1, np.int64)
        self.restarts: NDArray[np.int64] = np.zeros(_FIRST_ROOM, np.int64)  # how often an arm was found to have changed
        self.recent: NDArray[Any] = self.sums
        self.recollections: Any = None
        self.recollection_layout: Layout | None = None
        self._source: NDArray[Any] = self.sums  # what is remembered of a segment begins as its row of this
        self._remembered: NDArray[np.bool_] = np.zeros(_FIRST_ROOM, np.bool_)  # segments for which that has happened
        self._changed: NDArray[np.bool_] = np.zeros(_FIRST_ROOM, np.bool_)  # and those that have counted something since
        self.forget_by(forgetting)

    @property
    def n_arms(self) -> int:
        """Arms, retired ones included."""
        return int(self.sums.shape[1])

    @property
    def n_bytes(self) -> int:
        """How much memory one segment takes."""
        kept = (self.sums, self.recent, self.recollections) if self.forgets else (self.sums,)
        return sum(table[:1].nbytes for table in kept)

    def add(self, parent: int) -> int:
        """A row for a new segment; its number."""
        if self.count == self.parents.size:
            self._make_room(2 * self.count)
        number = self.count
        self.parents[number] = parent
        self._remembered[number] = self._changed[number] = False  # a segment that was taken back may have been here
        self.count += 1
        return number

    def start_from(self, known: list[tuple[int, int, KnownOutcomes]]) -> None:
        """Remember known outcomes of arms, given by the numbers of segments and arms, in a segment and all above it.

        To be called before anything is counted, and only where what is remembered has a table of its own.
        """
        self._source = self._source.copy()
        for segment, arm, each in known:
            while segment >= 0:
                sums = self._source[segment, arm]
                sums["seen"] += each.outcomes
                sums["reward_sum"] += each.rewards
                sums["reward_squares"] += each.reward_squares
                if each.costs is not None:
                    sums["cost_sum"] += each.costs
                    sums["cost_squares"] += each.cost_squares
                segment = int(self.parents[segment])

    def count_pending(self, segment: int, arm: int, by: int) -> None:
        """Count decisions without an outcome in a segment and all above it, or take them back if `by` is negative.

        Plain Python: it would take as long to hand the tables to compiled code.
        """
        if self.forgets:
            self.count_in(segment)
        width, counts, remembered, parents = self._width, self._counts, self._recent_counts, self._parents
        while segment >= 0:
            place = (segment * self._columns + arm) * width
            counts[place] += by  # sent
            counts[place + 1] += by  # pending
            if remembered is not None:
                remembered[place] += by
                remembered[place + 1] += by
            segment = parents[segment]

    def _take_views(self) -> None:
        """Look at the tables as plain numbers, which Python reads ten times faster; to be called when they are replaced."""
        self.tables: tuple[Any, ...] = (self.sums, self.recent if self.forgets else None, self.parents)
        kept = (self.recollections, self.restarts) if self.forgets else (None, None)
        self.everything: tuple[Any, ...] = (*self.tables, *kept)
        self._columns, self._width = self.n_arms, ArmSums.itemsize // 8
        self._counts: memoryview = self.sums.view(np.int64).reshape(-1).data
        self._recent_counts = self.recent.view(np.int64).reshape(-1).data if self.forgets else None
        self._parents: memoryview = self.parents.data

    def _make_room(self, room: int) -> None:
        shared = self.recent is self.sums
        for name in ("sums", "parents", "restarts", "_remembered", "_changed"):
            setattr(self, name, _grown(getattr(self, name), room))
        self.recent = self.sums if shared else _grown(self.recent, room)
        if not shared:
            self._source = _grown(self._source, room)
            self.recollections = _grown(self.recollections, room)
        self._take_views()

    def add_arms(self, n_arms: int) -> None:
        """Columns for arms that were added."""
        shared = self.recent is self.sums
        self.sums = _widened(self.sums, n_arms)
        if shared:
            self.recent = self.sums
            self._take_views()
            return
        self.recent, self._source = _widened(self.recent, n_arms), _widened(self._source, n_arms)
        layout = self._layout(n_arms)
        wider = np.tile(layout.pack(self._begun(n_arms)), (self.parents.size, 1))
        assert self.recollection_layout is not None
        for old, new in zip(self.recollection_layout.extents(), layout.extents(), strict=True):
            kept = min(old[1] - old[0], new[1] - new[0])
            wider[:, new[0] : new[0] + kept] = self.recollections[:, old[0] : old[0] + kept]
        self.recollections, self.recollection_layout = wider, layout
        self._take_views()

    def forget_by(self, forgetting: Forgetting) -> None:
        """Forget by another method from now on. What is remembered begins as what was remembered before."""
        rooms = self.parents.size
        shared = self.recent is self.sums
        self._source = self.sums if shared else np.where(self._changed[:, None], self.recent, self._source)
        self._remembered, self._changed = np.zeros(rooms, np.bool_), np.zeros(rooms, np.bool_)
        self.forgetting, self.forgets = forgetting, forgetting.forgets
        if not forgetting.forgets:
            self.recent, self.recollections, self.recollection_layout = self.sums, None, None
            self._take_views()
            return
        self.recent = np.zeros_like(self.sums)
        self.recollection_layout = self._layout(self.n_arms)
        self.recollections = np.zeros((rooms, self.recollection_layout.n_bytes), np.uint8)
        self._take_views()

    def _begun(self, n_arms: int) -> Any:
        return self.forgetting.begin_plain(n_arms)

    def _layout(self, n_arms: int) -> Layout:
        return Layout(self._begun(n_arms))

    def remember(self, segment: int) -> None:
        """Make sure that what is remembered of a segment and of all above it is there. Their sums must not have changed before."""
        while segment >= 0 and not self._remembered[segment]:
            assert self.recollection_layout is not None
            recollection = self._begun(self.n_arms)
            self.recent[segment] = self._source[segment]
            for field in ("sent", "pending"):
                self.recent[field][segment] = self.sums[field][segment]
            remembered = self.recent[segment]
            for field, most in _MOST.items():  # corrections of forgotten outcomes can leave less than nothing
                remembered[field] = remembered[field].clip(0.0, remembered[most] if most else np.inf)
            self.forgetting.recall(remembered, recollection)
            self.recollections[segment] = self.recollection_layout.pack(recollection)
            self._remembered[segment] = True
            segment = int(self.parents[segment])

    def used(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sums and the parents of the segments there are."""
        return self.sums[: self.count], self.parents[: self.count]

    def remember_now(self, segment: int) -> bool:
        """`remember`; whether anything had to be derived for that."""
        new = not self._remembered[segment]
        self.remember(segment)
        return bool(new)

    def count_in(self, segment: int) -> None:
        """`remember`, before something is counted in a segment. Looking alone must leave no trace: it is not in the log."""
        self.remember(segment)
        while segment >= 0 and not self._changed[segment]:
            self._changed[segment] = True
            segment = int(self.parents[segment])

    def reset(self, arms: list[int]) -> None:
        """Let the statistics of these arms begin again at zero, apart from what is pending."""
        for arm in arms:
            for table in (self.sums,) if self.recent is self.sums else (self.sums, self.recent, self._source):
                pending = table["pending"][:, arm].copy()
                table[:, arm] = np.zeros((), ArmSums)
                table["sent"][:, arm] = table["pending"][:, arm] = pending
        if self.recent is not self.sums:  # what forgetting keeps of all arms begins again
            self._source = np.where(self._changed[:, None], self.recent, self._source)
            self._remembered[:] = self._changed[:] = False
            self.restarts += 1

    def dump(self, segments: list[int]) -> dict[str, bytes]:
        """All tables as bytes, of these segments, which are numbered anew. The parents of each are among them."""
        if len(segments) == self.count:
            return {name: table[: self.count].tobytes() for name, table in self._kept().items()}
        chosen = {name: table[segments] for name, table in self._kept().items()}
        chosen["parents"][1:] = np.searchsorted(segments, chosen["parents"][1:])
        return {name: table.tobytes() for name, table in chosen.items()}

    def load(self, dumped: dict[str, bytes]) -> None:
        """Take over dumped tables, after every segment was added; a ValueError where they are of another size."""
        for name, table in self._kept().items():
            target = table[: self.count]
            if len(dumped[name]) != target.nbytes:
                raise ValueError(f"a snapshot whose {name} have {len(dumped[name])} bytes instead of {target.nbytes}")
            target[...] = np.frombuffer(dumped[name], table.dtype).reshape(target.shape)

    def _kept(self) -> dict[str, NDArray[Any]]:
        kept = {"sums": self.sums, "parents": self.parents, "restarts": self.restarts}
        if self.recent is not self.sums:
            if self._source is self.sums:
                self._source = self.sums.copy()
            kept |= {"recent": self.recent, "source": self._source, "recollections": self.recollections}
            kept |= {"remembered": self._remembered, "changed": self._changed}
        return kept


def _grown(table: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.zeros((room, *table.shape[1:]), table.dtype)
    larger[: table.shape[0]] = table
    return larger


def _widened(table: NDArray[Any], n_arms: int) -> NDArray[Any]:
    wider = np.zeros((table.shape[0], n_arms), table.dtype)
    wider[:, : table.shape[1]] = table
    return wider
