"""`thrifty power`: how many requests until it is known that an arm holds the floor."""

import argparse
import json
from typing import Any

from thrifty.cli.arguments import add_command, add_folder
from thrifty.cli.evidence import RowCount, add_log, bullets, describe, open_log
from thrifty.files import write_files


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "power",
        run,
        purpose="tell how many requests it takes until an arm is known to hold the floor",
        description="For each arm and segment: is it known to hold the floor, and if not, how many requests and days are missing.",
        example="thrifty power deliveries.csv --arm aggregator --reward delivered --cost price --alpha 0.05 --only Hazel",
    )
    add_log(parser)
    parser.add_argument("--alpha", type=float, default=0.05, help="the share of the best reward to give up; default %(default)s")
    parser.add_argument("--only", metavar="ARM", help="only this arm; default: all but the best of each segment")
    parser.add_argument("--confidence", type=float, default=0.95, help="with which it is to be known; default %(default)s")
    parser.add_argument(
        "--chance", type=float, default=0.8, help="the probability that so many requests are enough; default %(default)s"
    )
    add_folder(parser, "also write arms.csv there")


def run(options: argparse.Namespace) -> None:
    """Work it out and show it."""
    from thrifty.logs import examine
    from thrifty.logs.evidence import assumptions, finite
    from thrifty.questions import power

    with RowCount() as rows:
        evidence = examine(open_log(options), seed=options.seed, progress=rows.show_rows)
    found = power(evidence, options.alpha, arm=options.only, confidence=options.confidence, chance=options.chance)
    if options.out is not None:
        write_files(options.out, {"arms.csv": found.arms.write_csv().encode()})
    if options.json:
        body = {"alpha": found.alpha, "confidence": found.confidence, "chance": found.chance, "arms": found.arms.to_dicts()}
        print(json.dumps(finite({**describe(evidence), **body}), allow_nan=False))
        return
    explained = [
        f"holds or fails: known with {found.confidence:.0%} confidence, for one arm at a time",
        f"requests are enough with a chance of {found.chance:.0%}, if the margin is as estimated and arms are used as in the log; "
        "even: if the two arms get half each",
        *assumptions(evidence),
    ]
    print("\n".join([str(evidence.profile), "", found.to_text(), "", *bullets(explained)]))
