"""The recommendation report: one self-contained page, CSV, and the configuration for `thrifty serve`."""

import json
import math
import shlex
from typing import Any

from thrifty.advice import Recommendation
from thrifty.advice.fixed import fixed_arm
from thrifty.advice.games import FURTHER
from thrifty.advice.routers import NAME, AdvisedRouters, SegmentRoute, advised_routers
from thrifty.advice.selection import AS_GOOD
from thrifty.logs.evidence import OVERALL
from thrifty.reports.evidence import Origin, evidence_part, in_words, less_or_more, with_interval
from thrifty.reports.frontier import FRONTIER_SHOWN
from thrifty.reports.frontier_charts import draw_frontier
from thrifty.reports.page import NUMBER, WORDS, Cell, PageTable, page_table, picture, render
from thrifty.reports.recommendation_charts import draw_candidates, draw_choices

MOST_ASKED = 3
"""Segments for which a page shows a request; routers.json has all."""

_MOST_CANDIDATES = 1000  # rows of the table of candidates; the CSV has all


def recommendation_files(found: Recommendation, *, name: str = NAME) -> dict[str, bytes]:
    """File names and contents: recommendation.html, segments.csv, candidates.csv, profile.csv and routers.json."""
    advised = advised_routers(found, name)
    return {
        "recommendation.html": recommendation_page(found, advised).encode(),
        "segments.csv": found.segments.write_csv().encode(),
        "candidates.csv": found.candidates.write_csv().encode(),
        "profile.csv": found.evidence.profile.arms.write_csv().encode(),
        "routers.json": (json.dumps(advised.to_dict(), indent=1) + "\n").encode(),
    }


def recommendation_page(found: Recommendation, advised: AdvisedRouters) -> str:
    """The page."""
    return render(
        "recommendation.html.j2",
        title="What to run",
        origin=Origin.of("recommend", found.seed),
        lead=lead(found),
        choices=_choices(found, advised),
        segments=picture(draw_choices(found), "Saving and change of quality in every segment"),
        commands=_commands(advised),
        method=_method(found),
        candidates_picture=picture(draw_candidates(found), "Worth of every policy by alpha"),
        candidates=_candidates(found),
        frontier=picture(draw_frontier(found.frontier), FRONTIER_SHOWN),
        evidence=evidence_part(found.evidence, found.refused),
    )


def lead(found: Recommendation) -> str:
    """The recommendation in a sentence or two."""
    whole = found.segments.filter(segment=OVERALL).to_dicts()[0]
    change = with_interval(whole, "quality_change", "+.2f", factor=100.0)
    return (
        f"With the choices below, {whole['rows']:,} requests like those of the log are expected to cost "
        f"{less_or_more(whole, 'saving')} than today, and quality to change by {change.text} points ({change.below}). "
        f"{_against_best(whole)} {_start(found, whole)}How arms were chosen: {found.frontier.verdict}."
    )


def _start(found: Recommendation, whole: dict[str, Any]) -> str:
    """What the warm start brings, in a sentence; empty without one."""
    if not found.warm:
        return ""
    if whole["start"] <= -0.0005:
        return (
            "Routers start with what the log knows; from nothing, the same choices would be worth "
            f"{-whole['start']:.1%} of cost more, their alpha kept or not: compare with --cold. "
        )
    return f"Routers start with what the log knows: that is worth {whole['start']:.1%} of cost against a start from nothing. "


def _against_best(whole: dict[str, Any]) -> str:
    """The choices against always taking the best arm, in a sentence; no share is saved of what is free."""
    given_up = in_words(whole, "given_up_to_best")
    if not math.isnan(whole["saving_to_best"]):
        return f"They cost {less_or_more(whole, 'saving_to_best')} than always taking the best arm, for {given_up} of its quality."
    free = "" if math.isnan(whole["saving"]) else "; that arm may be free, so no share of its cost can be saved"
    return f"They give up {given_up} of the best arm's quality{free}."


def _choices(found: Recommendation, advised: AdvisedRouters) -> PageTable:
    columns = {
        "segment": WORDS,
        "rows": NUMBER,
        "router": WORDS,
        "policy": WORDS,
        "alpha": NUMBER,
        "arm now": WORDS,
        "quality, points": NUMBER,
        "saved to today": NUMBER,
        "saved to best": NUMBER,
        "floor held": NUMBER,
    }
    rows = [_choice_row(row, advised) for row in found.segments.to_dicts() if row["segment"] != OVERALL]
    return page_table(columns, rows)


