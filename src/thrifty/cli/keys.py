"""`thrifty keys`: make, list and revoke API keys, in the store or through a running service."""

import argparse
import os
import time
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("keys", help="make, list and revoke API keys of the decision service")
    parser.add_argument("name", nargs="?", help="the name of the key's user")
    parser.add_argument(
        "--role",
        default="decide,outcome",
        help="decide, outcome, view or admin, or several of them separated by commas; default %(default)s",
    )
    parser.add_argument("--days", type=float, help="days until the key expires; default: it never does")
    parser.add_argument("--list", action="store_true", help="show all keys: name, roles, when made, last used and expiring")
    parser.add_argument("--revoke", action="store_true", help="revoke all keys of this name")
    parser.add_argument("--url", help="the address of a running service, such as http://127.0.0.1:8321")
    parser.add_argument("--key", help="an admin key for --url; THRIFTY_KEY in the environment is safer")
    parser.add_argument(
        "--store", help="the store, without --url; default: THRIFTY_STORE in the environment, else sqlite:///thrifty.db"
    )
    parser.add_argument("--create", action="store_true", help="make the SQLite file if there is none")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print a new key, list keys, or revoke them. The store keeps only the digest of a key."""
    from thrifty.service.keys import checked_days, checked_key_name, checked_roles

    if options.list == (options.name is not None):
        raise ValueError("give a name, or --list and no name")
    if options.days is not None and (options.list or options.revoke):
        raise ValueError("--days goes with a new key")
    checked_days(options.days)
    role = checked_roles(options.role)
    if options.name is not None and not options.revoke:
        checked_key_name(options.name)
    if options.url is not None:
        print(_through_service(options, role))
    else:
        print(_in_store(options, role))


def _through_service(options: argparse.Namespace, role: str) -> str:
    try:
        import httpx
    except ImportError as error:
        raise ValueError(f"--url needs {error.name}: pip install 'thrifty[service]'") from None
    key = options.key or os.environ.get("THRIFTY_KEY")
    url = options.url.rstrip("/") + "/v1/keys"
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(headers=headers, timeout=10.0) as http:
            if options.list:
                answer = http.get(url)
            elif options.revoke:
                answer = http.delete(f"{url}/{_quoted(options.name)}")
            else:
                days = {} if options.days is None else {"days": options.days}
                answer = http.post(url, json={"name": options.name, "role": role, **days})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(f"{options.url} cannot be reached: {error}") from None
    if answer.is_error:
        raise ValueError(f"{options.url} answered {answer.status_code}: {_message(answer)}")
    if options.list:
        return _table(answer.json()["keys"])
    return f"no key of {options.name} is valid any more" if options.revoke else str(answer.json()["key"])


def _in_store(options: argparse.Namespace, role: str) -> str:
    from thrifty.service.keys import digest, make_key
    from thrifty.store import StoredKey, StoreError, open_store

    url, key = options.store or os.environ.get("THRIFTY_STORE") or "sqlite:///thrifty.db", make_key()
    file = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else None
    if file is not None and not options.create and not Path(file).exists():
        raise ValueError(f"there is no store {file}: name one with --store or THRIFTY_STORE, or make this one with --create")
    try:
        store = open_store(url, reading=options.list)
        try:
            if options.list:
                known: list[StoredKey] = store.keys()
                return _table([each._asdict() for each in sorted(known, key=lambda each: each.name)])
            if not options.revoke:
                expires_at = None if options.days is None else time.time() + 86_400 * options.days
                store.add_key(digest(key), options.name, role, expires_at=expires_at)
            elif not store.remove_keys(options.name):
                raise ValueError(f"there is no key of the name {options.name!r}")
        finally:
            store.close()
    except StoreError as error:
        hint = "; if a service is running on it, give its address with --url" if file is not None else ""
        raise ValueError(f"{error}{hint}") from None
    return f"no key of {options.name} is valid any more" if options.revoke else key


def _table(keys: list[dict[str, Any]]) -> str:
    from thrifty.service.keys import written

    columns = ("made_at", "used_at", "expires_at")
    rows = [[_printable(key["name"]), key["role"], *(written(key.get(column)) for column in columns)] for key in keys]
    lines = ["\t".join(row) for row in [["name", "role", "made", "last used", "expires"], *rows]]
    return "\n".join(lines) if keys else "there are no keys"


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _message(answer: Any) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return str(answer.text[:200])
