"""Simulation: one compiled loop for every rule, replications on all cores, results that keep facts."""

from thrifty.simulation.results import METRICS, PolicyRuns, Runs, summarise
from thrifty.simulation.runner import SimulationInterrupted, simulate

__all__ = ["METRICS", "PolicyRuns", "Runs", "SimulationInterrupted", "simulate", "summarise"]
