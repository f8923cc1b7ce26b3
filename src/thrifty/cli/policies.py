"""`thrifty policies`: list the policies with their parameters, show what the parameters of one mean, or what to cite for it."""

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("policies", help="list the policies and their parameters")
    parser.add_argument("name", nargs="?", help="show what the parameters of this policy mean")
    parser.add_argument("--cite", action="store_true", help="print what to cite, as BibTeX: for this policy, or for all")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print a line per policy, or the parameters of one."""
    from thrifty.policies import list_policies, policy
    from thrifty.policies.contract import Policy
    from thrifty.policies.references import BIBTEX, cite

    if options.cite:
        print(cite(policy(options.name).name) if options.name else "\n\n".join(BIBTEX.values()))
        return

    def defaults(listed: Policy) -> str:
        return ",".join(
            f"{name}={'auto' if parameter.default is None else _short(parameter.default)}"
            for name, parameter in listed.parameters.items()
            if name not in listed.known_truths
        )

    if options.name:
        shown = policy(options.name)
        print(f"{shown.name}: {shown.summary}")
        for name, parameter in shown.parameters.items():
            if name not in shown.known_truths:
                print(
                    f"  {name}: {parameter.meaning}; default {'auto' if parameter.default is None else _short(parameter.default)}"
                )
        return
    known = list_policies()
    specs = {name: f"{name}:{defaults(listed)}".rstrip(":") for name, listed in known.items()}
    width = max(len(spec) for spec in specs.values())
    for name, spec in specs.items():
        print(f"{spec:<{width}}  {known[name].summary}")


def _short(default: float | str) -> str:
    return f"{default:g}" if isinstance(default, float) else default
