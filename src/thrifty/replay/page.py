"""The frontier as files: one self-contained page, CSV, PNG and SVG."""

import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thrifty.pages import Markup, bullets, page, paragraph, picture, table
from thrifty.pictures import save
from thrifty.replay.charts import MOST_SEGMENTS, draw_frontier, draw_segments
from thrifty.replay.evidence import OVERALL, Evidence, assumptions
from thrifty.replay.frontier import Frontier


def frontier_files(found: Frontier) -> dict[str, bytes]:
    """File names and contents: frontier.html, .csv, .png and .svg, changes.csv and profile.csv."""
    files = {
        "frontier.html": frontier_page(found).encode(),
        "frontier.csv": found.points.write_csv().encode(),
        "changes.csv": found.changes.write_csv().encode(),
        "profile.csv": found.evidence.profile.arms.write_csv().encode(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".png", ".svg"):
            path = Path(folder) / f"frontier{ending}"
            save(draw_frontier(found), path)
            files[path.name] = path.read_bytes()
    return files


def frontier_page(found: Frontier) -> str:
    """The page."""
    knee = found.points.filter(segment=OVERALL, alpha=found.knees[OVERALL]).to_dicts()[0]
    lead = (
        f"At the knee, alpha {knee['alpha']:g}, always taking the cheapest arm above the floor would have saved "
        f"{shown(knee, 'saving', '%')} of the cost of always taking the best, for {shown(knee, 'given_up', '%')} of its "
        f"quality. The floor holds with {knee['floor_held']:.0%}."
    )
    return page(
        "What alpha buys",
        [
            written_by("frontier", found.evidence.seed),
            paragraph(lead, "lead"),
            picture(draw_frontier(found), "Quality against cost, and saving against alpha"),
            table(
                ["alpha", "quality", "cost", "saved", "given up", "floor held", "rows"],
                [point_row(row) for row in thinned(found.points.filter(segment=OVERALL).to_dicts())],
            ),
            paragraph("Alphas that change nothing are left out; the CSV has all. Ranges are 95% intervals."),
            "<h2>Segments</h2>",
            picture(draw_segments(found), "Quality against cost in every segment"),
            paragraph(
                "Grey points are arms, blue ones the cheapest above the floor as alpha grows from the right to the left; the "
                "filled one is the knee. One between two arms is where the halves of the time would choose differently. At most "
                f"{MOST_SEGMENTS} segments are drawn, those with the most rows."
            ),
            "<h2>Where the choice changes</h2>",
            table(
                ["segment", "from", "to", "at alpha", "95%", "saved from there on"],
                [
                    [
                        row["segment"], row["from_arm"], row["to_arm"], f"{row['alpha']:.3f}",
                        f"{row['alpha_low']:.3f} to {row['alpha_high']:.3f}", f"{row['saving']:.1%}",
                    ]
                    for row in found.changes.to_dicts()[:200]
                ],
            ),
            *evidence_parts(found.evidence, found.refused),
        ],
    )  # fmt: skip


def written_by(command: str, seed: int) -> str:
    """The line that says where a page comes from."""
    return paragraph(
        f"Written by thrifty {command} {version('thrifty')}, seed {seed}. The same log and seed write it again.", "about"
    )


def evidence_parts(evidence: Evidence, refused: dict[str, str]) -> list[str]:
    """What a page rests on: rows used and left out, notes, arms, refusals and assumptions."""
    tally, profile = evidence.aggregates.tally, evidence.profile
    rows = [
        [
            row["segment"],
            row["arm"],
            f"{row['rows']:,}",
            f"{row['share']:.1%}",
            f"{row['effective_rows']:,.0f}",
            f"{row['mean_reward']:.4f}",
            f"{row['mean_cost']:.4g}",
            f"{row['no_outcome']:.1%}",
            row["refused"] or "yes",
        ]
        for row in profile.arms.to_dicts()
    ]
    return [
        "<h2>What it rests on</h2>",
        bullets(assumptions(evidence)),
        paragraph(f"{tally.used:,} of {tally.rows:,} rows count, in {profile.segments} segments; {profile.span}."),
        bullets(profile.notes),
        *([bullets(f"nothing is said about {name}: {reason}" for name, reason in refused.items())] if refused else []),
        "<details><summary>Every segment and arm in the log</summary>",
        table(
            ["segment", "arm", "rows", "share", "effective rows", "mean reward", "mean cost", "no outcome", "enough to judge"],
            rows[:500],
        ),
        "</details>",
    ]


def shown(row: dict[str, Any], name: str, kind: str) -> str:
    """A value with its interval, in words.

    >>> shown({"saving": 0.1, "saving_low": 0.08, "saving_high": 0.12}, "saving", "%")
    '10.0% (8.0% to 12.0%)'
    """
    form = ".1%" if kind == "%" else ".4g"
    return f"{row[name]:{form}} ({row[f'{name}_low']:{form}} to {row[f'{name}_high']:{form}})"


def ranged(row: dict[str, Any], name: str, form: str) -> Markup:
    """A value over its interval.

    >>> ranged({"cost": 1.0, "cost_low": 0.5, "cost_high": 1.5}, "cost", ".2g")
    '1<br><small>0.5 to 1.5</small>'
    """
    return Markup(f"{row[name]:{form}}<br><small>{row[f'{name}_low']:{form}} to {row[f'{name}_high']:{form}}</small>")


def point_row(row: dict[str, Any]) -> list[str]:
    """One line of the table of a frontier."""
    values = (("quality", ".4f"), ("cost", ".4g"), ("saving", ".1%"), ("given_up", ".1%"))
    cells = [ranged(row, name, form) for name, form in values]
    return [f"{row['alpha']:g}", *cells, f"{row['floor_held']:.0%}", f"{row['rows']:,}"]


def thinned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without those that have the same quality and cost as the one before."""
    kept = rows[:1]
    for row in rows[1:]:
        if (row["cost"], row["quality"]) != (kept[-1]["cost"], kept[-1]["quality"]):
            kept.append(row)
    return kept
