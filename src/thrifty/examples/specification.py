"""The parts of an example world: segments, routes with prices and rates, outages and repricings. Plain data, no sampling.

Time runs from 0 to 1 over the span of the world. The rate of a route is a straight line through its base rate at time 0.5. During
an outage the rate is multiplied by the factor of the outage.

One specification per world is the source of everything that shows it: the example log, the scenario, the simulated traffic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from thrifty.arrays import Floats


@dataclass(frozen=True)
class Route:
    """One arm in one segment.

    Parameters
    ----------
    arm : its name
    price : dollars a call, the mean where costs are random
    rate : expected reward in the middle of the span, in [0, 1]
    drift : how much the rate changes over the whole span
    delay_s : median seconds until the outcome comes back; delays are log-normal with a spread of `DELAY_SPREAD`
    loss : the share of outcomes that never come back, good or bad alike
    weight : how much of the logged traffic the operator gave it, before normalising
    concentration : 0 for success or failure; a score in [0, 1] is Beta distributed with a + b = concentration
    cost_cv : 0 for a fixed price; random costs are Gamma distributed with this ratio of standard deviation to mean

    >>> Route("Alder", price=0.0075, rate=0.94).drift
    0.0

    """

    arm: str
    price: float
    rate: float
    drift: float = 0.0
    delay_s: float = 6.0
    loss: float = 0.01
    weight: float = 1.0
    concentration: float = 0.0
    cost_cv: float = 0.0


DELAY_SPREAD = 1.2
"""Standard deviation of the logarithm of a delay: one in twenty takes seven times the median."""


@dataclass(frozen=True)
class ExampleSegment:
    """A kind of request: its name, its share of the traffic before normalising, and the routes that can take it."""

    name: str
    share: float
    routes: tuple[Route, ...]


@dataclass(frozen=True)
class Outage:
    """From `start` to `end`, in shares of the span, the rate of `arm` is multiplied by `factor`, in all segments or in one."""

    arm: str
    start: float
    end: float
    factor: float
    segment: str | None = None


@dataclass(frozen=True)
class Repricing:
    """From `start` on, the price of `arm` is multiplied by `factor`, in all segments or in one."""

    arm: str
    start: float
    factor: float
    segment: str | None = None


@dataclass(frozen=True)
class Specification:
    """An example world: what is true, how it changes, and how a log of it looks.

    Parameters
    ----------
    name, about : its name on the command line, and one line for people
    days : the span of the world
    rows : how many rows its example log has, unless another number is asked for
    segments : the kinds of request
    outages, repricings : what changes besides the drift of the routes
    names : the names of the log's columns where they differ from those of the generator
    success : the status of a good outcome in the log; a bad one is "failed"

    >>> from thrifty.examples import SMS
    >>> len(SMS.segments), min(len(s.routes) for s in SMS.segments), max(len(s.routes) for s in SMS.segments)
    (12, 3, 8)

    """

    name: str
    about: str
    days: float
    rows: int
    segments: tuple[ExampleSegment, ...]
    outages: tuple[Outage, ...] = ()
    repricings: tuple[Repricing, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    success: str = "delivered"

    @property
    def scored(self) -> bool:
        """Whether outcomes are scores in [0, 1] instead of successes and failures."""
        return any(route.concentration > 0.0 for segment in self.segments for route in segment.routes)

    def segment(self, name: str) -> ExampleSegment:
        """The segment of this name.

        >>> from thrifty.examples import SMS
        >>> [route.arm for route in SMS.segment("US").routes]
        ['Alder', 'Birch', 'Cedar']
        """
        for each in self.segments:
            if each.name == name:
                return each
        raise ValueError(f"no segment {name!r} in {self.name}: there are {', '.join(each.name for each in self.segments)}")

    def rates(self, segment: ExampleSegment, when: Floats) -> Floats:
        """(n, K) the expected reward of every route of a segment at times `when` in [0, 1].

        >>> from thrifty.examples import SMS
        >>> SMS.rates(SMS.segment("US"), np.array([0.5])).round(3).tolist()
        [[0.955, 0.945, 0.9]]
        """
        routes = segment.routes
        rates = np.array([route.rate for route in routes]) + np.outer(when - 0.5, [route.drift for route in routes])
        for outage in self.outages:
            for column, route in enumerate(routes):
                if route.arm == outage.arm and outage.segment in (None, segment.name):
                    rates[(when >= outage.start) & (when < outage.end), column] *= outage.factor
        return np.asarray(np.clip(rates, 0.0, 1.0), dtype=np.float64)

    def prices(self, segment: ExampleSegment, when: Floats) -> Floats:
        """(n, K) the expected cost of every route of a segment at times `when`.

        >>> from thrifty.examples import SMS
        >>> SMS.prices(SMS.segment("US"), np.array([0.0])).tolist()
        [[0.0083, 0.0074, 0.0052]]
        """
        prices = np.tile([route.price for route in segment.routes], (when.size, 1))
        for change in self.repricings:
            for column, route in enumerate(segment.routes):
                if route.arm == change.arm and change.segment in (None, segment.name):
                    prices[when >= change.start, column] *= change.factor
        return np.asarray(prices, dtype=np.float64)
