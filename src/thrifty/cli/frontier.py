"""`thrifty frontier`: quality against cost as alpha moves, from a log."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import add_command, add_folder, read_alphas
from thrifty.cli.evidence import RowCount, add_log, bullets, describe, free_warning, refusals, show_range, show_share
from thrifty.cli.what_if import add_prices, examine_log, price_notes
from thrifty.files import write_files

if TYPE_CHECKING:
    from thrifty.logs import Frontier

_HEADER = ("alpha", "arm", "quality", "95%", "cost", "per success", "saving", "95%", "given up", "floor held")
_MOST_CHANGES = 40


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "frontier",
        run,
        purpose="show quality against cost as alpha moves, from a log",
        description="Quality against cost as alpha moves, per segment and overall: a table, a picture, CSV and a page.",
        example="thrifty frontier deliveries.csv --arm aggregator --reward delivered --cost price --out out",
    )
    add_log(parser)
    add_prices(parser)
    parser.add_argument("--alpha", help="subsidy factors, separated by commas; default 0, 0.01, ... 0.3")
    add_folder(parser, "write frontier.html, .csv, .png and .svg there")


def run(options: argparse.Namespace) -> None:
    """Work out the frontier, show it, and write it where asked."""
    from thrifty.logs import frontier
    from thrifty.logs.frontier import GRID

    alphas = GRID if options.alpha is None else read_alphas(options.alpha)
    with RowCount() as rows:
        found = frontier(examine_log(options, rows), alphas)
    if options.out is not None:
        from thrifty.reports.frontier import frontier_files

        write_files(options.out, frontier_files(found))
    print(_as_json(found) if options.json else "\n".join([_as_text(found), *bullets(price_notes(options))]))


def _as_json(found: "Frontier") -> str:
    from thrifty.logs.evidence import finite

    body = {
        "verdict": found.verdict,
        "points": found.points.to_dicts(),
        "changes": found.changes.to_dicts(),
        "knees": found.knees,
        "refused": found.refused,
    }
    return json.dumps(finite({**describe(found.evidence), **body}), allow_nan=False)


def _as_text(found: "Frontier") -> str:
    from thrifty.logs.evidence import OVERALL, assumptions
    from thrifty.table import aligned

    alone = [name for name in found.knees if name != OVERALL]
    shown = found.points.filter(segment=alone[0] if len(alone) == 1 else OVERALL)  # one segment names its arms
    rows = [_as_row(row) for row in shown.to_dicts()]
    changes = [_as_change(row) for row in found.changes.to_dicts()]
    more = [f"and {len(changes) - _MOST_CHANGES} more"] if len(changes) > _MOST_CHANGES else []
    parts = [
        str(found.evidence.profile),
        *refusals(found.refused),
        "",
        aligned([_HEADER, *rows]),
        "",
        found.headline(),
        *free_warning(found.points["saving"], float(found.evidence.today[1][0])),
        "alphas at which the choice changes:",
        *bullets([*changes[:_MOST_CHANGES], *more]),
        "",
        "saving is against always the best; assumptions:",
        *bullets(assumptions(found.evidence)),
    ]
    return "\n".join(parts)


def _as_row(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['alpha']:g}",
        row["arm"] or "each its own",
        f"{row['quality']:.4f}",
        show_range(row, "quality", ".4f"),
        f"{row['cost']:.4g}",
        f"{row['cost_per_success']:.4g}",
        show_share(row["saving"]),
        show_range(row, "saving", ".1%"),
        f"{row['given_up']:.2%}",
        f"{row['floor_held']:.0%}",
    )


def _as_change(row: dict[str, Any]) -> str:
    return (
        f"{row['segment']}: from {row['from_arm']} to {row['to_arm']} at alpha {row['alpha']:.3f} "
        f"{show_range(row, 'alpha', '.3f')}, saving {show_share(row['saving'])}"
    )
