"""A scenario as a picture, a table for people, a CSV and a page."""

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thrifty.pages import page, picture, table
from thrifty.pictures import COLOURS, LOOK, MARKERS
from thrifty.scenarios.ledger import BEST_KNOWN, Ledger
from thrifty.simulation.results import write_whole
from thrifty.table import Table, aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADER = (
    "policy", "quality", "dollars per 1,000", "saved against best-known", "quality against best-known",
    "quality regret per 1,000", "cost regret per 1,000",
)  # fmt: skip


def as_table(ledger: Ledger) -> str:
    """What the command prints."""
    return f"{_about(ledger)}\n\n{aligned([_HEADER, *_rows(ledger)])}"


def as_csv(ledger: Ledger) -> str:
    """Every number, in full."""
    lines = ledger.lines()
    columns = {name: np.array([getattr(line, name) for line in lines]) for name in lines[0].__dataclass_fields__}
    return Table(columns).to_csv()


def draw(ledger: Ledger) -> "Figure":
    """Quality against money: to the upper left is better. The band is what may be given up of the best known arm's quality."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    lines = ledger.lines()
    with rc_context(dict[Any, Any](LOOK)):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        axes = figure.add_subplot()
        usual = next(line for line in lines if line.policy == BEST_KNOWN)
        alpha = ledger.scenario.courses()[0].world.alpha
        axes.axhspan((1.0 - alpha) * usual.quality, usual.quality, color="#e8f1f8", zorder=0)
        axes.axhline((1.0 - alpha) * usual.quality, color="#7a9db8", linewidth=0.8, linestyle="--", zorder=1)
        for number, line in enumerate(lines):
            mark = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
            axes.errorbar(
                1000 * line.money, line.quality, xerr=2000 * line.money_se, yerr=2 * line.quality_se,
                color=COLOURS[number % len(COLOURS)], marker=mark, markersize=6, linestyle="none",
                label=line.policy, zorder=3,
            )  # fmt: skip
        axes.set_xlabel("dollars per 1,000 decisions")
        axes.set_ylabel("quality: expected reward per decision")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
        figure.suptitle(ledger.scenario.title, fontsize=10)
    return figure


def as_page(ledger: Ledger) -> str:
    """A self-contained page."""
    assumed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in ledger.scenario.assumptions)
    caption = (
        "Quality against money; the upper left is better. The band reaches from the quality of always taking the best known "
        "arm down by alpha. Bars are two standard errors either way, where they are wider than the mark."
    )
    parts = [
        f'<p class="lead">{html.escape(_about(ledger))}</p>',
        picture(draw(ledger), "quality against money, one mark per policy"),
        f'<p class="about">{html.escape(caption)}</p>',
        table(_HEADER, _rows(ledger)),
        f"<h2>What was assumed</h2><ul>{assumed}</ul>",
        f"<p>No policy is told how long it will be played. The command: <code>thrifty scenario {ledger.scenario.name} "
        f"--runs {ledger.runs}</code></p>",
    ]
    return page(ledger.scenario.title, parts)


def write(ledger: Ledger, folder: Path) -> list[Path]:
    """Write NAME.csv, NAME.svg, NAME.png and NAME.html into `folder`; their paths."""
    from thrifty.pictures import save

    folder.mkdir(parents=True, exist_ok=True)
    name = ledger.scenario.name
    paths = [folder / f"{name}.csv", folder / f"{name}.html", folder / f"{name}.svg", folder / f"{name}.png"]
    write_whole(paths[0], as_csv(ledger).encode())
    write_whole(paths[1], as_page(ledger).encode())
    for path in paths[2:]:
        save(draw(ledger), path)
    return paths


def _about(ledger: Ledger) -> str:
    return f"{ledger.scenario.title}; {ledger.rounds:,} decisions, {ledger.runs} runs, no horizon known; mean +- standard error"


def _rows(ledger: Ledger) -> list[tuple[str, ...]]:
    return [
        (
            line.policy,
            f"{line.quality:.4f} +- {line.quality_se:.4f}",
            f"{1000 * line.money:,.2f} +- {1000 * line.money_se:,.2f}",
            f"{100 * line.saved:+.1f}%",
            f"{100 * line.quality_change:+.1f}%",
            f"{1000 * line.quality_regret:,.2f}",
            f"{1000 * line.cost_regret:,.2f}",
        )
        for line in ledger.lines()
    ]
