"""How many requests there were, and how long they took: plain lists, so that counting one takes well below a microsecond."""

from bisect import bisect_left

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper ends of the buckets of seconds; there is one more for all that took longer."""


_PARTS = {"v1": 3, "dashboard": 3}
"""How many parts of a path say what is asked for, by the first part; of all others it is the first alone."""


def route_of(path: str) -> str:
    """What is asked for, without names: there are only so many.

    >>> route_of("/v1/routers/sms/segments/DE"), route_of("/routers/sms"), route_of("/")
    ('/v1/routers', '/routers', '/')
    """
    parts = path.split("/")
    return "/".join(parts[: _PARTS.get(parts[1], 2)])


class RequestCounts:
    """Requests by route and status, and their seconds by route. For one thread, that of the loop; others may read.

    `statuses` counts by (route, status). `times` has for each route the count of every bucket, and the sum of seconds last.

    >>> counts = RequestCounts()
    >>> counts.add("/v1/decisions", 200, 0.0015)
    >>> counts.statuses, counts.times["/v1/decisions"]
    ({('/v1/decisions', 200): 1}, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0015])
    """

    def __init__(self) -> None:
        self.statuses: dict[tuple[str, int], int] = {}
        self.times: dict[str, list[float]] = {}

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        statuses, key = self.statuses, (route, status)
        statuses[key] = statuses.get(key, 0) + 1
        times = self.times.get(route)
        if times is None:
            times = self.times[route] = [0] * (len(SECONDS) + 1) + [0.0]
        times[bisect_left(SECONDS, seconds)] += 1
        times[-1] += seconds
