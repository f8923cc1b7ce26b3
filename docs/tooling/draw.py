"""Draws the pictures of the documentation as SVG: `python docs/tooling/draw.py` writes them into docs/assets.

The rooms and their order are read from .importlinter, which the import linter checks, so the picture shows the walls as they are.
"""

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"

MEANINGS = {
    "cli": "commands: parse, call, print",
    "reports": "pages and tables for people",
    "experiments": "the paper's figures and claims",
    "leaderboard": "all policies on 60 instances",
    "scenarios": "realistic worlds, and what people do today",
    "advice": "worlds drawn from a log; the recommendation",
    "theory": "bounds, factory, reduction",
    "sweep": "many settings, on cores or a cluster",
    "findings": "results of questions",
    "questions": "further questions to a log",
    "logs": "reads a log and estimates",
    "simulation": "the compiled loop, runs, results",
    "service": "HTTP, keys, metrics",
    "client": "calls the service; retries, fallback",
    "router": "decide, record, explain; state from a log",
    "policies": "one decision rule a file",
    "environments": "laws, change, late feedback",
    "forgetting": "window, discount, restart",
    "borrowing": "segments learn from each other",
    "statistics": "sums per arm",
    "intervals": "confidence bounds",
    "sequences": "bounds that hold at all times",
    "floor_test": "is the floor broken?",
    "known": "known beforehand",
    "streams": "random streams",
    "table": "tables of columns",
    "figures": "charts as plain data",
    "examples": "example worlds as plain data",
    "problem": "instance, terms, regret",
    "compiled": "how kernels are compiled and bound",
    "kernel_cache": "compiled kernels on disk",
    "fingerprint": "a digest of what code is",
    "interruption": "work that Ctrl-C can leave",
    "store": "the log: SQLite, PostgreSQL",
    "actions": "what can be done to an arm",
    "described": "settings that describe themselves",
    "arrays": "types of arrays",
    "suggestions": "did you mean ...?",
    "cluster": "Dask clusters",
    "files": "files written whole or not at all",
}

INK, PAPER = "#1d2b2a", "#ffffff"
BLIND, TRUTH, OTHER = "#d8ebe7", "#f6e3c5", "#eceff1"
STYLE = f'font-family="system-ui, Segoe UI, Roboto, Arial, sans-serif" fill="{INK}"'


def layers() -> list[list[str]]:
    """The rooms of the package, from the top to the ground."""
    lines = _linter()["importlinter:contract:storeys"]["layers"].strip().splitlines()
    return [[room.strip() for room in line.split("|")] for line in lines]


def sides() -> tuple[set[str], set[str]]:
    """The rooms that must not see the truth, and those that know it."""
    contract = _linter()["importlinter:contract:blind"]
    blind, truth = (contract[key].split() for key in ("source_modules", "forbidden_modules"))
    return {room.removeprefix("thrifty.") for room in blind}, {room.removeprefix("thrifty.") for room in truth}


def _linter() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    return parser


def rooms() -> str:
    """The rooms: each may import what lies below it."""
    (blind, truth), rows = sides(), layers()
    width, left, top, height, gap = 800, 46, 56, 66, 8
    whole = top + len(rows) * (height + gap) + 16
    parts = [_open(width, whole, "The rooms of the package: each imports only what lies below it")]
    parts.append(_legend(left))
    bottom = whole - 26
    parts.append(f'<path d="M22 {top} V{bottom}" stroke="{INK}" stroke-width="1.5"/>')
    parts.append(f'<path d="M17 {bottom - 9} L22 {bottom} L27 {bottom - 9}" fill="none" stroke="{INK}" stroke-width="1.5"/>')
    middle = (top + bottom) / 2
    turned = f'transform="rotate(-90 14 {middle})"'
    parts.append(f'<text x="14" y="{middle}" font-size="13" text-anchor="middle" {turned} {STYLE}>imports</text>')
    for number, row in enumerate(rows):
        y, each = top + number * (height + gap), (width - left - 8 - gap * (len(row) - 1)) / len(row)
        for place, room in enumerate(row):
            colour = BLIND if room in blind else TRUTH if room in truth else OTHER
            parts.append(_box(left + place * (each + gap), y, each, height, colour, room))
    return "\n".join([*parts, "</svg>", ""])


