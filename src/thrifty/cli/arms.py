"""`thrifty arms`: arm against arm, with a significance that accounts for the number of comparisons."""

import argparse
import json
from typing import Any

from thrifty.cli.arguments import add_command, add_folder
from thrifty.cli.evidence import RowCount, add_log, bullets, describe
from thrifty.cli.what_if import add_prices, examine_log, price_notes
from thrifty.files import write_files


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "arms",
        run,
        purpose="compare arm with arm in a log, and account for the number of comparisons",
        description="Differences of mean reward and cost between the arms of each segment. Intervals hold for all pairs at once.",
        example="thrifty arms deliveries.csv --arm aggregator --reward delivered --cost price --segment country",
    )
    add_log(parser)
    add_prices(parser)
    add_folder(parser, "also write pairs.csv there")


def run(options: argparse.Namespace) -> None:
    """Compare and show."""
    from thrifty.logs.evidence import assumptions, finite
    from thrifty.questions import compare_arms

    with RowCount() as rows:
        evidence = examine_log(options, rows)
    found = compare_arms(evidence)
    if options.out is not None:
        write_files(options.out, {"pairs.csv": found.pairs.write_csv().encode()})
    if options.json:
        body = {"pairs": found.pairs.to_dicts(), "left_out": found.left_out}
        print(json.dumps(finite({**describe(evidence), **body}), allow_nan=False))
        return
    explained = [
        f"intervals hold for all {found.pairs.height} pairs at once with 95%, and p accounts for all of them (max-t)",
        *(f"{segment}: {reason}" for segment, reason in found.left_out.items()),
        *price_notes(options),
        *assumptions(evidence),
    ]
    print("\n".join([str(evidence.profile), "", found.to_text(), "", *bullets(explained)]))
