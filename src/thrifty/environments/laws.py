"""Laws: the distributions of rewards and costs, with their means.

Rewards are in [0, 1]. Costs have the same laws, scaled by any positive factor.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from thrifty.environments.distribution import Distribution, is_number


@dataclass(frozen=True)
class Law(Distribution):
    """One distribution on [0, scale]."""

    def __post_init__(self) -> None:
        wrong = [
            (name, value) for name, value in self.__dict__.items() if not isinstance(value, (tuple, Law)) and not is_number(value)
        ]
        if wrong:
            raise ValueError(f"{wrong[0][0]} of a {self.name} law must be a number, got {wrong[0][1]!r:.80}")
        super().__post_init__()

    @property
    def mean(self) -> float:
        """The expected value."""
        raise NotImplementedError

    @property
    def on_success(self) -> "Law":
        """The law after a success, and `on_failure` after a failure: this one, unless it is made of fees."""
        return self

    @property
    def on_failure(self) -> "Law":
        """See `on_success`."""
        return self

    @property
    def depends_on_outcome(self) -> bool:
        """Whether a draw depends on the reward."""
        return self.on_success is not self

    def mean_at(self, quality: float) -> float:
        """The expected value for an arm whose mean reward is `quality`."""
        if not self.depends_on_outcome:
            return self.mean
        return quality * self.on_success.mean + (1.0 - quality) * self.on_failure.mean

    @property
    def values(self) -> tuple[float, ...]:
        """The data of a law that resamples; empty for the others."""
        return ()

    @property
    def scale(self) -> float:
        """The factor of a draw in [0, 1]."""
        return 1.0


@dataclass(frozen=True)
class Bernoulli(Law):
    """1 with probability p, else 0.

    >>> Bernoulli(0.3).mean
    0.3
    """

    p: float
    kind = 0
    name = "bernoulli"

    def complaint(self) -> str | None:
        return None if 0.0 <= self.p <= 1.0 else f"the probability of a Bernoulli law must be in [0, 1], got {self.p}"

    @property
    def mean(self) -> float:
        return self.p


@dataclass(frozen=True)
class Beta(Law):
    """Beta(a, b).

    >>> Beta(2, 6).mean
    0.25
    """

    a: float
    b: float
    kind = 1
    name = "beta"

    def complaint(self) -> str | None:
        good = 0.0 < self.a < math.inf and 0.0 < self.b < math.inf
        return None if good else f"the parameters of a Beta law must be positive, got a={self.a}, b={self.b}"

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)


@dataclass(frozen=True)
class ClippedGaussian(Law):
    """N(centre, sd^2), with what falls outside [0, 1] moved to the nearer end. The mean takes the clipping into account.

    >>> ClippedGaussian(0.5, 0.3).mean
    0.5
    >>> round(ClippedGaussian(0.0, 1.0).mean, 4)
    0.3156
    """

    centre: float
    sd: float
    kind = 2
    name = "clipped-gaussian"

    def complaint(self) -> str | None:
        good = math.isfinite(self.centre) and 0.0 < self.sd < math.inf
        return None if good else f"a clipped Gaussian needs a finite centre and a positive sd, got {self.centre} and {self.sd}"

    @property
    def mean(self) -> float:
        low, high = -self.centre / self.sd, (1.0 - self.centre) / self.sd
        inside = self.centre * (_normal_cdf(high) - _normal_cdf(low)) - self.sd * (_normal_pdf(high) - _normal_pdf(low))
        return inside + _normal_cdf(-high)


@dataclass(frozen=True)
class Deterministic(Law):
    """Always the same value.

    >>> Deterministic(0.7).mean
    0.7
    """

    value: float
    kind = 3
    name = "deterministic"

    def complaint(self) -> str | None:
        if 0.0 <= self.value <= 1.0:
            return None
        return f"a deterministic law must be in [0, 1], got {self.value}: use scaled(...) for larger costs"

    @property
    def mean(self) -> float:
        return self.value


@dataclass(frozen=True)
class Resampled(Law):
    """A value drawn at random from data, with replacement.

    >>> Resampled((0.0, 0.5, 1.0)).mean
    0.5
    """

    data: tuple[float, ...]
    kind = 4
    name = "resampled"

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _checked_data(self.data))
        super().__post_init__()

    def complaint(self) -> str | None:
        if not self.data:
            return "a resampled law needs at least one value"
        wrong = [value for value in self.data if not 0.0 <= value <= 1.0]
        return f"resampled values must be in [0, 1], got {wrong[0]}: use scaled(...) for larger costs" if wrong else None

    @property
    def mean(self) -> float:
        return math.fsum(self.data) / len(self.data)

    @property
    def shape(self) -> tuple[float, float]:
        return 0.0, 0.0

    @property
    def values(self) -> tuple[float, ...]:
        return self.data


@dataclass(frozen=True)
class Scaled(Law):
    """`law` times a positive factor: a cost in dollars, say. Made by `scaled`."""

    law: Law
    factor: float
    name = "scaled"

    def complaint(self) -> str | None:
        if not isinstance(self.law, Law):
            return f"scaled needs a law, got {self.law!r:.80}: write scaled(Bernoulli(0.5), 0.02)"
        return None if 0.0 < self.factor < math.inf else f"a law can be scaled by a positive number only, got {self.factor}"

    @property
    def kind(self) -> int:  # type: ignore[override]
        """The kind of the law that is scaled."""
        return self.law.kind

    @property
    def mean(self) -> float:
        return self.factor * self.law.mean

    @property
    def on_success(self) -> Law:
        return Scaled(self.law.on_success, self.factor) if self.law.depends_on_outcome else self

    @property
    def on_failure(self) -> Law:
        return Scaled(self.law.on_failure, self.factor) if self.law.depends_on_outcome else self

    @property
    def shape(self) -> tuple[float, float]:
        return self.law.shape

    @property
    def values(self) -> tuple[float, ...]:
        return self.law.values

    @property
    def scale(self) -> float:
        return self.factor * self.law.scale

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.name, "of": self.law.to_dict(), "factor": self.factor}


def scaled(law: Law, factor: float) -> Scaled:
    """`law` times `factor`.

    >>> scaled(Bernoulli(0.5), 0.01).mean
    0.005
    """
    return Scaled(law, factor)


def _checked_data(data: object) -> tuple[float, ...]:
    values = data.tolist() if isinstance(data, np.ndarray) else data
    if not isinstance(values, (list, tuple)) or not all(is_number(value) for value in values):
        raise ValueError(f"a resampled law needs a list of numbers, got {data!r:.80}: write Resampled((0.0, 0.5, 1.0))")
    return tuple(float(value) for value in values)


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _normal_pdf(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
