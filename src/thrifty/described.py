"""Settings that describe themselves: each is one field of a dataclass, with its default, its range and its meaning.

Checks, command-line flags, environment variables, the schema of a request and tables in the documentation are derived from the
same field. `thrifty.router.Settings` and `thrifty.service.config.Config` are made of such fields.
"""

import dataclasses
import math
import typing
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any


def setting(default: Any = MISSING, meaning: str = "", **limits: Any) -> Any:
    """A field of a dataclass of settings; `limits` are the other fields of `Described`, from `low` on."""
    return dataclasses.field(default=default, metadata={"meaning": meaning, **limits})


@dataclass(frozen=True)
class Described:
    """One setting: its name, and the values it may have.

    Parameters
    ----------
    name : in Python and in JSON
    kind : its type; a tuple is a list of names
    default : MISSING if there is none
    meaning : one line
    low, high : the smallest and the largest number
    above_low : whether `low` itself is excluded
    high_over_http : the largest number that a request may set, if that is smaller
    words : the texts it may be, if not any
    shown : the default in a table, if that needs words
    secret : whether its value is shown to nobody

    >>> Described("port", int, 8321, "the port", low=0, high=65_535).checked(70_000)
    Traceback (most recent call last):
    ValueError: port must be a whole number from 0 to 65535, got 70000

    """

    name: str
    kind: type
    default: Any
    meaning: str
    low: float = 0.0
    high: float = math.inf
    above_low: bool = False
    high_over_http: float = math.inf
    words: tuple[str, ...] = ()
    shown: str = ""
    secret: bool = False

    @property
    def flag(self) -> str:
        """On the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """In the environment."""
        return f"THRIFTY_{self.name.upper()}"

    @property
    def default_text(self) -> str:
        """The default as tables and command-line help show it."""
        return self.shown or (f"{self.default:g}" if self.kind is float else str(self.default))

    @property
    def span_text(self) -> str:
        """The values it may have, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind in (int, float):
            return f"a {'whole ' * (self.kind is int)}number {self._span()}"
        if self.kind is tuple:
            return "names separated by commas, or a list of them"
        return f"one of {', '.join(self.words)}" if self.words else "a text"

    def parsed(self, value: Any) -> Any:
        """What a text from the command line, the environment or a file means; other values as they are."""
        if self.kind is tuple:
            return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value
        if self.kind in (int, float) and isinstance(value, str):
            try:
                return self.kind(value)
            except ValueError:
                return value
        return value

    def checked(self, value: Any) -> Any:
        """`value` as this setting's type, or a ValueError that names it."""
        result = self._number(value) if self.kind in (int, float) else value
        if self.kind is bool:
            allowed = isinstance(value, bool)
        elif self.kind in (int, float):
            allowed = not math.isnan(result)
        elif self.kind is tuple:
            allowed = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
        else:
            allowed = isinstance(value, str) and (not self.words or value in self.words)
        if not allowed:
            got = f"a value of type {type(value).__name__}" if self.secret else f"{value!r:.80}"
            raise ValueError(f"{self.name} must be {self.span_text}, got {got}")
        return tuple(value) if self.kind is tuple else result

    def _number(self, value: Any) -> int | float:
        """The number that a value is; NaN if it is none, or one that is not allowed."""
        try:
            number: int | float = math.nan if isinstance(value, bool | str) else self.kind(value)
        except (TypeError, ValueError, OverflowError):
            return math.nan
        inside = self.low <= number <= self.high and math.isfinite(number) and not (self.above_low and number == self.low)
        return number if inside and (self.kind is float or number == value) else math.nan

    def _span(self) -> str:
        low, high = (f"{end:g}" if isinstance(end, float) else str(end) for end in (self.low, self.high))
        if math.isinf(self.high):
            return f"above {low}" if self.above_low else f"of at least {low}"
        return f"above {low} and at most {high}" if self.above_low else f"from {low} to {high}"


@cache
def described(kind: Any) -> tuple[Described, ...]:
    """Every setting of a dataclass whose fields are all made by `setting`."""
    return tuple(
        Described(each.name, typing.get_origin(each.type) or each.type, each.default, **each.metadata)  # type: ignore[arg-type]
        for each in dataclasses.fields(kind)
    )
