"""`thrifty export`, `prune`, `backup` and `repair`: the log of a store, for people who run a service."""

import argparse
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from thrifty.cli.arguments import whole_number
from thrifty.cli.repair import repair
from thrifty.files import check_file


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    export = commands.add_parser("export", help="write the log of decisions and outcomes to a file")
    _add_store(export, "services may be running on it")
    export.add_argument("--out", required=True, help="a file that ends in .csv or .parquet")
    export.add_argument("--router", help="only this router")
    export.set_defaults(run=run_export)
    prune = commands.add_parser("prune", help="delete old decisions and outcomes from a log, and keep the statistics")
    _add_store(prune, "no service may be running on a SQLite file")
    prune.add_argument("--keep-days", type=float, required=True, metavar="DAYS", help="delete decisions that are older than this")
    prune.add_argument("--router", help="only this router")
    prune.set_defaults(run=run_prune)
    backup = commands.add_parser("backup", help="copy a SQLite store to a new file, while a service runs on it")
    _add_store(backup, "a service may be running on it; for PostgreSQL use pg_dump")
    backup.add_argument("file", metavar="FILE", help="the copy, which must not exist yet")
    backup.set_defaults(run=run_backup)
    mend = commands.add_parser("repair", help="find the rows of a log that cannot be applied, and void them")
    _add_store(mend, "no service may be running on a SQLite file; services on PostgreSQL must be started again afterwards")
    mend.add_argument("--router", help="only this router")
    mend.add_argument(
        "--void", type=whole_number, metavar="POSITION", help="void the row at this position: it is kept, but not applied any more"
    )
    mend.add_argument("--reason", help="why the row is voided; kept beside it")
    mend.add_argument("--yes", action="store_true", help="void without asking")
    mend.set_defaults(run=run_repair)


def _add_store(parser: argparse.ArgumentParser, note: str) -> None:
    text = f"sqlite:///FILE or postgresql://USER@HOST/DATABASE (default: THRIFTY_STORE in the environment); {note}"
    parser.add_argument("store", metavar="STORE", nargs="?", help=text)


def run_export(options: argparse.Namespace) -> None:
    """Write the file, and print the number of decisions in it."""
    from thrifty.router.export import decisions, export_log

    check_file(Path(options.out), "--out")
    with _opened(options, reading=True) as store:
        wanted = _wanted(store, options.router)
        count = export_log(chain.from_iterable(decisions(store.journal(name), name) for name in wanted), options.out)
    print(f"{count:,} decisions written to {options.out}")


def run_prune(options: argparse.Namespace) -> None:
    """Delete old rows router by router, and print how many."""
    from thrifty.router import Router

    if not 0.0 <= options.keep_days < math.inf:
        raise ValueError(f"--keep-days must be a number of days that is not negative, got {options.keep_days}")
    before = time.time() - 86_400 * options.keep_days
    with _opened(options) as store:
        for name in _wanted(store, options.router):
            rows = Router.reopen(name, store).prune(before, by="thrifty prune")
            print(f"{name}: {rows:,} rows deleted")


def run_backup(options: argparse.Namespace) -> None:
    """Copy the store, and print the number of rows in the copy."""
    with _opened(options, reading=True) as store:
        rows = store.backup(options.file)
    print(f"{rows:,} rows of the log copied to {options.file}")


def run_repair(options: argparse.Namespace) -> None:
    """Print for every router whether its log can be applied; void a row if asked to."""
    if (options.void is None) != (options.reason is None):
        raise ValueError("--void POSITION and --reason TEXT belong together")
    with _opened(options) as store:
        repair(store, _wanted(store, options.router), void=options.void, reason=options.reason, ask=not options.yes)


@contextmanager
def _opened(options: argparse.Namespace, *, reading: bool = False) -> Iterator[Any]:
    """The store that the command line or the environment names; it must exist. Errors of the store become a ValueError."""
    from thrifty.store import StoreError, open_store

    url = options.store or os.environ.get("THRIFTY_STORE")
    if not url:
        raise ValueError("name the store (sqlite:///FILE or postgresql://USER@HOST/DATABASE), or set THRIFTY_STORE")
    try:
        store = open_store(url, reading=reading, create=False)
        try:
            yield store
        finally:
            store.close()
    except (StoreError, OSError) as error:
        raise ValueError(str(error)) from None


def _wanted(store: Any, router: str | None) -> list[str]:
    names: list[str] = store.logged()
    if router is not None and router not in names:
        raise ValueError(f"the store has no router {router!r:.80}; it has {', '.join(names) or 'none'}")
    return names if router is None else [router]
