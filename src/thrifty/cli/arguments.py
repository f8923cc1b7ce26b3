"""Arguments that several commands share: each is defined here once, with its help text and the function that reads it."""

import argparse
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

POLICIES = "names, name:parameter=value, name+restart or .py files, separated by commas"
_MOST_DIGITS = 18


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], *, purpose: str, description: str, example: str
) -> Any:
    """The parser of a new command: its purpose stands in the list of commands, the rest in its own help."""
    parser = commands.add_parser(name, help=purpose, description=description, epilog=f"Example: {example}")
    parser.set_defaults(run=run)
    return parser


def whole_number(text: str) -> int:
    """A whole number, also when it is written with an exponent or with underscores.

    >>> whole_number("1e4"), whole_number("10_000"), whole_number("2.5e3")
    (10000, 10000, 2500)
    >>> whole_number("2.5")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: must be a whole number such as 10000, 10_000 or 1e4, got '2.5'
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = Decimal(text)
        if number.is_finite() and number.adjusted() <= _MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    except InvalidOperation:
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number such as 10000, 10_000 or 1e4, got {text!r:.80}")


def add_count(parser: Any, flag: str, meaning: str, default: int | None = None) -> None:
    """Add an option that takes a whole number; its default, where it has one, is shown in the help text."""
    shown = meaning if default is None else f"{meaning}; default {default}"
    parser.add_argument(flag, metavar="N", type=whole_number, default=default, help=shown)


def add_seed(parser: Any, default: int = 0) -> None:
    """Add `--seed`."""
    add_count(parser, "--seed", "the same seed gives the same numbers", default)


def add_runs(parser: Any, default: int) -> None:
    """Add `--runs`."""
    add_count(parser, "--runs", "independent runs", default)


def add_policies(parser: Any, default: str | None, meaning: str = "policies to play") -> None:
    """Add `--policies`; without a default every policy is meant."""
    parser.add_argument("--policies", default=default, help=f"{meaning}: {POLICIES}; default {default or 'all'}")


def add_folder(parser: Any, meaning: str, default: Path | None = None) -> None:
    """Add `--out FOLDER`; it is checked before the command begins."""
    parser.set_defaults(out_is_folder=True)
    parser.add_argument("--out", metavar="FOLDER", type=Path, default=default, help=meaning)


def add_json(parser: Any) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def split_policies(text: str) -> list[str]:
    """The policies in a list separated by commas. The parameters of a policy are separated by commas as well.

    >>> split_policies("cs-ts:prior=shrunk,sigma_0=2,cs-etc")
    ['cs-ts:prior=shrunk,sigma_0=2', 'cs-etc']
    """
    specs: list[str] = []
    for item in text.split(","):
        if specs and "=" in item and not {":", "+"} & set(item.partition("=")[0]):
            specs[-1] += f",{item}"
        else:
            specs.append(item)
    return specs


def read_alphas(text: str) -> list[float]:
    """Subsidy factors from a list separated by commas.

    >>> read_alphas("0.02,0.1")
    [0.02, 0.1]
    """
    from thrifty.problem import checked_alpha

    try:
        return sorted({checked_alpha(float(item)) for item in text.split(",")})
    except ValueError as error:
        raise ValueError(f"--alpha must be numbers in [0, 1] separated by commas, got {text!r}") from error


def read_numbers(flag: str, text: str) -> list[float]:
    """Numbers from a list separated by commas.

    >>> read_numbers("--costs", "1,0.5")
    [1.0, 0.5]
    """
    try:
        return [float(item) for item in text.split(",")]
    except ValueError:
        raise ValueError(f"{flag} must be numbers separated by commas, got {text!r}") from None