def _legend(x: float) -> str:
    found = []
    for colour, text, at in (
        (BLIND, "decides, and cannot see the truth", 0),
        (TRUTH, "knows the truth", 260),
        (OTHER, "everything else", 400),
    ):
        found.append(f'<rect x="{x + at}" y="18" width="16" height="16" rx="3" fill="{colour}" stroke="#8aa"/>')
        found.append(f'<text x="{x + at + 24}" y="31" font-size="13" {STYLE}>{text}</text>')
    return "\n".join(found)


def _box(x: float, y: float, width: float, height: float, colour: str, room: str) -> str:
    meaning = MEANINGS.get(room, "")
    lines = _wrapped(meaning, int((width - 16) / 6.3))
    middle, first = x + width / 2, y + (height - 16 * (len(lines) + 1)) / 2 + 13
    texts = [f'<text x="{middle:.1f}" y="{first:.1f}" font-size="15" font-weight="600" text-anchor="middle" {STYLE}>{room}</text>']
    for number, line in enumerate(lines):
        at = first + 17 + 15 * number
        texts.append(f'<text x="{middle:.1f}" y="{at:.1f}" font-size="12" text-anchor="middle" {STYLE}>{line}</text>')
    frame = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="6" fill="{colour}" stroke="#8aa"/>'
    return "\n".join([frame, *texts])


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def problem() -> str:
    """Four arms by cost and mean reward, the floor, and the optimal arm."""
    arms = (("A", 0.80, 0.95, "best arm"), ("B", 0.62, 0.91, "feasible"), ("C", 0.34, 0.88, "optimal arm"), ("D", 0.14, 0.70, ""))
    width, height, left, right, top, base = 760, 380, 80, 30, 30, 320
    low, high = 0.6, 1.0

    def across(cost: float) -> float:
        return left + cost * (width - left - right)

    def up(reward: float) -> float:
        return base - (reward - low) / (high - low) * (base - top)

    best = arms[0][2]
    floor = 0.9 * best
    parts = [_open(width, height, "Four arms by cost and mean reward; the floor is (1 - alpha) times the best mean reward")]
    parts.append(f'<rect x="{left}" y="{top}" width="{width - left - right}" height="{up(floor) - top:.1f}" fill="{BLIND}"/>')
    parts.append(f'<path d="M{left} {top} V{base} H{width - right}" fill="none" stroke="{INK}" stroke-width="1.5"/>')
    for reward, dashes in ((best, "2 4"), (floor, "7 5")):
        line = f"M{left} {up(reward):.1f} H{width - right}"
        parts.append(f'<path d="{line}" stroke="{INK}" stroke-width="1.2" stroke-dasharray="{dashes}" fill="none"/>')
    parts.append(_text(left + 8, up(best) - 6, "best mean reward"))
    parts.append(_text(left + 8, up(floor) + 17, "floor = (1 - alpha) x best"))
    parts.append(_text(left + 8, up(floor) - 8, "good enough"))
    for name, cost, reward, note in arms:
        chosen = note == "optimal arm"
        colour = "#1f5f5b" if chosen else "#7b8f8d"
        parts.append(f'<circle cx="{across(cost):.1f}" cy="{up(reward):.1f}" r="{9 if chosen else 7}" fill="{colour}"/>')
        label = f"{name}: {note}" if note else f"{name}: cheaper, but below the floor"
        below = 5 if reward < best else 20  # the name of the best arm stands below its line
        parts.append(_text(across(cost) + 14, up(reward) + below, label, weight=600 if chosen else 400))
    parts.append(_text((left + width - right) / 2 - 16, base + 34, "cost"))
    turned = f'transform="rotate(-90 36 {(top + base) / 2})"'
    parts.append(f'<text x="36" y="{(top + base) / 2}" font-size="15" text-anchor="middle" {turned} {STYLE}>mean reward</text>')
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, *, weight: int = 400) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="15" font-weight="{weight}" {STYLE}>{text}</text>'


def _open(width: int, height: int, title: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">'
    return f'{head}\n<title>{title}</title>\n<rect width="{width}" height="{height}" fill="{PAPER}"/>'


PICTURES = {"rooms.svg": rooms, "problem.svg": problem}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (ASSETS / name).write_text(draw())
        print(ASSETS / name)
