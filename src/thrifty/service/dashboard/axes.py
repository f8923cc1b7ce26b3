"""Scales, ticks and paths of charts. Coordinates are those of an SVG: y grows downwards."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDE_RATIO = 40.0
"""A scale of positive numbers is logarithmic where the largest is so many times the smallest."""


@dataclass(frozen=True)
class Scale:
    """Maps numbers from `low` to `high` to coordinates from `start` to `end`.

    >>> Scale(0.0, 10.0, 0.0, 100.0)(5.0)
    50.0
    >>> Scale(1.0, 100.0, 0.0, 100.0, logarithmic=True)(10.0)
    50.0
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of a number, rounded as far as a screen shows it; outside the scale the nearest end."""
        low, high, value = self._even(self.low), self._even(self.high), self._even(min(max(value, self.low), self.high))
        part = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + part * (self.end - self.start), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """At most so many round numbers on the scale.

        >>> Scale(0.0, 1.0, 0.0, 100.0).ticks(6)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            powers = [10.0**power for power in range(first, last + 1)]
            return powers[:: max(1, math.ceil(len(powers) / most))] if len(powers) > 1 else [self.low, self.high]
        return round_numbers(self.low, self.high, most)

    def _even(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value


def round_numbers(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, at most `most` of them.

    >>> round_numbers(0.83, 0.96, 5)
    [0.85, 0.9, 0.95]
    """
    span = high - low
    if not span > 0.0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / max(most, 1)))
    for step in (power, 2 * power, 5 * power, 10 * power, 20 * power, 50 * power):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [round(step * each, 12) + 0.0 for each in range(first, last + 1)]
    return [low, high]


def price_scale(prices: Sequence[float], start: float, end: float) -> Scale:
    """A scale of prices: from zero, or logarithmic where they differ very much.

    >>> price_scale([0.01, 0.02], 0.0, 100.0).low, price_scale([0.01, 5.0], 0.0, 100.0).logarithmic
    (0.0, True)
    """
    high = max(prices, default=1.0) or 1.0
    low = min((price for price in prices if price > 0.0), default=high)
    if high / low > WIDE_RATIO and min(prices) > 0.0:
        return Scale(low / 1.4, high * 1.4, start, end, logarithmic=True)
    return Scale(0.0, high * 1.08, start, end)


def line(points: Iterable[tuple[float, float] | None]) -> str:
    """The path of a line through points; None leaves a gap.

    >>> line([(0, 1), (2, 3), None, (4, 5)])
    'M0 1L2 3M4 5'
    """
    path, pen_down = [], False
    for point in points:
        if point is not None:
            path.append(f"{'L' if pen_down else 'M'}{point[0]:g} {point[1]:g}")
        pen_down = point is not None
    return "".join(path)


def band(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]]) -> str:
    """The path of the area between two lines.

    >>> band([(0, 1), (2, 1)], [(0, 3), (2, 3)])
    'M0 1L2 1L2 3L0 3Z'
    """
    return f"{line([*upper, *reversed(lower)])}Z" if upper else ""
