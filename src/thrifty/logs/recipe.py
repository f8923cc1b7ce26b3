"""The recipe of a log: everything that is settled once, so that each part can be read alone and gives the same rows.

How numbers and times are written is settled from the first rows of the log. A recipe can be sent to another process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thrifty.logs.columns import Columns
from thrifty.logs.exported import Export
from thrifty.logs.numbers import NumberStyle, number_style
from thrifty.logs.parts import Part
from thrifty.logs.polars_extra import require_polars
from thrifty.logs.remedies import is_per_cent
from thrifty.logs.times import TimeStyle, time_style, zone_note

SAMPLED = 1000
_NUMBERS, _TIMES = ("cost", "reward", "propensity"), ("time", "outcome_time")


@dataclass(frozen=True)
class Recipe:
    """How every part of a log is read.

    Parameters
    ----------
    columns : what the columns mean
    now : seconds since 1970 after which a row is in the future
    numbers : how numbers are written, by meaning
    times : how times are written, by meaning
    words : whether rewards are the words true and false
    end : the latest time, if rows younger than a deadline are left out
    export : how to read a log that `thrifty export` wrote, None for others
    pooled : names of pooled segments, by segment
    notes : what a person should know about how columns are read

    """

    columns: Columns
    now: float
    numbers: Mapping[str, NumberStyle] = field(default_factory=dict)
    times: Mapping[str, TimeStyle] = field(default_factory=dict)
    words: bool = False
    end: float | None = None
    export: Export | None = None
    pooled: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def raw(self, part: Part, context: Sequence[str] = ()) -> Any:
        """The columns of a part under their meanings, as raw_MEANING, and others as context_NAME."""
        pl = require_polars()
        frame = part.scan() if self.export is None else self.export.fit(part.scan())
        named = {f"raw_{meaning}": pl.col(name) for meaning, name in self.columns.named().items()}
        return frame.select(**named, **{f"context_{name}": pl.col(name) for name in context})


def settle(parts: Sequence[Part], columns: Columns, now: float, export: Export | None) -> Recipe:
    """The recipe of a log, from the first rows of some of its parts.

    A ValueError asks what cannot be told from them, or says what is wrong with them.
    """
    pl = require_polars()
    bare = Recipe(columns, now, export=export)
    chosen = parts if len(parts) <= 4 else [parts[len(parts) * place // 4] for place in range(4)]
    samples = [bare.raw(part).head(SAMPLED).collect() for part in chosen]
    texts: dict[str, Any] = {}
    for meaning in columns.named():
        mine = [sample[f"raw_{meaning}"] for sample in samples if sample.schema[f"raw_{meaning}"] == pl.String]
        if mine:
            texts[meaning] = pl.concat(mine)
    named = columns.named()
    numbers = {
        meaning: number_style(texts[meaning], columns.decimal, named[meaning])
        for meaning in _NUMBERS
        if meaning in texts and not (meaning == "reward" and columns.success)
    }
    times = {
        meaning: time_style(texts[meaning], columns.time_style, named[meaning]) if meaning in texts else columns.time_style
        for meaning in _TIMES
        if meaning in named
    }
    words = "reward" in texts and not columns.success and _are_words(texts["reward"], numbers["reward"], columns.reward)
    notes = [zone_note(texts[meaning], times[meaning], named[meaning]) for meaning in times if meaning in texts]
    return Recipe(columns, now, numbers, times, words, export=export, notes=tuple(filter(None, notes)))


def _are_words(texts: Any, style: NumberStyle, column: str) -> bool:
    """Whether the rewards are true and false; a ValueError if they are other words."""
    from thrifty.logs.cells import is_empty_text
    from thrifty.logs.numbers import parse_number

    pl = require_polars()
    found = texts.to_frame("text").filter(~is_empty_text(pl.col("text")))
    if found.height == 0:
        return False
    numbers = found.select(parse_number(pl, pl.col("text"), style)).to_series()
    truth = found["text"].str.strip_chars().str.to_lowercase().is_in(["true", "false"])
    if not truth.any() and numbers.null_count() == found.height:
        shown = ", ".join(found["text"].unique(maintain_order=True).to_list()[:4])
        if all(is_per_cent(text) for text in found["text"].unique().to_list()):
            raise ValueError(f"column {column!r} holds per cent ({shown}): divide by 100, and take off the sign")
        raise ValueError(f"column {column!r} holds words ({shown}): name those that are a success with --success")
    return bool(truth.any()) and numbers.null_count() == found.height
