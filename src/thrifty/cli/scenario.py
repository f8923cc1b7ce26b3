"""`thrifty scenario`: a realistic world under every policy, and under what people do today."""

import argparse
from pathlib import Path
from typing import Any

from thrifty.cli.compare import split_policies
from thrifty.cli.progress import ProgressBar


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "scenario",
        help="play a realistic world: sms, llm, ads or payments",
        description="Play a realistic world under every policy and under what people do today: quality, money, regrets, savings.",
        epilog="Example: thrifty scenario sms --runs 20 --out reports",
    )
    parser.add_argument("name", help="sms, llm, ads or payments")
    parser.add_argument("--policies", help="names, name:parameter=value, name+restart or .py files; default all")
    parser.add_argument("--rounds", type=int, help="decisions in all; default the scenario's own number")
    parser.add_argument("--runs", type=int, default=10, help="independent runs; default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="write a page, pictures and a CSV there")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Play and show."""
    from thrifty.problem import checked_count
    from thrifty.reports.scenario import scenario_text, write_scenario
    from thrifty.scenarios import checked_scenario, play

    scenario = checked_scenario(options.name)
    policies = split_policies(options.policies) if options.policies else None
    bar = ProgressBar("playing", "segment")
    try:
        ledger = play(
            scenario, policies, rounds=options.rounds, runs=checked_count("runs", options.runs), seed=options.seed, progress=bar
        )
    finally:
        bar.close()
    print(scenario_text(ledger))
    if options.out:
        for path in write_scenario(ledger, options.out):
            print(f"wrote {path}")
