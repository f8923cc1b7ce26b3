"""The recommendation as files: one self-contained page, CSV, and the configuration for `thrifty serve`."""

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty import pictures
from thrifty.advice.expectation import SegmentChoice
from thrifty.advice.recommendation import Recommendation
from thrifty.pages import Markup, page, paragraph, picture, table
from thrifty.replay.charts import draw_frontier
from thrifty.replay.evidence import OVERALL
from thrifty.replay.page import evidence_parts, ranged, shown, written_by

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_DRAWN = 40


def recommendation_files(found: Recommendation) -> dict[str, bytes]:
    """File names and contents: recommendation.html, segments.csv, candidates.csv, profile.csv and routers.json."""
    return {
        "recommendation.html": recommendation_page(found).encode(),
        "segments.csv": found.segments.write_csv().encode(),
        "candidates.csv": found.candidates.write_csv().encode(),
        "profile.csv": found.evidence.profile.arms.write_csv().encode(),
        "routers.json": (json.dumps(routers(found), indent=1) + "\n").encode(),
    }


def routers(found: Recommendation) -> dict[str, dict[str, Any]]:
    """The body to PUT at /v1/routers/NAME for every segment, by a name that a router may have."""
    bodies: dict[str, dict[str, Any]] = {}
    for choice in found.choices:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", choice.fit.name).strip("-")[:60] or "segment"
        while name in bodies:
            name += "_"
        bodies[name] = _router(found, choice)
    return bodies


def _router(found: Recommendation, choice: SegmentChoice) -> dict[str, Any]:
    columns = found.evidence.log.columns
    prices = [float(f"{price:.6g}") if choice.fit.listed else None for price in choice.fit.latest]
    body: dict[str, Any] = {
        "arms": dict(zip(choice.fit.arms, prices, strict=True)),
        "alpha": choice.alpha,
        "policy": choice.policy,
        "default_outcome": "ignore" if columns.missing == "ignore" else "failure",
    }
    if columns.missing == "censored":
        body["deadline_s"] = columns.deadline_s
    return body


def lead(found: Recommendation) -> str:
    """The recommendation in a sentence or two."""
    whole = found.segments.filter(segment=OVERALL).to_dicts()[0]
    change = [100.0 * whole[f"quality_change{end}"] for end in ("", "_low", "_high")]
    return (
        f"With the choices below, {whole['rows']:,} requests like those of the log are expected to cost "
        f"{shown(whole, 'saving', '%')} less than today, and quality to change by {change[0]:+.2f} points ({change[1]:+.2f} to "
        f"{change[2]:+.2f}). Against always taking the best arm that saves {shown(whole, 'saving_to_best', '%')} for "
        f"{shown(whole, 'given_up_to_best', '%')} of its quality."
    )


def recommendation_page(found: Recommendation) -> str:
    """The page."""
    rows = [row for row in found.segments.to_dicts() if row["segment"] != OVERALL]
    chosen = table(
        ["segment", "rows", "policy", "alpha", "arm now", "quality, points", "saved to today", "saved to best", "floor held"],
        [
            [
                row["segment"], f"{row['rows']:,}", Markup(f"<code>{row['policy']}</code>"), f"{row['alpha']:g}", row["arm"],
                _points(row), ranged(row, "saving", ".1%"), ranged(row, "saving_to_best", ".1%"), f"{row['floor_held']:.0%}",
            ]
            for row in rows
        ],
    )  # fmt: skip
    return page(
        "What to run",
        [
            written_by("recommend", found.seed),
            paragraph(lead(found), "lead"),
            chosen,
            paragraph(
                "Change of quality (in points) and savings are against today, and against always taking the best arm: means over "
                "simulated worlds, learning included, with the middle 95% of the worlds below. Arm now is the cheapest above the "
                "floor by the log, and floor held how sure the log makes it that this arm reaches the floor."
            ),
            picture(draw_choices(found), "Saving and change of quality in every segment"),
            "<h2>To run it</h2>",
            paragraph("Start thrifty serve, then paste this; routers.json has the same bodies. A price of null is unknown."),
            f"<pre>{_commands(found)}</pre>",
            "<h2>How it was chosen</h2>",
            paragraph(_method(found)),
            picture(draw_candidates(found), "Worth of every policy by alpha"),
            "<details><summary>Every candidate in every segment</summary>",
            table(
                ["segment", "policy", "alpha", "quality", "cost", "quality regret", "cost regret", "worth", "worlds"],
                [
                    [
                        row["segment"], row["policy"], f"{row['alpha']:g}", f"{row['quality']:.4f}", f"{row['cost']:.4g}",
                        f"{row['quality_regret']:.4f}", f"{row['cost_regret']:.3g}", f"{100 * row['worth']:.1f}",
                        f"{row['worlds']}",
                    ]
                    for row in found.candidates.to_dicts()[:1000]
                ],
            ),
            paragraph("Regrets are a decision on average, against the optimal arm of each moment; worth is in per cent of cost."),
            "</details>",
            "<h2>The frontier of the log</h2>",
            picture(draw_frontier(found.frontier), "Quality against cost, and saving against alpha"),
            *evidence_parts(found.evidence, found.refused),
        ],
    )  # fmt: skip


