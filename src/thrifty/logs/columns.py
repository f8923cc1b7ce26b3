"""Columns: the meaning of the columns of a log, how they are written, and how missing outcomes, prices and retries are handled."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from thrifty.logs.fees import Fees
from thrifty.logs.numbers import DECIMALS
from thrifty.logs.prices import PriceList
from thrifty.logs.setting_types import check_amounts, check_types
from thrifty.logs.times import TimeStyle, check_style
from thrifty.logs.together import check_together, settle_sources
from thrifty.suggestions import did_you_mean

MISSING = ("failure", "ignore", "censored")
_OPTIONAL = ("time", "propensity", "id", "outcome_time")
_LENGTHS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True)
class Columns:
    """What the columns of a log mean.

    Parameters
    ----------
    arm : which arm was used
    reward : a number in [0, 1], or a status when `success` names those that count as 1
    cost : what the row cost; not needed with `prices` or `fees`
    segment : the kind of request, one column or several ("country,operator"); without it the log is one segment
    time : the time of the decision; without it the order of the rows counts
    propensity : the probability with which the arm was chosen; without it shares by segment and time are used, as an assumption
    id : identifies a row; a second row with the same id is left out, one without an id is kept
    outcome_time : the time when the outcome came back, for delays
    success : statuses that count as a reward of 1; all others count as 0
    missing : how a row without an outcome counts. "failure" (the default): as a failure. "ignore" (the default for a log that
        `thrifty export` wrote, in which deadlines are applied already): it is left out. "censored": as a failure if it is older
        than `deadline_s`; all younger rows are left out
    deadline_s : how long an outcome may take, for "censored"
    prices : prices by arm, in place of a cost column
    fees : amounts by outcome (and arm), added to the cost; see `Fees`
    chain : the columns that retries of one request share, such as "customer,amount": rows that agree in them and follow each other
        `within` count as one request, which went to the arm of the first
    within : the longest time between two attempts of one chain, such as "60s" or "5m"; None for 60 seconds
    after : other columns that became known only after the choice, such as "latency,error": the choice cannot follow them
    rare : segments with fewer rows are pooled as "other"; None pools only if there are more than 5,000 segments
    decimal : "comma" or "point"; None for what the numbers show
    time_format : "day-first", "month-first", "s", "ms", "us", "ns" or a pattern such as "%d.%m.%y"; None for what the times show
    zone : the zone of times that have none; None for UTC
    separator : of a CSV file; None for the one that its header shows
    encoding : of a text file; None for UTF-8, or UTF-16 with a byte order mark

    >>> Columns(arm="aggregator", reward="status", cost="price", success=("delivered",)).named()
    {'arm': 'aggregator', 'reward': 'status', 'cost': 'price'}

    """

    arm: str = "arm"
    reward: str = "reward"
    cost: str | None = "cost"
    segment: str | Sequence[str] | None = None
    time: str | None = None
    propensity: str | None = None
    id: str | None = None
    outcome_time: str | None = None
    success: tuple[str, ...] = ()
    missing: str | None = None
    deadline_s: float = 3600.0
    prices: PriceList | None = None
    fees: Fees | None = None
    chain: str | Sequence[str] | None = None
    within: str | float | None = None
    after: str | Sequence[str] = ()
    rare: int | None = None
    decimal: str | None = None
    time_format: str | None = None
    zone: str | None = None
    separator: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        success = (self.success,) if isinstance(self.success, str) else self.success
        object.__setattr__(self, "success", tuple(success) if isinstance(success, list) else success)
        check_types(self)
        object.__setattr__(self, "after", _names(self.after))
        self._check_settings()
        if self.chain is not None and self.time is None:
            raise ValueError("chains of attempts need the time of every row: name its column with --time")
        if self.segment is not None and not self.segment_columns:
            raise ValueError(f"--segment must name a column, or several separated by commas, got {self.segment!r}")
        if self.chain is not None and not self.chain_columns:
            raise ValueError("--chain must name the columns that attempts of one request share, such as customer,amount")
        if self.missing is not None and self.missing not in MISSING:
            raise ValueError(f"--missing must be one of {', '.join(MISSING)}, got {self.missing!r}")
        is_number = isinstance(self.deadline_s, (int, float)) and not isinstance(self.deadline_s, bool)
        if not is_number or not 0.0 < self.deadline_s < float("inf"):
            raise ValueError(f"--deadline must be a positive number of seconds, got {self.deadline_s!r:.80}")
        if self.missing == "censored" and self.time is None:
            raise ValueError("--missing censored needs the time of every row: name its column with --time")
        check_together(self)

    def _check_settings(self) -> None:
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise ValueError(f"--decimal must be comma or point, got {self.decimal!r}")
        if self.rare is not None and (not isinstance(self.rare, int) or isinstance(self.rare, bool) or self.rare < 0):
            raise ValueError(f"--rare must be a number of rows, got {self.rare!r}")
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        _ = self.within_s, self.time_style

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """The columns that make up the segment."""
        return _names(self.segment)

    @property
    def chain_columns(self) -> tuple[str, ...]:
        """The columns that attempts of one chain share."""
        return _names(self.chain)

    @property
    def within_s(self) -> float:
        """The longest time between two attempts of one chain, in seconds."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-z]*)\s*", "60s" if self.within is None else str(self.within))
        seconds = float(found[1]) * _LENGTHS.get(found[2], 0.0) if found else 0.0
        if not seconds > 0.0:
            raise ValueError(f"--within must be a time such as 60s, 5m or 1h, got {self.within!r}")
        return seconds

    @property
    def time_style(self) -> TimeStyle:
        """How times are written, as far as it is named."""
        return check_style(self.time_format, self.zone)

    @classmethod
    def load(cls, given: Mapping[str, Any], *, file: str | Path | None = None) -> "Columns":
        """From the given values, then a TOML file, then the defaults. A given value of None is ignored.

        >>> Columns.load({"arm": "route", "success": "delivered,read", "cost": None}).success
        ('delivered', 'read')
        """
        values = settle_sources({} if file is None else _read(Path(file)), given)
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ValueError(
                    f"{file} has no setting {name!r}: {did_you_mean(name, known, otherwise='there are ' + ', '.join(known))}"
                )
        if isinstance(values.get("success"), str):
            values["success"] = tuple(word.strip() for word in values["success"].split(",") if word.strip())
            if not values["success"]:
                raise ValueError("--success names no status: name those that are a success, such as delivered,read")
        if "prices" in values and not isinstance(values["prices"], PriceList):
            check_amounts("prices", values["prices"], "Alder=0.0079,Birch=0.0041")
            values["prices"] = PriceList.load(values["prices"], beside=None if file is None else Path(file).parent)
        if "fees" in values and not isinstance(values["fees"], Fees):
            check_amounts("fees", values["fees"], "success=0.30,failure=0.05")
            values["fees"] = Fees.load(values["fees"], beside=None if file is None else Path(file).parent)
        return cls(**values)

    def named(self) -> dict[str, str]:
        """The columns to read, by meaning. Several columns of a segment or chain are numbered from the second on."""
        named = {"arm": self.arm, "reward": self.reward}
        if self.prices is None and self.cost is not None:
            named["cost"] = self.cost
        for meaning, names in (("segment", self.segment_columns), ("chain", self.chain_columns)):
            named |= {meaning if place == 0 else f"{meaning}_{place + 1}": name for place, name in enumerate(names)}
        return named | {meaning: getattr(self, meaning) for meaning in _OPTIONAL if getattr(self, meaning) is not None}

    @property
    def untouched(self) -> bool:
        """True if the columns of arms, rewards, costs and times are the default ones."""
        given = (self.arm, self.reward, self.cost, self.time, self.prices, self.fees)
        return given == ("arm", "reward", "cost", None, None, None)

    def check(self, present: Sequence[str]) -> None:
        """Raise a ValueError if a named column is missing; the message has the most similar name."""
        for meaning, name in self.named().items():
            if name not in present:
                hint = f"{did_you_mean(name, present, shown='{!r}', cutoff=0.5)} there are {', '.join(present)}".lstrip()
                flag = f"--{re.sub('_[0-9]+$', '', meaning).replace('_', '-')}"
                also = " (or give prices by arm with --prices)" if meaning == "cost" else ""
                raise ValueError(f"no column {name!r} for {flag}: {hint}{also}")
        for name in self.after:
            if name not in present:
                raise ValueError(
                    f"no column {name!r} for --after: {did_you_mean(name, present, otherwise='there are ' + ', '.join(present))}"
                )


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    return tuple(given or ())


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from None
