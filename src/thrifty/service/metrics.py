"""Metrics for Prometheus: read from what routers, store and connections keep anyway, when somebody asks.

Routers and arms beyond the limits of the configuration are summed under the label "other", so that the number of series is bounded.
What a router counts (decisions, outcomes, sums by arm) is of all replicas; requests, seconds and rewards are of this process.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from thrifty.router.reward_histogram import REWARDS
from thrifty.service.alert_rules import SEVERITIES
from thrifty.service.request_counts import SECONDS

if TYPE_CHECKING:
    from thrifty.service.app import App

OTHER = "other"
"""The label of everything beyond a limit. A router or an arm of this very name is counted with it."""

_COUNTERS = {
    "decisions": "decisions that were made, by all replicas",
    "outcomes": "outcomes that arrived, at all replicas",
    "expired": "decisions whose deadline passed without an outcome",
}
_GAUGES = {
    "compiled": "1 if the policy is compiled",
    "max_segments": "segments that there may be",
    "memory_bytes": "bytes of recent decisions in memory",
    "memory_limit_bytes": "bytes of recent decisions in memory, at most",
    "pending": "decisions that wait for an outcome",
    "segments": "segments seen so far",
    "stale": "1 if the state is to be restored because the log lost rows",
}
_ARMS = {
    "arm_decisions": "decisions for an arm; falls when one is voided or the arm is reset",
    "arm_outcomes": "outcomes of an arm, default ones included; falls when one is voided or the arm is reset",
    "arm_reward_sum": "rewards of an arm, corrections included; falls when the arm is reset",
    "arm_cost_sum": "costs of an arm, corrections included; falls when the arm is reset",
}


class LabelBook:
    """Which names have a label of their own. A name keeps what it was given as long as it exists.

    >>> book = LabelBook(2)
    >>> book.assign(["a", "b", "c"])
    >>> [book.label(name) for name in "abc"], book.folded
    (['a', 'b', 'other'], 1)
    >>> book.assign(["b", "c", "d"])
    >>> [book.label(name) for name in "bcd"]
    ['b', 'other', 'd']
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: dict[Hashable, bool] = {}

    def assign(self, names: Iterable[Hashable]) -> None:
        """Forget names that are gone, and give labels to new ones as far as there are any."""
        present = dict.fromkeys(names)
        self._own = {name: own for name, own in self._own.items() if name in present}
        free = self._most - sum(self._own.values())
        for name in present:
            if name not in self._own:
                self._own[name] = free > 0
                free -= 1

    def label(self, name: Any) -> Any:
        """The name itself, or "other"."""
        return name if self._own.get(name) else OTHER

    @property
    def folded(self) -> int:
        """How many names have no label of their own."""
        return len(self._own) - sum(self._own.values())