def _points(row: dict[str, Any]) -> Markup:
    values = [100.0 * row[f"quality_change{end}"] for end in ("", "_low", "_high")]
    return Markup(f"{values[0]:+.2f}<br><small>{values[1]:+.2f} to {values[2]:+.2f}</small>")


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
    import html

    lines = [
        f"curl -X PUT -H 'content-type: application/json' localhost:8321/v1/routers/{name} -d {shlex.quote(json.dumps(body))}"
        for name, body in list(routers(found).items())[:MOST_DRAWN]
    ]
    more = [f"# and {len(found.choices) - MOST_DRAWN} more in routers.json"] if len(found.choices) > MOST_DRAWN else []
    return html.escape("\n".join([*lines, *more]), quote=False)


def draw_choices(found: Recommendation) -> "Figure":
    """Saving and change of quality against today, a line per segment."""
    plt = pictures.pyplot()
    rows = found.segments.to_dicts()[-MOST_DRAWN - 1 :]
    names = [row["segment"] for row in rows]
    places = np.arange(len(rows))[::-1]
    with plt.rc_context(pictures.LOOK):
        figure: Figure
        figure, axes = plt.subplots(1, 2, figsize=(9.6, 1.2 + 0.27 * len(rows)), layout="constrained", sharey=True)
        for ax, name, label in zip(
            axes, ("saving", "quality_change"), ("cost saved against today", "change of quality, points"), strict=True
        ):
            middle, low, high = (100.0 * np.array([row[f"{name}{end}"] for row in rows]) for end in ("", "_low", "_high"))
            bold = np.array([row["segment"] == OVERALL for row in rows])
            for mask, colour, size in ((~bold, pictures.COLOURS[0], 4), (bold, pictures.COLOURS[1], 6)):
                errors = np.maximum([middle - low, high - middle], 0.0)[:, mask]
                ax.errorbar(middle[mask], places[mask], xerr=errors, fmt="o", color=colour, markersize=size, elinewidth=1.0)
            ax.axvline(0.0, color="#888888", linewidth=0.8)
            ax.set(xlabel=f"{label}{' (%)' if name == 'saving' else ''}", yticks=places, yticklabels=names)
            ax.grid(axis="y", visible=False)
        figure.suptitle("Mean and middle 95% of simulated worlds", fontsize=8)
    return figure


def draw_candidates(found: Recommendation) -> "Figure":
    """Mean worth of every policy against alpha, over all segments by their traffic."""
    rows_of = {choice.fit.name: choice.fit.rows for choice in found.choices}
    total = sum(rows_of.values())
    curves = {}
    for label in found.candidates["policy"].unique(maintain_order=True).to_list():
        mine = found.candidates.filter(policy=label)
        alphas = mine["alpha"].unique().sort().to_list()
        values = [
            100.0 * sum(rows_of[row["segment"]] * row["worth"] for row in mine.filter(alpha=alpha).to_dicts()) / total
            for alpha in alphas
        ]
        curves[label] = (alphas, values)
    plt = pictures.pyplot()
    with plt.rc_context(pictures.LOOK):
        figure: Figure
        figure, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
        for number, (label, (alphas, values)) in enumerate(curves.items()):
            style, marker = pictures.STYLES[number % 4], pictures.MARKERS[number % 8]
            ax.plot(alphas, values, style, marker=marker, color=pictures.COLOURS[number % 8], label=label, markersize=5)
        ax.axhline(0.0, color="#888888", linewidth=0.8)
        ax.set(xlabel="alpha", ylabel="worth, per cent of the best arm's cost")
        ax.set_title("All segments together; 0 is always taking the best arm", fontsize=9)
        ax.legend(fontsize=8)
    return figure
