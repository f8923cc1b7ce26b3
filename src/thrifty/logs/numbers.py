"""Numbers as people write them: a decimal comma, groups of thousands, a currency sign. What has two readings is asked, not guessed.

How the numbers of a column are written is settled once, from its first rows. A later value that does not fit is left out and
counted.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars

DECIMALS = {"comma": ",", "point": "."}
_SIGN = re.compile(r"^\s*[-+]?\s*([$€£¥₹₽₺₩₪₫฿]|[A-Z]{3}\b)|([$€£¥₹₽₺₩₪₫฿]|\b[A-Z]{3})\s*$")
_SPACES = r"[\s\u00a0\u202f']"  # also separate groups of thousands
_GROUPED = {
    ".": re.compile(r"^[-+]?(\d+|\d{1,3}(,\d{3})+)?(\.\d*)?([eE][-+]?\d+)?$"),
    ",": re.compile(r"^[-+]?(\d+|\d{1,3}(\.\d{3})+)?(,\d*)?([eE][-+]?\d+)?$"),
}


class NumberStyle(NamedTuple):
    """How the numbers of a column are written: decimal sign, currency sign ("" for none), whether thousands are in groups."""

    decimal: str = "."
    currency: str = ""
    grouped: bool = False

    @property
    def plain(self) -> bool:
        """True if numbers are written as in a program."""
        return self == NumberStyle()


def number_style(sample: "polars.Series", decimal: str | None, column: str) -> NumberStyle:
    """The style of a column from its first values; a ValueError if it has two readings. `decimal` is "comma", "point" or None.

    >>> import polars
    >>> number_style(polars.Series(["0,0079 €", "1.234,50 €"]), None, "cost")
    NumberStyle(decimal=',', currency='€', grouped=True)
    >>> number_style(polars.Series(["1,234"]), None, "cost")
    Traceback (most recent call last):
    ValueError: column 'cost' holds '1,234': is it 1.234 (--decimal comma) or 1234 (--decimal point)?
    """
    values = [text.strip() for text in sample.drop_nulls().unique(maintain_order=True).to_list() if text.strip()]
    currencies = dict.fromkeys(sign for text in values if (sign := _currency(text)))
    if len(currencies) > 1:
        signs = list(currencies)
        raise ValueError(f"column {column!r} mixes {signs[0]} and {signs[1]}: bring it to one currency first")
    currency = next(iter(currencies), "")
    bare = [text.replace(currency, "", 1).strip() if currency else text for text in values]
    grouped = any(re.search(rf"\d[.,]\d+[.,]|\d{_SPACES}\d|,", text) for text in bare)
    sign = _decimal([re.sub(_SPACES, "", text) for text in bare], column) if decimal is None else DECIMALS[decimal]
    return NumberStyle(sign, currency, grouped)


def _currency(text: str) -> str:
    found = _SIGN.search(text)
    sign = "" if found is None else next(filter(None, found.groups()))
    return "" if sign.lower() in ("nan", "inf") or not any(letter.isdigit() for letter in text) else sign


def _decimal(values: list[str], column: str) -> str:
    """The decimal sign that the values prove, "." if there is no comma at all."""
    proofs: dict[str, str] = {}
    unclear = ""
    for text in values:
        fits = [sign for sign, form in _GROUPED.items() if form.match(text)]
        if len(fits) == 1 and ("," in text or "." in text):
            proofs.setdefault(fits[0], text)
        elif len(fits) == 2 and "," in text:
            if re.match(r"^[-+]?0", text):  # no group of thousands begins with 0
                proofs.setdefault(",", text)
            else:
                unclear = unclear or text
    if "," in proofs and "." in proofs and any("," in text for text in values):
        raise ValueError(
            f"column {column!r} holds {proofs[',']!r}, where the comma is the decimal sign, and {proofs['.']!r}, where the point "
            "is: choose with --decimal comma or --decimal point; the others are left out and counted"
        )
    if proofs:
        return next(iter(proofs))
    if unclear:
        raise ValueError(
            f"column {column!r} holds {unclear!r}: is it {unclear.replace(',', '.')} (--decimal comma) or "
            f"{unclear.replace(',', '')} (--decimal point)?"
        )
    return "."


def parse_number(pl: Any, text: Any, style: NumberStyle) -> Any:
    """An expression of text as an expression of numbers, null where it does not hold one in this style."""
    if style.plain:
        return text.str.strip_chars().cast(pl.Float64, strict=False).fill_nan(None)
    bare = text.str.replace(style.currency, "", literal=True) if style.currency else text
    bare = bare.str.replace_all(_SPACES, "")
    fits = bare.str.contains(_GROUPED[style.decimal].pattern) & bare.str.contains(r"\d")
    grouping = "." if style.decimal == "," else ","
    digits = bare.str.replace_all(grouping, "", literal=True).str.replace(style.decimal, ".", literal=True)
    return pl.when(fits).then(digits.cast(pl.Float64, strict=False))
