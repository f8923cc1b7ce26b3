"""Types of the settings of a log: a TOML file or a program may give a number where a name is needed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thrifty.logs.fees import Fees
from thrifty.logs.prices import PriceList

if TYPE_CHECKING:
    from thrifty.logs.columns import Columns

_ONE = ("arm", "reward", "cost", "time", "propensity", "id", "outcome_time")
_SEVERAL = ("segment", "chain", "after")
_WORDS = {
    "zone": "the name of a time zone such as Europe/Berlin",
    "time_format": "a pattern such as '%d.%m.%y %H:%M', or day-first, month-first, s, ms, us or ns",
    "separator": "one sign such as , ; | ^, a space or tab",
    "encoding": "an encoding such as latin-1, cp1252 or utf-16",
}


def check_types(columns: "Columns") -> None:
    """A ValueError that names the setting and the value if one has the wrong type."""
    for name in _ONE:
        value = getattr(columns, name)
        if not isinstance(value, str) and (value is not None or name in ("arm", "reward")):
            raise ValueError(f"{_flag(name)} must be the name of a column, got {value!r:.80}{_in_quotes(value)}")
    for name in _SEVERAL:
        value = getattr(columns, name)
        if value is not None and not _are_texts(value):
            raise ValueError(
                f"{_flag(name)} must name a column, or several separated by commas, got {value!r:.80}{_in_quotes(value)}"
            )
    if not _are_texts(columns.success):
        raise ValueError(f'--success must be statuses in quotes such as ["delivered", "200"], got {columns.success!r:.80}')
    for name, wanted in _WORDS.items():
        value = getattr(columns, name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{_flag(name)} must be {wanted}, got {value!r:.80}")
    _check_amounts("prices", columns.prices, PriceList, "Alder=0.0079,Birch=0.0041")
    _check_amounts("fees", columns.fees, Fees, "success=0.30,failure=0.05")


def check_amounts(flag: str, value: Any, example: str) -> None:
    """A ValueError if prices or fees, as they are given, are neither text nor a table of numbers.

    >>> check_amounts("prices", 3, "Alder=0.0079")
    Traceback (most recent call last):
    ValueError: --prices must be a table or text such as 'Alder=0.0079', or the path of a CSV file, got 3
    """
    if not isinstance(value, (str, Mapping)):
        raise ValueError(f"--{flag} must be a table or text such as {example!r}, or the path of a CSV file, got {value!r:.80}")


def _check_amounts(flag: str, value: Any, kind: Any, example: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ValueError(
            f"--{flag} must be made by {kind.__name__}.load, such as {kind.__name__}.load({example!r}), got {value!r:.80}"
        )


def _are_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value))


def _in_quotes(value: Any) -> str:
    """A number may be the name of a column, but must be written as text."""
    return f": if this is its name, write '{value}'" if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
