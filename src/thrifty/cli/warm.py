"""`thrifty warm`: compile policies into the cache, for an image or a new machine."""

import argparse
import time
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("warm", help="compile policies for routers ahead of time, so that the first decisions are fast")
    parser.add_argument(
        "policies",
        nargs="*",
        metavar="POLICY",
        help="a name, with parameters and forgetting where needed; default: the default policy",
    )
    parser.add_argument("--all", action="store_true", help="every policy that a router can use")
    parser.add_argument("--unknown-costs", action="store_true", help="also for routers with an arm of unknown price")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compile one policy after another, and print where the result is."""
    from thrifty.interruption import run_interruptibly
    from thrifty.kernel_cache import cache_folder
    from thrifty.policies import list_policies
    from thrifty.router import Settings
    from thrifty.router.engine import engine_for
    from thrifty.router.settings import ROUTER_POLICY

    every = [name for name, found in list_policies().items() if not found.known_truths]
    wanted = every if options.all else options.policies or [ROUTER_POLICY]
    for spec in wanted:
        Settings(alpha=0.0, policy=spec)  # a ValueError where a router cannot use it
    for spec in wanted:
        engine = engine_for(spec)
        for known_costs in (True, False) if options.unknown_costs else (True,):
            if not known_costs and engine.policy.rule_for_unknown_costs is None:
                continue
            started = time.perf_counter()
            run_interruptibly(engine.code(known_costs).load)
            costs = "" if known_costs else ", unknown costs"
            print(f"{spec}{costs}: {time.perf_counter() - started:.1f} s", flush=True)
    print(f"compiled for this machine's processor, in {cache_folder()}")
