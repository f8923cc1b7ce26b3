"""A scenario as a picture, a table for people, a CSV and a page."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from thrifty.pages import page, picture, table
from thrifty.pictures import COLOURS, LOOK, MARKERS
from thrifty.scenarios.play import BEST_KNOWN, WHAT_PEOPLE_DO, PolicyResult, ScenarioResult, left_out
from thrifty.simulation.results import write_whole
from thrifty.table import Table, aligned

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_HEADER = (
    "policy", "quality", "dollars per 1,000", "saved against best-known", "quality against best-known",
    "quality regret per 1,000", "cost regret per 1,000",
)  # fmt: skip


_MARK = 6.0  # points
_NEAR = 0.012  # of the picture: marks closer than this would hide each other


def as_table(ledger: ScenarioResult) -> str:
    """What the command prints."""
    return f"{_about(ledger)}\n\n{aligned([_HEADER, *_rows(ledger)])}"


def as_csv(ledger: ScenarioResult) -> str:
    """Every number, in full."""
    lines = ledger.lines()
    columns = {name: np.array([getattr(line, name) for line in lines]) for name in lines[0].__dataclass_fields__}
    return Table(columns).to_csv()


def draw(ledger: ScenarioResult) -> "Figure":
    """Quality against money: to the upper left is better. The band is what may be given up of the best known arm's quality."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    lines = ledger.lines()
    with rc_context(dict[Any, Any](LOOK)):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        axes = figure.add_subplot()
        usual = next(line for line in lines if line.policy == BEST_KNOWN)
        alpha = ledger.scenario.segments()[0].world.alpha
        axes.axhspan((1.0 - alpha) * usual.quality, usual.quality, color="#e8f1f8", zorder=0)
        axes.axhline((1.0 - alpha) * usual.quality, color="#7a9db8", linewidth=0.8, linestyle="--", zorder=1)
        sizes = _sizes(lines)
        for number, line in enumerate(lines):
            colour = COLOURS[number % len(COLOURS)]
            today = line.policy.partition(":")[0] in WHAT_PEOPLE_DO
            axes.errorbar(
                1000 * line.money, line.quality, xerr=2000 * line.money_se, yerr=2 * line.quality_se,
                color=colour, linestyle="none", zorder=3,
            )  # fmt: skip
            axes.plot(
                1000 * line.money, line.quality, color=colour, markerfacecolor="white" if today else colour,
                marker=MARKERS[(number + number // len(COLOURS)) % len(MARKERS)], markersize=sizes[number],
                linestyle="none", label=_short(line, ledger), zorder=3,
            )  # fmt: skip
        axes.set_xlabel("dollars per 1,000 decisions")
        axes.set_ylabel("quality: expected reward per decision")
        legend = axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, title="cheapest first", title_fontsize=8)
        for handle in legend.legend_handles:
            cast("Line2D", handle).set_markersize(_MARK)
        figure.suptitle(ledger.scenario.title, fontsize=10)
    return figure


def _sizes(lines: Sequence[PolicyResult]) -> list[float]:
    """Marks that would hide each other grow, the earlier the more, so that each shows around the next."""
    spots = np.array([(line.money, line.quality) for line in lines])
    spots /= np.maximum(spots.max(axis=0) - spots.min(axis=0), 1e-300)
    hidden = [int((np.abs(spots[number + 1 :] - spot) < _NEAR).all(axis=1).sum()) for number, spot in enumerate(spots)]
    return [_MARK + 2.5 * behind for behind in hidden]


def as_page(ledger: ScenarioResult) -> str:
    """A self-contained page."""
    assumed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in ledger.scenario.assumptions)
    caption = (
        "Quality against money; the upper left is better. The band reaches from the quality of always taking the best known "
        "arm down by alpha. Bars are two standard errors either way, where they are wider than the mark. Hollow marks are what "
        "people do today; marks that coincide are drawn around each other."
    )
    parts = [
        f'<p class="lead">{html.escape(_about(ledger))}</p>',
        picture(draw(ledger), "quality against money, one mark per policy"),
        f'<p class="about">{html.escape(caption)}</p>',
        table(_HEADER, _rows(ledger)),
        f"<h2>What was assumed</h2><ul>{assumed}</ul>",
        f"<p>{html.escape(_absent(ledger))}</p>",
        f"<p>No policy is told how long it will be played. The command: <code>thrifty scenario {ledger.scenario.name} "
        f"--runs {ledger.runs}</code></p>",
    ]
    return page(ledger.scenario.title, parts)


def write(ledger: ScenarioResult, folder: Path) -> list[Path]:
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


def _about(ledger: ScenarioResult) -> str:
    return f"{ledger.scenario.title}; {ledger.rounds:,} decisions, {ledger.runs} runs, no horizon known; mean +- standard error"


def _short(line: PolicyResult, ledger: ScenarioResult) -> str:
    """The policy without the largest bill, which all that need it are told alike."""
    scale = ledger.scenario.cost_scale
    return line.policy if scale is None else line.policy.replace(f":cost_scale={scale:g}", "")


def _absent(ledger: ScenarioResult) -> str:
    """Who cannot play this world, and why."""
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out(ledger.scenario).items():
        reasons.setdefault(reason, []).append(name)
    return "Left out: " + "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items()) + "."


def _rows(ledger: ScenarioResult) -> list[tuple[str, ...]]:
    return [
        (
            _short(line, ledger),
            f"{line.quality:.4f} +- {line.quality_se:.4f}",
            f"{1000 * line.money:,.2f} +- {1000 * line.money_se:,.2f}",
            f"{100 * line.saved:+.1f}%",
            f"{100 * line.quality_change:+.1f}%",
            f"{1000 * line.quality_regret:,.2f}",
            f"{1000 * line.cost_regret:,.2f}",
        )
        for line in ledger.lines()
    ]
