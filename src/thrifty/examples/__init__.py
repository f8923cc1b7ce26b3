"""Example worlds as plain data, and the generator of logs from them. Only code that may know the truth imports this."""

from thrifty.examples.llm import LLM
from thrifty.examples.payments import PAYMENTS
from thrifty.examples.sms import SMS, SMS_REGIONS
from thrifty.examples.specification import ExampleSegment, Outage, Repricing, Route, Specification

EXAMPLES = {specification.name: specification for specification in (SMS, LLM, PAYMENTS)}
"""Every world that has an example log, by its name."""


def checked_example(name: str) -> Specification:
    """The example world of this name.

    >>> checked_example("payments").days
    14.0
    """
    if name not in EXAMPLES:
        raise ValueError(f"unknown example {name!r}: there are {', '.join(EXAMPLES)}")
    return EXAMPLES[name]


__all__ = [
    "EXAMPLES",
    "LLM",
    "PAYMENTS",
    "SMS",
    "SMS_REGIONS",
    "ExampleSegment",
    "Outage",
    "Repricing",
    "Route",
    "Specification",
    "checked_example",
]
