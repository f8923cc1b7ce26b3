"""Example worlds as plain data, and the generator of logs from them. Only what may know the truth imports this."""

from thrifty.examples.llm import LLM
from thrifty.examples.sms import SMS
from thrifty.examples.specification import Outage, Repricing, Route, Segment, Specification

EXAMPLES = {specification.name: specification for specification in (SMS, LLM)}
"""Every example by its name."""

__all__ = ["EXAMPLES", "LLM", "SMS", "Outage", "Repricing", "Route", "Segment", "Specification"]
