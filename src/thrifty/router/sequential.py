"""Sequential tests: has a mean fallen below what it was, looked at after every batch of outcomes, for ever?

Shiryaev-Roberts: R = (1 + R) L at every look, where L is the likelihood ratio of the batch. Under "no change" the mean of R minus
the number of looks is 0 or less, so the mean number of looks until R first reaches A is at least A [Pollak1985], whatever the
number of outcomes in a look. That is the false alarm rate, stated in looks and hence in time.

Rewards lie in [0, 1] and need not be 0 or 1: by concavity the ratio of the sums bounds the capital of a fair bet from below, and
"the mean is at least m0" need not mean "is m0".
"""

import math
from dataclasses import dataclass, field

REFERENCE_OUTCOMES = 2000.0
"""Outcomes that a reference remembers; older ones count less."""

LEAST_REFERENCE = 100.0
"""Outcomes that a reference needs before anything is compared with it."""

RECENT_OUTCOMES = 50.0

CONFIRMED = 3.0
"""log R, about 20, from which a drop that was noticed is taken to last."""

Z = 3.0
"""Standard errors by which a reference is taken to be lower than it looks."""


def lower_bound(n: float, total: float) -> float:
    """The lower end of Wilson's interval, Z standard errors wide, for the mean of n rewards in [0, 1].

    >>> round(lower_bound(100, 90), 3), lower_bound(0, 0)
    (0.775, 0.0)
    """
    if n <= 0.0:
        return 0.0
    mean = min(max(total / n, 0.0), 1.0)
    centre, spread = mean + Z * Z / (2 * n), Z * math.sqrt(mean * (1 - mean) / n + Z * Z / (4 * n * n))
    return max((centre - spread) / (1 + Z * Z / n), 0.0)


def log_ratio(n: float, total: float, m0: float, m1: float) -> float:
    """Logarithm of the likelihood ratio of mean m1 against m0 for n rewards of this total; 0 < m0 < 1, 0 < m1 < 1.

    >>> round(log_ratio(10, 3, 0.9, 0.5), 2)
    9.5
    """
    return total * math.log(m1 / m0) + (n - total) * math.log((1 - m1) / (1 - m0))


@dataclass
class Mean:
    """The mean of rewards, in which old ones count less.

    >>> mean = Mean(limit=100.0)
    >>> mean.add(300.0, 270.0)
    >>> mean.n, mean.total
    (100.0, 90.0)
    """

    limit: float = REFERENCE_OUTCOMES
    n: float = 0.0
    total: float = 0.0

    def add(self, n: float, total: float) -> None:
        """Count n rewards of this total."""
        self.n, self.total = self.n + n, self.total + total
        if self.n > self.limit:
            self.n, self.total = self.limit, self.total * self.limit / self.n

    @property
    def low(self) -> float:
        """A lower bound; 0 while there are too few."""
        return lower_bound(self.n, self.total) if self.n >= LEAST_REFERENCE else 0.0

    @property
    def value(self) -> float:
        """The mean; 0 if there is none."""
        return self.total / self.n if self.n else 0.0


@dataclass
class DropTest:
    """One sequential test: begins when a mean is below m0 beyond doubt, ends when it is above again beyond doubt.

    Parameters
    ----------
    factors : alternatives, as shares of m0; R is the average over them
    threshold : log A, looks until a false beginning on average, at least
    recovery : the same for a false end
    hold : looks that a drop must last: it begins only if the evidence since it was first noticed is strong again after them

    """

    factors: tuple[float, ...]
    threshold: float
    recovery: float
    hold: int = 0
    log_r: list[float] = field(default_factory=list)
    log_up: float = -math.inf
    bad: bool = False
    held: int = 0  # looks since a drop was first noticed; 0 if none was

    def __post_init__(self) -> None:
        self.log_r = self.log_r or [-math.inf] * len(self.factors)

    @property
    def evidence(self) -> float:
        """The logarithm of R."""
        top = max(self.log_r)
        if top == -math.inf:
            return top
        return top + math.log(sum(math.exp(each - top) for each in self.log_r) / len(self.log_r))

    def take(self, ratios: list[float], up: float) -> None:
        """Take a look: log ratios of the batch for each alternative, and that of "as before" against m0."""
        if self.bad:
            self.log_up = _add_one(self.log_up) + up
            if self.log_up >= self.recovery:
                self.reset(bad=False)
            return
        self.log_r = [_add_one(before) + ratio for before, ratio in zip(self.log_r, ratios, strict=True)]
        if self.held:
            self._take_held()
        elif self.evidence >= self.threshold:
            self.reset(bad=self.hold == 0)
            self.held = int(self.hold > 0)

    def _take_held(self) -> None:
        self.held += 1
        if self.held > self.hold and self.evidence >= CONFIRMED:
            self.reset(bad=True)
        elif self.held > self.hold and self.evidence < CONFIRMED / 2:
            self.reset(bad=False)

    def reset(self, *, bad: bool) -> None:
        """Begin again, in one state or the other."""
        self.bad, self.log_up, self.held = bad, -math.inf, 0
        self.log_r = [-math.inf] * len(self.factors)


def ratios_of(n: float, total: float, m0: float, factors: tuple[float, ...], usual: float) -> tuple[list[float], float]:
    """What `DropTest.take` needs of a batch: log ratios of the alternatives, and of the usual mean, against m0.

    >>> [round(each, 1) for each in ratios_of(10, 2, 0.72, (0.9, 0.5), 0.9)[0]]
    [1.6, 5.2]
    """
    m0 = min(max(m0, 1e-6), 1 - 1e-6)
    usual = min(max(usual, m0), 1 - 1e-6)
    return [log_ratio(n, total, m0, factor * m0) for factor in factors], log_ratio(n, total, m0, usual)


def _add_one(log_r: float) -> float:
    """log(1 + R)."""
    return log_r + math.log1p(math.exp(-log_r)) if log_r > 0 else math.log1p(math.exp(log_r))
