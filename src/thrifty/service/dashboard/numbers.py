"""Numbers as people read them: rates, money, shares, times. Every function gives "–" where nothing is known."""

import math
import time
from typing import TypeGuard

NONE = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
_FACTORS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_AGES = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def count(value: float | None) -> str:
    """A count, exact below a million.

    >>> count(12345), count(2_345_678), count(None)
    ('12,345', '2.35M', '–')
    """
    if not _known(value):
        return NONE
    return f"{value:,.0f}" if abs(value) < 1e6 else _short(value)


def per_minute(value: float | None) -> str:
    """A number of things a minute.

    >>> per_minute(0.4), per_minute(1234.5), per_minute(0.0)
    ('0.4', '1,234', '0')
    """
    if not _known(value):
        return NONE
    return f"{value:.1f}" if 0.0 < value < 10.0 else count(value)


def rate(value: float | None) -> str:
    """A success rate.

    >>> rate(0.9312), rate(None)
    ('0.931', '–')
    """
    return f"{value:.3f}" if _known(value) else NONE


def share(value: float | None) -> str:
    """A share, in percent.

    >>> share(0.1234), share(0.004), share(0.0), share(-0.05)
    ('12%', '0.4%', '0%', '−5%')
    """
    if not _known(value):
        return NONE
    percent = 100.0 * value
    text = f"{percent:.1f}" if 0.0 < abs(percent) < 9.95 else f"{percent:.0f}"
    return f"{text.removesuffix('.0')}%".replace("-", MINUS)


def money(value: float | None) -> str:
    """An amount in the unit of the prices, whatever that is.

    >>> money(1234.5), money(12.3456), money(0.0041), money(-3.0), money(2.5e7)
    ('1,234', '12.35', '0.0041', '−3.00', '25M')
    """
    if not _known(value):
        return NONE
    size = abs(value)
    if size >= 1e6:
        text = _short(value)
    elif size >= 1000.0:
        text = f"{value:,.0f}"
    elif size >= 1.0 or size == 0.0:
        text = f"{value:.2f}"
    else:
        text = f"{value:.3g}" if size >= 1e-6 else f"{value:.1e}"
    return text.replace("-", MINUS)


def signed(value: float | None) -> str:
    """A difference of rates, with its sign.

    >>> signed(0.0123), signed(-0.5)
    ('+0.012', '−0.500')
    """
    return f"{value:+.3f}".replace("-", MINUS) if _known(value) else NONE


def tick(value: float) -> str:
    """A round number on an axis.

    >>> tick(0.85), tick(15_000.0), tick(0.0), tick(2_500_000.0)
    ('0.85', '15k', '0', '2.5M')
    """
    return f"{value:.4g}" if abs(value) < 1e4 else _short(value)


def clock(at: float | None) -> str:
    """A time of the day in UTC, with the date where it is not today's.

    >>> clock(0.0)
    '1970-01-01 00:00:00'
    """
    if not _known(at):
        return NONE
    then = time.gmtime(at)
    today = time.gmtime()
    form = "%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, then)


def stamp(at: float | None) -> str:
    """A time for machines and for a browser's own clock.

    >>> stamp(0.0)
    '1970-01-01T00:00:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) if _known(at) else ""


def age(seconds: float | None) -> str:
    """How long something takes or took.

    >>> age(42.0), age(7200.0), age(200_000.0)
    ('42 s', '2 h', '2 d')
    """
    if not _known(seconds):
        return NONE
    for size, unit in _AGES:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return "0 s"


def _short(value: float) -> str:
    for factor, letter in _FACTORS:
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
