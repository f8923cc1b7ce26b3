"""The picture that explains the product: every arm by price and success rate, the floor, and the arm that is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thrifty.service.dashboard import numbers
from thrifty.service.dashboard.axes import Scale, price_scale

LETTER = 6.7
"""Width of a letter of a label, about."""

LINE = 15.0
LONGEST_LABEL = 18
BELOW = 1.6
"""How far the picture reaches below the floor, in units of what lies above it."""

MOST_LABELS = 14
"""Arms with a label, at most: the chosen and the best one first, then those that clear the floor, then by traffic."""


@dataclass(frozen=True)
class Frame:
    """The size of a chart and the place of its plot within."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def x_end(self) -> float:
        """The right edge of the plot."""
        return self.width - self.right

    @property
    def y_end(self) -> float:
        """The lower edge of the plot."""
        return self.height - self.bottom


FRAMES = {
    "wide": Frame(1080.0, 440.0, left=56.0, right=24.0, top=30.0, bottom=48.0),
    "narrow": Frame(360.0, 340.0, left=44.0, right=10.0, top=30.0, bottom=46.0),
}


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Label:
    """A text in a chart, and where it is anchored: start, middle or end."""

    x: float
    y: float
    anchor: str
    text: str


@dataclass(frozen=True)
class Mark:
    """One arm: its point, the ends of its interval, its style, its label and a sentence about it."""

    x: float
    y: float
    top: float
    bottom: float
    style: str
    text: str
    label: Label | None
    has_mean: bool
    is_under: bool


@dataclass(frozen=True)
class ArmsPicture:
    """All that the template draws. `floor_y` is None until a floor is known; `absent` names arms without a known price."""

    frame: Frame
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    marks: list[Mark]
    floor_y: float | None
    floor_text: str
    chosen: Mark | None
    chosen_price: str
    absent: list[str]
    is_logarithmic: bool
    description: str


def arms_picture(known: Mapping[str, Any], size: str = "wide") -> ArmsPicture:
    """The picture of an explanation, as `Explanation.to_dict` gives it.

    >>> from thrifty.router import Router
    >>> drawn = arms_picture(Router({"a": 0.02, "b": 0.01}, alpha=0.05).explain().to_dict())
    >>> len(drawn.marks), drawn.floor_y
    (2, None)
    """
    frame = FRAMES[size]
    arms = [arm for arm in known["arms"] if arm["status"] != "retired"]
    placed = [arm for arm in arms if arm["cost"] is not None]
    x = price_scale([arm["cost"] for arm in placed], frame.left, frame.x_end)
    y = _rate_scale(placed, known, frame)
    has_floor = known["chosen"] is not None and known["floor"] > 0.0
    floor_y = y(known["floor"]) if has_floor else None
    marks = _marks(placed, known, x, y, frame)
    chosen = next((mark for mark in marks if "chosen" in mark.style), None)
    price = next((arm["cost"] for arm in placed if arm["arm"] == known["chosen"]), None)
    return ArmsPicture(
        frame=frame,
        x_ticks=[Tick(x(tick), numbers.tick(tick)) for tick in x.ticks(6 if size == "wide" else 4)],
        y_ticks=[Tick(y(tick), numbers.tick(tick)) for tick in y.ticks(6)],
        marks=marks,
        floor_y=floor_y,
        floor_text=f"floor {numbers.rate(known['floor'])}",
        chosen=chosen if chosen is not None and chosen.has_mean else None,
        chosen_price=numbers.money(price),
        absent=[arm["arm"] for arm in arms if arm["cost"] is None],
        is_logarithmic=x.logarithmic,
        description=known["why"],
    )


