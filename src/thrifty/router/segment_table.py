"""The segments of a router as a table: searched, sorted and cut, fast for ten thousand of them."""

from math import isnan
from typing import TYPE_CHECKING, Any

from thrifty.router.outlook import Brief, Looker, SumsCopy
from thrifty.router.saving import NOTHING, Saving, SavingModel, saved_everywhere
from thrifty.router.summary import saving_in, score_interval

if TYPE_CHECKING:
    from thrifty.router.view import RouterView

SORTS = ("name", "decisions", "outcomes", "quality", "floor", "chosen", "spend", "saving")
"""Columns that the table can be sorted by; with a minus before it, from the largest."""

_NOTHING: Brief = (0.0, None, None)
_LOOKED_UP = ("floor", "chosen", "saving")  # columns for which the rule is asked


def segment_table(
    router: "RouterView",
    *,
    search: str = "",
    below: str | None = None,
    sort: str = "-decisions",
    limit: int = 50,
    offset: int = 0,
    max_age_s: float = 0.0,
) -> dict[str, Any]:
    """Some rows of the table of segments, and how many there are in all; a segment counts those below it.

    Parameters
    ----------
    search : only segments whose name has this text, whatever its case
    below : only segments below this one, without itself; "" leaves out the one that counts all
    sort : one of `SORTS`, with a minus before it from the largest
    limit, offset : how many rows, and how many are left out before them
    max_age_s : how old the statistics may be

    """
    column, falls = sort.removeprefix("-"), sort.startswith("-")
    if column not in SORTS:
        raise ValueError(f"sort must be one of {', '.join(SORTS)}, with - before it from the largest, got {sort!r:.80}")
    copied = router.outlook.copy(router, max_age_s=max_age_s)
    table = _Table(copied)
    found = table.matching(search, below)
    if column in _LOOKED_UP:
        table.look(found)
    values = {number: table.value(column, number) for number in table.by_name(found)}
    known = [number for number, value in values.items() if value is not None]
    known.sort(key=values.__getitem__, reverse=falls)
    unknown = [number for number, value in values.items() if value is None]  # last, whatever the order
    numbers = [*known, *unknown][offset : offset + limit]
    table.look(numbers)
    return {"total": len(found), "at": copied.at, "segments": [table.row(number) for number in numbers]}


def segment_saving(router: "RouterView", segment: str, *, max_age_s: float = 0.0) -> Saving:
    """The saving of one segment and all below it, as the table has it; of basis "none" where nothing is known."""
    copied = router.outlook.copy(router, max_age_s=max_age_s)
    if segment not in copied.names:
        return NOTHING
    table, number = _Table(copied), copied.names.index(segment)
    table.look([number])
    return table.interval(number)


class _Table:
    """Columns of all segments; those that the rule is asked for are made where they are needed."""

    def __init__(self, copied: SumsCopy) -> None:
        self._copied, sums = copied, copied.sums
        self._sums: dict[str, Any] = {
            name: sums[field].sum(axis=1).tolist()
            for name, field in (("decisions", "sent"), ("outcomes", "seen"), ("rewards", "reward_sum"), ("spend", "cost_sum"))
        }
        self._looks: dict[int, Brief] = {}
        self._saved: list[list[float]] | None = None  # per segment and arm
        self._model: SavingModel | None = None
        choice = copied.arms.active_at_prices()
        self._choice = choice[0]
        self._looker = Looker(copied, copied.settings, choice) if choice[0] else None

    def matching(self, search: str, below: str | None) -> list[int]:
        """Numbers of the segments whose name has a text, and which are below one."""
        names, wanted = self._copied.names, search.casefold()
        found = list(range(len(names))) if not wanted else [n for n, name in enumerate(names) if wanted in name.casefold()]
        if below is None:
            return found
        start = f"{below}/" if below else ""
        return [n for n in found if names[n] and names[n].startswith(start)]

    def look(self, numbers: list[int]) -> None:
        """Ask the rule what it knows and would take, in these segments."""
        if self._looker is not None:
            for number in numbers:
                if number not in self._looks:
                    self._looks[number] = self._looker.brief(number)

    def by_name(self, numbers: list[int]) -> list[int]:
        """Numbers of segments in the order of their names."""
        return sorted(numbers, key=self._copied.names.__getitem__)

    def value(self, name: str, number: int) -> Any:
        """One value of the table; None if it is not known."""
        if name == "name":
            return self._copied.names[number]
        if name == "quality":
            outcomes = self._sums["outcomes"][number]
            return self._sums["rewards"][number] / outcomes if outcomes > 0.0 else None
        if name in self._sums:
            return self._sums[name][number]
        arms, (floor, best, chosen) = self._copied.arms, self._looks.get(number, _NOTHING)
        if name == "chosen" and arms.pinned is not None:
            return arms.names[arms.pinned]
        if best is None or chosen is None:
            return None
        if name == "floor":
            return floor
        return arms.names[self._choice[chosen]] if name == "chosen" else self._saving(number, self._choice[best])

    def _saving(self, number: int, best: int) -> float | None:
        if self._saved is None:
            self._saved = saved_everywhere(self._copied.sums, self._copied.parents).tolist()
        saved = self._saved[number][best]
        return None if isnan(saved) else saved

    def row(self, number: int) -> dict[str, Any]:
        """A segment as plain values."""
        row = {name: self.value(name, number) for name in SORTS}
        low, high = score_interval(self._sums["rewards"][number], self._sums["outcomes"][number])
        saving, amount = self.interval(number), row["saving"]
        if saving.low is not None and saving.high is not None and amount is not None:  # the same sum in another order: rounded
            row |= {"saving_low": min(saving.low, amount), "saving_high": max(saving.high, amount)}
        else:
            row |= {"saving_low": None, "saving_high": None}
        return {**row, "outcomes": int(row["outcomes"]), "quality_low": low, "quality_high": high}

    def interval(self, number: int) -> Saving:
        """The saving of a segment with its interval."""
        _, best, chosen = self._looks.get(number, _NOTHING)
        if best is None or chosen is None:
            return NOTHING
        if self._model is None:
            self._model = SavingModel(self._copied.sums, self._copied.parents)
        return saving_in(self._copied, self._model, number, self._choice, best=self._choice[best])