class Metrics:
    """Collects the metrics of a service."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._routers, self._arms = LabelBook(app.config.metrics_routers), LabelBook(app.config.metrics_arms)
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> str:
        """All metrics in the text format of Prometheus. For one thread at a time."""
        return generate_latest(self._registry).decode()

    def collect(self) -> Iterator[Metric]:
        """Every metric; called by the registry."""
        routers, quarantined = self._app.routers.all(), list(self._app.routers.quarantined)
        self._routers.assign([name for name, _ in routers] + quarantined)
        yield from self._of_routers(routers, quarantined)
        yield from self._of_arms(routers)
        yield from self._of_requests()
        yield from self._of_alerts()
        yield from self._of_service()

    def _of_routers(self, routers: list[tuple[str, Any]], quarantined: list[str]) -> Iterator[Metric]:
        sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for name, router in routers:
            label = self._routers.label(name)
            for what, value in {**{f"{what}_total": value for what, value in router.counts.items()}, **router.gauges()}.items():
                sums[what][label] += value
        for name in quarantined:
            sums["quarantined"][self._routers.label(name)] += 1.0
        for what, text in _COUNTERS.items():
            yield _family(CounterMetricFamily, what, text, sums.pop(f"{what}_total", {}))
        yield _family(GaugeMetricFamily, "quarantined", "1 if the router is out of service", sums.pop("quarantined", {}))
        for what in sorted(sums):
            yield _family(GaugeMetricFamily, what, _GAUGES.get(what, ""), sums[what])

    def _of_arms(self, routers: list[tuple[str, Any]]) -> Iterator[Metric]:
        known = {name: router.statistics() for name, router in routers}
        self._arms.assign((name, arm) for name, arms in known.items() if self._routers.label(name) != OTHER for arm in arms)
        sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * len(_ARMS))
        rewards: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * (len(REWARDS) + 1))
        for name, router in routers:
            for arm, values in known[name].items():
                _add(sums[self._labels(name, arm)], values)
            for arm, counts in router.rewards.read().items():
                _add(rewards[self._labels(name, arm)], counts)
        for place, (what, text) in enumerate(_ARMS.items()):
            family = GaugeMetricFamily(f"thrifty_{what}", text, labels=["router", "arm"])
            for labels, values in sorted(sums.items()):
                family.add_metric(labels, values[place])
            yield family
        text = "rewards of first outcomes that this process took; neither corrections nor default outcomes"
        histogram = HistogramMetricFamily("thrifty_reward", text, labels=["router", "arm"])
        for labels, counts in sorted(rewards.items()):
            histogram.add_metric(labels, _buckets(REWARDS, [*counts[:-1], 0.0]), counts[-1])
        yield histogram
        folded = {"routers": float(self._routers.folded), "arms": float(self._arms.folded)}
        yield _family(GaugeMetricFamily, "metrics_folded", 'how many are summed as "other"', folded, label="what")

    def _labels(self, router: str, arm: str) -> tuple[str, str]:
        if self._routers.label(router) == OTHER:
            return OTHER, OTHER
        return router, arm if self._arms.label((router, arm)) != OTHER else OTHER

    def _of_requests(self) -> Iterator[Metric]:
        counts = self._app.counts
        requests = CounterMetricFamily("thrifty_requests", "requests that were answered", labels=["route", "status"])
        for (route, status), count in sorted(counts.statuses.copy().items()):
            requests.add_metric([route, str(status)], count)
        yield requests
        seconds = CounterMetricFamily("thrifty_request_seconds", "seconds that requests took together", labels=["route"])
        text = "seconds from a request to its durable answer"
        histogram = HistogramMetricFamily("thrifty_request_duration_seconds", text, labels=["route"])
        for route, times in sorted(counts.times.copy().items()):
            seconds.add_metric([route], times[-1])
            histogram.add_metric([route], _buckets(SECONDS, times[:-1]), times[-1])
        yield seconds
        yield histogram

    def _of_alerts(self) -> Iterator[Metric]:
        lasting = Counter(alert["rule"] for alert in self._app.alerts.open())
        family = GaugeMetricFamily("thrifty_alerts", "alerts that last, at all replicas", labels=["rule", "severity"])
        for rule, severity in SEVERITIES.items():
            family.add_metric([rule, severity], lasting[rule])
        yield family

    def _of_service(self) -> Iterator[Metric]:
        app = self._app
        yield GaugeMetricFamily("thrifty_connections", "open connections", len(app.connections))
        yield CounterMetricFamily("thrifty_connections_refused", "connections beyond max_connections", app.connections.refused)
        yield GaugeMetricFamily("thrifty_slow_calls_waiting", "calls that wait for a worker thread", app.hot_path.slow.waiting)
        away = float(app.store.writer.failure is not None)
        yield GaugeMetricFamily("thrifty_store_away", "1 if the last commit failed", away)
        yield CounterMetricFamily("thrifty_commits", "commits of the store", app.store.writer.commits)
        reconciler = app.reconciler
        drift: dict[str, float] = defaultdict(float)
        for name, count in () if reconciler is None else reconciler.counts().items():
            drift[self._routers.label(name)] += count
        yield _family(GaugeMetricFamily, "drift", "fields that are not as the configuration file declares", drift)
        refused = float(reconciler is not None and bool(reconciler.error))
        yield GaugeMetricFamily("thrifty_config_refused", "1 if the configuration file was refused when it was last read", refused)
        yield _family(GaugeMetricFamily, "build_info", "1, with the version", {version("thrifty"): 1.0}, label="version")


def _family(kind: Any, name: str, text: str, values: dict[str, float], *, label: str = "router") -> Metric:
    family: Metric = kind(f"thrifty_{name}", text, labels=[label])
    for each, value in sorted(values.items()):
        family.add_metric([each], value)  # type: ignore[attr-defined]
    return family


def _add(sums: list[float], values: Iterable[float]) -> None:
    for place, value in enumerate(values):
        sums[place] += value


def _buckets(ends: tuple[float, ...], counts: list[float]) -> list[tuple[str, float]]:
    """Cumulative counts by upper end; `counts` has one more, of all that is above the last end."""
    return list(zip([*(str(end) for end in ends), "+Inf"], accumulate(counts), strict=True))
