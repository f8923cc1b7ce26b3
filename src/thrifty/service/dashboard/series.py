"""Charts over time: the share of traffic by arm, stacked, and small lines of quality, spend and traffic."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from thrifty.service.dashboard import numbers
from thrifty.service.dashboard.axes import Scale, band, line
from thrifty.service.dashboard.picture import Frame, Tick

MOST_BANDS = 8
"""Arms with a band of their own; the rest is one."""

STACK = {
    "wide": Frame(1080.0, 240.0, left=44.0, right=10.0, top=10.0, bottom=26.0),
    "narrow": Frame(360.0, 220.0, 40.0, 8.0, 10.0, 26.0),
}
SMALL = Frame(360.0, 150.0, left=48.0, right=10.0, top=12.0, bottom=24.0)


@dataclass(frozen=True)
class Cell:
    """What happened in one step of time: sums over some decisions and their outcomes."""

    decisions: float = 0.0
    outcomes: float = 0.0
    rewards: float = 0.0
    costs: float = 0.0

    def plus(self, other: "Cell") -> "Cell":
        """The sums of both."""
        return Cell(
            self.decisions + other.decisions,
            self.outcomes + other.outcomes,
            self.rewards + other.rewards,
            self.costs + other.costs,
        )


@dataclass(frozen=True)
class Timeline:
    """Cells of every arm in steps of `step_s` seconds from `start` on; arms in order of price, the cheapest first."""

    start: float
    step_s: float
    arms: Mapping[str, Sequence[Cell]]

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return max((len(cells) for cells in self.arms.values()), default=0)

    def totals(self) -> list[Cell]:
        """All arms together, by step."""
        totals = [Cell()] * self.steps
        for cells in self.arms.values():
            totals = [total.plus(cell) for total, cell in zip(totals, cells, strict=True)]
        return totals


@dataclass(frozen=True)
class Band:
    """One arm in the stack."""

    name: str
    style: str
    path: str
    text: str


@dataclass(frozen=True)
class Chart:
    """A chart over time. `tips` says what happened in each step; `reference_y` is a level drawn across, such as the floor."""

    title: str
    now: str
    frame: Frame
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    tips: list[str]
    bands: list[Band]
    path: str = ""
    area: str = ""
    reference_y: float | None = None
    reference_text: str = ""


def share_chart(timeline: Timeline, size: str = "wide") -> Chart:
    """The share of each arm in the decisions, stacked; the cheapest arm lies at the bottom.

    >>> cells = [Cell(decisions=3.0), Cell(decisions=1.0)]
    >>> chart = share_chart(Timeline(0.0, 60.0, {"a": cells, "b": [Cell(decisions=1.0), Cell(decisions=1.0)]}))
    >>> [(band.name, band.text) for band in chart.bands]
    [('a', '67% of the decisions shown'), ('b', '33% of the decisions shown')]
    """
    frame = STACK[size]
    totals = [cell.decisions for cell in timeline.totals()]
    y = Scale(0.0, 1.0, frame.y_end, frame.top)
    whole = sum(totals)
    lower, bands = [0.0] * len(totals), []
    shown = _largest(timeline)
    edges = _edges(timeline, frame)
    for name, style, cells in shown:
        upper = [low + (cell.decisions / total if total else 0.0) for low, cell, total in zip(lower, cells, totals, strict=True)]
        path = "".join(_pieces(edges, upper, lower, totals, y))
        part = sum(cell.decisions for cell in cells) / whole if whole else 0.0
        bands.append(Band(name, style, path, f"{numbers.share(part)} of the decisions shown"))
        lower = upper

    def text(step: int) -> str:
        parts = [(cells[step].decisions / totals[step], name) for name, _, cells in shown if totals[step] and cells[step].decisions]
        return ", ".join(f"{name} {numbers.share(part)}" for part, name in sorted(parts, reverse=True)[:5]) or "no decision"

    y_ticks = [Tick(y(tick), numbers.share(tick)) for tick in (0.0, 0.5, 1.0)]
    return Chart("Share of traffic", "", frame, _time_ticks(timeline, frame), y_ticks, _tips(timeline, text), bands)


def line_chart(
    title: str,
    timeline: Timeline,
    value: Callable[[Cell], float | None],
    *,
    shown: Callable[[float | None], str],
    reference: tuple[float, str] | None = None,
    from_zero: bool = True,
) -> Chart:
    """One number of every step as a line.

    >>> timeline = Timeline(0.0, 60.0, {"a": [Cell(3.0), Cell(5.0)]})
    >>> line_chart("Decisions", timeline, lambda cell: cell.decisions, shown=numbers.count).now
    '5'
    """
    frame, values = SMALL, [value(cell) for cell in timeline.totals()]
    known = [each for each in values if each is not None]
    low, high = _range(known, None if reference is None else reference[0], from_zero)
    y, edges = Scale(low, high, frame.y_end, frame.top), _edges(timeline, frame)
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    points = [None if each is None else (round(x, 2), y(each)) for x, each in zip(middles, values, strict=True)]
    runs = _runs(points)
    return Chart(
        title=title,
        now=shown(known[-1] if known else None),
        frame=frame,
        x_ticks=_time_ticks(timeline, frame, most=3),
        y_ticks=[Tick(y(tick), numbers.tick(tick)) for tick in y.ticks(4)],
        tips=_tips(timeline, lambda step: shown(values[step])),
        bands=[],
        path=line(points),
        area="".join(band(run, [(x, frame.y_end) for x, _ in run]) for run in runs) if from_zero else "",
        reference_y=None if reference is None else y(reference[0]),
        reference_text="" if reference is None else reference[1],
    )


def spark(values: Sequence[float], width: float = 100.0, height: float = 28.0) -> str:
    """The path of a small line without axes, from zero on; empty without anything to show.

    >>> spark([0.0, 2.0, 1.0], width=10.0, height=10.0)
    'M0 10L5 1L10 5.5'
    """
    x, y = Scale(0.0, max(len(values) - 1, 1), 0.0, width), Scale(0.0, max(values, default=0.0), height, 1.0)
    return line([(x(step), y(value)) for step, value in enumerate(values)]) if any(values) else ""


def _largest(timeline: Timeline) -> list[tuple[str, str, Sequence[Cell]]]:
    """Name, style and cells of the arms with most decisions in order of price, and of all others as one."""
    used = {name: sum(cell.decisions for cell in cells) for name, cells in timeline.arms.items()}
    most = sorted((name for name in used if used[name]), key=lambda name: -used[name])
    own = set(most if len(most) <= MOST_BANDS else most[: MOST_BANDS - 1])
    names = [name for name in timeline.arms if name in own]
    # Colours go by the rank of the price among the arms shown: the cheapest has the first, the dearest the last.
    spread = (MOST_BANDS - 1) / max(len(names) - 1, 1)
    found = [(name, f"band-{round(rank * spread)}", timeline.arms[name]) for rank, name in enumerate(names)]
    rest = [name for name in most if name not in own]
    if rest:
        cells = [Cell()] * timeline.steps
        for name in rest:
            cells = [total.plus(cell) for total, cell in zip(cells, timeline.arms[name], strict=True)]
        found.append((f"{len(rest)} others", "band-rest", cells))
    return found


def _pieces(edges: Sequence[float], upper: Sequence[float], lower: Sequence[float], totals: Sequence[float], y: Scale) -> list[str]:
    """One path for each run of steps that have decisions; steps, not slopes: nothing is known between two steps."""
    paths, top, bottom = [], [], []
    for step, total in enumerate(totals):
        if total and upper[step] > lower[step]:
            top += [(edges[step], y(upper[step])), (edges[step + 1], y(upper[step]))]
            bottom += [(edges[step], y(lower[step])), (edges[step + 1], y(lower[step]))]
        elif top:
            paths.append(band(top, bottom))
            top, bottom = [], []
    return [*paths, band(top, bottom)] if top else paths


def _range(known: Sequence[float], reference: float | None, from_zero: bool) -> tuple[float, float]:
    values = [*known, *([] if reference is None else [reference])]
    if from_zero:
        return 0.0, (1.1 * max(values, default=0.0)) or 1.0
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.15 * (high - low), 0.005)
    return max(low - room, 0.0), min(high + room, 1.0)


def _runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _edges(timeline: Timeline, frame: Frame) -> list[float]:
    width = (frame.x_end - frame.left) / max(timeline.steps, 1)
    return [round(frame.left + step * width, 2) for step in range(timeline.steps + 1)]


def _time_ticks(timeline: Timeline, frame: Frame, most: int = 5) -> list[Tick]:
    span = timeline.steps * timeline.step_s
    if not span:
        return []
    spacings = (
        15,
        30,
        60,
        120,
        300,
        600,
        900,
        1800,
        3600,
        7200,
        21_600,
        43_200,
        86_400,
        172_800,
        604_800,
        1_209_600,
        2_592_000,
        7_776_000,
    )
    spacing = next((each for each in spacings if span / each <= most), 31_536_000)
    form = "%H:%M:%S" if spacing < 60 else "%H:%M" if spacing < 86_400 else "%d %b"
    first = -(-timeline.start // spacing) * spacing
    moments = [first + spacing * each for each in range(int((timeline.start + span - first) // spacing) + 1)]
    scale = Scale(timeline.start, timeline.start + span, frame.left, frame.x_end)
    return [Tick(scale(at), time.strftime(form, time.gmtime(at))) for at in moments]


def _tips(timeline: Timeline, text: Callable[[int], str]) -> list[str]:
    form = "%H:%M:%S" if timeline.step_s < 60 else "%H:%M" if timeline.step_s < 86_400 else "%d %b"
    moments = [time.gmtime(timeline.start + step * timeline.step_s) for step in range(timeline.steps)]
    return [f"{time.strftime(form, at)}: {text(step)}" for step, at in enumerate(moments)]


def timeline_of(rows: Sequence[Mapping[str, Any]], arms: Sequence[str], *, start: float, step_s: float, steps: int) -> Timeline:
    """Rows of the history by arm as a timeline; arms in the order given, those that are no more at the end.

    >>> rows = [{"at": 60.0, "arm": "a", "decisions": 2.0, "outcomes": 1.0, "rewards": 1.0, "costs": 0.1}]
    >>> timeline_of(rows, ["a"], start=0.0, step_s=60.0, steps=2).arms["a"][1].decisions
    2.0
    """
    order = list(dict.fromkeys([*arms, *sorted({row["arm"] for row in rows})]))
    cells = {arm: [Cell()] * steps for arm in order}
    for row in rows:
        step = int((row["at"] - start) // step_s)
        if 0 <= step < steps:
            add = Cell(row["decisions"], row["outcomes"], row["rewards"], row["costs"])
            cells[row["arm"]][step] = cells[row["arm"]][step].plus(add)
    return Timeline(start, step_s, cells)
