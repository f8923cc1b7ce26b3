"""Repeated ids, found in bounded memory: two hash sets hold the ids of the last millions of rows."""

import numpy as np
from numpy.typing import NDArray

from thrifty.compiled import kept

GENERATION = 1 << 21
"""Ids in one set, a power of two. A repeated id is found if it comes at most this many rows later."""


class SeenIds:
    """Remembers at least the last 2 million ids, as 64-bit hashes. The hash 0 stands for no id, and is never repeated.

    >>> SeenIds().repeated(np.array([7, 0, 0, 7], dtype=np.uint64)).tolist()
    [False, False, False, True]
    """

    def __init__(self, generation: int = GENERATION) -> None:
        self._young, self._old = (np.zeros(2 * generation, np.uint64) for _ in range(2))
        self._count, self._most = 0, generation

    def repeated(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of these ids were seen before, in this call or an earlier one. Remembers all of them."""
        found = np.zeros(hashes.size, dtype=np.bool_)
        first = 0
        while first < hashes.size:
            last = min(hashes.size, first + self._most - self._count)
            self._count += _insert(hashes[first:last], self._young, self._old, found[first:last])
            if self._count >= self._most:
                self._young, self._old, self._count = self._old, self._young, 0
                self._young[:] = 0
            first = last
        return found


class KnownRepeats:
    """Stands in for `SeenIds` where the repeated ids of a part are known: `places` among the rows that are asked about.

    >>> known = KnownRepeats(np.array([2]))
    >>> known.repeated(np.zeros(2, np.uint64)).tolist(), known.repeated(np.zeros(2, np.uint64)).tolist()
    ([False, False], [True, False])
    """

    def __init__(self, places: NDArray[np.int64]) -> None:
        self._places, self._asked = places, 0

    def repeated(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of the next rows are repeated."""
        found = np.isin(np.arange(self._asked, self._asked + hashes.size), self._places)
        self._asked += hashes.size
        return found


@kept
def _insert(hashes, young, old, found):
    """Open addressing in tables whose size is a power of two; 0 marks an empty place, and no id."""
    mask = np.uint64(young.size - 1)
    added = 0
    for row in range(hashes.size):
        word = hashes[row]
        if word == 0:
            continue
        for table in (old, young):
            place = word & mask
            while table[place] != 0 and table[place] != word:
                place = (place + np.uint64(1)) & mask
            if table[place] == word:
                found[row] = True
                break
        if not found[row]:
            young[place] = word
            added += 1
    return added
