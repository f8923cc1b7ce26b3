"""`thrifty value`: what a given routing would have brought and cost."""

import argparse
import json
from typing import Any

from thrifty.cli.arguments import add_command, add_folder
from thrifty.cli.evidence import RowCount, add_log, bullets, describe, refusals
from thrifty.cli.what_if import add_prices, examine_log, price_notes
from thrifty.files import write_files


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "value",
        run,
        purpose="estimate from a log what a given routing would have brought and cost",
        description="The value of a table of shares: what share of the requests of each segment goes to which arm.",
        example="thrifty value deliveries.csv --arm aggregator --reward delivered --cost price --shares Hazel=0.7,Elm=0.3",
    )
    add_log(parser)
    parser.add_argument(
        "--shares",
        metavar="SHARES",
        help="arm=share,... for all segments, or a CSV file with the columns segment, arm and share; * for all other segments",
    )
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="in place of shares: the probability that a policy, which may look at each request, takes the arm of the row; needs "
        "--propensity",
    )
    add_prices(parser)
    add_folder(parser, "also write segments.csv there")


def run(options: argparse.Namespace) -> None:
    """Work it out and show it."""
    from thrifty.logs.evidence import assumptions, finite
    from thrifty.questions import Routing, value_of

    if (options.shares is None) == (options.target is None):
        raise ValueError("give one of --shares and --target: shares by arm, or a column with the probabilities of a policy")
    routing = None if options.shares is None else Routing.load(options.shares)
    with RowCount() as rows:
        evidence = examine_log(options, rows)
    found = value_of(evidence, routing, target=options.target)
    if options.out is not None:
        write_files(options.out, {"segments.csv": found.segments.write_csv().encode()})
    if options.json:
        body = {"segments": found.segments.to_dicts(), "refused": found.refused, "about": list(found.notes)}
        print(json.dumps(finite({**describe(evidence), **body}), allow_nan=False))
        return
    explained = [*found.notes, "change and saving are against today", *price_notes(options), *assumptions(evidence)]
    print("\n".join([str(evidence.profile), *refusals(found.refused), "", found.to_text(), "", *bullets(explained)]))
