"""What the pages about a log have in common: where a page comes from, what it rests on, values with their intervals."""

import math
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from thrifty.logs.evidence import Evidence, assumptions
from thrifty.reports.page import NUMBER, WORDS, Cell, PageTable, page_table

_MOST_ARMS = 500  # rows of the table of arms; the CSV has all
_ARM_COLUMNS = {
    "segment": WORDS,
    "arm": WORDS,
    "rows": NUMBER,
    "share": NUMBER,
    "effective rows": NUMBER,
    "mean reward": NUMBER,
    "mean cost": NUMBER,
    "cost per success": NUMBER,
    "no outcome": NUMBER,
    "enough to judge": WORDS,
}


@dataclass(frozen=True)
class Origin:
    """Where a page comes from: the command, the version of thrifty and the seed."""

    command: str
    version: str
    seed: int

    @classmethod
    def of(cls, command: str, seed: int) -> "Origin":
        """The origin of a page that this version writes now."""
        return cls(command, version("thrifty"), seed)


@dataclass(frozen=True)
class EvidencePart:
    """The part of a page that says what it rests on, as texts."""

    assumptions: list[str]
    counts: str
    notes: list[str]
    refused: list[str]
    arms: PageTable


def evidence_part(evidence: Evidence, refused: dict[str, str]) -> EvidencePart:
    """Assumptions, rows used and left out, notes, refused segments and arms."""
    tally, profile = evidence.aggregates.tally, evidence.profile
    return EvidencePart(
        assumptions=list(assumptions(evidence)),
        counts=f"{tally.used:,} of {tally.rows:,} rows count, in {profile.segments} segments; {profile.span}.",
        notes=list(profile.notes),
        refused=[f"no estimate for {name}: {reason}" for name, reason in refused.items()],
        arms=page_table(_ARM_COLUMNS, [_arm_row(row) for row in profile.arms.head(_MOST_ARMS).to_dicts()]),
    )


def _arm_row(row: dict[str, Any]) -> list[str]:
    return [
        row["segment"],
        row["arm"],
        f"{row['rows']:,}",
        f"{row['share']:.1%}",
        f"{row['effective_rows']:,.0f}",
        f"{row['mean_reward']:.4f}",
        f"{row['mean_cost']:.4g}",
        "" if row["cost_per_success"] is None else f"{row['cost_per_success']:.4g}",
        f"{row['no_outcome']:.1%}",
        row["refused"] or "yes",
    ]


def in_words(row: dict[str, Any], name: str) -> str:
    """A share with its interval, in words.

    >>> in_words({"saving": 0.1, "saving_low": 0.08, "saving_high": 0.12}, "saving")
    '10.0% (8.0% to 12.0%)'
    """
    return f"{row[name]:.1%} ({row[f'{name}_low']:.1%} to {row[f'{name}_high']:.1%})"


def less_or_more(row: dict[str, Any], name: str) -> str:
    """A saving with its interval, in words: less if something is saved, more if not.

    >>> less_or_more({"saving": 0.1, "saving_low": 0.08, "saving_high": 0.12}, "saving")
    '10.0% less (8.0% to 12.0%)'
    >>> less_or_more({"saving": -2.94, "saving_low": -3.0, "saving_high": -2.9}, "saving")
    '294.0% more (290.0% to 300.0%)'
    >>> less_or_more({"saving": 0.02, "saving_low": -0.01, "saving_high": 0.05}, "saving")
    '2.0% less (1.0% more to 5.0% less)'
    """
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return "neither less nor more (what it is compared with is free)"
    value, low, high = (0.0 if abs(each) < 0.0005 else each for each in (value, low, high))  # shown as 0.0%
    word = "less" if value >= 0.0 else "more"
    if low < 0.0 < high:
        return f"{abs(value):.1%} {word} ({-low:.1%} more to {high:.1%} less)"
    ends = sorted((abs(low), abs(high)))
    return f"{abs(value):.1%} {word} ({ends[0]:.1%} to {ends[1]:.1%})"


def with_interval(row: dict[str, Any], name: str, form: str, *, factor: float = 1.0) -> Cell:
    """A value, times a factor, with its interval below.

    >>> with_interval({"cost": 1.0, "cost_low": 0.5, "cost_high": 1.5}, "cost", ".2g")
    Cell(text='1', below='0.5 to 1.5', is_code=False)
    """
    if math.isnan(row[name]):
        return Cell("-")
    value, low, high = (f"{factor * row[f'{name}{end}']:{form}}" for end in ("", "_low", "_high"))
    return Cell(value, f"{low} to {high}")
