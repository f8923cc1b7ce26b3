"""`thrifty`: the parser of all commands, and their exit codes."""

import argparse
import atexit
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any, NoReturn

from thrifty import __version__
from thrifty.files import check_folder

_CLEARING_S = 1.0


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}{_about_files(message)} (see {self.prog} --help)\n")
        raise SystemExit(2)


def _about_files(message: str) -> str:
    """A remedy if arguments are too many because the shell replaced a pattern by files."""
    _, mark, extra = message.partition("unrecognized arguments: ")
    if not mark or not os.path.isfile(extra.split(" ")[0]):
        return ""
    return ": several files are one log as a folder, or as a pattern in quotes such as 'logs/*.csv'"


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command."""
    from thrifty.cli import (
        arms,
        check_policy,
        compare,
        example_log,
        frontier,
        leaderboard,
        log,
        policies,
        power,
        readout,
        recommend,
        replay,
        reproduce,
        rollout,
        scenario,
        serve,
        value,
        warm,
    )

    simulating, serving = (policies, check_policy, compare, leaderboard, reproduce, scenario), (serve, warm, log, rollout)
    asking = (replay, frontier, recommend, power, arms, value, readout, example_log)
    parser = _Parser(prog="thrifty", description="The cheapest arm that is good enough, learnt online.")
    parser.add_argument("--version", action="version", version=f"thrifty {__version__}")
    commands: Any = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for command in (*simulating, *serving, *asking):
        command.add_to(commands)
    parser.set_defaults(left_at_once=tuple(command.run for command in asking))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 if a check found a fault, 2 for wrong input, 130 after Ctrl-C."""
    try:
        options = build_parser().parse_args(arguments)
    except KeyboardInterrupt:
        print("thrifty: stopped", file=sys.stderr)
        return 130
    try:
        if getattr(options, "out_is_folder", False) and options.out is not None:
            check_folder(options.out)
        code = _run(options)
        sys.stdout.flush()
    except ValueError as error:
        if os.environ.get("THRIFTY_TRACE", "") not in ("", "0"):
            traceback.print_exc()
        print(f"thrifty {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"thrifty {options.command}: {str(interrupt) or 'stopped'}", file=sys.stderr)
        _end_if_work_was_left(130)
        return 130
    except BrokenPipeError:  # the reader of the output has gone, such as `head`
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is not None:  # of a file, not of what is printed
            raise
        _discard_output()
        print(
            f"thrifty {options.command}: cannot write the output: {error.strerror}; make room there, or write elsewhere",
            file=sys.stderr,
        )
        return 2
    return code or 0


def _discard_output() -> None:
    """Discard what is still to be printed, so that Python does not fail again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int | None:
    """Run a command. One that asks a log leaves no half results, so that Ctrl-C may leave it wherever it is."""
    from thrifty.interruption import run_interruptibly

    work: Callable[[], int | None] = partial(options.run, options)
    return run_interruptibly(work) if options.run in options.left_at_once else work()


def _end_if_work_was_left(code: int) -> None:
    """End the process here if a thread still compiles, or is in compiled code that may never return."""
    from thrifty.interruption import start_jobs, work_was_left

    if work_was_left():
        wait(start_jobs([atexit._run_exitfuncs], threads=1), timeout=_CLEARING_S)  # temporary files, for one
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
