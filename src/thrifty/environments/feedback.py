"""Feedback: when outcomes come back, or whether they are lost. Time is counted in decisions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from thrifty.compiled import kernel
from thrifty.environments.distribution import Distribution, is_number
from thrifty.problem import checked_count
from thrifty.streams import exponential, uniform
from thrifty.suggestions import did_you_mean


@dataclass(frozen=True)
class Delay(Distribution):
    """How many decisions later an outcome comes."""

    @property
    def usual(self) -> float:
        """A length that most delays do not exceed; it sets the size of the calendar."""
        raise NotImplementedError


@dataclass(frozen=True)
class Fixed(Delay):
    """Every outcome comes `decisions` later; 0 means at once.

    >>> Fixed(100).shape
    (100.0, 0.0)
    """

    decisions: float
    kind = 0
    name = "fixed"

    def complaint(self) -> str | None:
        return _negative("a fixed delay", self.decisions)

    @property
    def usual(self) -> float:
        return self.decisions


@dataclass(frozen=True)
class Exponential(Delay):
    """Exponential with this mean, rounded down to whole decisions.

    >>> Exponential(100).usual
    300
    """

    mean: float
    kind = 1
    name = "exponential"

    def complaint(self) -> str | None:
        return _negative("the mean of an exponential delay", self.mean)

    @property
    def usual(self) -> float:
        return 3 * self.mean


@dataclass(frozen=True)
class HeavyTailed(Delay):
    """Lomax (shifted Pareto): P(delay > d) = (1 + d / (mean (shape - 1)))^-shape, with no variance for a shape of 2 or less.

    >>> HeavyTailed(100).shape
    (1.5, 50.0)
    """

    mean: float
    tail: float = 1.5
    kind = 2
    name = "heavy-tailed"

    def complaint(self) -> str | None:
        if is_number(self.tail) and 1.0 < self.tail < math.inf:
            return _negative("the mean of a heavy-tailed delay", self.mean)
        return f"the tail of a heavy-tailed delay must be above 1, or it has no mean; got {self.tail}"

    @property
    def shape(self) -> tuple[float, float]:
        return self.tail, self.mean * (self.tail - 1.0)

    @property
    def usual(self) -> float:
        return 4 * self.mean


NEVER = 1 << 61
"""The round of an outcome that never comes. Twice this number still fits into the kernel's integers."""

DELAYS: dict[str, Callable[..., Delay]] = {delay.name: delay for delay in (Fixed, Exponential, HeavyTailed)}


def read_delay(spec: str) -> Delay:
    """The delay that `spec` names: "fixed:100", "exponential:100", "heavy-tailed:100" or, with its tail, "heavy-tailed:100,1.5".

    >>> read_delay("heavy-tailed:100")
    HeavyTailed(mean=100.0, tail=1.5)
    >>> read_delay("exponental:100")
    Traceback (most recent call last):
    ValueError: unknown delay 'exponental': did you mean exponential:100?
    """
    name, _, shape = spec.strip().partition(":")
    if name not in DELAYS:
        hint = did_you_mean(name, DELAYS, shown="{}:100", otherwise=f"write {', '.join(f'{each}:100' for each in DELAYS)}")
        raise ValueError(f"unknown delay {name!r}: {hint}")
    try:
        numbers = [float(item) for item in shape.split(",")]
    except ValueError:
        raise ValueError(f"a delay needs its length in decisions, got {spec!r}: write {name}:100") from None
    if len(numbers) > (2 if name == HeavyTailed.name else 1):
        raise ValueError(f"a delay has too many numbers, got {spec!r}: write {name}:{numbers[0]:g}")
    return DELAYS[name](*numbers)


class FeedbackNumbers(NamedTuple):
    """A `Feedback` as numbers for the kernel."""

    kind: int
    a: float
    b: float
    batch: int
    lost: float
    deadline: int
    default: float  # NaN if nothing counts at the deadline


