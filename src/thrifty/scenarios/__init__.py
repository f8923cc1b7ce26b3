"""Scenarios: realistic worlds, played under every policy and under what people do today."""

from thrifty.scenarios.play import PolicyResult, ScenarioResult, play
from thrifty.scenarios.worlds import SCENARIOS, Scenario, ScenarioSegment, checked_scenario

__all__ = ["SCENARIOS", "PolicyResult", "Scenario", "ScenarioResult", "ScenarioSegment", "checked_scenario", "play"]
