"""Checks of what people ask about: names of arms, and shares."""

from collections.abc import Collection
from typing import Any

from thrifty.suggestions import did_you_mean


def checked_arm(name: Any, arms: Collection[str]) -> str:
    """`name`, or a ValueError that suggests an arm of the log.

    >>> checked_arm("Eml", ["Elm", "Fir"])
    Traceback (most recent call last):
    ValueError: the log has no arm 'Eml': did you mean Elm?
    """
    if not isinstance(name, str):
        raise ValueError(f"an arm must be named by text, got {name!r:.80}: write {str(name)!r:.80}")
    if name not in arms:
        there = f"it has {', '.join(sorted(arms)[:20])}"
        raise ValueError(f"the log has no arm {name!r:.80}: {did_you_mean(name, arms, otherwise=there)}")
    return name


def checked_share(what: str, value: float, *, low: float = 0.0) -> float:
    """A number between `low` and 1, both excluded.

    >>> checked_share("confidence", 95, low=0.5)
    Traceback (most recent call last):
    ValueError: confidence must be a number above 0.5 and below 1, got 95: write 0.95 for 95%
    """
    if not low < value < 1.0:
        percent = f": write {value / 100:g} for {value:g}%" if 1.0 < value < 100.0 else ""
        raise ValueError(f"{what} must be a number above {low:g} and below 1, got {value:g}{percent}")
    return float(value)
