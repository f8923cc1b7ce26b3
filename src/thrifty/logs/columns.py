"""Columns: the meaning of the columns of a log, and how missing outcomes and prices are handled."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from thrifty.logs.prices import PriceList
from thrifty.suggestions import did_you_mean

MISSING = ("failure", "ignore", "censored")
_OPTIONAL = ("segment", "time", "propensity", "id", "outcome_time")


@dataclass(frozen=True)
class Columns:
    """What the columns of a log mean.

    Parameters
    ----------
    arm : which arm was used
    reward : a number in [0, 1], or a status when `success` names those that count as 1
    cost : what the row cost; not needed with `prices`
    segment : the kind of request; without it the log is one segment
    time : the time of the decision; without it the order of the rows counts
    propensity : the probability with which the arm was chosen; without it shares by segment and time are used, as an assumption
    id : identifies a row; a second row with the same id is left out
    outcome_time : the time when the outcome came back, for delays
    success : statuses that count as a reward of 1; all others count as 0
    missing : how a row without an outcome counts. "failure" (the default): as a failure. "ignore" (the default for a log that
        `thrifty export` wrote, in which deadlines are applied already): it is left out. "censored": as a failure if it is older
        than `deadline_s`; all younger rows are left out
    deadline_s : how long an outcome may take, for "censored"
    prices : prices by arm, in place of a cost column

    >>> Columns(arm="aggregator", reward="status", cost="price", success=("delivered",)).named()
    {'arm': 'aggregator', 'reward': 'status', 'cost': 'price'}

    """

    arm: str = "arm"
    reward: str = "reward"
    cost: str = "cost"
    segment: str | None = None
    time: str | None = None
    propensity: str | None = None
    id: str | None = None
    outcome_time: str | None = None
    success: tuple[str, ...] = ()
    missing: str | None = None
    deadline_s: float = 3600.0
    prices: PriceList | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "success", tuple(self.success))
        if self.missing is not None and self.missing not in MISSING:
            raise ValueError(f"missing must be one of {', '.join(MISSING)}, got {self.missing!r}")
        if not 0.0 < self.deadline_s < float("inf"):
            raise ValueError(f"deadline_s must be a positive number of seconds, got {self.deadline_s}")
        if self.missing == "censored" and self.time is None:
            raise ValueError("missing = censored needs the time of every row: name its column with time")

    @classmethod
    def load(cls, given: Mapping[str, Any], *, file: str | Path | None = None) -> "Columns":
        """From the given values, then a TOML file, then the defaults. A given value of None is ignored.

        >>> Columns.load({"arm": "route", "success": "delivered,read", "cost": None}).success
        ('delivered', 'read')
        """
        values = {} if file is None else _read(Path(file))
        values.update({name: value for name, value in given.items() if value is not None})
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(f"{file} has no setting {name!r}: {did_you_mean(name, known, otherwise=', '.join(known))}")
        if isinstance(values.get("success"), str):
            values["success"] = tuple(word.strip() for word in values["success"].split(",") if word.strip())
        if "prices" in values and not isinstance(values["prices"], PriceList):
            values["prices"] = PriceList.load(values["prices"], beside=None if file is None else Path(file).parent)
        return cls(**values)

    def named(self) -> dict[str, str]:
        """The columns to read, by meaning."""
        meanings = ("arm", "reward") if self.prices is not None else ("arm", "reward", "cost")
        named = {meaning: getattr(self, meaning) for meaning in meanings}
        return named | {meaning: getattr(self, meaning) for meaning in _OPTIONAL if getattr(self, meaning) is not None}

    @property
    def untouched(self) -> bool:
        """True if the columns of arms, rewards, costs and times are the default ones."""
        return (self.arm, self.reward, self.cost, self.time, self.prices) == ("arm", "reward", "cost", None, None)

    def check(self, present: Sequence[str]) -> None:
        """Raise a ValueError if a named column is missing; the message has the most similar name."""
        for meaning, name in self.named().items():
            if name not in present:
                hint = f"{did_you_mean(name, present, shown='{!r}', cutoff=0.5)} there are {', '.join(present)}".lstrip()
                flag = f"--{meaning.replace('_', '-')}"
                also = " (or give prices by arm with --prices)" if meaning == "cost" else ""
                raise ValueError(f"no column {name!r} for {flag}: {hint}{also}")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from None
