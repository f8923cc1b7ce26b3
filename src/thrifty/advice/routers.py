"""The routers of the decision service that a recommendation amounts to, and what to send with the requests of each segment."""

import re
from dataclasses import dataclass
from typing import Any

from thrifty.advice.fixed import fixed_arm
from thrifty.advice.recommendation import Recommendation
from thrifty.advice.selection import SegmentChoice
from thrifty.known import KnownOutcomes
from thrifty.logs.tally import EMPTY_LEVEL
from thrifty.policies import DEFAULT_POLICY
from thrifty.router.settings import checked_name

Prices = dict[str, float | None]
"""Prices by arm; None where they are unknown."""

NAME = "advised"
"""The name of the router, if none is given."""


@dataclass(frozen=True)
class SegmentRoute:
    """How a segment is served: the router, the segment to name in a request, and the arms and prices to send with it.

    `eligible` is None where the arms and prices of the router are right as they are.
    """

    router: str
    segment: str | None
    eligible: Prices | None


@dataclass(frozen=True)
class AdvisedRouters:
    """Bodies to PUT at /v1/routers/NAME by name, and the route of each segment of the log."""

    routers: dict[str, dict[str, Any]]
    segments: dict[str, SegmentRoute]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they are written to routers.json."""
        return {"routers": self.routers, "segments": {name: route.__dict__ for name, route in self.segments.items()}}


def advised_routers(found: Recommendation, name: str = NAME) -> AdvisedRouters:
    """One router for all segments that have the same policy and alpha: segments of one router learn from each other.

    The arms and prices of a router are those of all its segments, of the one with the most rows where prices differ. A segment that
    has other arms or prices names them in its requests. So does one whose choice is a fixed arm: it names that arm alone, of a
    router with the usual policy, so that its outcomes are logged. With a warm start a router starts with what the log knows.

    >>> import polars
    >>> from thrifty import Effort, Log, recommend
    >>> rewards = [1, 1, 1, 1, 0, 0] * 666 + [1] * 4
    >>> frame = polars.DataFrame({"arm": ["a", "b"] * 2000, "reward": rewards, "cost": [2.0, 1.0] * 2000})
    >>> found = recommend(Log(frame), [0.1], policies=["cs-ts"], effort=Effort(rounds=500, worlds=2))
    >>> advised_routers(found, "sms").routers["sms"]["arms"]
    {'b': 1.0, 'a': 2.0}
    """
    groups: dict[tuple[str, float], list[SegmentChoice]] = {}
    for choice in found.choices:
        learner = DEFAULT_POLICY if fixed_arm(choice.policy) is not None else choice.policy
        groups.setdefault((learner, choice.alpha), []).append(choice)
    ordered = sorted(groups.values(), key=lambda group: -sum(choice.fit.rows for choice in group))
    routers: dict[str, dict[str, Any]] = {}
    routes: dict[str, SegmentRoute] = {}
    for number, group in enumerate(ordered, 1):
        router = checked_name("name", name if number == 1 else f"{name}-{number}")
        arms: Prices = {}
        for choice in sorted(group, key=lambda choice: -choice.fit.rows):
            arms = {**_prices(choice), **arms}
        routers[router] = _body(found, group[0], arms) | _start(found, group)
        for choice in group:
            path = _named(found, choice)
            prices, fixed = _prices(choice), fixed_arm(choice.policy)
            asked = None if prices == arms else prices
            routes[choice.fit.name] = SegmentRoute(router, path, asked if fixed is None else {fixed: prices[fixed]})
    return AdvisedRouters(routers, {choice.fit.name: routes[choice.fit.name] for choice in found.choices})


def _named(found: Recommendation, choice: SegmentChoice) -> str | None:
    """The segment to name in a request; None if there is none."""
    unnamed = found.evidence.log.columns.segment is None or choice.fit.name == EMPTY_LEVEL
    return None if unnamed else _path(choice.fit.name)


def _start(found: Recommendation, group: list[SegmentChoice]) -> dict[str, Any]:
    """What a router knows when it starts: what the log knows of its segments. Nothing for a start from nothing."""
    if not group[0].warm:
        return {}
    sums: dict[tuple[str, str], KnownOutcomes] = {}
    for choice in group:
        for arm, known in zip(choice.fit.arms, choice.fit.known, strict=True):
            place = _named(found, choice) or "", arm  # segments of the log whose names differ may have one path
            sums[place] = known.plus(sums[place]) if place in sums else known
    source = f"a log of {sum(choice.fit.rows for choice in group):,} rows"
    entries = [{"segment": segment, "arm": arm, **known.to_dict()} for (segment, arm), known in sums.items()]
    return {"known": {"source": source, "outcomes": entries}}


def _prices(choice: SegmentChoice) -> Prices:
    latest = [float(f"{price:.6g}") if choice.fit.listed else None for price in choice.fit.latest]
    return dict(zip(choice.fit.arms, latest, strict=True))


def _body(found: Recommendation, choice: SegmentChoice, arms: Prices) -> dict[str, Any]:
    columns = found.evidence.log.columns
    body: dict[str, Any] = {
        "arms": arms,
        "alpha": choice.alpha,
        "policy": DEFAULT_POLICY if fixed_arm(choice.policy) is not None else choice.policy,
        "default_outcome": "ignore" if columns.missing == "ignore" else "failure",
    }
    return {**body, "deadline_s": columns.deadline_s} if columns.missing == "censored" else body


def _path(segment: str) -> str:
    """The segment as a path that a router takes: what a path cannot have becomes _."""
    printable = "".join(letter if letter.isprintable() else "_" for letter in segment)[:200]
    return "/".join(part if part.strip() else "_" for part in re.split("/", printable))
