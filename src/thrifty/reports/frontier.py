"""The frontier report: one self-contained page, CSV, PNG and SVG."""

from typing import Any

from thrifty.logs import Frontier
from thrifty.logs.evidence import OVERALL
from thrifty.reports.drawing import image
from thrifty.reports.evidence import Origin, evidence_part, in_words, less_or_more, with_interval
from thrifty.reports.frontier_charts import MOST_SEGMENTS, draw_frontier, draw_segments, first_of_each_choice
from thrifty.reports.page import NUMBER, WORDS, Cell, PageTable, page_table, picture, render

FRONTIER_SHOWN = "Quality against cost, and saving against alpha"
_MOST_CHANGES = 200  # rows of the table of changes; the CSV has all


def frontier_files(found: Frontier) -> dict[str, bytes]:
    """File names and contents: frontier.html, .csv, .png and .svg, changes.csv and profile.csv."""
    drawn = draw_frontier(found)
    return {
        "frontier.html": frontier_page(found).encode(),
        "frontier.csv": found.points.write_csv().encode(),
        "changes.csv": found.changes.write_csv().encode(),
        "profile.csv": found.evidence.profile.arms.write_csv().encode(),
        "frontier.png": image(drawn, ".png"),
        "frontier.svg": image(drawn, ".svg"),
    }


def frontier_page(found: Frontier) -> str:
    """The page."""
    return render(
        "frontier.html.j2",
        title="What alpha buys",
        origin=Origin.of("frontier", found.evidence.seed),
        lead=_lead(found),
        frontier=picture(draw_frontier(found), FRONTIER_SHOWN),
        points=_points(found),
        segments=picture(draw_segments(found), "Quality against cost in every segment"),
        most_segments=MOST_SEGMENTS,
        changes=_changes(found),
        evidence=evidence_part(found.evidence, found.refused),
    )


def _lead(found: Frontier) -> str:
    knee = found.knee_points.filter(segment=OVERALL).to_dicts()[0]
    return (
        f"At the knee, alpha {knee['alpha']:g}, always taking the cheapest arm above the floor would have cost "
        f"{less_or_more(knee, 'saving')} than always taking the best, for {in_words(knee, 'given_up')} of its "
        f"quality. The floor holds with {knee['floor_held']:.0%}. How arms were chosen: {found.verdict}."
    )


def _points(found: Frontier) -> PageTable:
    names = ("alpha", "quality", "cost", "saved", "given up", "floor held", "rows")
    rows = first_of_each_choice(found.points.filter(segment=OVERALL)).to_dicts()
    return page_table(dict.fromkeys(names, NUMBER), [_point_row(row) for row in rows])


def _point_row(row: dict[str, Any]) -> list[str | Cell]:
    values = (("quality", ".4f"), ("cost", ".4g"), ("saving", ".1%"), ("given_up", ".1%"))
    cells = [with_interval(row, name, form) for name, form in values]
    return [f"{row['alpha']:g}", *cells, f"{row['floor_held']:.0%}", f"{row['rows']:,}"]


def _changes(found: Frontier) -> PageTable:
    columns = {"segment": WORDS, "from": WORDS, "to": WORDS, "at alpha": NUMBER, "95%": NUMBER, "saved from there on": NUMBER}
    rows = [
        [
            row["segment"],
            row["from_arm"],
            row["to_arm"],
            f"{row['alpha']:.3f}",
            f"{row['alpha_low']:.3f} to {row['alpha_high']:.3f}",
            f"{row['saving']:.1%}",
        ]
        for row in found.changes.head(_MOST_CHANGES).to_dicts()
    ]
    return page_table(columns, rows)
