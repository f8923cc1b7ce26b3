"""Settings of a log that exclude or need each other: none of them is ever ignored without a word."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thrifty.logs.columns import Columns

_RIVALS = {"cost": "prices", "prices": "cost"}
"""Two settings for one thing."""

_APART = ("arm", "reward", "cost", "propensity", "time", "segment")
"""Meanings that are never in the same column."""


def settle_sources(file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file and, on top of them, the given ones that are not None.

    A ValueError if one of the two sources gives both costs and prices, or a deadline that nothing would use.

    >>> settle_sources({"cost": "fee", "arm": "route"}, {"prices": "A=1", "arm": None})
    {'arm': 'route', 'prices': 'A=1'}
    """
    stated = {name: value for name, value in given.items() if value is not None}
    for source in (file, stated):
        if set(_RIVALS) <= set(source):
            raise ValueError(
                f"--cost {source['cost']!r:.80} and --prices both say what a row cost: give one of them (--price is for what-ifs)"
            )
    dropped = {_RIVALS[name] for name in _RIVALS if name in stated}
    values = {name: value for name, value in file.items() if name not in dropped} | stated
    if "deadline_s" in stated and values.get("missing") != "censored":
        raise ValueError(f"--deadline {stated['deadline_s']:g} has no effect without --missing censored: add it, or leave it out")
    return values


def check_together(columns: "Columns") -> None:
    """A ValueError if a setting needs another that is missing, or if one column is to have two meanings."""
    if columns.within is not None and not columns.chain_columns:
        raise ValueError(f"--within {columns.within} is about chains of attempts: name the columns they share with --chain")
    for flag, value in (("--zone", columns.zone), ("--time-format", columns.time_format)):
        if value is not None and columns.time is None:
            raise ValueError(f"{flag} {value} is about times, and no column of times is named: name it with --time")
    if columns.outcome_time is not None and columns.time is None:
        raise ValueError(
            f"--outcome-time {columns.outcome_time} is for delays, which need the time of the decision: name it with --time"
        )
    if columns.prices is not None and columns.cost not in (None, "cost"):
        raise ValueError(f"--cost {columns.cost!r:.80} and --prices both say what a row cost: give one of them")
    named = [(meaning.partition("_")[0], name) for meaning, name in columns.named().items() if not meaning.startswith("outcome")]
    for (meaning, name), (other, same) in combinations([pair for pair in named if pair[0] in _APART], 2):
        if name == same:
            if meaning == other:
                raise ValueError(f"--{meaning} names the column {name!r:.80} twice: name it once")
            raise ValueError(f"--{meaning} and --{other} both name the column {name!r:.80}: name the right column for each")
