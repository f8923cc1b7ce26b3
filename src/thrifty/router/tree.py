"""The tree of segments: "DE/vodafone" below "DE" below all of them."""

import numpy as np

from thrifty.router.kernels import toss
from thrifty.router.roster import Roster
from thrifty.router.segment import Segment
from thrifty.router.settings import Settings
from thrifty.router.view import Kit, rehearse
from thrifty.streams import spread_seed


class Tree:
    """Segments, made on first use. Sums add up: every segment counts its own decisions and those of all below it."""

    def __init__(self, settings: Settings, roster: Roster, replica: int) -> None:
        self._replica = replica
        self._stream = np.zeros(4, np.uint64)
        self._segments: dict[str, Segment] = {}  # parents before their children
        self.nodes: list[Segment] = []  # the same by number
        self._books = np.zeros(64, np.int64)  # of the nodes, for compiled code
        self.known = self._segments.get  # a segment that was asked for before, or None
        self.retune(settings, roster)

    def retune(self, settings: Settings, roster: Roster) -> None:
        """Other settings: the statistics stay, the rules begin again from them."""
        self._settings = settings
        self._words = spread_seed(settings.seed, (self._replica,))
        self._kit = Kit(settings, self._words, roster.names)
        self.rearrange(roster)

    def rearrange(self, roster: Roster) -> None:
        """Other arms or prices: the statistics stay, the rules begin again from them."""
        self._key, self._n_arms = roster.key(), len(roster.names)
        for segment in self._segments.values():
            segment.kit = self._kit
            segment.rearrange(self._key, n_arms=self._n_arms)
        if not self._segments:
            self._make("")
        self._list_books()

    def _list_books(self, first: int = 0) -> None:
        if len(self.nodes) > self._books.size:
            self._books = np.resize(self._books, 2 * self._books.size)
        self._books[first : len(self.nodes)] = [node.main.book for node in self.nodes[first:]]
        self.books = self._books.ctypes.data

    def rehearse(self, *, newcomers: bool) -> None:
        """Compile now what decisions will need, so that none of them has to wait for it."""
        if self._key[0]:
            rehearse(self._kit, self._key, newcomers=newcomers)

    def forget(self, arms: list[int]) -> None:
        """The statistics of these arms begin again."""
        for segment in self._segments.values():
            segment.forget(arms)
        self._list_books()

    @property
    def root(self) -> Segment:
        """All segments together."""
        return self._segments[""]

    def names(self) -> list[str]:
        """Every segment, the root first."""
        return sorted(self._segments)

    def toss(self, key: int) -> float:
        """A number in [0, 1) that depends on the seed, the replica and `key` alone."""
        with np.errstate(over="ignore"):
            return float(toss(self._words, key, self._stream))

    def segment(self, name: str) -> Segment:
        """The segment of this name; made if need be, as long as there are not too many, and otherwise the nearest one above it."""
        found = self._segments.get(name)
        if found is not None:
            return found
        missing = [each for each in path_of(name) if each not in self._segments]
        if len(self._segments) + len(missing) > self._settings.max_segments:
            return self.nearest(name)
        for each in reversed(missing):
            self._make(each)
        self._list_books(len(self.nodes) - len(missing))
        return self._segments[name]

    def nearest(self, name: str) -> Segment:
        """The segment of this name, or the first one above it that exists."""
        return next(self._segments[each] for each in path_of(name) if each in self._segments)

    def _make(self, name: str) -> None:
        parent = self._segments[name.rpartition("/")[0]] if name else None
        made = Segment(name, self._kit, self._key, n_arms=self._n_arms, parent=parent, number=len(self.nodes))
        self._segments[name] = made
        self.nodes.append(made)


def path_of(name: str) -> list[str]:
    """The name of a segment and of those above it, up to the root.

    >>> path_of("DE/vodafone")
    ['DE/vodafone', 'DE', '']
    """
    parts = name.split("/") if name else []
    return ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]
