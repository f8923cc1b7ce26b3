"""The leaderboard as a page and as a picture."""

from pathlib import Path

import numpy as np

from thrifty import pictures
from thrifty.leaderboard.board import Board
from thrifty.leaderboard.instances import HELD_OUT, TUNING

_WHY = (
    "No policy can be within twice the best everywhere: pulls of the dear arm are what tells a cheap arm just above the floor "
    "from one just below it. At mu_2 = .40 of Table 1 such pulls are free, and CS-TS, which makes them at once, loses little; at "
    "mu_2 = .46 they are its whole regret. To tell a gap of .05 with few errors takes hundreds of pulls of each arm, and a policy "
    "that makes them where they are free also makes them where they are not. The default gives up a factor below the floor, where "
    "regret is small, to gain a larger one above it. With many equally good dear arms it takes the luckiest for the best, and puts "
    "the floor too high."
)


_OFFSETS = (4, -12, 18, -26)  # of a label from its point, by how many points before it stand close by


def as_markdown(board: Board, *, command: str, picture: str | None) -> str:
    """The whole page."""
    leader = board.ranking()[0][0]
    parts = [
        "# Leaderboard",
        f"Written by `{command}`. Total regret is quality regret plus cost regret; ratios are to the best policy of each instance, "
        "with 1 added to both sides. Constants of our own policies were chosen on the tuning half; the held-out half was looked at "
        "afterwards.",
        f"**First by geometric mean: `{leader}`.**",
    ]
    for title, half in (("All instances", None), ("Held-out half", HELD_OUT), ("Tuning half", TUNING)):
        if board.rows(half):
            parts += [f"## {title}: {len(board.rows(half))} instances", _ranking(board, half)]
    if picture:
        parts += ["## Quality against cost", f"![Geometric means of quality and cost regret]({picture})"]
    parts += ["## Where the default is more than twice the best", _exceptions(board), "## Every instance", _every(board)]
    return "\n\n".join(parts) + "\n"


def draw(board: Board, path: Path) -> None:
    """Quality against cost: the geometric mean over instances of each regret plus 1, one point per policy."""
    plt = pictures.pyplot()
    with plt.rc_context(pictures.LOOK):
        figure, ax = plt.subplots(figsize=(6.0, 4.2), layout="constrained")
        known = ~np.isnan(board.total).any(axis=1)
        placed: list[tuple[float, float]] = []
        for number, name in enumerate(board.policies):
            quality, cost = (float(np.exp(np.log1p(values[known, number]).mean())) for values in (board.quality, board.cost))
            ax.plot(quality, cost, "o", color=pictures.COLOURS[number % len(pictures.COLOURS)], markersize=6)
            near = sum(np.log(quality / other) ** 2 + np.log(cost / price) ** 2 < 0.15 for other, price in placed)
            placed.append((quality, cost))
            ax.annotate(name, (quality, cost), textcoords="offset points", xytext=(6, _OFFSETS[near % len(_OFFSETS)]), fontsize=8)
        ax.set(xscale="log", yscale="log", xlabel="quality regret + 1, geometric mean", ylabel="cost regret + 1, geometric mean")
        ax.margins(0.2)
        ax.set_title(f"Lower left is better ({int(known.sum())} instances with known costs)", fontsize=9)
    pictures.save(figure, path)


def _ranking(board: Board, half: str | None) -> str:
    rows = [
        f"| {place} | `{name}` | {mean:.2f} | {worst:,.1f} |" for place, (name, mean, worst) in enumerate(board.ranking(half), 1)
    ]
    return "\n".join(["| | policy | geometric mean of ratios | worst ratio |", "|---|---|---|---|", *rows])


def _exceptions(board: Board) -> str:
    leader = board.policies.index(board.ranking()[0][0])
    ratios = board.ratios
    far = [number for number in board.rows() if ratios[number, leader] > 2.0]
    if not far:
        return "Nowhere."
    rows = [
        f"| {board.entries[number].name} | {ratios[number, leader]:.1f} | {board.total[number, leader]:,.0f} | "
        f"`{board.policies[int(np.nanargmin(board.total[number]))]}` {np.nanmin(board.total[number]):,.0f} |"
        for number in far
    ]
    return "\n".join([_WHY, "", "| instance | ratio | total regret | best policy |", "|---|---|---|---|", *rows])


def _every(board: Board) -> str:
    header = "| instance | T | half | " + " | ".join(f"`{name}`" for name in board.policies) + " |"
    rows = []
    for number, entry in enumerate(board.entries):
        best = np.nanmin(board.total[number])
        cells = [
            "" if np.isnan(total) else f"**{total:,.0f}** ± {error:,.0f}" if total == best else f"{total:,.0f} ± {error:,.0f}"
            for total, error in zip(board.total[number], board.error[number], strict=True)
        ]
        rows.append(f"| {entry.name} | {entry.horizon:,} | {entry.half} | " + " | ".join(cells) + " |")
    note = "Mean total regret ± standard error; the best in bold."
    return "\n".join([note, "", header, "|---|---|---|" + "---|" * len(board.policies), *rows])
