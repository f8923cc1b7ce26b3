"""`thrifty example-log`: write a log of an example world, with the truth beside it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import add_command, add_count, add_folder, add_seed
from thrifty.cli.progress import ProgressBar

if TYPE_CHECKING:
    from thrifty.examples import Specification


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "example-log",
        run,
        purpose="write an example log with the truth beside it",
        description="Write a log of an example world of thrifty.examples, and the true rates and prices beside it.",
        example="thrifty example-log sms --rows 1e5 --out logs",
    )
    parser.add_argument("name", help="sms (12 countries), llm (six language models) or payments (six card processors)")
    add_folder(parser, "default: the current folder", Path())
    add_count(parser, "--rows", "rows to write; default 1000000 for sms, 200000 for llm, 100000 for payments")
    add_seed(parser)
    parser.add_argument(
        "--exploration",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="the share of rows whose arm is drawn uniformly; default %(default)s",
    )
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv", help="default %(default)s")


def run(options: argparse.Namespace) -> None:
    """Write an example log, and print the command that reads it."""
    from thrifty.examples import checked_example
    from thrifty.examples.generator import write_example

    specification = checked_example(options.name)
    if not 0.0 < options.exploration <= 1.0:
        raise ValueError(f"--exploration must be in (0, 1], got {options.exploration}: an arm that is never used cannot be judged")
    try:
        with ProgressBar("writing", "row") as bar:
            path, beside = write_example(
                specification,
                options.out,
                rows=options.rows,
                seed=options.seed,
                exploration=options.exploration,
                kind=options.format,
                progress=bar,
            )
    except OSError as error:
        raise ValueError(f"cannot write into {options.out}: {error.strerror}") from None
    print(path)
    print(beside)
    print(_reading(specification, path))


def _reading(specification: "Specification", path: Path) -> str:
    """The command that reads the log."""
    names = {name: specification.names.get(name, name) for name in ("arm", "cost", "segment", "score")}
    reward = f"--reward {names['score']}" if specification.scored else f"--reward status --success {specification.success}"
    return (
        f"thrifty replay {path} --arm {names['arm']} {reward} --cost {names['cost']} --segment {names['segment']} --time sent_at "
        "--propensity propensity --outcome-time received_at"
    )
