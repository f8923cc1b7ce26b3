"""Remedies: what to do about rows that cannot be used, by the reason and the first value of each."""

import re
from collections.abc import Mapping

_PLURALS = {"reward": "rewards", "propensity": "propensities"}
_PER_CENT = re.compile(r"^\s*\d+([.,]\d+)?\s*%\s*$")

_TOGETHER = re.compile(r"^\s*(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])[0-5]\d[0-5]\d\s*$")


def is_per_cent(value: str) -> bool:
    """Whether a text is a number with a per cent sign.

    >>> is_per_cent("93 %"), is_per_cent("0.93")
    (True, False)
    """
    return _PER_CENT.match(value) is not None


def remedies(first: Mapping[str, tuple[int, str, str]], *, zone: str = "UTC") -> str:
    """The remedies for the reasons why rows were left out, each after a semicolon; `first` is that of a `Tally`.

    >>> remedies({"propensity outside (0, 1]": (1, "33.3", "")})
    '; if these are per cent, divide propensities by 100'
    >>> remedies({"blank line": (1, "", "")})
    ''
    """
    found = [_remedy(reason, value, zone) for reason, (_, value, _) in first.items()]
    return "".join(f"; {each}" for each in dict.fromkeys(found) if each)


def _remedy(reason: str, value: str, zone: str) -> str:
    what = reason.split()[0]
    if what in _PLURALS and (is_per_cent(value) or _is_share_of_100(value)):
        return f"if these are per cent, divide {_PLURALS[what]} by 100" + (" and take off the sign" if is_per_cent(value) else "")
    if reason == "time in the future" and _TOGETHER.match(value):
        return "if this is a date and a time in one number, name it with --time-format %Y%m%d%H%M%S"
    if reason == "time is not readable":
        skipped = f" (or is it an hour that the clocks of {zone} skip? then name the right --zone)" if zone != "UTC" else ""
        return f"name how times are written with --time-format, such as '%d.%m.%y %H:%M'{skipped}"
    return {
        "no arm": "name another column with --arm, or write in these rows which arm was used",
        "no time": "name another column with --time, or leave it out, and the order of the rows counts",
        "time in the future": "name the unit with --time-format s, ms, us or ns, or the time until which rows count with --now",
        "repeated id": "name a column that is different in every row with --id, or leave --id out",
        "no cost": "name another column with --cost, or give prices by arm with --prices",
        "cost is not a number": "write all costs alike and in one currency, or name the decimal sign with --decimal",
        "negative cost": "add refunds and credits to the cost of the request that they belong to",
        "cost above 1e15": "write costs in a larger unit",
        "no propensity": "name another column with --propensity, or leave it out",
        "propensity below 1e-9": "check the column, or leave out --propensity",
        "ragged line": "correct these lines, or name what separates columns with --separator",
    }.get(reason, "")


def _is_share_of_100(value: str) -> bool:
    try:
        return 1.0 < float(value) <= 100.0
    except ValueError:
        return False
