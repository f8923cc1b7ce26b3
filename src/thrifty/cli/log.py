"""`thrifty export`: the log of a store as a file for offline evaluation."""

import argparse
from itertools import chain
from typing import Any


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser("export", help="write the log of decisions and outcomes to a file")
    parser.add_argument("store", help="sqlite:///FILE; a service may be running on it")
    parser.add_argument("--out", required=True, help="a file that ends in .csv or .parquet")
    parser.add_argument("--router", help="of this router only")
    parser.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> None:
    """Write the file, and say how many decisions it has."""
    from thrifty.store import StoreError, open_store
    from thrifty.store.export import decisions, export_log

    try:
        store = open_store(options.store, reading=True)
        try:
            names = store.logged()
            if options.router is not None and options.router not in names:
                raise ValueError(f"the store has no router {options.router!r}; it has {', '.join(names) or 'none'}")
            wanted = names if options.router is None else [options.router]
            count = export_log(chain.from_iterable(decisions(store.journal(name), name) for name in wanted), options.out)
        finally:
            store.close()
    except (StoreError, OSError) as error:
        raise ValueError(str(error)) from None
    print(f"{count:,} decisions written to {options.out}")
