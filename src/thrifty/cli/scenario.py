"""`thrifty scenario`: a realistic world under every policy, and under what people do today."""

import argparse
from typing import Any

from thrifty.cli.arguments import add_command, add_count, add_folder, add_policies, add_runs, add_seed, split_policies
from thrifty.cli.progress import ProgressBar


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "scenario",
        run,
        purpose="play a realistic world: sms, llm, ads or payments",
        description="Play a realistic world under every policy and under what people do today: quality, money, regrets, savings.",
        example="thrifty scenario sms --runs 20 --out reports",
    )
    parser.add_argument("name", help="sms, llm, ads or payments")
    add_policies(parser, None)
    add_count(parser, "--rounds", "decisions over all segments; default: the scenario's own number")
    add_runs(parser, 10)
    add_seed(parser)
    add_folder(parser, "write a page, pictures and a CSV file there")


def run(options: argparse.Namespace) -> None:
    """Play the scenario, and show the result."""
    from thrifty.problem import checked_count
    from thrifty.reports.scenario import scenario_text, write_scenario
    from thrifty.scenarios import checked_scenario, play

    scenario = checked_scenario(options.name)
    policies = split_policies(options.policies) if options.policies else None
    runs = checked_count("runs", options.runs)
    with ProgressBar("playing", "segment") as bar:
        result = play(scenario, policies, rounds=options.rounds, runs=runs, seed=options.seed, progress=bar)
    print(scenario_text(result))
    if options.out:
        for path in write_scenario(result, options.out):
            print(f"wrote {path}")