def _choice_row(row: dict[str, Any], advised: AdvisedRouters) -> list[str | Cell]:
    return [
        row["segment"],
        f"{row['rows']:,}",
        advised.segments[row["segment"]].router,
        Cell(row["policy"], is_code=True),
        f"{row['alpha']:g}",
        row["arm"],
        with_interval(row, "quality_change", "+.2f", factor=100.0),
        with_interval(row, "saving", ".1%"),
        with_interval(row, "saving_to_best", ".1%"),
        f"{row['floor_held']:.0%}",
    ]


def _candidates(found: Recommendation) -> PageTable:
    numbers = ("alpha", "quality", "cost", "given up", "floor held", "quality regret", "cost regret", "worth", "worlds")
    rows = [
        [
            row["segment"],
            row["policy"],
            f"{row['alpha']:g}",
            f"{row['quality']:.4f}",
            f"{row['cost']:.4g}",
            f"{row['given_up']:.1%}",
            f"{row['floor_held']:.0%}",
            f"{row['quality_regret']:.4f}",
            f"{row['cost_regret']:.3g}",
            f"{100 * row['worth']:.1f}",
            f"{row['worlds']}",
        ]
        for row in found.candidates.head(_MOST_CANDIDATES).to_dicts()
    ]
    return page_table({"segment": WORDS, "policy": WORDS, **dict.fromkeys(numbers, NUMBER)}, rows)


def _method(found: Recommendation) -> str:
    policies = found.candidates["policy"].unique(maintain_order=True).to_list()
    labels = ", ".join(label for label in policies if fixed_arm(label) is None)
    alphas = ", ".join(f"{alpha:g}" for alpha in found.candidates["alpha"].unique().sort().to_list())
    return (
        f"For each segment {found.worlds} worlds were drawn from what the log says about its arms: their mean rewards, how these "
        "moved over the span of the log, their costs and the delay of outcomes, all with their uncertainty. In each of them "
        f"{labels} were played at alpha {alphas} for {found.rounds:,} decisions (or as many as the segment has rows), from "
        f"nothing and without knowing how many there will be; the best in {FURTHER} times as many worlds more. {_limit(found)} "
        "Chosen is the highest mean worth: per cent of cost saved against always taking the best arm, less "
        f"{found.criteria.exchange:g} times the per cent of quality given up (--exchange).{_fixed(found)} "
        f"Segments get the same policy, and so one router, where it is within {AS_GOOD:.1%} of cost of the best in each."
    )


def _fixed(found: Recommendation) -> str:
    """What is said about fixed arms, if they were candidates."""
    if not any(fixed_arm(label) is not None for label in found.candidates["policy"].unique()):
        return ""
    return (
        " Always taking one arm is a candidate too (fixed): it pays nothing for learning what the log knows already, but it does "
        "not notice changes."
    )


def _limit(found: Recommendation) -> str:
    """What was done about alpha as a limit, in a sentence."""
    if found.criteria.share == 0.0:
        return "Alpha was no limit (--soft)."
    return (
        f"A candidate that gave up more of the best arm's quality than its alpha, learning included, in more than "
        f"{1.0 - found.criteria.share:.0%} of the worlds is out (--confidence)."
    )


def _commands(advised: AdvisedRouters) -> str:
    """The commands that make the routers, one a line, and a decision in each segment."""
    make = [_curl("PUT", f"/v1/routers/{name}", body) for name, body in advised.routers.items()]
    ask = [_curl("POST", "/v1/decisions", decision_body(route)) for route in list(advised.segments.values())[:MOST_ASKED]]
    more = len(advised.segments) - len(ask)
    return "\n".join([*make, *ask, *([f"# and {more} more segments in routers.json"] if more else [])])


def _curl(method: str, path: str, body: dict[str, Any]) -> str:
    """One command, every word of it quoted for a shell."""
    words = ["curl", "-X", method, "-H", "content-type: application/json", f"localhost:8321{path}", "-d", json.dumps(body)]
    return shlex.join(words)


def decision_body(route: SegmentRoute) -> dict[str, Any]:
    """The body of a request for a decision in a segment.

    >>> decision_body(SegmentRoute("sms", "DE", {"Elm": 0.05}))
    {'router': 'sms', 'segment': 'DE', 'eligible': [{'arm': 'Elm', 'cost': 0.05}]}
    """
    body: dict[str, Any] = {"router": route.router}
    if route.segment is not None:
        body["segment"] = route.segment
    if route.eligible is not None:
        body["eligible"] = [{"arm": arm} | ({} if price is None else {"cost": price}) for arm, price in route.eligible.items()]
    return body
