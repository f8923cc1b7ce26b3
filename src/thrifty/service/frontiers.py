"""Frontiers: what other alphas would give, from a router's own log, or from its sums where logs cannot be read here.

`service` does not read logs: whoever starts it hands in the function that does. A frontier takes seconds, so one is made at a time,
in a thread, and kept for a while.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool

from thrifty.router import Router
from thrifty.service.errors import ServiceProblemError
from thrifty.service.overview import FRESH_S, encode
from thrifty.store.log import Journal

KEPT_S = 30.0
"""Seconds for which a frontier serves everybody who asks."""

MOST_KEPT, MOST_WAITING = 64, 32
"""Frontiers that are kept, and requests that may wait for one to be made."""

FromLog = Callable[[Journal, str, str], list[dict[str, Any]]]
"""Is given the log, the name of a router and a segment, and returns a row per alpha; a ValueError says why it cannot."""

_FROM_LOG = "estimated from the newest decisions in the router's own log, with intervals at 95%"
_FROM_SUMS = "estimated from the router's sums: each arm as it did where it was chosen, without intervals of cost"

NOT_FROM_LOG = "not from its log"
"""What stands before the reason, in the note of a frontier from sums."""


class Frontiers:
    """Makes frontiers. For the thread of the loop, but for what runs in threads."""

    def __init__(self, from_log: FromLog | None) -> None:
        self._from_log, self._turn, self._waiting = from_log, asyncio.Lock(), 0
        self._kept: OrderedDict[tuple[str, str], tuple[float, int, bytes]] = OrderedDict()

    async def body(self, router: Router, segment: str) -> bytes:
        """The frontier of a segment and those below it as JSON; at most half a minute old, and of the arms and settings of now."""
        if (found := self._known(router, segment)) is not None:
            return found
        if self._waiting >= MOST_WAITING:
            raise ServiceProblemError(503, "busy", f"{MOST_WAITING} requests for frontiers wait already; try again later")
        self._waiting += 1
        try:
            async with self._turn:
                if (found := self._known(router, segment)) is None:  # whoever waited before may have made it
                    version = router.version
                    found = await run_in_threadpool(self._make, router, segment)
                    self._keep(router.name, segment, (time.monotonic(), version, found))
                return found
        finally:
            self._waiting -= 1

    def _known(self, router: Router, segment: str) -> bytes | None:
        made_at, version, body = self._kept.get((router.name, segment), (0.0, -1, b""))
        return body if version == router.version and time.monotonic() - made_at < KEPT_S else None

    def _keep(self, name: str, segment: str, made: tuple[float, int, bytes]) -> None:
        self._kept[name, segment] = made
        self._kept.move_to_end((name, segment))
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def _make(self, router: Router, segment: str) -> bytes:
        rows, note, basis = [], "the service was started without the extra `replay`", "sums"
        if self._from_log is not None and router.log.journal is not None:
            try:
                rows, note, basis = self._from_log(router.log.journal, router.name, segment), _FROM_LOG, "log"
            except ValueError as error:  # too few rows, say
                note = " ".join(str(error).split())[:300]
        if basis == "sums":
            rows, note = router.what_if(segment=segment, max_age_s=FRESH_S), f"{_FROM_SUMS} ({NOT_FROM_LOG}: {note})"
        shown = {"router": router.name, "segment": segment, "alpha": router.settings.alpha, "basis": basis, "note": note}
        return encode({**shown, "at": time.time(), "rows": rows})
