"""`thrifty serve`: run the decision service. The flags are the settings of `thrifty.service.config`."""

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from thrifty.cli import keys
from thrifty.cli.router_frontier import router_frontier

DEMO_STORE, DEMO_ROUTERS = "sqlite:///thrifty-demo.db", "sms-demo"
"""The store of --traffic, and how the names of its routers begin."""


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    from thrifty.described import described
    from thrifty.service.config import Config

    parser = commands.add_parser("serve", help="run the decision service")
    for each in described(Config):
        text = f"{each.meaning} (default: {each.default_text})".replace("%", "%%")
        parser.add_argument(each.flag, metavar=each.kind.__name__.replace("tuple", "names").upper(), help=text)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a TOML file with any of these settings, and routers as tables [routers.NAME]; SIGHUP has it read again",
    )
    parser.add_argument(
        "--traffic", action="store_true", help=f"also send simulated SMS traffic, to a store of its own (default {DEMO_STORE})"
    )
    parser.set_defaults(run=run)
    keys.add_to(commands)


def run(options: argparse.Namespace) -> None:
    """Serve until a signal stops the process."""
    try:
        from thrifty.service.server import serve
    except ImportError as error:
        if str(error.name).startswith("thrifty"):
            raise
        raise ValueError(f"the service needs {error.name}: pip install 'thrifty[service]'") from None
    from thrifty.described import described
    from thrifty.service.config import Config
    from thrifty.service.declarations import ConfigFile
    from thrifty.store import StoreError

    flags = {each.name: getattr(options, each.name) for each in described(Config)}
    file = None if options.config is None else ConfigFile.load(flags, options.config)
    config = Config.load(flags) if file is None else file.config
    if options.traffic and file is not None and file.routers:
        raise ValueError(f"--traffic has routers of its own and {options.config} declares others: leave out one of them")
    if options.traffic and config.store == Config.store and flags["store"] is None and "THRIFTY_STORE" not in os.environ:
        config = replace(config, store=DEMO_STORE)
    processes: list[subprocess.Popen[bytes]] = []
    frontier = None if find_spec("polars") is None else router_frontier  # the extra `replay`

    def send_traffic(url: str) -> None:
        what = "with simulated traffic: open it in a browser; an outage begins after two minutes"
        print(f"serving on {url}, {what}; Ctrl-C ends it", flush=True)
        environment = {**os.environ, "THRIFTY_KEY": config.admin_key}
        processes.append(subprocess.Popen([sys.executable, "-m", "thrifty.cli.traffic", url], env=environment))

    try:
        if options.traffic:
            serve(config, file=file, check=check_demo_store, listening=send_traffic, frontier=frontier)
        else:
            serve(config, file=file, frontier=frontier)
    except StoreError as error:
        raise ValueError(str(error)) from None
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def check_demo_store(store: Any) -> None:
    """Raise a ValueError when a store holds routers that --traffic did not make."""
    others = sorted(name for name in store.routers() if not name.startswith(DEMO_ROUTERS))
    if others:
        raise ValueError(
            f"--traffic sends simulated outcomes and needs a store of its own, but this one has the router {others[0]!r}: "
            "leave out --store and THRIFTY_STORE, or name another file"
        )
