"""`--price`: what commands that value costs do when an arm is to have another price."""

import argparse
from typing import TYPE_CHECKING, Any

from thrifty.cli.evidence import RowCount, open_log

if TYPE_CHECKING:
    from thrifty.logs import Evidence


def add_prices(parser: Any) -> None:
    """Add `--price`."""
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="ARM=PRICE",
        help="what if every use of this arm had cost so much: a price, or a change such as -10%%; may be given several times",
    )


def examine_log(options: argparse.Namespace, rows: RowCount) -> "Evidence":
    """Read the log that the arguments describe, and put in the prices that they name."""
    from thrifty.logs import examine
    from thrifty.questions.what_if import read_prices, with_prices

    prices = read_prices(options.price) if options.price else {}
    return with_prices(examine(open_log(options), seed=options.seed, progress=rows.show_rows), prices)


def price_notes(options: argparse.Namespace) -> list[str]:
    """A line for the output that says which prices are not those of the log."""
    return [f"what if: {item}; today's choices are valued at these prices too" for item in [", ".join(options.price)] if item]
