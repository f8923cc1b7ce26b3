"""The ledger: recent decisions by id and by request_id, in the order in which they were made and in which they fall due."""

import math
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
        self.find = self._sent.get  # the decision of an id, or None
        self.answered = self._requests.get  # the decision that was asked for with a request_id, or None
        self.next_due = math.inf  # nothing is past its deadline before this, by the monotonic clock

    def __len__(self) -> int:
        return len(self._sent)

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent.values())

    def add(self, sent: Sent) -> None:
        """Remember a decision."""
        self._sent[sent.id] = sent
        self._order.append(sent)
        self._queue.append(sent)
        if sent.due < self.next_due:
            self.next_due = sent.due
        request_id = sent.row.request_id
        if request_id is not None:
            self._requests[request_id] = sent

    def remove(self, sent: Sent) -> None:
        """Forget a decision."""
        if self._sent.pop(sent.id, None) is None:
            return
        self._order.remove(sent)
        if sent in self._queue:
            self._queue.remove(sent)
        if self._requests.get(str(sent.row.request_id)) is sent:
            del self._requests[str(sent.row.request_id)]

    def forget(self, before: float) -> None:
        """Forget all decisions made before a time."""
        gone = [sent for sent in self._order if sent.row.at < before]
        for sent in gone:
            sent.waiting = False
            del self._sent[sent.id]
            if self._requests.get(str(sent.row.request_id)) is sent:
                del self._requests[str(sent.row.request_id)]
        self._order = deque(sent for sent in self._order if sent.row.at >= before)
        self._queue = deque(sent for sent in self._queue if sent.row.at >= before)

    def trim(self, limit: int) -> Sent | None:
        """Forget the oldest decisions until there is room for one more, but none that still waits: that one is returned."""
        order, queue = self._order, self._queue
        while len(self._sent) >= limit:
            oldest = order[0]
            if oldest.waiting:
                return oldest
            order.popleft()
            if queue and queue[0] is oldest:
                queue.popleft()
            del self._sent[oldest.id]
            request_id = oldest.row.request_id
            if request_id is not None and self._requests.get(request_id) is oldest:
                del self._requests[request_id]
        return None

    def due(self, now: float) -> Sent | None:
        """The first decision that still waits and is past its deadline, by the monotonic clock."""
        queue = self._queue
        while queue:
            head = queue[0]
            if head.waiting:
                self.next_due = head.due
                return head if head.due <= now else None
            queue.popleft()
        self.next_due = math.inf
        return None

    @property
    def waiting(self) -> int:
        """How many wait for an outcome."""
        return sum(sent.waiting for sent in self._queue)
