"""Scenarios: realistic worlds, played under every policy and under what people do today."""

from thrifty.scenarios.ledger import Ledger, Line, play
from thrifty.scenarios.worlds import SCENARIOS, Course, Scenario, checked_scenario

__all__ = ["SCENARIOS", "Course", "Ledger", "Line", "Scenario", "checked_scenario", "play"]
