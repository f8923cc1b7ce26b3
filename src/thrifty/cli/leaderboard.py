"""`thrifty leaderboard`: all policies on all instances, ranked."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thrifty.cli.arguments import POLICIES, add_command, add_seed, split_policies
from thrifty.cli.progress import ProgressBar
from thrifty.files import check_folder

if TYPE_CHECKING:
    from thrifty.leaderboard import Board


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "leaderboard",
        run,
        purpose="rank the policies on many instances",
        description="Play every policy on every instance of the leaderboard and rank them by how close each comes to the best.",
        example="thrifty leaderboard --enter my_policy.py --quick",
    )
    parser.add_argument("--enter", metavar="POLICIES", help=f"policies to add: {POLICIES}")
    parser.add_argument("--share", type=share_of_runs, default=1.0, metavar="S", help="of the runs, up to 1; default 1")
    parser.add_argument("--quick", dest="share", action="store_const", const=0.1, help="only a tenth of the runs: --share 0.1")
    parser.add_argument("--only", metavar="TEXT", help="only instances whose name contains this")
    add_seed(parser, 1)
    parser.add_argument("--out", metavar="FILE.md", type=Path, help="write the page, and its picture beside it")


def share_of_runs(text: str) -> float:
    """A number above 0 and up to 1.

    >>> share_of_runs("0.25")
    0.25
    """
    share = float(text)
    if not 0.0 < share <= 1.0:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, got {text}")
    return share


def run(options: argparse.Namespace) -> None:
    """Play, print the ranking, write the page; after Ctrl-C, of the instances that were played."""
    from thrifty.leaderboard.board import CONTENDERS
    from thrifty.leaderboard.instances import entries
    from thrifty.leaderboard.stages import BoardInterrupted, play_in_stages

    chosen = [entry for entry in entries() if options.only is None or options.only in entry.name]
    if not chosen:
        raise ValueError(
            f"no instance has {options.only!r} in its name: there are {', '.join(entry.name for entry in entries()[:8])}, ..."
        )
    if options.out is not None:
        _check_page(options.out)
    entered = split_policies(options.enter) if options.enter else []
    _try_out(entered, chosen[0].horizon)
    try:
        with ProgressBar("playing", "instance") as bar:
            board = play_in_stages(chosen, [*CONTENDERS, *entered], seed=options.seed, share=options.share, progress=bar)
    except BoardInterrupted as stopped:
        if stopped.board is not None:
            _show(stopped.board, options)
        raise
    _show(board, options)


def _check_page(page: Path) -> None:
    """A ValueError if the page cannot be written or its picture drawn, before any work is done."""
    from thrifty.reports.drawing import check_pictures

    check_pictures()
    check_folder(page.absolute().parent)
    if page.is_dir():
        raise ValueError(f"cannot write the page {page}, which is a folder: name a file in it, such as {page / 'leaderboard.md'}")


def _try_out(entered: list[str], horizon: int) -> None:
    """A ValueError of one line if a policy cannot be played, before minutes are spent on the others."""
    from thrifty.problem import Instance
    from thrifty.simulation import simulate

    for policy in entered:
        simulate(Instance([0.5, 0.46], [1.0, 0.0], 0.1), policy, horizon=horizon, runs=1)


def _show(board: "Board", options: argparse.Namespace) -> None:
    largest = {rank.policy: rank.largest for rank in board.minimax_ranking()}
    print(f"{'policy':<24} {'geometric mean':>20} {'worst ratio':>12} {'largest share of K^(1/3) T^(2/3)':>34}")
    for rank in board.ranking():
        print(f"{rank.policy:<24} {rank.mean:>12.2f} +- {rank.error:<4.2f} {rank.worst:>12.1f} {largest[rank.policy]:>34.2f}")
    if options.out is not None:
        from thrifty.reports.leaderboard import write_leaderboard

        share = f" --share {options.share:g}" if options.share < 1.0 else ""
        options.out.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_leaderboard(board, options.out, command=f"thrifty leaderboard{share} --out {options.out.name}")
