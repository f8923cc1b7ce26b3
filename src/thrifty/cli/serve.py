"""`thrifty serve` and `thrifty keys`: run the decision service, and give out keys to it."""

import argparse
import subprocess
import sys
from typing import Any


def add_to(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser("serve", help="run the decision service")
    parser.add_argument("--store", help="sqlite:///FILE (default sqlite:///thrifty.db) or postgresql://USER@HOST/DATABASE")
    parser.add_argument("--host", help="the address to listen on (default 127.0.0.1); others need keys")
    parser.add_argument("--port", type=int, help="the port (default 8321)")
    parser.add_argument("--max-body", type=int, help="bytes of a request, at most (default 1048576)")
    parser.add_argument("--max-batch", type=int, help="decisions or outcomes in a request, at most (default 1000)")
    parser.add_argument("--degraded-s", help="seconds for which decisions go on while PostgreSQL is away (default 60)")
    parser.add_argument("--keep-days", help="delete decisions older than so many days from the log (default 0: keep all)")
    parser.add_argument("--admin-key", help="an admin key besides those in the store; better given as THRIFTY_ADMIN_KEY")
    parser.add_argument("--log-level", help="debug, info, warning or error (default info)")
    parser.add_argument("--config", help="a TOML file with any of these settings")
    parser.add_argument("--traffic", action="store_true", help="also send simulated SMS traffic, to see it learn")
    parser.set_defaults(run=run)
    keys = commands.add_parser("keys", help="give out an API key for the decision service")
    keys.add_argument("name", help="whom the key is for")
    keys.add_argument("--role", default="decide,outcome", help="decide, outcome, admin, or several separated by commas")
    keys.add_argument("--revoke", action="store_true", help="take back all keys of this name instead")
    keys.add_argument(
        "--store", default="sqlite:///thrifty.db", help="the store of the service, which must not be running on SQLite"
    )
    keys.set_defaults(run=run_keys)


def run(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    try:
        from thrifty.service.server import serve
    except ImportError as error:
        raise ValueError(f"the service needs {error.name}: pip install 'thrifty[service]'") from None
    from thrifty.service.config import Config
    from thrifty.store import StoreError

    names = ("store", "host", "port", "max_body", "max_batch", "degraded_s", "keep_days", "admin_key", "log_level")
    config = Config.load({name: getattr(options, name) for name in names}, file=options.config)
    traffic = None
    if options.traffic:
        url = f"http://{config.host}:{config.port}"
        print(f"serving on {url}, with simulated traffic; see {url}/docs; Ctrl-C ends it", flush=True)
        traffic = subprocess.Popen([sys.executable, "-m", "thrifty.cli.traffic", url, config.admin_key])
    try:
        serve(config)
    except StoreError as error:
        raise ValueError(str(error)) from None
    finally:
        if traffic is not None:
            traffic.terminate()
            traffic.wait()


def run_keys(options: argparse.Namespace) -> None:
    """Print a new key, of which only the digest is kept; or take keys back."""
    from thrifty.service.keys import checked_roles, digest, make_key
    from thrifty.store import StoreError, open_store

    role, key = checked_roles(options.role), make_key()
    try:
        store = open_store(options.store)
        try:
            if not options.revoke:
                store.add_key(digest(key), options.name, role)
            elif not store.remove_keys(options.name):
                raise ValueError(f"there is no key of the name {options.name!r}")
        finally:
            store.close()
    except StoreError as error:
        raise ValueError(str(error)) from None
    print(f"no key of {options.name} is valid any more" if options.revoke else key)
