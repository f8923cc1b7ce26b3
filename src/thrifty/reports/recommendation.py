"""The recommendation report: one self-contained page, CSV, and the configuration for `thrifty serve`."""

import json
import shlex
from typing import Any

from thrifty.advice import Recommendation
from thrifty.advice.routers import router_bodies
from thrifty.logs.evidence import OVERALL
from thrifty.reports.evidence import Origin, evidence_part, in_words, with_interval
from thrifty.reports.frontier import FRONTIER_SHOWN
from thrifty.reports.frontier_charts import draw_frontier
from thrifty.reports.page import NUMBER, WORDS, Cell, PageTable, page_table, picture, render
from thrifty.reports.recommendation_charts import MOST_DRAWN, draw_candidates, draw_choices

_MOST_CANDIDATES = 1000  # rows of the table of candidates; the CSV has all


def recommendation_files(found: Recommendation) -> dict[str, bytes]:
    """File names and contents: recommendation.html, segments.csv, candidates.csv, profile.csv and routers.json."""
    return {
        "recommendation.html": recommendation_page(found).encode(),
        "segments.csv": found.segments.write_csv().encode(),
        "candidates.csv": found.candidates.write_csv().encode(),
        "profile.csv": found.evidence.profile.arms.write_csv().encode(),
        "routers.json": (json.dumps(router_bodies(found), indent=1) + "\n").encode(),
    }


def recommendation_page(found: Recommendation) -> str:
    """The page."""
    return render(
        "recommendation.html.j2",
        title="What to run",
        origin=Origin.of("recommend", found.seed),
        lead=lead(found),
        choices=_choices(found),
        segments=picture(draw_choices(found), "Saving and change of quality in every segment"),
        commands=_commands(found),
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
        f"{in_words(whole, 'saving')} less than today, and quality to change by {change.text} points ({change.below}). "
        f"Against always taking the best arm that saves {in_words(whole, 'saving_to_best')} for "
        f"{in_words(whole, 'given_up_to_best')} of its quality."
    )


def _choices(found: Recommendation) -> PageTable:
    columns = {
        "segment": WORDS,
        "rows": NUMBER,
        "policy": WORDS,
        "alpha": NUMBER,
        "arm now": WORDS,
        "quality, points": NUMBER,
        "saved to today": NUMBER,
        "saved to best": NUMBER,
        "floor held": NUMBER,
    }
    return page_table(columns, [_choice_row(row) for row in found.segments.to_dicts() if row["segment"] != OVERALL])


def _choice_row(row: dict[str, Any]) -> list[str | Cell]:
    return [
        row["segment"],
        f"{row['rows']:,}",
        Cell(row["policy"], is_code=True),
        f"{row['alpha']:g}",
        row["arm"],
        with_interval(row, "quality_change", "+.2f", factor=100.0),
        with_interval(row, "saving", ".1%"),
        with_interval(row, "saving_to_best", ".1%"),
        f"{row['floor_held']:.0%}",
    ]


def _candidates(found: Recommendation) -> PageTable:
    numbers = ("alpha", "quality", "cost", "quality regret", "cost regret", "worth", "worlds")
    rows = [
        [
            row["segment"],
            row["policy"],
            f"{row['alpha']:g}",
            f"{row['quality']:.4f}",
            f"{row['cost']:.4g}",
            f"{row['quality_regret']:.4f}",
            f"{row['cost_regret']:.3g}",
            f"{100 * row['worth']:.1f}",
            f"{row['worlds']}",
        ]
        for row in found.candidates.head(_MOST_CANDIDATES).to_dicts()
    ]
    return page_table({"segment": WORDS, "policy": WORDS, **dict.fromkeys(numbers, NUMBER)}, rows)


def _method(found: Recommendation) -> str:
    labels = ", ".join(found.candidates["policy"].unique(maintain_order=True).to_list())
    alphas = ", ".join(f"{alpha:g}" for alpha in found.candidates["alpha"].unique().sort().to_list())
    return (
        f"For each segment {found.worlds} worlds were drawn from what the log says about its arms: their mean rewards, how these "
        "moved over the span of the log, their costs and the delay of outcomes, all with their uncertainty. In each of them "
        f"{labels} were played at alpha {alphas} for {found.rounds:,} decisions (or as many as the segment has rows), from "
        "nothing; the three best in twice as many worlds more. Chosen is the highest mean worth: per cent of cost saved against "
        f"always taking the best arm, less {found.exchange:g} times the per cent of quality given up (--exchange)."
    )


def _commands(found: Recommendation) -> str:
    """The commands that make the routers, one a line."""
    bodies = router_bodies(found)
    lines = [
        f"curl -X PUT -H 'content-type: application/json' localhost:8321/v1/routers/{name} -d {shlex.quote(json.dumps(body))}"
        for name, body in list(bodies.items())[:MOST_DRAWN]
    ]
    more = len(bodies) - len(lines)
    return "\n".join([*lines, *([f"# and {more} more in routers.json"] if more else [])])
