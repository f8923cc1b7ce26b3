"""Decisions without an outcome, found without reading the whole log again and again.

The log is looked at in blocks of positions. Once a block is complete (all its positions are durable) its open decisions can only
become fewer. So a block is scanned once. After that only the decisions that were open then are checked, and a block without any is
passed over; the store remembers such blocks across restarts in the table `settled`.
"""

import threading
from collections.abc import Iterable
from typing import Protocol

from thrifty.store.log import Placed

BLOCK_ROWS = 8_192
"""Positions in a block."""

REMEMBERED = 64
"""A block with more open decisions than this is scanned again, rather than remembered one by one."""


class OpenQueries(Protocol):
    """The queries that a store offers about one router's log."""

    def durable_position(self) -> int:
        """Everything up to this position is durable."""

    def next_position(self, after: int) -> int | None:
        """The position of the first row after a position; None if there is none."""

    def open_between(self, after: int, upto: int, limit: int) -> list[Placed]:
        """Open decisions with after < position <= upto, in order, at most `limit`."""

    def open_among(self, positions: tuple[int, ...]) -> list[Placed]:
        """Those of these decisions that are still open, in order."""

    def settled_blocks(self) -> Iterable[int]:
        """Blocks known to have no open decision."""

    def settle_block(self, block: int) -> None:
        """Remember that a block has no open decision."""


class OpenDecisions:
    """The open decisions of one router. `queries` may be used from several threads; a lock guards what is remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: dict[int, tuple[int, ...]] | None = None  # by block, positions of the decisions open at the last look

    def forget(self) -> None:
        """Scan everything again: a row was voided, so a decision may be open again."""
        with self._lock:
            self._blocks = None

    def find(self, queries: OpenQueries, *, after: int, upto: int, limit: int) -> list[Placed]:
        """See `Journal.open_decisions`."""
        with self._lock:
            if self._blocks is None:
                self._blocks = dict.fromkeys(queries.settled_blocks(), ())
            durable, found = queries.durable_position(), list[Placed]()
            block, end = (after + 1) // BLOCK_ROWS, upto // BLOCK_ROWS
            while block <= end and len(found) < limit:
                if block not in self._blocks:
                    at = queries.next_position(max(after, block * BLOCK_ROWS - 1))
                    if at is None or at > upto:
                        break
                    block = at // BLOCK_ROWS
                found += self._look_at(queries, block, (after, upto, limit - len(found)), durable)
                block += 1
            return found

    def _look_at(self, queries: OpenQueries, block: int, bounds: tuple[int, int, int], durable: int) -> list[Placed]:
        assert self._blocks is not None
        after, upto, limit = bounds
        known = self._blocks.get(block)
        if known is not None:
            rows = queries.open_among(known) if known else []
            self._note(queries, block, rows)
            return [each for each in rows if after < each[0] <= upto][:limit]
        first, last = block * BLOCK_ROWS, block * BLOCK_ROWS + BLOCK_ROWS - 1
        rows = queries.open_between(max(after, first - 1), min(upto, last), limit)
        if after < max(first, 1) and upto >= last and durable >= last and len(rows) < limit and len(rows) <= REMEMBERED:
            self._note(queries, block, rows)
        return rows

    def _note(self, queries: OpenQueries, block: int, rows: list[Placed]) -> None:
        assert self._blocks is not None
        positions = tuple(position for position, _ in rows)
        if not positions and self._blocks.get(block) != ():
            queries.settle_block(block)
        self._blocks[block] = positions
