"""Small bars beside numbers: an interval with the floor, and a difference around zero."""

from collections.abc import Mapping
from typing import Any


def bullet(mean: float | None, low: float | None, high: float | None, floor: float | None) -> dict[str, float | None] | None:
    """An interval on a scale of a hundred steps with the floor in its middle, or to the right of it; None without an estimate.

    >>> bullet(0.9, 0.8, 1.0, 0.8)
    {'mean': 75.0, 'low': 50.0, 'high': 100.0, 'floor': 50.0}
    """
    if mean is None:
        return None
    start = max(0.0, 2.0 * floor - 1.0) if floor else 0.0

    def at(value: float) -> float:
        return round(100.0 * (min(max(value, start), 1.0) - start) / (1.0 - start), 2) if start < 1.0 else 100.0

    return {
        "mean": at(mean),
        "low": at(mean if low is None else low),
        "high": at(mean if high is None else high),
        "floor": at(floor) if floor else None,
    }


def difference_bar(known: Mapping[str, Any]) -> dict[str, float] | None:
    """Where the ends of the difference to the floor lie on a scale of a hundred steps with 0 in its middle; None if not known.

    >>> difference_bar({"low": -0.1, "high": 0.05, "difference": 0.0})
    {'low': 0.0, 'high': 75.0, 'mean': 50.0}
    """
    if known["low"] is None or known["high"] is None or known["difference"] is None:
        return None
    widest = max(abs(known["low"]), abs(known["high"]), 1e-9)
    places = {"low": known["low"], "high": known["high"], "mean": known["difference"]}
    return {name: round(50.0 + 50.0 * min(max(value / widest, -1.0), 1.0), 2) for name, value in places.items()}
