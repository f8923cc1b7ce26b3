"""`thrifty check-policy`: try a policy of one's own in plain Python, then compile it; one line for each fault."""

import argparse
import sys
from typing import Any

from thrifty.cli.arguments import add_command


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "check-policy",
        run,
        purpose="look for faults in a policy of your own",
        description="Play some rounds of a policy in plain Python, then compile it. Every fault is one line: file, line, remedy. "
        "The exit code is 1 if there are any.",
        example="thrifty check-policy my_policy.py",
    )
    parser.add_argument(
        "policy", metavar="FILE", help="a .py file that defines POLICY; parameters may follow: my_policy.py:pulls=5"
    )


def run(options: argparse.Namespace) -> int:
    """Print the faults."""
    from thrifty.policies.checking import check_policy

    faults = check_policy(options.policy)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{options.policy}: no fault found")
    return 1 if faults else 0
