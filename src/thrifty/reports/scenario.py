"""The scenario report: a table for people, a CSV, a picture and a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from thrifty.files import write_files
from thrifty.reports.drawing import COLOURS, MARKERS, house_style, image, literal, make_axes
from thrifty.reports.page import NUMBER, WORDS, page_table, picture, render
from thrifty.scenarios import PolicyResult, ScenarioResult
from thrifty.scenarios.play import BEST_KNOWN, WHAT_PEOPLE_DO, left_out
from thrifty.table import Table, aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_COLUMNS = {
    "policy": WORDS,
    "quality": NUMBER,
    "dollars per 1,000": NUMBER,
    "saved against best-known": NUMBER,
    "quality against best-known": NUMBER,
    "quality regret per 1,000": NUMBER,
    "cost regret per 1,000": NUMBER,
}
_CAPTION = (
    "Quality against money; the upper left is better. The band reaches from the quality of always taking the best known "
    "arm down by alpha. Bars are two standard errors either way, where they are wider than the mark. Hollow marks are what "
    "people do today; marks that coincide are drawn around each other."
)
_MARK = 6.0  # points
_NEAR = 0.012  # of the picture: marks closer than this would hide each other


def scenario_text(played: ScenarioResult) -> str:
    """What the command prints."""
    return f"{_about(played)}\n\n{aligned([tuple(_COLUMNS), *_rows(played)])}"


def write_scenario(played: ScenarioResult, folder: Path) -> list[Path]:
    """Write NAME.csv, NAME.html, NAME.svg and NAME.png into `folder`; returns their paths."""
    name, drawn = played.scenario.name, draw_scenario(played)
    files = {
        f"{name}.csv": scenario_csv(played).encode(),
        f"{name}.html": scenario_page(played).encode(),
        f"{name}.svg": image(drawn, ".svg"),
        f"{name}.png": image(drawn, ".png"),
    }
    return write_files(folder, files)


def scenario_csv(played: ScenarioResult) -> str:
    """Every number, in full."""
    lines = played.lines()
    columns = {name: np.array([getattr(line, name) for line in lines]) for name in lines[0].__dataclass_fields__}
    return Table(columns).to_csv()


def scenario_page(played: ScenarioResult) -> str:
    """A self-contained page."""
    return render(
        "scenario.html.j2",
        title=played.scenario.title,
        about=_about(played),
        picture=picture(draw_scenario(played), "quality against money, one mark per policy"),
        caption=_CAPTION,
        table=page_table(_COLUMNS, _rows(played)),
        assumptions=played.scenario.assumptions,
        absent=_absent(played),
        command=f"thrifty scenario {played.scenario.name} --runs {played.runs}",
    )


def draw_scenario(played: ScenarioResult) -> "Figure":
    """Quality against money: to the upper left is better. The band is what may be given up of the best known arm's quality."""
    lines = played.lines()
    with house_style():
        figure, all_axes = make_axes(1, 1, size=(7.2, 4.6))
        axes = all_axes[0][0]
        quality = next(line.quality for line in lines if line.policy == BEST_KNOWN)
        floor = (1.0 - played.scenario.segments()[0].world.alpha) * quality
        axes.axhspan(floor, quality, color="#e8f1f8", zorder=0)
        axes.axhline(floor, color="#7a9db8", linewidth=0.8, linestyle="--", zorder=1)
        for number, (line, size) in enumerate(zip(lines, _sizes(lines), strict=True)):
            _draw_line(axes, line, number, size=size, label=literal(line.policy))
        axes.set_xlabel("dollars per 1,000 decisions")
        axes.set_ylabel("quality: expected reward per decision")
        legend = axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, title="cheapest first", title_fontsize=8)
        for handle in legend.legend_handles:
            cast("Line2D", handle).set_markersize(_MARK)
        figure.suptitle(literal(played.scenario.title), fontsize=10)
    return figure


def _draw_line(axes: "Axes", line: PolicyResult, number: int, *, size: float, label: str) -> None:
    """One policy: a mark with error bars; hollow if it is what people do today."""
    colour = COLOURS[number % len(COLOURS)]
    is_today = line.policy.partition(":")[0] in WHAT_PEOPLE_DO
    look: dict[str, Any] = {"color": colour, "linestyle": "none", "zorder": 3}
    axes.errorbar(1000 * line.money, line.quality, xerr=2000 * line.money_se, yerr=2 * line.quality_se, **look)
    marks: dict[str, Any] = {
        "marker": MARKERS[(number + number // len(COLOURS)) % len(MARKERS)],
        "markersize": size,
        "markerfacecolor": "white" if is_today else colour,
    }
    axes.plot(1000 * line.money, line.quality, label=label, **look, **marks)


def _sizes(lines: Sequence[PolicyResult]) -> list[float]:
    """Marks that would hide each other grow, the earlier the more, so that each shows around the next."""
    spots = np.array([(line.money, line.quality) for line in lines])
    spots /= np.maximum(spots.max(axis=0) - spots.min(axis=0), 1e-300)
    hidden = [int((np.abs(spots[number + 1 :] - spot) < _NEAR).all(axis=1).sum()) for number, spot in enumerate(spots)]
    return [_MARK + 2.5 * behind for behind in hidden]


def _about(played: ScenarioResult) -> str:
    return f"{played.scenario.title}; {played.rounds:,} decisions, {played.runs} runs, no horizon known; mean +- standard error"


def _absent(played: ScenarioResult) -> str:
    """The policies that cannot play this world, and why."""
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out(played.scenario).items():
        reasons.setdefault(reason, []).append(name)
    return "Left out: " + "; ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items()) + "."


def _rows(played: ScenarioResult) -> list[tuple[str, ...]]:
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
        for line in played.lines()
    ]
