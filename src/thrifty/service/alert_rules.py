"""The rules of alerts: what is wrong with a router now, in words. The tests are those of `thrifty.router.monitor`."""

from collections.abc import Container
from typing import Any, NamedTuple

from thrifty.router import Router
from thrifty.router.monitor import BROKEN, COLLAPSED, STOPPED, Monitor, Verdict

SEVERITIES = {
    COLLAPSED: "warn",
    BROKEN: "page",
    STOPPED: "page",
    "store degraded": "page",
    "guardrail fell back": "page",
    "spend above budget": "warn",
    "budget cannot be kept": "warn",
    "newcomer proven": "info",
    "test": "info",
}
"""All rules. `page` wakes somebody, `warn` can wait until the morning, `info` is news."""

SPENT, CANNOT, FELL_BACK = "spend above budget", "budget cannot be kept", "guardrail fell back"

MARGIN = 0.02
"""Share of the budget beyond which it cannot be kept, and below which it can again."""

LEAST_DECISIONS = 100
"""Decisions of a day before anything is said about the rest of it."""

MOST_OPEN = 20
"""Open alerts of one router, at most."""

Key = tuple[str, str, str, str]
"""Rule, router, segment, arm."""


class Condition(NamedTuple):
    """What is wrong now."""

    key: Key
    text: str


def conditions(router: Router, monitor: Monitor, lasting: Container[Key]) -> list[Condition]:
    """What is wrong with a router now, the worst first; what lasts already ends only when it is clearly over."""
    found = [Condition((each.rule, router.name, each.segment, each.arm), _sentence(each)) for each in monitor.verdicts()]
    found += _about_budget(router, lasting)
    fallback = router.state.configuration.fallback
    if fallback is not None:
        found.append(Condition((FELL_BACK, router.name, "", ""), str(fallback["text"])))
    order = list(SEVERITIES.values())
    ranks = {severity: rank for rank, severity in enumerate(("page", "warn", "info"))}
    found.sort(key=lambda each: ranks[SEVERITIES[each.key[0]]] * len(order) + len(each.key[2]))
    return found[:MOST_OPEN]


def _about_budget(router: Router, lasting: Container[Key]) -> list[Condition]:
    forecast, found = router.forecast(), list[Condition]()
    if forecast.budget <= 0.0:
        return found
    above, cannot = (SPENT, router.name, "", ""), (CANNOT, router.name, "", "")
    if forecast.spent > forecast.budget:
        found.append(Condition(above, f"{forecast.spent:.6g} was spent today (UTC), and the budget is {forecast.budget:.6g}"))
    limit = forecast.budget * (1 - MARGIN if cannot in lasting else 1 + MARGIN)
    if forecast.saving is not None and forecast.saving > limit and forecast.decisions >= LEAST_DECISIONS:
        text = (
            f"the budget of {forecast.budget:.6g} cannot be kept above the floor: with the cheapest feasible arms alone about "
            f"{forecast.saving:.6g} will be spent until midnight (UTC)"
        )
        found.append(Condition(cannot, text))
    return found


def _sentence(verdict: Verdict) -> str:
    where = f" in segment {verdict.segment}" if verdict.segment else ""
    if verdict.rule == STOPPED:
        return (
            f"outcomes have stopped, or every arm fails without a word: {verdict.recent:.0%} of recent decisions got one, "
            f"{verdict.compared:.0%} did before"
        )
    if verdict.rule == COLLAPSED:
        return f"arm {verdict.arm} has collapsed{where}: mean reward {verdict.recent:.3f} of late, {verdict.compared:.3f} before"
    return f"the floor is broken{where}: quality {verdict.recent:.3f} of late, and the floor is {verdict.compared:.3f}"


ENDINGS = {
    COLLAPSED: "the arm is as good as before again, or takes no more decisions",
    BROKEN: "the quality is above the floor again",
    STOPPED: "outcomes come again",
    "store degraded": "the store takes rows again",
    "guardrail fell back": "a person moved the rollout on",
    "spend above budget": "a new day has begun, or the budget was raised",
    "budget cannot be kept": "the budget can be kept, or a new day has begun",
}
"""What the end of an alert says."""


def proven(router: Router, before: set[str]) -> tuple[list[tuple[str, str]], set[str]]:
    """Arms that were newcomers before and have proven themselves, each with a sentence; and the newcomers of now."""
    arms = router.arms
    now = {arms.names[arm] for arm in sorted(arms.newcomers)}
    status: dict[str, Any] = dict(zip(arms.names, arms.status, strict=True))
    graduates = [name for name in sorted(before - now) if status.get(name) == "active"]
    text = "arm {} was tried often enough: it is a newcomer no more, and is chosen like any other"
    return [(name, text.format(name)) for name in graduates], now
