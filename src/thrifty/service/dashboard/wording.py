"""Facts about arms, segments, decisions and alerts in words."""

from collections.abc import Mapping
from typing import Any

from thrifty.service.dashboard import numbers


def titled(alert: Mapping[str, Any]) -> dict[str, Any]:
    """An alert with the name of its rule as a title."""
    rule = str(alert["rule"])
    return {**alert, "title": rule[:1].upper() + rule[1:]}


def marks_of(arm: Mapping[str, Any], known: Mapping[str, Any], pinned: str | None) -> list[dict[str, str]]:
    """Words beside the name of an arm, each with its style."""
    marks = [("chosen", "chosen")] if arm["arm"] == known["chosen"] else []
    marks += [("best", "")] if arm["arm"] == known["best_arm"] else []
    marks += [("pinned", "chosen")] if arm["arm"] == pinned else []
    marks += [("newcomer", "")] if arm["newcomer"] else []
    marks += [(arm["status"], "warn")] if arm["status"] != "active" else []
    return [{"text": text, "style": style} for text, style in marks]


def borrowing(known: Mapping[str, Any], segment: str) -> str:
    """What a segment takes from those above it, in a sentence."""
    borrowed = sum(arm["borrowed"] for arm in known["arms"])
    own = sum(arm["remembered"] for arm in known["arms"])
    at_start = sum(arm["known"] for arm in known["arms"])
    before = f" ({numbers.count(at_start)} were known at the start)" if at_start else ""
    if known["decided_by"] != segment:
        return f"Nobody has asked for this segment yet: it decides by the statistics of {known['decided_by'] or 'all segments'}."
    if borrowed <= 0.0:
        return f"It rests on its own {numbers.count(own)} outcomes{before} and borrows nothing."
    above = segment.rpartition("/")[0] or "all segments"
    part = numbers.share(borrowed / (borrowed + own))
    amounts = f"{numbers.count(borrowed)} outcomes beside {numbers.count(own)} of its own{before}"
    return f"Of the evidence {part} is borrowed from above ({above}): {amounts}."


def result_of(row: Mapping[str, Any]) -> str:
    """The outcome of a decision in words."""
    outcome = row["outcome"]
    if outcome is None:
        return "waiting"
    reward = outcome["reward"]
    text = "void" if reward is None else "success" if reward == 1.0 else "failure" if reward == 0.0 else numbers.rate(reward)
    text += ", by default" if outcome["default"] else ""
    return text if outcome["arm"] == row["arm"] else f"{text} of {outcome['arm']}"


def number_of(number: int, noun: str) -> str:
    """A number of things.

    >>> number_of(1, "arm"), number_of(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
