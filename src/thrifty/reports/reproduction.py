"""The reproduction report: runs experiments, leaves their tables and figures, and writes one self-contained page."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from thrifty import __version__
from thrifty.compiled import source_digest
from thrifty.experiments import Claim, Experiment, Finding, Scale, run_experiments
from thrifty.experiments.verdict import FAILS, HOLDS, IMPRECISE, REDRAWS, UNDECIDED, UNTESTABLE
from thrifty.files import write_whole
from thrifty.reports.drawing import draw, image
from thrifty.reports.page import NUMBER, WORDS, PageTable, Picture, embedded, natural_width, page_table, render
from thrifty.table import Table

_TITLE = "Multi-Armed Bandits with Cost Subsidy, reproduced"
_VERDICT_CLASSES = {HOLDS: "holds", FAILS: "fails", IMPRECISE: "imprecise", UNTESTABLE: "open", UNDECIDED: "open"}
_VERDICTS_IN_WORDS = {
    HOLDS: "hold",
    FAILS: "do not hold",
    IMPRECISE: "are imprecise",
    UNTESTABLE: "cannot be tested at this size",
    UNDECIDED: "are undecided",
}
_MOST_ROWS = 60  # rows of a table on the page; the CSV has all


@dataclass(frozen=True)
class ReportItem:
    """One experiment on the page."""

    name: str
    title: str
    about: str
    picture: Picture
    claims: tuple[Claim, ...]
    corrections: tuple[Claim, ...]
    table: PageTable
    n_rows: int


def reproduce(
    names: Sequence[str],
    scale: Scale,
    *,
    out: str | os.PathLike[str],
    backend: str = "local",
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    drawing: Callable[[int, int], None] | None = None,
) -> Path:
    """Run experiments and write `out`: per item a CSV, a PNG and an SVG, then claims.csv, and report.html, whose path is returned.

    Parameters
    ----------
    names : items of the catalogue; none for all of them
    scale : how large, and with which seed
    out : a folder, made if need be; simulated results are kept in its folder `results`
    backend, workers, progress : as in `sweep`
    drawing : called with (items drawn, items in all)

    """
    folder = Path(out)
    simulated = run_experiments(names, scale, folder / "results", backend=backend, workers=workers, progress=progress)
    items = []
    for number, (experiment, results) in enumerate(simulated):
        finding = experiment.conclude(scale, results)
        figure = draw(finding.figure)
        png, svg = image(figure, ".png"), image(figure, ".svg")
        write_whole(folder / f"{experiment.name}.csv", finding.table.to_csv().encode())
        write_whole(folder / f"{experiment.name}.png", png)
        write_whole(folder / f"{experiment.name}.svg", svg)
        items.append(report_item(experiment, finding, embedded(svg, experiment.title, width_rem=natural_width(figure))))
        if drawing is not None:
            drawing(number + 1, len(simulated))
    write_whole(folder / "claims.csv", claims_table(items).to_csv().encode())
    path = folder / "report.html"
    write_whole(path, reproduction_page(items, scale).encode())
    return path


def report_item(experiment: Experiment, finding: Finding, picture: Picture) -> ReportItem:
    """An experiment with what came out and its picture, ready for the page."""
    return ReportItem(
        name=experiment.name,
        title=experiment.title,
        about=experiment.about,
        picture=picture,
        claims=finding.claims,
        corrections=finding.corrections,
        table=_shown_table(finding.table),
        n_rows=len(finding.table),
    )


def claims_table(items: Sequence[ReportItem]) -> Table:
    """Every claim, of the paper and of this project, with its verdict and its flips; flips are empty where nothing was random."""
    rows = [
        (item.name, by, claim.place, claim.text, claim.verdict, "" if claim.flips is None else str(claim.flips), claim.measured)
        for item in items
        for by, claims in (("paper", item.claims), ("project", item.corrections))
        for claim in claims
    ]
    names = ("item", "by", "place", "text", "verdict", f"flips_of_{REDRAWS}", "measured")
    return Table({name: np.array([row[number] for row in rows], dtype=str) for number, name in enumerate(names)})


def reproduction_page(items: Sequence[ReportItem], scale: Scale) -> str:
    """The page: all claims first, then every item with its picture, its claims and its table."""
    claims = [claim for item in items for claim in item.claims]
    counts = ", ".join(
        f"{sum(claim.verdict == verdict for claim in claims)} {words}" for verdict, words in _VERDICTS_IN_WORDS.items()
    )
    runs = "" if scale.runs is None else f", {scale.runs} runs each"
    return render(
        "reproduction.html.j2",
        title=_TITLE,
        version=__version__,
        digest=source_digest(),
        size=f"{'quick' if scale.quick else 'full'} size{runs}",
        seed=scale.seed,
        counts=f"Of {len(claims)} claims {counts}.",
        redraws=REDRAWS,
        items=items,
        verdict_classes=_VERDICT_CLASSES,
    )


def _shown_table(table: Table) -> PageTable:
    kinds = {name: WORDS if column.dtype.kind == "U" else NUMBER for name, column in table.columns.items()}
    return page_table(kinds, [[_shown(value) for value in row] for row in table.rows()[:_MOST_ROWS]])


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
