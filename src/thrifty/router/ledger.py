"""The ledger: recent decisions by id and by request_id, in the order in which they were made and in which they fall due."""

from collections import deque
from collections.abc import Iterator

from thrifty.router.sent import Sent


class Ledger:
    """Decisions that outcomes may still come for; a bounded number, for whoever calls `trim`."""

    def __init__(self) -> None:
        self._sent: dict[str, Sent] = {}
        self._order: deque[Sent] = deque()  # a dict whose first keys were deleted takes long to find its first
        self._queue: deque[Sent] = deque()  # those that may still wait for their deadline
        self._requests: dict[str, Sent] = {}

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent.values())

    def add(self, sent: Sent) -> None:
        """Remember a decision."""
        self._sent[sent.id] = sent
        self._order.append(sent)
        self._queue.append(sent)
        if sent.row.request_id is not None:
            self._requests[sent.row.request_id] = sent

    def find(self, decision_id: str) -> Sent | None:
        """The decision of this id, if it is remembered."""
        return self._sent.get(decision_id)

    def answered(self, request_id: str) -> Sent | None:
        """The decision that was asked for with this request_id, if it is remembered."""
        return self._requests.get(request_id)

    def in_the_way(self, limit: int) -> Sent | None:
        """The oldest decision, if it still waits and must go before one more can be remembered."""
        self.trim(limit)
        return self._order[0] if len(self._sent) >= limit else None

    def trim(self, limit: int) -> None:
        """Forget the oldest decisions until there is room for one more, but none that still waits."""
        order = self._order
        while len(self._sent) >= limit and not order[0].waiting:
            oldest = order.popleft()
            del self._sent[oldest.id]
            request_id = oldest.row.request_id
            if request_id is not None and self._requests.get(request_id) is oldest:
                del self._requests[request_id]

    def due(self, now: float) -> Sent | None:
        """The first decision that still waits and is past its deadline, by the monotonic clock."""
        queue = self._queue
        while queue:
            head = queue[0]
            if head.waiting:
                return head if head.due <= now else None
            queue.popleft()
        return None

    @property
    def waiting(self) -> int:
        """How many wait for an outcome."""
        return sum(sent.waiting for sent in self._queue)
