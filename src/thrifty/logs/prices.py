"""Prices by arm, for a log without a cost column: one number per arm, or a list by segment and time."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from thrifty.arrays import Floats


@dataclass(frozen=True)
class PriceList:
    """Prices by (segment or None for all, arm): times from which each holds, increasing, and the prices.

    >>> prices = PriceList.load("Alder=0.0079,Birch=0.0041")
    >>> prices.at(None, "Birch", np.array([0.0])).tolist()
    [0.0041]
    """

    entries: Mapping[tuple[str | None, str], tuple[tuple[float, ...], tuple[float, ...]]]

    @classmethod
    def load(cls, given: str | Mapping[str, float], *, beside: Path | None = None) -> "PriceList":
        """From prices by arm, "arm=price,arm=price", or the path of a CSV file with the columns arm, price and, if need be,
        segment and from (a time: ISO 8601 or seconds since 1970). Relative paths start at the folder `beside`.
        """
        if isinstance(given, Mapping):
            return cls._of([{"arm": arm, "price": price} for arm, price in given.items()], "prices")
        if "=" in given:
            pairs = [item.partition("=") for item in given.split(",")]
            return cls._of([{"arm": arm.strip(), "price": price} for arm, _, price in pairs], "--prices")
        path = (beside or Path()) / given
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot read the prices in {path}: {error}") from None
        if not rows or not {"arm", "price"} <= set(rows[0]):
            raise ValueError(f"{path} must have the columns arm and price, and may have segment and from")
        return cls._of(rows, str(path))

    @classmethod
    def _of(cls, rows: list[dict[str, Any]], where: str) -> "PriceList":
        found: dict[tuple[str | None, str], list[tuple[float, float]]] = {}
        for number, row in enumerate(rows, 1):
            try:
                price = float(row["price"])
            except (TypeError, ValueError):
                price = math.nan
            if not 0.0 <= price < math.inf:
                raise ValueError(f"{where}: a price must be finite and not negative, got {row['price']!r} in row {number}")
            start = _seconds(row.get("from"), where, number)
            changes = found.setdefault((row.get("segment") or None, str(row["arm"])), [])
            if start in (time for time, _ in changes):
                raise ValueError(f"{where}: row {number} is a second price of arm {row['arm']!r:.80} for the same time: give one")
            changes.append((start, price))
        ordered = {key: sorted(changes) for key, changes in found.items()}
        return cls({key: (tuple(t for t, _ in changes), tuple(p for _, p in changes)) for key, changes in ordered.items()})

    def at(self, segment: str | None, arm: str, times: Floats) -> Floats:
        """(n,) the price of `arm` at `times` (seconds since 1970); NaN where there is none."""
        for key in ((segment, arm), (None, arm)):
            if key in self.entries:
                starts, prices = self.entries[key]
                place = np.searchsorted(np.asarray(starts), times, side="right") - 1
                return np.where(place >= 0, np.asarray(prices)[np.maximum(place, 0)], np.nan)
        return np.full(times.size, np.nan)


def _seconds(text: Any, where: str, row: int) -> float:
    if text is None or text == "":
        return -math.inf
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        raise ValueError(
            f"{where}: from must be a time such as 2026-01-31 or seconds since 1970, got {text!r} in row {row}"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
