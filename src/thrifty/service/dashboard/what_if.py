"""The chart of the frontier: quality and cost at each alpha, and the texts that the slider shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thrifty.service.dashboard import numbers
from thrifty.service.dashboard.axes import Scale, band, line
from thrifty.service.dashboard.picture import Frame, Tick

FRAMES = {
    "wide": Frame(640.0, 260.0, left=48.0, right=14.0, top=14.0, bottom=44.0),
    "narrow": Frame(360.0, 230.0, left=44.0, right=10.0, top=14.0, bottom=44.0),
}


@dataclass(frozen=True)
class FrontierChart:
    """Quality and cost as shares of those at the smallest alpha, with their intervals."""

    frame: Frame
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    quality: str
    quality_band: str
    cost: str
    cost_band: str
    now_x: float


def frontier_chart(rows: Sequence[Mapping[str, Any]], alpha: float, size: str) -> tuple[FrontierChart, list[dict[str, Any]], int]:
    """The chart, a row of texts for each alpha, and the number of the row that is nearest to `alpha`.

    >>> rows = [{"alpha": a, "arm": "x", "quality": 0.9, "quality_low": 0.8, "quality_high": 1.0, "cost": 2.0, "cost_low": 1.0,
    ...     "cost_high": 3.0} for a in (0.0, 0.1)]
    >>> chart, texts, now = frontier_chart(rows, 0.1, "wide")
    >>> texts[now]["change"], texts[now]["quality_interval"]
    ('as it is now', '0.800 to 1.000')
    """
    frame = FRAMES[size]
    x = Scale(rows[0]["alpha"], rows[-1]["alpha"], frame.left, frame.x_end)
    now = min(range(len(rows)), key=lambda each: abs(rows[each]["alpha"] - alpha))
    bases = {name: max((row[name] for row in rows[:1] if row[name]), default=1.0) for name in ("quality", "cost")}
    levels = [
        row[key] / bases[name]
        for name in bases
        for key in (name, f"{name}_low", f"{name}_high")
        for row in rows
        if row[key] is not None
    ]
    y = Scale(max(min([*levels, 0.9]) - 0.03, 0.0), min(max([*levels, 1.0]) + 0.03, 2.0), frame.y_end, frame.top)
    paths = {}
    for name, base in bases.items():
        known = [row for row in rows if row[name] is not None]
        paths[name] = line([(x(row["alpha"]), y(row[name] / base)) for row in known])
        bounded = [row for row in known if row[f"{name}_low"] is not None and row[f"{name}_high"] is not None]
        upper, lower = ([(x(row["alpha"]), y(row[f"{name}_{end}"] / base)) for row in bounded] for end in ("high", "low"))
        paths[f"{name}_band"] = band(upper, lower)
    chart = FrontierChart(
        frame=frame,
        x_ticks=[Tick(x(tick), f"{tick:g}") for tick in x.ticks(6)],
        y_ticks=[Tick(y(tick), numbers.share(tick)) for tick in y.ticks(5)],
        now_x=x(rows[now]["alpha"]),
        **paths,
    )
    return chart, [_texts(row, rows[now], x) for row in rows], now


def _texts(row: Mapping[str, Any], now: Mapping[str, Any], x: Scale) -> dict[str, Any]:
    change = "as it is now"
    if row is not now and row["cost"] is not None and now["cost"]:
        difference = row["cost"] / now["cost"] - 1.0
        word = "less" if difference < 0.0 else "more"
        change = f"about {numbers.share(abs(difference))} {word} than now" if abs(difference) >= 5e-4 else "costs the same as now"
    return {
        "x": x(row["alpha"]),
        "alpha": f"{row['alpha']:g}",
        "arm": row["arm"] or "differs by segment",
        "change": change,
        "quality": numbers.rate(row["quality"]),
        "quality_interval": _interval(row, "quality", numbers.rate),
        "cost": numbers.money(row["cost"]),
        "cost_interval": _interval(row, "cost", numbers.money),
    }


def _interval(row: Mapping[str, Any], name: str, shown: Any) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{shown(low)} to {shown(high)}" if low is not None and high is not None else "at the prices of now"
