"""Fees: amounts that depend on the outcome of a request, added to its cost."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thrifty.arrays import Floats

SUCCESS, FAILURE = "success", "failure"


@dataclass(frozen=True)
class Fees:
    """Fees by (arm, or None for all, and outcome). An outcome is a status of the log, or success (reward 1) or failure (all else).

    A status beats success and failure; an entry for an arm beats one for all.

    >>> fees = Fees.load("success=0.30,failure=0.05")
    >>> fees.of("Cedar", "captured", success=True), fees.of("Cedar", "declined", success=False)
    (0.3, 0.05)
    """

    entries: Mapping[tuple[str | None, str], float]

    @classmethod
    def load(cls, given: str | Mapping[str, Any], *, beside: Path | None = None) -> "Fees":
        """From "outcome=fee,..." or "arm:outcome=fee,...", a mapping of these, or a CSV file with outcome, fee and perhaps arm."""
        if isinstance(given, str) and given.strip() and "=" not in given:
            return cls._of(_read((beside or Path()) / given), given)
        if isinstance(given, str):
            pairs = [item.partition("=")[::2] for item in given.split(",") if item.strip()]
        else:
            pairs = [(str(name), fee) for name, fee in given.items()]
        rows = []
        for name, fee in pairs:
            arm, mark, outcome = name.strip().rpartition(":")
            rows.append({"arm": arm if mark else None, "outcome": outcome, "fee": fee})
        return cls._of(rows, "--fees")

    @classmethod
    def _of(cls, rows: list[dict[str, Any]], where: str) -> "Fees":
        entries: dict[tuple[str | None, str], float] = {}
        for row in rows:
            try:
                fee = float(row["fee"])
            except (TypeError, ValueError):
                fee = math.nan
            if not 0.0 <= fee < math.inf:
                raise ValueError(f"{where}: a fee must be finite and not negative, got {row['fee']!r} for {row['outcome']!r}")
            key = (row.get("arm") or None, str(row["outcome"]))
            if key in entries:
                raise ValueError(f"{where}: two fees for outcome {key[1]!r}{'' if key[0] is None else f' of arm {key[0]!r}'}")
            entries[key] = fee
        if not entries:
            raise ValueError(f"{where} has no fee: write success=0.30,failure=0.05")
        return cls(entries)

    def of(self, arm: str, status: str, *, success: bool) -> float:
        """The fee of one request; a ValueError if there is none for its outcome."""
        usual = SUCCESS if success else FAILURE
        for key in ((arm, status), (arm, usual), (None, status), (None, usual)):
            if key in self.entries:
                return self.entries[key]
        raise ValueError(f"--fees has no fee for outcome {status or usual!r} of arm {arm!r}: add one, 0 if it costs nothing")

    def charge(self, arms: NDArray[np.int32], names: Sequence[str], statuses: Any, rewards: Floats) -> Floats:
        """(n,) the fee of every row; `arms` are codes into `names`, `statuses` a column of text."""
        statuses = statuses.fill_null("")
        found = statuses.unique(maintain_order=True).to_list()
        places = np.asarray(statuses.replace_strict(found, list(range(len(found)))).to_numpy(), np.int64)
        keys = (places * len(names) + arms) * 2 + (rewards >= 1.0)
        kinds, rows = np.unique(keys, return_inverse=True)
        pairs = [divmod(int(kind) // 2, len(names)) for kind in kinds]
        fees = [
            self.of(names[arm], found[status], success=bool(kind % 2)) for (status, arm), kind in zip(pairs, kinds, strict=True)
        ]
        return np.asarray(np.array(fees)[rows], np.float64)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows: list[dict[str, Any]] = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the fees in {path}: {error}") from None
    if not rows or not {"outcome", "fee"} <= set(rows[0]):
        raise ValueError(f"{path} must have the columns outcome and fee, and may have arm")
    return rows
