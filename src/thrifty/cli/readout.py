"""`thrifty readout`: what a holdout or an A/B test shows so far; one may look as often as one likes."""

import argparse
import json
from typing import Any

from thrifty.cli.arguments import add_command, add_folder, add_json
from thrifty.cli.evidence import bullets
from thrifty.files import write_files

_COLUMNS = {
    "--time": "the time of the decision; default at",
    "--reward": "a number in [0, 1], or a status with --success; default reward",
    "--cost": "what the row cost; default cost, or price where that is empty",
    "--success": "statuses that count as a reward of 1, separated by commas",
    "--time-format": "day-first, month-first, s, ms, us, ns (since 1970) or a pattern such as %%d.%%m.%%y",
    "--zone": "the zone of times that have none, such as Europe/Berlin; default UTC",
    "--separator": "of a CSV file: tab or one sign such as , ; | or ^; default: what its header shows",
}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "readout",
        run,
        purpose="read out a holdout or an A/B test that runs, as often as one likes",
        description="Compare the holdout of a router with its other choices, or two groups of a log; intervals hold at all looks",
        example="thrifty readout sqlite:///thrifty.db --router sms",
    )
    parser.add_argument("log", help="a store such as sqlite:///thrifty.db, a file that thrifty export wrote, or a log of your own")
    group = parser.add_argument_group("columns of a log of your own")
    for flag, meaning in _COLUMNS.items():
        group.add_argument(flag, help=meaning)
    parser.add_argument("--router", help="only this router")
    parser.add_argument(
        "--by", metavar="COLUMN", help="the column that names the two groups, such as router or arm; default: the holdout"
    )
    parser.add_argument("--control", metavar="GROUP", help="with --by: the group that the other is compared with")
    parser.add_argument("--alpha", type=float, help="the share of reward that may be given up; default: that of the router")
    add_json(parser)
    add_folder(parser, "also write looks.csv there")


def run(options: argparse.Namespace) -> None:
    """Read out and show."""
    from thrifty.logs import Columns
    from thrifty.logs.evidence import finite
    from thrifty.questions import readout

    given = {flag[2:].replace("-", "_"): getattr(options, flag[2:].replace("-", "_")) for flag in _COLUMNS}
    columns = Columns.load({**given, "time": options.time or "at"})
    if options.control is not None and options.by is None and options.control != "holdout":
        raise ValueError(f"--control {options.control!r:.80} names one of two groups: name their column with --by")
    found = readout(
        options.log, columns=columns, router=options.router, by=options.by, control=options.control, alpha=options.alpha
    )
    if options.out is not None:
        write_files(options.out, {"looks.csv": found.looks.write_csv().encode()})
    if options.json:
        groups = {"treated": found.experiment.treated, "control": found.experiment.control}
        body = {
            **groups,
            "alpha": found.alpha,
            "verdict": found.verdict,
            "notes": list(found.notes),
            "looks": found.looks.to_dicts(),
        }
        print(json.dumps(finite(body), allow_nan=False))
        return
    explained = [
        *found.notes,
        "every interval of every look holds at once with 95%, for any law with rewards in [0, 1] and costs up to the largest seen",
        "means are averages over the decisions of a group so far, learning included; groups are assumed to be drawn at random",
    ]
    print("\n".join([found.to_text(), "", *bullets(explained)]))
