"""What a router starts with: outcomes of its arms that are known beforehand, by segment, and where they come from.

They stand in the row of the log that makes the router. Rules learn from them as from outcomes of the router itself: they are part
of what is remembered, so a policy that forgets lets go of them too, and a reset takes them away. They are no decisions, no
outcomes and no cost of the router.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from thrifty.known import KnownOutcomes
from thrifty.router.settings import Settings, checked_segment, checked_text, path_of

MOST_ENTRIES = 20_000
"""Pairs of a segment and an arm, at most: they stand in one row of the log."""

_FIELDS = tuple(KnownOutcomes.__dataclass_fields__)


@dataclass(frozen=True)
class KnownStart:
    """Known outcomes by (segment, arm), and their source in a few words. A segment counts what is given for it, and all below it.

    >>> start = KnownStart.read({"source": "sms.csv", "outcomes": [{"arm": "a", "segment": "DE", "outcomes": 40, "rewards": 36}]})
    >>> start.total, start.below("", "a"), start.below("FR", "a")
    (40, 40, 0)
    """

    source: str
    outcomes: tuple[tuple[str, str, KnownOutcomes], ...]

    @classmethod
    def read(cls, given: object) -> "KnownStart":
        """What a person or a row of the log gives; a ValueError names what is wrong, and the remedy."""
        if isinstance(given, KnownStart):
            return given
        wanted = 'known must be {"source": "sms.csv", "outcomes": [{"arm": "a", "outcomes": 40, "rewards": 36}]}'
        if not isinstance(given, Mapping) or not set(given) <= {"source", "outcomes"}:
            raise ValueError(f"{wanted}, got {given!r:.80}")
        entries = given.get("outcomes")
        if not isinstance(entries, (list, tuple)) or not 0 < len(entries) <= MOST_ENTRIES:
            raise ValueError(f"{wanted} with 1 to {MOST_ENTRIES} entries, got {entries!r:.80}")
        found: dict[tuple[str, str], KnownOutcomes] = {}
        for entry in entries:
            if not isinstance(entry, Mapping) or not set(entry) <= {"arm", "segment", *_FIELDS}:
                raise ValueError(f"{wanted}, got the entry {entry!r:.80}")
            arm = checked_text("the arm of known outcomes", entry.get("arm"))
            segment = checked_segment(entry["segment"]) if entry.get("segment") else ""
            if (segment, arm) in found:
                raise ValueError(f"known outcomes of {arm!r:.80} in segment {segment!r:.80} are given twice: add them up")
            try:
                found[segment, arm] = KnownOutcomes(**{name: entry.get(name) for name in _FIELDS})  # type: ignore[arg-type]
            except ValueError as error:
                raise ValueError(f"known outcomes of {arm!r:.80} in segment {segment!r:.80}: {error}") from None
        source = checked_text("the source of known outcomes", given.get("source", "known beforehand"))
        return cls(source, tuple((*place, found[place]) for place in sorted(found)))  # in whatever order they were given

    def __str__(self) -> str:
        rewards = sum(known.rewards for _, _, known in self.outcomes)
        return f"{self.total} outcomes of {self.source!r} with {rewards:.17g} rewards"

    def check(self, arms: Mapping[str, float | None], settings: Settings, *, weighs_outcomes: bool) -> None:
        """A ValueError where a router of these arms and settings cannot start with this."""
        if weighs_outcomes:
            self.check_policy(settings.policy, "leave known out")
        unknown = next((arm for _, arm, _ in self.outcomes if arm not in arms), None)
        if unknown is not None:
            raise ValueError(f"known outcomes of {unknown!r:.80}, which is no arm: name one of {', '.join(arms)[:300]}")
        if None in arms.values():
            unpriced = next((arm for _, arm, known in self.outcomes if known.costs is None), None)
            if unpriced is not None:
                raise ValueError(f"a price is unknown, so known outcomes need the sum of their costs: {unpriced!r:.80} has none")
        for _, arm, known in self.outcomes:
            known.at_price(arms[arm])  # it is counted at that, and a sum must be finite
        segments = {each for segment, _, _ in self.outcomes for each in path_of(segment)}
        if len(segments | {""}) > settings.max_segments:
            raise ValueError(f"known outcomes of {len(segments)} segments are more than max_segments, {settings.max_segments}")

    def check_policy(self, policy: str, remedy: str) -> None:
        """A ValueError for a policy that weighs outcomes, as long as any are known."""
        if self.outcomes:
            raise ValueError(
                f"policy {policy} weighs every outcome by the probability of its decision, which known outcomes have not: "
                f"take another policy, or {remedy}"
            )

    @property
    def total(self) -> int:
        """All known outcomes."""
        return sum(known.outcomes for _, _, known in self.outcomes)

    def below(self, segment: str, arm: str) -> int:
        """Known outcomes of an arm in a segment and all below it."""
        return self._counts.get((segment, arm), 0)

    @cached_property
    def _counts(self) -> dict[tuple[str, str], int]:
        counts: dict[tuple[str, str], int] = {}
        for path, arm, known in self.outcomes:
            for segment in path_of(path):
                counts[segment, arm] = counts.get((segment, arm), 0) + known.outcomes
        return counts

    def without(self, arms: Iterable[str]) -> "KnownStart":
        """The same without some arms, which were reset."""
        gone = set(arms)
        return KnownStart(self.source, tuple(entry for entry in self.outcomes if entry[1] not in gone))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they stand in the log."""
        entries = [{"segment": segment, "arm": arm, **known.to_dict()} for segment, arm, known in self.outcomes]
        return {"source": self.source, "outcomes": entries}


def check_started(name: str, found: KnownStart | None, wanted: KnownStart | None) -> None:
    """A ValueError if a router that is there already started with something else than is wanted now, if anything is."""
    if wanted is not None and found != wanted:
        had = "without known outcomes" if found is None else f"with known outcomes: {found}"
        raise ValueError(
            f"router {name!r} has started already, {had}, and a router starts once: leave known out, or delete the router first"
        )
