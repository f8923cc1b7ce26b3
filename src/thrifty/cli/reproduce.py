"""`thrifty reproduce`: the paper's figures, tables and claims, and a report."""

import argparse
from pathlib import Path
from typing import Any

from thrifty.cli.arguments import add_command, add_count, add_folder, add_seed
from thrifty.cli.progress import ProgressBar


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "reproduce",
        run,
        purpose="run the paper's experiments and write a report",
        description="Run the paper's experiments; leave a CSV, a PNG and an SVG of each, and one HTML report.",
        example="thrifty reproduce --quick; thrifty reproduce fig2 --runs 500 --out fig2; thrifty reproduce all",
    )
    parser.add_argument("items", nargs="*", metavar="ITEM", help="what to run: names from --list, or all")
    parser.add_argument("--list", action="store_true", help="list the items")
    parser.add_argument("--quick", action="store_true", help="sizes that fit into two minutes; without an ITEM all items are run")
    add_count(parser, "--runs", "runs of every setting; default: each item's own number")
    add_seed(parser, 1)
    add_folder(parser, "where the report goes; default %(default)s", Path("reproduction"))
    parser.add_argument("--backend", default="local", help="local, dask, or dask://host:port; default %(default)s")
    add_count(parser, "--workers", "threads, or Dask workers started here; default: all cores")


def run(options: argparse.Namespace) -> None:
    """Run the items, and print the path of the report."""
    from thrifty.experiments import EXPERIMENTS, Scale
    from thrifty.problem import checked_count
    from thrifty.reports.reproduction import reproduce

    if options.list:
        width = max(map(len, EXPERIMENTS))
        for name, each in EXPERIMENTS.items():
            print(f"{name:<{width}}  {each.title}")
        return
    if not options.items and not options.quick:
        raise ValueError(f"name what to run: all, or some of {', '.join(EXPERIMENTS)}; --quick alone runs all at a small size")
    names = [] if options.items in ([], ["all"]) else options.items
    runs = None if options.runs is None else checked_count("runs", options.runs)
    scale = Scale(quick=options.quick, runs=runs, seed=checked_count("seed", options.seed, low=0))
    with ProgressBar("simulating", "round") as simulating, ProgressBar("drawing", "item") as drawing:
        report = reproduce(
            names,
            scale,
            out=options.out,
            backend=options.backend,
            workers=options.workers,
            progress=simulating,
            drawing=drawing,
        )
    print(report)
