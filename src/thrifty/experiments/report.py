"""The report: runs experiments, leaves their tables and figures, and writes one HTML page that needs nothing else."""

import base64
import html
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from thrifty import __version__
from thrifty.compiled import source_digest
from thrifty.experiments.catalogue import EXPERIMENTS, experiment
from thrifty.experiments.experiment import FAILS, HOLDS, IMPRECISE, Claim, Experiment, Finding, Scale
from thrifty.pages import STYLE
from thrifty.pictures import save
from thrifty.simulation.results import write_whole
from thrifty.sweep import sweep
from thrifty.table import Table

_CLASSES = {HOLDS: "holds", FAILS: "fails", IMPRECISE: "imprecise"}
_LONGEST = 60  # rows of a table on the page; the CSV has all


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
    """Run experiments and write `out`: per item a CSV, a PNG and an SVG, and report.html, whose path is returned.

    Parameters
    ----------
    names : items of the catalogue; none for all of them
    scale : how large, and with which seed
    out : a folder, made if need be; simulated results are kept in its folder `results`
    backend, workers, progress : as in `sweep`
    drawing : called with (items drawn, items in all)

    """
    chosen = [experiment(name) for name in names] or list(EXPERIMENTS.values())
    folder = Path(out)
    lists = [each.settings(scale) for each in chosen]
    results = sweep(
        [setting for settings in lists for setting in settings],
        folder / "results",
        backend=backend,
        workers=workers,
        progress=progress,
    )
    findings = []
    for number, (each, settings) in enumerate(zip(chosen, lists, strict=True)):
        own, results = results[: len(settings)], results[len(settings) :]
        finding = each.conclude(scale, own)
        findings.append(finding)
        write_whole(folder / f"{each.name}.csv", finding.table.to_csv().encode())
        for ending in (".png", ".svg"):
            save(finding.figure, folder / f"{each.name}{ending}")
        if drawing is not None:
            drawing(number + 1, len(chosen))
    pictures = [(folder / f"{each.name}.svg").read_bytes() for each in chosen]
    path = folder / "report.html"
    write_whole(path, render(list(zip(chosen, findings, pictures, strict=True)), scale).encode())
    return path


def render(items: Sequence[tuple[Experiment, Finding, bytes]], scale: Scale) -> str:
    """The page: all claims first, then every item with its picture (SVG), its claims and its table."""
    claims = [(item.name, claim) for item, finding, _ in items for claim in finding.claims]
    counts = ", ".join(
        f"{sum(claim.verdict == verdict for _, claim in claims)} {words}"
        for verdict, words in ((HOLDS, "hold"), (FAILS, "do not hold"), (IMPRECISE, "are imprecise"))
    )
    size = "quick size" if scale.quick else "full size"
    runs = "" if scale.runs is None else f", {scale.runs} runs each"
    sections = "\n".join(_section(item, finding, picture) for item, finding, picture in items)
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Multi-Armed Bandits with Cost Subsidy, reproduced</title><style>{STYLE}</style></head>
<body>
<h1>Multi-Armed Bandits with Cost Subsidy, reproduced</h1>
<p class="about">Sinha, Sankararaman, Kazerouni, Avadhanula, AISTATS 2021. Written by <code>thrifty reproduce</code> {__version__}
(sources {source_digest()}), {size}{runs}, seed {scale.seed}. The same command with the same seed writes this page again, byte for
byte.</p>
<p>Of {len(claims)} claims {counts}. A verdict is worked out from the numbers beside it, at this size; docs/errata.md says how to
read the paper where it is wrong.</p>
<table><thead><tr><th>where</th><th>the paper says</th><th>verdict</th><th>measured</th></tr></thead><tbody>
{"".join(_claim_row(claim, name) for name, claim in claims)}</tbody></table>
{sections}
</body></html>
"""


def _section(item: Experiment, finding: Finding, picture: bytes) -> str:
    encoded = base64.b64encode(picture).decode()
    return f"""<h2 id="{item.name}">{html.escape(item.title)}</h2>
<p class="about">{html.escape(item.about)} Alone: <code>thrifty reproduce {item.name}</code></p>
<img alt="{html.escape(item.title)}" src="data:image/svg+xml;base64,{encoded}">
<table><tbody>{"".join(_claim_row(claim) for claim in finding.claims)}</tbody></table>
<details><summary>{len(finding.table)} rows of {item.name}.csv</summary>{_table(finding.table)}</details>"""


def _claim_row(claim: Claim, item: str | None = None) -> str:
    place = html.escape(claim.place) if item is None else f'<a href="#{item}">{html.escape(claim.place)}</a>'
    badge = f'<span class="verdict {_CLASSES[claim.verdict]}">{claim.verdict}</span>'
    return f"<tr><td>{place}</td><td>{html.escape(claim.text)}</td><td>{badge}</td><td>{html.escape(claim.measured)}</td></tr>\n"


def _table(table: Table) -> str:
    rows = table.rows()
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows[:_LONGEST])
    more = f"<p>{len(rows) - _LONGEST} more rows in the CSV.</p>" if len(rows) > _LONGEST else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f"<td>{html.escape(value)}</td>"
    return f'<td class="number">{value:,.4g}</td>' if isinstance(value, float) else f'<td class="number">{value:,}</td>'