@dataclass(frozen=True)
class Feedback:
    """When outcomes come back.

    Parameters
    ----------
    delay : how long an outcome takes, in decisions; a number is a fixed delay
    batch : outcomes come together after every `batch` decisions; 1 is one by one
    lost : the share of outcomes that never come
    deadline : after this many decisions without an outcome, `default` counts as the reward; a late outcome corrects it. None: a
        decision without an outcome stays pending for ever.
    default : the reward that counts at the deadline, in [0, 1]; None counts nothing, and a late outcome counts as it is

    >>> Feedback(Exponential(100), lost=0.1, deadline=1000).deadline
    1000
    >>> Feedback(-1)
    Traceback (most recent call last):
    ValueError: a fixed delay must be a number of decisions, 0 or more, got -1

    """

    delay: Delay
    batch: int = 1
    lost: float = 0.0
    deadline: int | None = None
    default: float | None = 0.0

    def __init__(
        self,
        delay: Delay | float = 0,
        *,
        batch: int = 1,
        lost: float = 0.0,
        deadline: int | None = None,
        default: float | None = 0.0,
    ) -> None:
        object.__setattr__(self, "delay", delay if isinstance(delay, Delay) else Fixed(delay))
        object.__setattr__(self, "batch", checked_count("batch", batch))
        object.__setattr__(self, "deadline", None if deadline is None else checked_count("deadline", deadline))
        object.__setattr__(self, "lost", _share("lost", lost))
        object.__setattr__(self, "default", None if default is None else _share("default", default))

    @property
    def numbers(self) -> FeedbackNumbers:
        """The numbers that the kernel reads."""
        deadline = NEVER if self.deadline is None else self.deadline
        default = math.nan if self.default is None else self.default
        return FeedbackNumbers(self.delay.kind, *self.delay.shape, self.batch, self.lost, deadline, default)

    @property
    def slots(self) -> int:
        """The size of the calendar, a power of two: large enough that few outcomes must be entered twice."""
        usual = max(self.delay.usual + self.batch, min(self.deadline or 0, 1 << 20))
        return 1 << max(6, min(20, math.ceil(math.log2(usual + 1.0))))

    def to_dict(self) -> dict[str, Any]:
        """The numbers of this feedback, ready for JSON."""
        return {
            "delay": self.delay.to_dict(),
            "batch": self.batch,
            "lost": self.lost,
            "deadline": self.deadline,
            "default": self.default,
        }


def checked_feedback(feedback: object) -> Feedback | None:
    """When outcomes come back, or None for at once.

    >>> checked_feedback(100)
    Traceback (most recent call last):
    ValueError: feedback must be a Feedback or None, got 100: write Feedback(100)
    """
    if feedback is None or isinstance(feedback, Feedback):
        return feedback
    remedy = f"Feedback({feedback})" if is_number(feedback) else "Feedback(Exponential(100), lost=0.1)"
    raise ValueError(f"feedback must be a Feedback or None, got {feedback!r:.80}: write {remedy}")


_FIXED, _EXPONENTIAL = Fixed.kind, Exponential.kind
_LONG = 2.0**60  # longer than any run


@kernel
def draw_arrival(numbers, t, stream):
    """The round after whose decision the outcome of round `t` comes back; NEVER when it does not.

    A heavy-tailed delay is made of an exponential one: if E has mean 1, exp(E / tail) is Pareto.
    """
    if numbers.lost > 0.0 and uniform(stream) < numbers.lost:
        return NEVER
    if numbers.kind == _FIXED:
        delay = numbers.a
    elif numbers.kind == _EXPONENTIAL:
        delay = numbers.a * exponential(stream)
    else:
        delay = numbers.b * (math.exp(exponential(stream) / numbers.a) - 1.0)
    arrival = t + int(delay if delay < _LONG else _LONG)
    if numbers.batch > 1:
        arrival = (arrival // numbers.batch + 1) * numbers.batch - 1
    return arrival


def _negative(name: str, value: float) -> str | None:
    """The error message if `value` is no number of decisions, or None."""
    good = is_number(value) and 0.0 <= value < math.inf
    return None if good else f"{name} must be a number of decisions, 0 or more, got {value}"


def _share(name: str, value: float) -> float:
    """`value`, or a ValueError if it is no number from 0 to 1."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return float(value)
