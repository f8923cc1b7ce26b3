"""`thrifty export` and `thrifty prune`: the log of a store as a file for offline evaluation, and what is to be kept of it."""

import argparse
import math
import time
from itertools import chain
from typing import Any


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser("export", help="write the log of decisions and outcomes to a file")
    parser.add_argument("store", help="sqlite:///FILE or postgresql://USER@HOST/DATABASE; services may be running on it")
    parser.add_argument("--out", required=True, help="a file that ends in .csv or .parquet")
    parser.add_argument("--router", help="of this router only")
    parser.set_defaults(run=run_export)
    prune = commands.add_parser("prune", help="delete old decisions and outcomes from a log, and keep the statistics")
    prune.add_argument("store", help="sqlite:///FILE, with no service running on it, or postgresql://USER@HOST/DATABASE")
    prune.add_argument("--keep-days", type=float, required=True, help="delete decisions older than so many days")
    prune.add_argument("--router", help="of this router only")
    prune.set_defaults(run=run_prune)


def run_export(options: argparse.Namespace) -> None:
    """Write the file, and say how many decisions it has."""
    from thrifty.store import StoreError, open_store
    from thrifty.store.export import decisions, export_log

    try:
        store = open_store(options.store, reading=True)
        try:
            wanted = _wanted(store, options.router)
            count = export_log(chain.from_iterable(decisions(store.journal(name), name) for name in wanted), options.out)
        finally:
            store.close()
    except (StoreError, OSError) as error:
        raise ValueError(str(error)) from None
    print(f"{count:,} decisions written to {options.out}")


def run_prune(options: argparse.Namespace) -> None:
    """Delete old rows router by router, and say how many."""
    from thrifty.router import Router
    from thrifty.store import StoreError, open_store

    if not 0.0 <= options.keep_days < math.inf:
        raise ValueError(f"keep-days must be a number of days that is not negative, got {options.keep_days}")
    before = time.time() - 86_400 * options.keep_days
    try:
        store = open_store(options.store)
        try:
            for name in _wanted(store, options.router):
                rows = Router.reopen(name, store).prune(before, by="thrifty prune")
                print(f"{name}: {rows:,} rows deleted")
        finally:
            store.close()
    except StoreError as error:
        raise ValueError(str(error)) from None


def _wanted(store: Any, router: str | None) -> list[str]:
    names: list[str] = store.logged()
    if router is not None and router not in names:
        raise ValueError(f"the store has no router {router!r:.80}; it has {', '.join(names) or 'none'}")
    return names if router is None else [router]
