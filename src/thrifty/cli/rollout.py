"""`thrifty rollout`: how far the rollout of a router is, and moving it on."""

import argparse
import json
import os
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "rollout",
        help="show how far a rollout is, or move it",
        description="Show how far the rollout of a router is, or move it on. The exit code is 1 while the router has fallen back.",
    )
    parser.add_argument("url", help="the address of the service, such as http://127.0.0.1:8321")
    parser.add_argument("router", help="the name of the router")
    parser.add_argument("--to", choices=("shadow", "canary", "live"), help="move the rollout there; this ends a fallback")
    parser.add_argument("--share", type=float, help="the share of keys that is routed in a canary, from 0.001 to 0.99")
    parser.add_argument("--key", help="a key with the role view, or admin for --to; THRIFTY_KEY in the environment is safer")
    parser.add_argument("--json", action="store_true", help="print the answer of the service as it is")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show the rollout, after moving it if asked to; 1 while it has fallen back."""
    if options.share is not None and options.to != "canary":
        raise ValueError("--share is the share of a canary: give --to canary with it")
    status = _asked(options)
    if options.json:
        print(json.dumps(status, indent=2))
    else:
        print("\n".join(_lines(status)))
    return int(status["fallback"] is not None)


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    """What the service says, or a ValueError of one line."""
    try:
        from thrifty.client import Client, ServiceError
    except ImportError as error:
        raise ValueError(f"thrifty rollout needs {error.name}: pip install 'thrifty[client]'") from None
    try:
        with Client(options.url, options.key or os.environ.get("THRIFTY_KEY")) as client:
            if options.to is None:
                return client.rollout(options.router)
            return client.move_rollout(options.router, options.to, share=options.share)
    except ServiceError as error:
        raise ValueError(str(error)) from None


def _lines(status: dict[str, Any]) -> list[str]:
    lines = [status["text"]]
    for group in (status["routed"], status["compared"]):
        if group is not None:
            mean = "no outcome yet" if group["mean"] is None else f"mean reward {group['mean']:.4f}"
            lines.append(f"  {group['group']:<8}  {group['decisions']:>11,} decisions  {mean}")
    if status["keys"] is not None:
        lines.append(f"  {status['keys']:,} keys counted, each once; {status['left_out']:,} later decisions of theirs left out")
    if status["waiting"]:
        lines.append(f"  {status['waiting']:,} decisions wait for outcomes, of their own or of earlier ones")
    return lines