def _rate_scale(arms: Sequence[Mapping[str, Any]], known: Mapping[str, Any], frame: Frame) -> Scale:
    """From below the floor to above the best interval that matters, so that what is decided there is seen well.

    Longer intervals are cut off; arms far below the floor stand at the lower edge.
    """
    means = [arm["mean"] for arm in arms if arm["mean"] is not None]
    if not means:
        return Scale(0.0, 1.0, frame.y_end, frame.top)
    central = [arm for arm in arms if arm["arm"] in (known["chosen"], known["best_arm"]) and arm["mean"] is not None]
    floor = known["floor"] or min(means)
    high = max([*means, *(arm["high"] for arm in central)])
    lowest = floor - BELOW * max(high - floor, 0.01)
    low = max(min([*means, *(arm["low"] for arm in central), floor]), lowest)
    room = max(0.1 * (high - low), 0.005)
    return Scale(max(low - room, 0.0), min(high + room, 1.0), frame.y_end, frame.top)


def _marks(arms: Sequence[Mapping[str, Any]], known: Mapping[str, Any], x: Scale, y: Scale, frame: Frame) -> list[Mark]:
    first = (known["chosen"], known["best_arm"])
    ranked = sorted(arms, key=lambda arm: (arm["arm"] not in first, not arm["feasible"], -arm["decisions"]))
    floor_box = (frame.left, y(known["floor"]), frame.left + 13 * LETTER, y(known["floor"]) + LINE + 4)
    taken = [floor_box, (frame.left, frame.top - 6, frame.left + 13 * LETTER, frame.top + LINE)]
    taken += [
        (x(arm["cost"]) - 5, y(arm["mean"]) - 5, x(arm["cost"]) + 5, y(arm["mean"]) + 5) for arm in arms if arm["mean"] is not None
    ]
    marks = []
    for rank, arm in enumerate(ranked):
        has_mean = arm["mean"] is not None
        place = x(arm["cost"]), y(arm["mean"]) if has_mean else frame.top
        label = (
            _label(arm["arm"], place, taken, frame, gap=16.0 if arm["arm"] == known["chosen"] else 10.0)
            if rank < MOST_LABELS and has_mean
            else None
        )
        top, bottom = (y(arm["high"]), y(arm["low"])) if has_mean else (frame.top, frame.y_end)
        is_under = has_mean and arm["mean"] < y.low
        marks.append(Mark(*place, top, bottom, _style(arm, known), _sentence(arm), label, has_mean, is_under))
    return marks[::-1]  # the chosen arm is drawn last, above the others


def _style(arm: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    styles = ["chosen"] if arm["arm"] == known["chosen"] else []
    styles += ["best"] if arm["arm"] == known["best_arm"] else []
    styles += ["feasible"] if arm["feasible"] else ["below"]
    return " ".join([*styles, arm["status"]])


def _sentence(arm: Mapping[str, Any]) -> str:
    price = f"price {numbers.money(arm['cost'])}"
    if arm["mean"] is None:
        return f"{arm['arm']}: {price}, no outcome yet"
    interval = f"{numbers.rate(arm['mean'])} ({numbers.rate(arm['low'])} to {numbers.rate(arm['high'])})"
    side = "clears the floor" if arm["feasible"] else "below the floor" if arm["status"] == "active" else arm["status"]
    return f"{arm['arm']}: success {interval}, {price}, {numbers.count(arm['outcomes'])} outcomes, {side}"


def _label(
    name: str, place: tuple[float, float], taken: list[tuple[float, float, float, float]], frame: Frame, *, gap: float
) -> Label | None:
    """The name beside its point, where it covers nothing else; None where there is no room."""
    text = name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"
    (x, y), width = place, LETTER * len(text)
    tries = (
        (x + gap, y + 4, "start", x + gap),
        (x - gap, y + 4, "end", x - gap - width),
        (x, y - gap - 1, "middle", x - width / 2),
        (x, y + gap + 10, "middle", x - width / 2),
        (x + gap, y - gap, "start", x + gap),
        (x - gap, y - gap, "end", x - gap - width),
        (x + gap, y + gap + 8, "start", x + gap),
        (x - gap, y + gap + 8, "end", x - gap - width),
    )
    for at_x, at_y, anchor, left in tries:
        box = (left, at_y - LINE + 4, left + width, at_y + 3)
        inside = box[0] >= frame.left + 2 and box[2] <= frame.x_end and box[1] >= frame.top - 6 and box[3] <= frame.y_end
        if inside and not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            taken.append(box)
            return Label(at_x, at_y, anchor, text)
    return None
